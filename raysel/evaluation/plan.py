"""Folds of a nested cross-validation: every index and seed, decided once before any fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from raysel.core.arrays import IntArray, LabelArray
from raysel.core.errors import ConfigError
from raysel.core.files import read_json
from raysel.core.machine import format_bytes, machine_memory
from raysel.data.targets import find_target
from raysel.evaluation.records import FINAL
from raysel.evaluation.splitters import Blocks, draw_per_class, split

Purpose = Literal[
    "outer split",
    "inner split",
    "refit",
    "inner fit",
    "sampler",
    "trial order",
    "halves",
    "half fit",
    "permutation",
    "noise",
    "claims",
    "decoys",
]

_PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
#: Largest share of the machine's memory that the indices of all folds take.
_SHARE = 0.25


def derived_seed(seed: int, purpose: Purpose, *indices: int) -> int:
    """Derive a seed for one purpose, independent of the seeds for all others.

    Purpose and indices are the spawn key of NumPy's ``SeedSequence``. They are not passed as
    entropy, because it is padded with zeros: ``[s, r]`` and ``[s, r, 0]`` would give the same
    state.
    """
    key = (_PURPOSES.index(purpose), *indices)
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])


@dataclass(frozen=True)
class InnerFold:
    """One inner split of an outer training set."""

    train: IntArray
    validation: IntArray


@dataclass(frozen=True)
class OuterFold:
    """One outer fold and the inner folds of its training set.

    The fold named ``final`` trains on all samples and has no test samples.
    """

    name: str
    repeat: int
    index: int
    train: IntArray
    test: IntArray
    inner: tuple[InnerFold, ...]

    def random_state(self, seed: int, inner: int | None = None) -> int:
        """Return the seed of a fit, which does not depend on the order of the trials."""
        if inner is None:
            return derived_seed(seed, "refit", self.repeat, self.index)
        return derived_seed(seed, "inner fit", self.repeat, self.index, inner)


def name_draws(names: Iterable[str]) -> bool:
    """Whether names of outer folds are of draws of the training set, one in each repeat."""
    each = list(names)
    return bool(each) and all(re.fullmatch(r"repeat\d+_outer0", name) for name in each)


def _check_memory(n_samples: int, n_folds: int, n_inner: int) -> None:
    """Check the memory that the indices of all folds take, before it is taken."""
    claimed = np.dtype(np.int64).itemsize * n_samples * n_folds * (1 + n_inner)
    if claimed > _SHARE * machine_memory():
        raise ConfigError(
            f"{n_folds} folds of {n_samples} samples with {n_inner} inner folds each would take"
            f" {format_bytes(claimed)}, above a quarter of this machine's memory. Take fewer"
            " samples, or less of cv.repeats, cv.outer or cv.inner."
        )


@dataclass(frozen=True)
class NestedPlan:
    """Outer folds, the inner folds of each, and the final fold if there is one."""

    n_samples: int
    folds: tuple[OuterFold, ...]

    @classmethod
    def make(
        cls,
        y: LabelArray,
        *,
        outer: Any,
        inner: Any,
        repeats: int,
        groups: LabelArray | None,
        seed: int,
        train_per_class: int | None = None,
        blocks: Blocks | None = None,
        final: bool = True,
    ) -> NestedPlan:
        """Draw the folds, by numbers of folds or by splitters of scikit-learn.

        `y` is (n_samples,) or (n_samples, n_labels), `groups` (n_samples,).
        """
        if isinstance(outer, int) and isinstance(inner, int):
            _check_memory(len(y), repeats * outer + final, inner)
        everything = np.arange(len(y), dtype=np.int64)

        def parted(
            rows: IntArray, n_splits: Any, state: int, where: str
        ) -> list[tuple[IntArray, IntArray]]:
            members = None if groups is None else groups[rows]
            if not isinstance(n_splits, int):
                pairs = n_splits.split(rows, y[rows], members)
                return [(np.asarray(a), np.asarray(b)) for a, b in pairs]
            if blocks is not None:
                return blocks.split(rows, y[rows], n_splits, random_state=state, where=where)
            return split(y[rows], n_splits, groups=members, random_state=state, where=where)

        def nested(
            name: str, repeat: int, index: int, train: IntArray, test: IntArray
        ) -> OuterFold:
            state = derived_seed(seed, "inner split", repeat, index)
            pairs = parted(train, inner, state, f"the inner folds of {name}: cv.inner")
            inners = tuple(InnerFold(train[a], train[b]) for a, b in pairs)
            return OuterFold(
                name=name, repeat=repeat, index=index, train=train, test=test, inner=inners
            )

        folds = []
        for repeat in range(repeats):
            state = derived_seed(seed, "outer split", repeat)
            if train_per_class is None:
                pairs = parted(everything, outer, state, "cv.outer")
            else:
                pairs = [draw_per_class(y, train_per_class, groups=groups, random_state=state)]
            prefix = ""
            if repeats > 1:
                prefix = f"repeat{repeat}_"
            folds += [nested(f"{prefix}outer{i}", repeat, i, *pair) for i, pair in enumerate(pairs)]
        if final:
            index = outer if isinstance(outer, int) else len(folds)
            folds.append(nested(FINAL, 0, index=index, train=everything, test=everything[:0]))
        return cls(len(y), tuple(folds))

    @property
    def outer(self) -> tuple[OuterFold, ...]:
        """Outer folds without the final one."""
        return tuple(fold for fold in self.folds if fold.name != FINAL)

    @property
    def final(self) -> OuterFold | None:
        """Fold that trains on all samples; None if there is none."""
        return self.folds[-1] if self.folds[-1].name == FINAL else None

    def fold(self, name: str) -> OuterFold:
        """Return the fold with a name."""
        return next(fold for fold in self.folds if fold.name == name)

    def training_sets(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield training and validation samples of each inner fold, by outer fold."""
        for fold in self.folds:
            for inner in fold.inner:
                yield inner.train, inner.validation

    def held_out(self) -> Iterator[tuple[str, IntArray]]:
        """Yield the samples of each test and validation set with what they are."""
        for fold in self.folds:
            if len(fold.test):
                yield f"{fold.name}'s test samples", fold.test
            for number, inner in enumerate(fold.inner):
                yield f"{fold.name}'s inner fold {number} validation samples", inner.validation

    def lacking(self, y: LabelArray, names: Sequence[str]) -> Iterator[str]:
        """Describe the labels of an indicator that no sample of a set has.

        `y` is (n_samples, n_labels).
        """
        for fold in self.folds:
            sets = {f"{fold.name}'s test": fold.test, f"{fold.name}'s training": fold.train}
            for number, inner in enumerate(fold.inner):
                sets[f"{fold.name}'s inner fold {number} training"] = inner.train
                sets[f"{fold.name}'s inner fold {number} validation"] = inner.validation
            for where, index in sets.items():
                if not len(index):  # the final fold has no test samples
                    continue
                for missing in find_target(y).missing(y, index).tolist():
                    yield f"{names[missing]} has no positives in {where} samples"

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain data, as `load` reads it from a JSON file."""
        return {
            "n_samples": self.n_samples,
            "folds": [
                {
                    "name": fold.name,
                    "repeat": fold.repeat,
                    "index": fold.index,
                    "train": fold.train.tolist(),
                    "test": fold.test.tolist(),
                    "inner": [
                        {"train": i.train.tolist(), "validation": i.validation.tolist()}
                        for i in fold.inner
                    ],
                }
                for fold in self.folds
            ],
        }

    @classmethod
    def read(cls, path: Path) -> NestedPlan:
        """Read the folds from a file, and check them against each other."""
        plan = cls._parsed(path)
        plan.check_splits(f"cv.plan: {path}")
        return plan

    @classmethod
    def load(
        cls, path: Path, y: LabelArray, groups: LabelArray | None, *, final: bool = True
    ) -> NestedPlan:
        """Read the folds from a file and check them against the data.

        `y` is (n_samples,) or (n_samples, n_labels), `groups` (n_samples,).
        """
        plan = cls._parsed(path)
        plan.check(y, groups, f"cv.plan: {path}")
        if final and plan.final is None:
            raise ConfigError(
                f"cv.plan: {path}: the plan lacks the fold `final`, as those of studies with"
                " cv.final: false do. Set cv.final to false, or give the plan of a study with a"
                " final fold."
            )
        if final:
            return plan
        return cls(plan.n_samples, plan.outer)

    @classmethod
    def _parsed(cls, path: Path) -> NestedPlan:
        """Return the folds of a file as they are."""
        try:
            raw = read_json(path.resolve())
            folds = tuple(
                OuterFold(
                    name=_name(fold["name"]),
                    repeat=_count(fold["repeat"]),
                    index=_count(fold["index"]),
                    train=_indices(fold["train"]),
                    test=_indices(fold["test"]),
                    inner=tuple(map(_inner_fold, fold["inner"])),
                )
                for fold in raw["folds"]
            )
            return cls(_count(raw["n_samples"]), folds)
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RuntimeError) as error:
            raise ConfigError(
                f"cv.plan: {path} cannot be read as the plan.json of a study: {error!r}. Give one"
                " that a study wrote."
            ) from error

    def check_splits(self, origin: str) -> None:
        """Check that no sample is on both sides, and that inner folds lie inside outer ones."""

        def refuse(what: str) -> None:
            raise ConfigError(f"{origin}: {what}")

        names = [fold.name for fold in self.folds]
        if len(self.outer) < 2 or FINAL in names[:-1] or len(set(names)) < len(names):
            refuse(
                "the plan must have two or more outer folds with distinct names, and the fold"
                " `final` last."
            )
        if len({(fold.repeat, fold.index) for fold in self.folds}) < len(names):
            refuse(
                "two folds have the same repeat and index, so their random states would be the"
                " same."
            )
        final = self.final
        if final is not None and (len(final.train) != self.n_samples or len(final.test)):
            refuse("the fold `final` must train on all samples and have no test samples.")
        for fold in self.folds:
            if fold.name != FINAL and not len(fold.test):
                refuse(f"{fold.name} has no test samples.")
            if len(fold.inner) < 2 or not all(len(inner.validation) for inner in fold.inner):
                refuse(
                    f"{fold.name} must have at least two inner folds, each with validation samples."
                )
            for number, inner in enumerate(fold.inner):
                if not np.isin(np.concatenate([inner.train, inner.validation]), fold.train).all():
                    refuse(
                        f"{fold.name}, inner fold {number} uses samples from outside its outer"
                        " training set."
                    )
            for train, held_out, label in _splits(fold):
                if fault := _find_fault(train, held_out, self.n_samples):
                    refuse(f"{label}: {fault}")

    def check(self, y: LabelArray, groups: LabelArray | None, origin: str) -> None:
        """Check that a plan fits the data and has no test or validation sample in a training set.

        `y` is (n_samples,) or (n_samples, n_labels), `groups` (n_samples,).
        """
        if self.n_samples != len(y):
            raise ConfigError(
                f"{origin}: the plan was made for {self.n_samples} samples, but the data set has"
                f" {len(y)}."
            )
        self.check_splits(origin)
        for fold in self.folds:
            for train, held_out, label in _splits(fold):
                if fault := _find_label_fault(train, held_out, y, groups):
                    raise ConfigError(f"{origin}: {label}: {fault}")


def _splits(fold: OuterFold) -> Iterator[tuple[IntArray, IntArray, str]]:
    """Yield training and held-out samples of an outer fold and of its inner ones, with a name."""
    yield fold.train, fold.test, fold.name
    for number, inner in enumerate(fold.inner):
        yield inner.train, inner.validation, f"{fold.name}, inner fold {number}"


def _find_fault(train: IntArray, held_out: IntArray, n_samples: int) -> str | None:
    """Describe the first error of a split; None if it is valid."""
    both = np.concatenate([train, held_out])
    if not len(train) or both.min() < 0 or both.max() >= n_samples:
        return f"it has no training samples, or an index outside 0..{n_samples - 1}."
    if np.bincount(both).max() > 1:
        return "a sample is listed twice, or is on both sides of the split."
    return None


def _find_label_fault(
    train: IntArray, held_out: IntArray, y: LabelArray, groups: LabelArray | None
) -> str | None:
    """Describe the first label or group that a split must not have; None if there is none."""
    if fault := find_target(y).untrainable(y, train, "its training set"):
        return f"{fault}."
    if groups is not None and len(shared := np.intersect1d(groups[train], groups[held_out])):
        return f"group {shared[0]!s} is on both sides."
    return None


def _name(raw: Any) -> str:
    if not isinstance(raw, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", raw):
        raise TypeError(
            "the name of a fold must consist of letters, digits, - and _, because files are named"
            " after it"
        )
    return raw


def _count(raw: Any) -> int:
    if type(raw) is not int or not 0 <= raw < 2**63:
        raise TypeError("n_samples, repeat and index must be whole numbers")
    return raw


def _inner_fold(raw: Any) -> InnerFold:
    return InnerFold(_indices(raw["train"]), _indices(raw["validation"]))


def _indices(raw: Any) -> IntArray:
    if not isinstance(raw, list) or not all(type(i) is int for i in raw):
        raise TypeError("indices must be lists of whole numbers")
    return np.array(raw, dtype=np.int64)
