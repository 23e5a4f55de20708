"""Fits of configurations to one training set; steps in which Pipelines agree are fitted once."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import Ridge

from raysel.base.adapter import ScikitLearnMethod, unwrap_cells
from raysel.base.label_codes import fit_to_labels
from raysel.core.errors import raise_storage_error
from raysel.evaluation.known_steps import KnownSteps, is_plain_pipeline
from raysel.evaluation.scoring_estimators import RidgePath, SpanFits
from raysel.evaluation.split import Split
from raysel.numerics.wide_svm import solves_dual

#: Fits one method; returns it and the split as it gets it.
Fit = Callable[[], tuple[ScikitLearnMethod, Split]]


class _LastStep(ScikitLearnMethod):
    """Last step of a Pipeline, which gets what the steps before it make of the samples."""

    def fit_step(self, split: Split, *, converged: bool, fit: Callable[..., Any]) -> Self:
        """Fit the step; ``converged`` says whether the steps before it have."""
        self._fit_estimator(unwrap_cells(split.X_train), split.y_train, fit)
        self.converged_ = converged and self._ended
        return self

    def _checked(self, X: Any) -> Any:
        return unwrap_cells(X)


@dataclass(frozen=True)
class _Chain:
    """Steps of a method that are still to fit."""

    position: int
    steps: Sequence[Any]
    converged: bool = True
    #: Function that fits a last step, which may share computation with others like it.
    fit: Callable[..., Any] = fit_to_labels

    @property
    def key(self) -> object:
        """What says which chains share their first step; an object of its own for none."""
        if len(self.steps) == 1:
            return object()
        try:
            return pickle.dumps(self.steps[0])
        except Exception:  # a function without a name, an open file  # noqa: BLE001
            return object()

    def rest(self, converged: bool) -> Self:
        """The chain after its first step; ``converged`` says whether that has."""
        return replace(self, steps=self.steps[1:], converged=self.converged and converged)


def flat_steps(estimator: Any) -> list[Any]:
    """Return the steps of a Pipeline and of those in it; of any other estimator itself."""
    if not is_plain_pipeline(estimator):
        return [estimator]
    steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
    return list(chain.from_iterable(map(flat_steps, steps)))


def fit_shared(methods: Sequence[ScikitLearnMethod], split: Split) -> Iterator[tuple[int, Fit]]:
    """Yield the place of each method with its fit, in an order in which shared steps are used up.

    The fits are those of `ScikitLearnMethod.iterate` to the last bit, without objective and scores
    of features. Ridge regressions that differ in alpha alone, and linear SVMs of many more features
    than samples, are so to rounding. Each has to be called before the next is asked for.
    """
    chains = [_Chain(i, flat_steps(method.estimator)) for i, method in enumerate(methods)]
    for chain_, fit in _branch(chains, split):
        yield chain_.position, partial(_fit, chain_, fit, methods[chain_.position], split)


def _branch(chains: Sequence[_Chain], split: Split) -> Iterator[tuple[_Chain, Split | None]]:
    """Yield each chain's last step with the split as it gets it; None where a step fails."""
    known, groups = KnownSteps(), dict[object, list[_Chain]]()
    for chain_ in _share_svms(_share_ridges(chains, split)):
        groups.setdefault(chain_.key, []).append(chain_)
    for group in groups.values():
        if len(group[0].steps) == 1:
            yield group[0], split
            continue
        try:
            transformed, converged = _transform(group[0].steps[0], split, known)
        except Exception as error:  # of any transformer  # noqa: BLE001
            raise_storage_error(error)
            yield from ((chain_, None) for chain_ in group)
            continue
        yield from _branch([chain_.rest(converged) for chain_ in group], transformed)


def _share_ridges(chains: Sequence[_Chain], split: Split) -> list[_Chain]:
    """Give the last steps that are ridge regressions and differ in alpha alone one path."""
    alphas = dict[bytes, list[float]]()
    keys = [_ridge_key(chain_.steps, split) for chain_ in chains]
    for key, chain_ in zip(keys, chains, strict=True):
        if key:
            alphas.setdefault(key, []).append(chain_.steps[0].alpha)
    paths = {key: RidgePath(values) for key, values in alphas.items() if len(values) > 1}
    return [
        replace(chain_, fit=paths[key].fit) if key in paths else chain_
        for key, chain_ in zip(keys, chains, strict=True)
    ]


def _share_svms(chains: Sequence[_Chain]) -> list[_Chain]:
    """Give the last steps that are linear SVMs one span of the samples."""
    fit = SpanFits().fit
    return [
        replace(chain_, fit=fit) if solves_dual(chain_.steps[0]) else chain_ for chain_ in chains
    ]


def _ridge_key(steps: Sequence[Any], split: Split) -> bytes:
    """Parameters of a last step but for alpha; empty unless it is a ridge solved directly."""
    last = steps[0]
    if len(steps) > 1 or type(last) is not Ridge or not isinstance(last.alpha, Real):
        return b""
    if last.solver not in ("auto", "cholesky") or not isinstance(split.X_train, np.ndarray):
        return b""
    return pickle.dumps(clone(last).set_params(alpha=0.0))


def _transform(step: Any, split: Split, known: KnownSteps) -> tuple[Split, bool]:
    """Fit a transformer to the training samples; return what it makes of both sides."""
    fitted = known.fit_transform(step, unwrap_cells(split.X_train), split.y_train)
    test = fitted.transform(unwrap_cells(split.X_test))
    return replace(split, X_train=fitted.samples, X_test=test), fitted.converged


def _fit(
    chain_: _Chain, split: Split | None, method: ScikitLearnMethod, whole: Split
) -> tuple[ScikitLearnMethod, Split]:
    """Fit the last step; from nothing where a step fails, so that the error is its own."""
    if split is not None:
        try:
            last = _LastStep(chain_.steps[0])
            step = last.fit_step(split, converged=chain_.converged, fit=chain_.fit)
        except Exception as error:  # of any estimator  # noqa: BLE001
            raise_storage_error(error)
        else:
            return step, split
    for _ in method.iterate(whole.X_train, whole.y_train, ()):
        pass
    return method, whole
