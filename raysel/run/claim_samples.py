"""Prepared samples of a study, as tests for claims take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.errors import DataError, StudyError
from raysel.data.targets.folds import Units
from raysel.evaluation.plan import derived_seed
from raysel.numerics.conditional_tests import Folds, independent_columns
from raysel.study.definition import Study

#: Folds that choose penalties, and the fewest independent units of samples of a test.
_N_FOLDS, _FEWEST_UNITS = 5, 20


@dataclass(frozen=True, eq=False)
class Samples:
    """Prepared samples of a study, as the tests take them."""

    #: Columns that are not constant, with mean 0 and variance 1; shape (n, d).
    X: FloatArray
    #: Labels as `independent_columns`; shape (n, k).
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
        X = X[:, varies] - X[:, varies].mean(axis=0)
        target, y = dataset.target, dataset.y
        folds = target.folds(
            y,
            _N_FOLDS,
            groups=study.kept_whole,
            random_state=derived_seed(study.config.seed, "claims"),
            where="the folds of claims",
        )
        Y = independent_columns(target.contrasts(y))
        return cls(X / X.std(axis=0), Y, origin[varies], units, folds)
