"""Prepared samples of a study, as tests for claims take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.errors import DataError, StudyError
from raysel.data.targets.folds import Units
from raysel.evaluation.confounds import encode_confounds, has_confounds
from raysel.evaluation.plan import derived_seed
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
        if units.n < _FEWEST_UNITS:
            raise StudyError(
                f"{dataset.name} has {units.n} independent {units.noun}s; claims need at least"
                f" {_FEWEST_UNITS}."
            )
        split = study.fit_split(np.arange(dataset.n_samples))
        X = split.X_train
        if not isinstance(X, np.ndarray) or not np.isfinite(X).all():
            raise DataError(
                f"{dataset.name} has empty cells or text after its preparation; list the steps that"
                " fill and encode them in dataset.prepare, e.g. [impute, encode]."
            )
        origin = np.arange(X.shape[1])
        if split.outputs is not None:
            origin = split.outputs.origin
        varies = np.ptp(X, axis=0) > 0
        X, origin = _standardised(X[:, varies]), origin[varies]
        target, y = dataset.target, dataset.y
        Y = independent_columns(target.contrasts(y))
        if has_confounds(split):
            confounds = encode_confounds(split)
            X, Y = _without(confounds, X), _without(confounds, Y)
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
        return cls(X, Y, origin, units, folds)


def _standardised(columns: FloatArray) -> FloatArray:
    centred = columns - columns.mean(axis=0)
    return centred / centred.std(axis=0)


def _without(confounds: FloatArray, columns: FloatArray) -> FloatArray:
    """Return what the least-squares fit of confounds, with intercept, leaves of columns."""
    design = np.column_stack([np.ones(len(confounds)), confounds])
    left: FloatArray = columns - design @ np.linalg.lstsq(design, columns, rcond=None)[0]
    return left
