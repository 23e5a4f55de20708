"""Prepared folds, which configurations share: the scaled samples and the solver's preparation."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin

from raysel.arrays import BoolArray, IntArray, LabelArray
from raysel.base.estimator import Estimator
from raysel.data.scaling import scale_in_place, scale_training
from raysel.data.task_blocks import Samples, constant_features


@dataclass(frozen=True)
class FoldData:
    """A training set and the samples held out of it, both scaled by the statistics of the training set."""

    #: Scaled training samples; shape (n_train, d).
    X_train: Any
    #: Labels of the training samples; shape (n_train,) or (n_train, n_labels).
    y_train: LabelArray
    #: Scaled samples that are held out; shape (n_test, d).
    X_test: Any
    #: Labels of the samples that are held out; shape (n_test,) or (n_test, n_labels).
    y_test: LabelArray
    prepared: Any
    #: Mask of the features that are constant in the unscaled training samples; shape (d,).
    constant: BoolArray

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, including those of ``prepared``; an array that occurs twice counts once."""
        seen: dict[int, int] = {}

        def visit(value: Any) -> None:
            if isinstance(value, np.ndarray):
                seen[id(value)] = value.nbytes
            elif is_dataclass(value):
                for field in fields(value):
                    visit(getattr(value, field.name))
            elif isinstance(value, tuple | list):  # one item for each task
                for part in value:
                    visit(part)

        visit(self)
        return sum(seen.values())


def make_fold_data(
    X: Samples,
    y: LabelArray,
    train: IntArray,
    held_out: IntArray,
    *,
    scaler: TransformerMixin,
    solver: Estimator,
) -> FoldData:
    """Fit the scaler on a training set, transform both sets, and run the solver's preparation.

    `X` is (n_samples, d), `y` (n_samples,) or (n_samples, n_labels).
    """
    unscaled = X[train]
    constant = constant_features(unscaled)
    X_train = scale_training(scaler, unscaled)
    del unscaled  # not held beside the scaled samples during the preparation
    X_test = scale_in_place(scaler, X[held_out]) if len(held_out) else X[held_out]
    return FoldData(X_train, y[train], X_test, y[held_out], solver.prepare(X_train, y[train]), constant)
