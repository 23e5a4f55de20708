"""Prepared samples of a study, as tests for claims take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.errors import DataError, StudyError
from raysel.data.targets.folds import Units
from raysel.evaluation.confounds import encode_confounds, has_confounds
from raysel.evaluation.plan import derived_seed
from raysel.evaluation.split import Split
from raysel.numerics.conditional_tests import Folds, independent_columns
from raysel.study.definition import Study

#: Folds that choose penalties, and the fewest independent units of samples of a test.
_N_FOLDS, _FEWEST_UNITS = 5, 20
#: Standard deviation below which confounds leave nothing of a column.
_NOTHING = 1e-6


@dataclass(frozen=True, eq=False)
class Samples:
    """Prepared samples of a study, as the tests take them."""

    #: Columns that are not constant, without what confounds tell, with mean 0 and variance 1; shape
    #: (n, d).
    X: FloatArray
    #: Labels without what confounds tell, as `independent_columns`; shape (n, k).
    Y: FloatArray
    #: Feature of each column; shape (d,).
    origin: IntArray
    units: Units
    #: Folds that choose penalties.
    folds: Folds
    #: Standardised columns of the confounds; shape (n, n_confounds).
    confounds: FloatArray

    @classmethod
    def of(cls, study: Study) -> Samples:
        """Prepare all samples of a study."""
        dataset = study.dataset
        if dataset.layout.is_multitask:
            raise DataError(
                f"{dataset.name} has samples of several tasks, which have no columns in common; run"
                " a study of one of them."
            )
        units = Units.find(study.kept_whole, dataset.n_samples)
        check_units(units.n, units.noun, dataset.name)
        split = study.fit_split(np.arange(dataset.n_samples))
        X, origin = finite_columns(split, dataset.name), origin_of(split)
        confounds = np.empty((len(X), 0))
        varies = np.ptp(X, axis=0) > 0
        X, origin = _standardised(X[:, varies]), origin[varies]
        target, y = dataset.target, dataset.y
        Y = independent_columns(target.contrasts(y))
        if has_confounds(split):
            confounds = encode_confounds(split)
            X, Y = without(confounds, X), without(confounds, Y)
            if Y.std(axis=0).max() <= _NOTHING:
                raise StudyError(
                    f"the confounds of {dataset.name} tell the label exactly; no feature can tell"
                    " anything beside them."
                )
            varies = X.std(axis=0) > _NOTHING
            X, origin = _standardised(X[:, varies]), origin[varies]
            Y = independent_columns(Y)
        folds = target.folds(
            y,
            _N_FOLDS,
            groups=study.kept_whole,
            random_state=derived_seed(study.config.seed, "claims"),
            where="the folds of claims",
        )
        return cls(X, Y, origin, units, folds, confounds)


def check_units(n: int, noun: str, name: str) -> None:
    """Refuse fewer independent samples or groups than a test needs."""
    if n < _FEWEST_UNITS:
        raise StudyError(
            f"{name} has {n} independent {noun}s; claims need at least {_FEWEST_UNITS}."
        )


def finite_columns(split: Split, name: str) -> FloatArray:
    """Return the prepared training samples; an error if cells are empty or text."""
    X: Any = split.X_train
    if not isinstance(X, np.ndarray) or not np.isfinite(X).all():
        raise DataError(
            f"{name} has empty cells or text after its preparation; list the steps that fill and"
            " encode them in dataset.prepare, e.g. [impute, encode]."
        )
    return X


def origin_of(split: Split) -> IntArray:
    """Return the feature of each prepared column; an error if features are joined."""
    if split.outputs is None:
        return np.arange(split.X_train.shape[1])
    if split.outputs.joined_to is not None:
        raise StudyError(
            "dataset.prepare joins features in another way in each fold, so that none can be"
            " claimed; claim those of a study without parcels and clusters."
        )
    return split.outputs.origin


def _standardised(columns: FloatArray) -> FloatArray:
    centred = columns - columns.mean(axis=0)
    return centred / centred.std(axis=0)


def without(confounds: FloatArray, columns: FloatArray) -> FloatArray:
    """Return what the least-squares fit of confounds, with intercept, leaves of columns."""
    design = np.column_stack([np.ones(len(confounds)), confounds])
    left: FloatArray = columns - design @ np.linalg.lstsq(design, columns, rcond=None)[0]
    return left
