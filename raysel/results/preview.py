"""Preview of a study's data, kept in its directory: label, class counts, groups, ranges and what the reader said."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.core.files import instance_of, parse_json, write_text_atomically
from raysel.data.dataset import Dataset
from raysel.data.task_blocks import blocks_of


@dataclass(frozen=True)
class Preview:
    """Description of the data that is shown before a study runs and in its report."""

    classes: list[str]
    counts: list[int]
    is_multilabel: bool
    n_groups: int | None
    ranges: list[tuple[str, float, float, float]]
    label: str | None = None
    group_sizes: tuple[int, int] | None = None
    values: tuple[float, float, float] | None = None
    n_by_task: tuple[int, ...] = ()
    n_unlabelled: int | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Dataset) -> Preview:
        """Return the preview of a data set."""
        counts = data.y.sum(axis=0) if data.is_multilabel else np.unique(data.y, return_counts=True)[1]
        sizes = None if data.groups is None else np.unique(data.groups, return_counts=True)[1]
        blocks = blocks_of(data.X)
        named = data.parts()
        return cls(
            classes=[str(name) for name in data.classes],
            counts=counts.tolist(),
            is_multilabel=data.is_multilabel,
            n_groups=None if sizes is None else len(sizes),
            ranges=[(name, *_range([own])) for name, own in named.items()],
            label=data.label,
            group_sizes=None if sizes is None else (int(sizes.min()), int(sizes.max())),
            values=_range(blocks),
            n_by_task=tuple(map(len, blocks)) if data.layout.is_multitask else (),
            n_unlabelled=int((data.y.sum(axis=1) == 0).sum()) if data.is_multilabel else None,
            notes=tuple(data.notes),
        )

    def write(self, path: Path) -> None:
        """Write the preview as JSON."""
        write_text_atomically(path, json.dumps(asdict(self)), durable=False)

    @classmethod
    def read(cls, path: Path) -> Preview | None:
        """Read a preview; None if there is none, or the file is damaged."""
        try:
            return instance_of(cls, parse_json(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError):
            return None


def _range(blocks: list[FloatArray] | tuple[FloatArray, ...]) -> tuple[float, float, float]:
    """Smallest, mean and largest value of arrays."""
    total = sum(float(block.sum()) for block in blocks)
    return (
        min(float(block.min()) for block in blocks),
        total / sum(block.size for block in blocks),
        max(float(block.max()) for block in blocks),
    )
