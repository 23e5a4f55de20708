"""Preview of a study's data: class counts, and mean and range of each feature, kept in the study's directory."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from raysel.data.dataset import Dataset
from raysel.data.task_blocks import TaskBlocks
from raysel.files import write_text_atomically

#: Largest number of features whose means are kept.
MOST_FEATURES = 200_000
_DIGITS = 6


@dataclass(frozen=True)
class Preview:
    """What a report shows of the data themselves.

    Parameters
    ----------
    classes : list of str
        Names of the classes, or of the labels of a multi-label data set.
    counts : list of int
        Number of samples of each class, or with each label.
    is_multilabel : bool
        Whether a sample can have several labels.
    n_groups : int or None
        Number of groups of samples; None if there are no groups.
    mean, minimum, maximum : list of float
        Of each feature over all samples (of its task), to six digits; empty if there are too many features.
    """

    classes: list[str]
    counts: list[int]
    is_multilabel: bool
    n_groups: int | None
    mean: list[float]
    minimum: list[float]
    maximum: list[float]

    @classmethod
    def of(cls, data: Dataset) -> Preview:
        """Return the preview of a data set.

        Parameters
        ----------
        data : Dataset
            The data set.

        Returns
        -------
        Preview
            Plain data.
        """
        counts = data.y.sum(axis=0) if data.is_multilabel else np.unique(data.y, return_counts=True)[1]
        blocks = data.X.blocks if isinstance(data.X, TaskBlocks) else (data.X,)
        kept = data.n_features <= MOST_FEATURES
        mean, low, high = (
            [float(f"{value:.{_DIGITS}g}") for block in blocks for value in reduce(block, axis=0)] if kept else []
            for reduce in (np.mean, np.min, np.max)
        )
        return cls(
            [str(name) for name in data.classes],
            counts.tolist(),
            data.is_multilabel,
            None if data.groups is None else len(np.unique(data.groups)),
            mean,
            low,
            high,
        )

    def write(self, path: Path) -> None:
        """Write the preview as JSON."""
        write_text_atomically(path, json.dumps(asdict(self)), durable=False)

    @classmethod
    def read(cls, path: Path, n_features: int) -> Preview | None:
        """Read a preview.

        Parameters
        ----------
        path : Path
            The file.
        n_features : int
            Number of features of the study.

        Returns
        -------
        Preview or None
            None if the file is missing, as in studies of earlier versions, or is not a preview of these features: the
            report does without.
        """
        try:
            found = cls(**json.loads(path.read_text(encoding="utf-8")))
            means = np.array([found.mean, found.minimum, found.maximum], dtype=np.float64)
            is_whole = len(found.classes) == len(found.counts) and means.shape in ((3, n_features), (3, 0))
        except (OSError, ValueError, TypeError, RecursionError):
            return None
        return found if is_whole and np.isfinite(means).all() else None
