"""Checks of the contract: iterations, preparation, the seed, the zero solution."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from raysel.base.estimator import Estimator
from raysel.core.arrays import FloatArray
from raysel.data.stored_samples import StoredSamples
from raysel.testing.checks import arrays_in, global_seeds, require, require_close, require_equal
from raysel.testing.method_cases import (
    MethodCase,
    Samples,
    SamplesCheck,
    fitted,
    iterated,
    require_same_bits,
)

#: Relative rise that rounding may give an objective that falls.
_ROUNDING = 1e-9


def iterate_is_fit(case: MethodCase, samples: Samples) -> None:
    """``iterate`` yields the objectives of ``fit``, and its model can be used after each."""
    whole, stepwise = fitted(case, samples), case.build(samples.layout)
    objectives: list[float] = []
    for objective in stepwise.iterate(samples.X, samples.y):
        objectives.append(objective)
        n, counted = len(objectives), (stepwise.n_iter_, len(stepwise.objective_path_))
        require(
            counted == (n, n),
            f"after yield {n} n_iter_ and the length of objective_path_ are {counted}.",
        )
        if hasattr(stepwise, "predict"):
            require(
                len(stepwise.predict(samples.X)) == len(samples.y),
                f"predict fails after yield {n}.",
            )
        if not case.wrapped and case.capabilities.ranks:
            require(
                stepwise.scores_.shape == samples.X.shape[1:],
                f"scores_ is missing after yield {n}.",
            )
    require(np.isfinite(objectives).all(), f"the objectives {objectives} are not all finite.")
    n, most = len(objectives), stepwise.max_steps
    require(n <= most, f"{n} yields exceed max_steps={most}.")
    require_equal(
        np.array(objectives),
        whole.objective_path_,
        "what iterate yields is not objective_path_ of fit",
    )
    require_same_bits(stepwise, whole, samples.X, "iterate and fit")


def prepared_is_the_same(case: MethodCase, samples: Samples) -> None:
    """``iterate`` gives the same bits with the result of ``prepare`` as without it."""
    prepared = case.build(samples.layout).prepare(samples.X, samples.y)
    require(
        prepared is not None, "prepare returned None, which iterate takes for nothing prepared."
    )
    given = iterated(case.build(samples.layout), samples.X, samples.y, prepared)
    require_same_bits(given, fitted(case, samples), samples.X, "iterate with prepared and fit")


def prepared_is_shared(case: MethodCase, samples: Samples) -> None:
    """Configurations with equal ``prepare_parameters`` can share a result of ``prepare``."""
    prepared = case.build(samples.layout).prepare(samples.X, samples.y)
    for changes in [*case.varied, *([case.null_params] if case.null_params else [])]:
        if set(changes) & case.capabilities.prepare_parameters:
            continue
        given = iterated(case.build(samples.layout, **changes), samples.X, samples.y, prepared)
        what = f"{dict(changes)}, prepared by {dict(case.params)}"
        require_same_bits(given, fitted(case, samples, **changes), samples.X, what)


def prepared_is_not_written_to(case: MethodCase, samples: Samples) -> None:
    """A fit does not modify the result of ``prepare``, and accepts it read-only."""
    model = case.build(samples.layout)
    prepared = model.prepare(samples.X, samples.y)
    arrays = arrays_in(prepared)
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    iterated(model, samples.X, samples.y, prepared)
    for array, copy in zip(arrays_in(prepared), before, strict=True):
        require_equal(array, copy, "a fit changed what was prepared")


def data_are_not_written_to(case: MethodCase, samples: Samples) -> None:
    """A fit does not modify writable X and y; all other checks pass read-only arrays."""
    X, y = samples.X.copy(), samples.y.copy()
    model = case.build(samples.layout)
    iterated(model, X, y, model.prepare(X, y))
    if hasattr(model, "predict"):
        model.predict(X)
    require_equal(X, samples.X, "a fit changed X")
    require_equal(y, samples.y, "a fit changed y")


def stopping_is_max_iter(case: MethodCase, samples: Samples) -> None:
    """``iterate`` that is stopped after k yields equals the fit with ``max_iter=k``."""
    if not case.capabilities.iterates:
        return
    n_iter = fitted(case, samples).n_iter_
    for k in sorted({1, 2, (n_iter + 1) // 2}):
        stopped = iterated(case.build(samples.layout), samples.X, samples.y, n=k)
        limited = iterated(case.build(samples.layout, max_iter=k), samples.X, samples.y)
        require(limited.n_iter_ <= k, f"max_iter={k} made {limited.n_iter_} iterations.")
        require_same_bits(
            stopped, limited, samples.X, f"stopping after {k} yields and max_iter={k}"
        )


def fit_again(case: MethodCase, samples: Samples) -> None:
    """A second fit of the same object does not depend on the first one."""
    again = fitted(case, samples)
    if samples.of_quantities:
        half = np.arange(0, len(samples.y), 2)
    else:
        classes = np.unique(samples.y, axis=0)
        of_classes = [
            (samples.y == value).reshape(len(samples.y), -1).all(axis=1) for value in classes
        ]
        half = np.sort(np.concatenate([np.flatnonzero(mask)[:6] for mask in of_classes]))
    iterated(again, samples.X[half], samples.y[half])
    iterated(again, samples.X, samples.y)
    require_same_bits(
        again, fitted(case, samples), samples.X, "a second fit and the first of another object"
    )


def seed_decides(case: MethodCase, samples: Samples) -> None:
    """The same ``random_state`` gives the same bits, whatever NumPy's global generator."""
    models = []
    with global_seeds() as seed_globally:
        for seed in (1, 2):
            seed_globally(seed)
            models.append(fitted(case, samples))
    require_same_bits(models[0], models[1], samples.X, "two fits of random_state=0")


