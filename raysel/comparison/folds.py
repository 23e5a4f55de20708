"""Outer folds that the members of a comparison share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from raysel.cv.plan import FINAL
from raysel.errors import DirectoryError
from raysel.files import parse_json


@dataclass(frozen=True)
class OuterFolds:
    """Outer folds as the ``plan.json`` of a study lists them.

    Parameters
    ----------
    names : tuple of str
        Name of each outer fold.
    repeats : tuple of int
        Number of the repeat that each outer fold belongs to.
    train, test : tuple of tuple of int
        Indices of the training and the test samples of each outer fold.
    """

    names: tuple[str, ...]
    repeats: tuple[int, ...]
    train: tuple[tuple[int, ...], ...]
    test: tuple[tuple[int, ...], ...]

    @classmethod
    def read(cls, path: Path) -> OuterFolds:
        """Read the outer folds from the ``plan.json`` of a study.

        Parameters
        ----------
        path : Path
            Path of the file.

        Returns
        -------
        OuterFolds
            The folds, without the final one.

        Raises
        ------
        DirectoryError
            If the file cannot be read as a plan with outer folds.
        """
        try:
            raw = parse_json(path.read_text(encoding="utf-8"))
            folds = [fold for fold in raw["folds"] if fold["name"] != FINAL]
            found = cls(
                tuple(str(fold["name"]) for fold in folds),
                tuple(int(fold["repeat"]) for fold in folds),
                tuple(tuple(fold["train"]) for fold in folds),
                tuple(tuple(fold["test"]) for fold in folds),
            )
        except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
            raise DirectoryError(f"{path} cannot be read as the plan.json of a study: {error!r}.") from error
        if not found.names or not all(found.train) or not all(found.test):
            raise DirectoryError(f"{path} lists no outer folds with training and test samples.")
        return found

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
