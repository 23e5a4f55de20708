"""Every index of a nested cross-validation, decided once from data, settings and seed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raysel.arrays import IntArray, LabelArray
from raysel.cv.seeds import derived_seed
from raysel.cv.splitters import draw_per_class, split
from raysel.errors import ConfigError

FINAL = "final"


@dataclass(frozen=True)
class InnerFold:
    """One inner split; both index arrays point into the whole data set."""

    train: IntArray
    validation: IntArray


@dataclass(frozen=True)
class OuterFold:
    """One outer fold and the inner folds of its training set.

    The fold named ``final`` trains on everything and has no test samples.
    """

    name: str
    repeat: int
    index: int
    train: IntArray
    test: IntArray
    inner: tuple[InnerFold, ...]

    def random_state(self, seed: int, inner: int | None = None) -> int:
        """Seed of the fit on inner fold ``inner``, or of the refit: never of the trial's order."""
        if inner is None:
            return derived_seed(seed, "refit", self.repeat, self.index)
        return derived_seed(seed, "inner fit", self.repeat, self.index, inner)


@dataclass(frozen=True)
class NestedPlan:
    """Outer folds, the inner folds of each, and the final fold.

    Examples
    --------
    >>> import numpy as np
    >>> plan = NestedPlan.make(np.array([0, 1] * 10), outer=2, inner=2, repeats=1, groups=None, seed=0)
    >>> [fold.name for fold in plan.folds]
    ['outer0', 'outer1', 'final']
    """

    n_samples: int
    folds: tuple[OuterFold, ...]

    @classmethod
    def make(
        cls,
        y: LabelArray,
        *,
        outer: int,
        inner: int,
        repeats: int,
        groups: LabelArray | None,
        seed: int,
        train_per_class: int | None = None,
    ) -> NestedPlan:
        """Draw the folds.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
        outer, inner, repeats : int
            ``repeats`` repeats the whole outer splitting.
        groups : ndarray of shape (n_samples,) or None
            Kept whole at every level.
        seed : int
        train_per_class : int, optional
            Samples of each class in an outer training set, one such draw a repeat; all others are
            tested, and ``outer`` is not used.

        Returns
        -------
        NestedPlan

        Raises
        ------
        DataError
            If the data cannot fill the folds.
        """
        everything = np.arange(len(y), dtype=np.int64)

        def nested(name: str, repeat: int, index: int, train: IntArray, test: IntArray) -> OuterFold:
            state = derived_seed(seed, "inner split", repeat, index)
            pairs = split(
                y[train],
                inner,
                groups=None if groups is None else groups[train],
                random_state=state,
                where=f"the inner folds of {name}: cv.inner",
            )
            inners = tuple(InnerFold(train[a], train[b]) for a, b in pairs)
            return OuterFold(name, repeat, index, train, test, inners)

        folds = []
        for repeat in range(repeats):
            state = derived_seed(seed, "outer split", repeat)
            if train_per_class is None:
                pairs = split(y, outer, groups=groups, random_state=state, where="cv.outer")
            else:
                pairs = [draw_per_class(y, train_per_class, groups=groups, random_state=state)]
            prefix = f"repeat{repeat}_" if repeats > 1 else ""
            folds += [nested(f"{prefix}outer{i}", repeat, i, *pair) for i, pair in enumerate(pairs)]
        folds.append(nested(FINAL, 0, outer, everything, everything[:0]))
        return cls(len(y), tuple(folds))

    @property
    def outer(self) -> tuple[OuterFold, ...]:
        """The folds that have test samples."""
        return tuple(fold for fold in self.folds if fold.name != FINAL)

    @property
    def final(self) -> OuterFold:
        """The fold that trains on everything."""
        return self.folds[-1]

    def training_sets(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Every inner (train, validation), outer fold by outer fold."""
        for fold in self.folds:
            for inner in fold.inner:
                yield inner.train, inner.validation

    def lacking(self, y: LabelArray, names: Sequence[str]) -> Iterator[str]:
        """Labels of an indicator that a set of samples lacks, in words.

        Parameters
        ----------
        y : ndarray of shape (n_samples, n_labels)
        names : sequence of str
            The labels'.

        Yields
        ------
        str
            E.g. ``"horse has no positives in outer2's test samples"``.
        """
        for fold in self.folds:
            sets = {f"{fold.name}'s test": fold.test, f"{fold.name}'s training": fold.train}
            for number, inner in enumerate(fold.inner):
                sets[f"{fold.name}'s inner fold {number} training"] = inner.train
                sets[f"{fold.name}'s inner fold {number} validation"] = inner.validation
            for where, index in sets.items():
                for missing in np.flatnonzero(~y[index].any(axis=0)).tolist() if len(index) else []:
                    yield f"{names[missing]} has no positives in {where} samples"

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back."""
        return {
            "n_samples": self.n_samples,
            "folds": [
                {
                    "name": fold.name,
                    "repeat": fold.repeat,
                    "index": fold.index,
                    "train": fold.train.tolist(),
                    "test": fold.test.tolist(),
                    "inner": [{"train": i.train.tolist(), "validation": i.validation.tolist()} for i in fold.inner],
                }
                for fold in self.folds
            ],
        }

    @classmethod
    def load(cls, path: Path, y: LabelArray, groups: LabelArray | None) -> NestedPlan:
        """Read given folds and see that they are honest for these data.

        Parameters
        ----------
        path : Path
            A ``plan.json``.
        y : ndarray of shape (n_samples,)
        groups : ndarray of shape (n_samples,) or None

        Returns
        -------
        NestedPlan

        Raises
        ------
        ConfigError
            If the file is no plan, belongs to other data, or leaks.
        """
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            folds = tuple(
                OuterFold(
                    _name(fold["name"]),
                    _count(fold["repeat"]),
                    _count(fold["index"]),
                    _indices(fold["train"]),
                    _indices(fold["test"]),
                    tuple(InnerFold(_indices(i["train"]), _indices(i["validation"])) for i in fold["inner"]),
                )
                for fold in raw["folds"]
            )
            plan = cls(_count(raw["n_samples"]), folds)
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise ConfigError(f"cv.plan: {path} is no plan.json of a study ({error!r}).") from error
        plan.check(y, groups, str(path))
        return plan

    def check(self, y: LabelArray, groups: LabelArray | None, origin: str) -> None:
        """Refuse a plan that does not fit the data or lets test samples into training.

        Raises
        ------
        ConfigError
        """

        def refuse(what: str) -> None:
            raise ConfigError(f"cv.plan: {origin}: {what}")

        if self.n_samples != len(y):
            refuse(f"it was made for {self.n_samples} samples and the data set has {len(y)}.")
        names = [fold.name for fold in self.folds]
        if len(names) < 3 or names[-1] != FINAL or len(set(names)) < len(names):
            refuse("it needs two or more distinct outer folds and, last, the fold `final`.")
        if len({(fold.repeat, fold.index) for fold in self.folds}) < len(names):
            refuse("two folds share their repeat and index, from which their random states come.")
        if len(self.final.train) != len(y) or len(self.final.test):
            refuse("the fold `final` must train on everything and test on nothing.")
        for fold in self.folds:
            if fold.name != FINAL and not len(fold.test):
                refuse(f"{fold.name} has no test samples.")
            if len(fold.inner) < 2 or not all(len(inner.validation) for inner in fold.inner):
                refuse(f"{fold.name} needs at least two inner folds, each with validation samples.")
            inside = set(fold.train.tolist())
            pairs = [(fold.train, fold.test, fold.name)]
            for number, inner in enumerate(fold.inner):
                label = f"{fold.name}, inner fold {number}"
                pairs.append((inner.train, inner.validation, label))
                if not inside.issuperset(inner.train.tolist()) or not inside.issuperset(inner.validation.tolist()):
                    refuse(f"{label} uses samples from outside its outer training set.")
            for train, held_out, label in pairs:
                if fault := _fault(train, held_out, y, groups):
                    refuse(f"{label}: {fault}")


def _fault(train: IntArray, held_out: IntArray, y: LabelArray, groups: LabelArray | None) -> str | None:
    """What is wrong with one split, if anything."""
    both = np.concatenate([train, held_out])
    if not len(train) or both.min() < 0 or both.max() >= len(y):
        return f"it has no training samples, or an index outside 0..{len(y) - 1}."
    if len(np.unique(both)) < len(both):
        return "it holds a sample twice, or out and in at once."
    if len(missing := np.setdiff1d(y, y[train])):
        return f"class {missing[0]!s} is missing from its training set."
    if groups is not None and len(shared := np.intersect1d(groups[train], groups[held_out])):
        return f"group {shared[0]!s} is on both sides."
    return None


def _name(raw: Any) -> str:
    if not isinstance(raw, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", raw):
        raise TypeError("a fold's name, which names its files, is of letters, digits, - and _")
    return raw


def _count(raw: Any) -> int:
    if type(raw) is not int or not 0 <= raw < 2**63:
        raise TypeError("n_samples, repeat and index must be whole numbers")
    return raw


def _indices(raw: Any) -> IntArray:
    if not isinstance(raw, list) or not all(type(i) is int for i in raw):
        raise TypeError("indices must be lists of whole numbers")
    return np.array(raw, dtype=np.int64)