def objective_moves_one_way(case: MethodCase, samples: Samples) -> None:
    """The objective falls, or rises, from each iteration to the next."""
    if not case.capabilities.iterates or case.objective is None:
        return
    for changes in ({}, *case.varied):
        path = fitted(case, samples, **changes).objective_path_
        steps = np.diff(path) * (1.0 if case.objective == "falls" else -1.0)
        wrong = np.flatnonzero(steps > _ROUNDING * np.abs(path[:-1]))
        require(
            not wrong.size,
            f"not every step of the objective {case.objective}: see {wrong + 1} in {path}.",
        )


def zero_solution_is_proved(case: MethodCase, samples: Samples) -> None:
    """A solution that is proved to be zero is set without iterating, and is right."""
    proves = not case.wrapped and case.cls.is_zero_solution is not Estimator.is_zero_solution
    if case.null_params is None:
        require(
            not proves,
            "the class has is_zero_solution: give null_params, with which it holds whatever the"
            " data.",
        )
        return
    null, some = case.build(samples.layout, **case.null_params), fitted(case, samples)
    prepared = null.prepare(samples.X, samples.y)
    require(
        null.is_zero_solution(prepared),
        f"is_zero_solution is False with null_params={dict(case.null_params)}.",
    )
    require(
        not some.is_zero_solution(prepared),
        f"is_zero_solution is True with params={dict(case.params)}.",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        null.fit(samples.X, samples.y)
    require(not null.scores_.any(), f"the zero solution has the scores {null.scores_}.")
    require(
        (null.n_iter_, null.converged_) == (1, True), f"it took {null.n_iter_} iterations, not 1."
    )
    if hasattr(null, "predict") and samples.single_label:
        values, counts = np.unique(samples.y, return_counts=True)
        given = np.unique(null.predict(samples.X))
        right = len(given) == 1 and given[0] in values[counts == counts.max()]
        require(right, f"the zero solution predicts {given}, not the most frequent class.")
    if hasattr(null, "predict") and samples.of_quantities:
        spread = np.ptp(null.predict(samples.X), axis=0)
        require(
            not np.any(spread),
            f"the zero solution predicts different numbers, over a range of {spread}.",
        )
    unproved = case.build(samples.layout, **case.null_params)
    unproved.n_features_in_ = samples.X.shape[1]
    for _ in unproved._follow(unproved._updates(samples.X, samples.y, prepared)):  # noqa: SLF001
        pass
    shares = unproved.scores_ / some.scores_.max()
    require_close(shares, null.scores_, 1e-3, "iterations do not come to the zero solution")


@dataclass(frozen=True)
class _Rows:
    """Rows of an array, seven of which are read at a time."""

    X: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.X), self.X.shape[1]

    def blocks(self) -> Iterator[FloatArray]:
        """Read consecutive rows."""
        return (self.X[start : start + 7] for start in range(0, len(self.X), 7))


def blocks_are_the_same(case: MethodCase, samples: Samples) -> None:
    """With ``capabilities.in_blocks``, samples in blocks give the fit of an array."""
    if not case.capabilities.in_blocks:
        return
    stored = StoredSamples(_Rows(samples.X))
    held, in_blocks = (
        iterated(case.build(samples.layout), X, samples.y, n=3) for X in (samples.X, stored)
    )
    require_close(
        in_blocks.objective_path_,
        held.objective_path_,
        _ROUNDING,
        "objectives of an array and of blocks",
    )
    model: Any = fitted(case, samples)
    predicted = model.predict(stored), model.predict(samples.X)
    if samples.of_quantities:
        require_close(*predicted, _ROUNDING, "predictions of an array and of blocks")
    else:
        require_equal(*predicted, "predictions of an array and of blocks")


CHECKS: tuple[SamplesCheck, ...] = (
    iterate_is_fit,
    prepared_is_the_same,
    prepared_is_shared,
    prepared_is_not_written_to,
    data_are_not_written_to,
    stopping_is_max_iter,
    fit_again,
    seed_decides,
    objective_moves_one_way,
    zero_solution_is_proved,
    blocks_are_the_same,
)
