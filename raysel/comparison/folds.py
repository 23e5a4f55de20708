"""Outer folds that the members of a comparison share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from raysel.cv.plan import NestedPlan
from raysel.errors import ConfigError, DirectoryError


@dataclass(frozen=True)
class OuterFolds:
    """Outer folds as the ``plan.json`` of a study lists them."""

    names: tuple[str, ...]
    repeats: tuple[int, ...]
    train: tuple[tuple[int, ...], ...]
    test: tuple[tuple[int, ...], ...]

    @classmethod
    def read(cls, path: Path) -> OuterFolds:
        """Read the outer folds from the ``plan.json`` of a study."""
        try:
            plan = NestedPlan.read(path)
        except ConfigError as error:
            raise DirectoryError(str(error).removeprefix("cv.plan: ")) from error
        return cls(
            tuple(fold.name for fold in plan.outer),
            tuple(fold.repeat for fold in plan.outer),
            tuple(tuple(fold.train.tolist()) for fold in plan.outer),
            tuple(tuple(fold.test.tolist()) for fold in plan.outer),
        )

    @cached_property
    def are_draws(self) -> bool:
        """Whether each repeat has one outer fold: a random draw of the training set (``cv.train_per_class``)."""
        return set(Counter(self.repeats).values()) == {1}

    @cached_property
    def ratio(self) -> float:
        """Number of test samples divided by the number of training samples, mean over the outer folds."""
        ratios = [len(test) / len(train) for train, test in zip(self.train, self.test, strict=True)]
        return sum(ratios) / len(ratios)

    def in_words(self) -> str:
        """Return number, kind and sizes of the folds, e.g. ``"5 outer folds (80 training and 20 test samples)"``."""
        sizes = " and ".join(
            f"{_range([len(rows) for rows in sets])} {what}"
            for sets, what in ((self.train, "training"), (self.test, "test"))
        )
        return f"{self.count_in_words()} ({sizes} samples)"

    def count_in_words(self) -> str:
        """Return number and kind of the folds, e.g. ``"20 draws of the training set"``."""
        return f"{len(self.names)} {'draws of the training set' if self.are_draws else 'outer folds'}"

    @property
    def are_repeated(self) -> bool:
        """Whether every sample is tested more than once, in several repeats of a cross-validation."""
        return not self.are_draws and len(set(self.repeats)) > 1


def _range(sizes: list[int]) -> str:
    return str(min(sizes)) if min(sizes) == max(sizes) else f"{min(sizes)}-{max(sizes)}"
