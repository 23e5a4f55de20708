"""Splits of arrays, as a study makes them of its data."""

from __future__ import annotations

from typing import Any

from raysel.evaluation.split import Split, SplitRows


def scaled_split(X: Any, y: Any, X_test: Any, y_test: Any, **known: Any) -> Split:
    """Return a split of samples that are scaled already."""
    return Split(X_train=X, y_train=y, X_test=X_test, y_test=y_test, **known)


def trial_split(
    X: Any, y: Any, train: Any, test: Any, scaler: Any, solver: Any, random_state: int = 0
) -> Split:
    """Return the split of some rows that all trials of a method share."""
    rows = SplitRows(X=X, y=y, train=train, test=test)
    return Split.fit(rows, scaler, random_state=random_state).for_trials(solver)
