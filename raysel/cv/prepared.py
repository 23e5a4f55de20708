"""What all configurations share of one training set: scaled samples and the solver's preparation."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin

from raysel.arrays import IntArray, LabelArray
from raysel.base.estimator import Estimator
from raysel.data.task_blocks import Samples, as_samples


@dataclass(frozen=True)
class FoldData:
    """A training set and the samples held out of it, scaled by what the training set tells.

    Parameters
    ----------
    X_train : ndarray of shape (n_train, d), C-contiguous, or TaskBlocks
    y_train : ndarray of shape (n_train,)
    X_test : ndarray of shape (n_test, d), C-contiguous, or TaskBlocks
    y_test : ndarray of shape (n_test,)
    prepared : object
        The solver's ``prepare(X_train, y_train)``.
    """

    X_train: Any
    y_train: LabelArray
    X_test: Any
    y_test: LabelArray
    prepared: Any

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, those of ``prepared`` included, shared ones counted once."""
        seen: dict[int, int] = {}

        def visit(value: Any) -> None:
            if isinstance(value, np.ndarray):
                seen[id(value)] = value.nbytes
            elif is_dataclass(value):
                for field in fields(value):
                    visit(getattr(value, field.name))
            elif isinstance(value, tuple | list):  # a part a task
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
    """Scale and prepare one training set; the held-out samples are only transformed.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d), or TaskBlocks
    y : ndarray of shape (n_samples,)
    train, held_out : ndarray of int
        Positions into X.
    scaler : transformer
        Fitted here.
    solver : Estimator
        Of the values of ``capabilities.prepare_parameters`` that the preparation is for; no other parameter matters.

    Returns
    -------
    FoldData
    """
    X_train = as_samples(scaler.fit_transform(X[train]))
    X_test = as_samples(scaler.transform(X[held_out])) if len(held_out) else X[held_out]
    return FoldData(X_train, y[train], X_test, y[held_out], solver.prepare(X_train, y[train]))
