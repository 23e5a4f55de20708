"""Preview of a study's data, kept in its directory: class counts, and the range of each modality."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from raysel.data.dataset import Dataset
from raysel.data.layouts import Modalities
from raysel.files import write_text_atomically


@dataclass(frozen=True)
class Preview:
    """What a report shows of the data beside the mean sample.

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
    ranges : list of (str, float, float, float)
        Name, smallest, mean and largest value of each modality; empty if there are none.
    """

    classes: list[str]
    counts: list[int]
    is_multilabel: bool
    n_groups: int | None
    ranges: list[tuple[str, float, float, float]]

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
        ranges = []
        if isinstance(data.layout, Modalities) and isinstance(data.X, np.ndarray):
            for name, columns in data.layout.slices().items():
                own = data.X[:, columns]
                ranges.append((name, float(own.min()), float(own.mean()), float(own.max())))
        return cls(
            [str(name) for name in data.classes],
            counts.tolist(),
            data.is_multilabel,
            None if data.groups is None else len(np.unique(data.groups)),
            ranges,
        )

    def write(self, path: Path) -> None:
        """Write the preview as JSON."""
        write_text_atomically(path, json.dumps(asdict(self)), durable=False)

    @classmethod
    def read(cls, path: Path) -> Preview | None:
        """Read a preview.

        Parameters
        ----------
        path : Path
            The file.

        Returns
        -------
        Preview or None
            None if the file is missing, as in studies of earlier versions, or is not a preview: the report does
            without.
        """
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                [str(name) for name in raw["classes"]],
                [int(count) for count in raw["counts"]],
                bool(raw["is_multilabel"]),
                None if raw["n_groups"] is None else int(raw["n_groups"]),
                [(str(name), float(low), float(mean), float(high)) for name, low, mean, high in raw["ranges"]],
            )
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
