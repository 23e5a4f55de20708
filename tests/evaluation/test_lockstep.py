"""Fits in lockstep: the trace of each is that of the fit run alone."""

from __future__ import annotations

import copy
import weakref

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score
from splits import trial_split

from raysel.baselines.glspfs import GLSPFS
from raysel.baselines.kernel_classifiers import KernelSVM
from raysel.baselines.multivariate_filters import ReliefF
from raysel.baselines.univariate_filters import InformationGain
from raysel.data.scaling import make_scaler
from raysel.evaluation.lockstep import run_in_lockstep, run_in_turn
from raysel.evaluation.plan import NestedPlan
from raysel.evaluation.records import FoldTrace
from raysel.evaluation.scoring import Evaluation
from raysel.solvers.smr.smr import SMR

N_FEATURES = (3, 10, 40)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True, n_class=4)
    chosen = np.random.default_rng(0).permutation(len(y))[:150]
    return X[chosen], y[chosen]


@pytest.fixture(scope="module")
def plan(digits):
    return NestedPlan.make(digits[1], outer=2, inner=3, repeats=1, groups=None, seed=1)


def smr(**params) -> SMR:
    return SMR(**{"shape": (8, 8), "rank": 2, "alpha": 0.05, "max_iter": 12, "tol": 1e-2, **params})


def traced(X, y, fold, evaluation, make=smr, **params) -> tuple[FoldTrace, list[int]]:
    states = [fold.random_state(1, i) for i in range(len(fold.inner))]
    data = [
        trial_split(X, y, i.train, i.validation, make_scaler("unit"), make(), state)
        for i, state in zip(fold.inner, states, strict=True)
    ]
    trace = FoldTrace()
    solvers = [
        make(random_state=state, **params) if make is smr else make(**params) for state in states
    ]
    return trace, list(run_in_lockstep(solvers, data, evaluation, trace))


def alone(X, y, inner):
    """One inner split, scaled by what its training set tells."""
    low, high = X[inner.train].min(), X[inner.train].max()
    return (
        (X[inner.train] - low) / (high - low),
        y[inner.train],
        (X[inner.validation] - low) / (high - low),
        y[inner.validation],
    )


def nearest(X, y, X_test):
    """The most frequent label among the nearest samples, whose distances are compared to 9
    decimals.
    """
    distance = ((X_test[:, None, :] - X) ** 2).sum(axis=2).round(9)
    tied = distance == distance.min(axis=1, keepdims=True)
    classes = np.unique(y)
    return classes[
        np.array([[(row & (y == c)).sum() for c in classes] for row in tied]).argmax(axis=1)
    ]


@pytest.mark.parametrize("params", [{}, {"init": "random"}])
def test_every_trace_is_that_of_the_fit_run_alone(digits, plan, params):
    X, y = digits
    fold = plan.folds[0]
    trace, iterations = traced(X, y, fold, Evaluation("knn", N_FEATURES), **params)
    lengths = []
    for number, (inner, actual) in enumerate(zip(fold.inner, trace.inner, strict=True)):
        X_train, y_train, X_test, y_test = alone(X, y, inner)
        solver = smr(random_state=fold.random_state(1, number), **params)
        fitted = copy.deepcopy(solver).fit(X_train, y_train)
        assert actual.objective == fitted.objective_path_.tolist()
        assert len(actual.scores) == len(actual.objective)
        scores = []
        for _ in solver.iterate(X_train, y_train):
            best = [solver.ranking_ <= n for n in N_FEATURES]
            scores.append(
                [
                    accuracy_score(y_test, nearest(X_train[:, b], y_train, X_test[:, b]))
                    for b in best
                ]
            )
        np.testing.assert_allclose(actual.scores, scores, rtol=0, atol=1e-12)
        lengths.append(len(scores))
    assert iterations == list(range(1, max(lengths) + 1))
    assert trace.score("mean") == pytest.approx(np.mean([t.scores[-1] for t in trace.inner]))
    held_scores = np.array(
        [[t.scores[min(i, len(t.scores) - 1)] for t in trace.inner] for i in range(max(lengths))]
    )
    best = held_scores.mean(axis=1).max(axis=1)
    np.testing.assert_allclose(trace.score_curve("best"), best, rtol=1e-14)
    assert trace.score_curve("one_se")[-1] == trace.score("one_se") <= best[-1]
    # A fit that has ended holds its last value in the mean curves.
    held = [
        [t.objective[min(i, len(t.objective) - 1)] for t in trace.inner]
        for i in range(max(lengths))
    ]
    np.testing.assert_allclose(trace.objective_curve(), np.mean(held, axis=1), rtol=1e-14)
    if not params:
        assert len(set(lengths)) > 1, "the case needs fits of different lengths"


@pytest.mark.parametrize(
    ("make", "kinds"),
    [
        (smr, ("knn", "native")),
        (GLSPFS, ("knn", "native")),  # a graph of the samples
        (InformationGain, ("knn",)),  # bins
        (ReliefF, ("knn",)),  # ranges
        (KernelSVM, ("native",)),  # width of the kernel
    ],
)
def test_scrambled_test_samples_leave_the_inner_scores_as_they_are(digits, plan, make, kinds):
    X, y = digits
    generator = np.random.default_rng(3)
    for fold in plan.outer:
        X_other, y_other = X.copy(), y.copy()
        X_other[fold.test] = 1e3 * generator.standard_normal((len(fold.test), X.shape[1]))
        y_other[fold.test] = generator.permutation(y[fold.test])
        for kind in kinds:
            evaluation = Evaluation(kind, N_FEATURES) if kind == "knn" else Evaluation(kind)
            here, there = (
                traced(*samples, fold, evaluation, make)[0]
                for samples in ((X, y), (X_other, y_other))
            )
            assert here == there


def test_fits_in_turn_hold_one_prepared_split_at_a_time(digits, plan):
    fold, held = plan.folds[0], []

    def splits():
        for i in fold.inner:
            assert [ref() for ref in held] == [None] * len(held)
            split = trial_split(*digits, i.train, i.validation, make_scaler("unit"), smr())
            held.append(weakref.ref(split))
            yield split
            del split

    evaluation, trace = Evaluation("knn", N_FEATURES), FoldTrace()
    assert list(run_in_turn([smr() for _ in fold.inner], splits(), evaluation, trace))
    assert len(held) == len(trace.inner) == 3


def test_shared_folds_are_only_read(digits, plan):
    X, y = digits
    X, y = X.copy(), y.copy()
    X.flags.writeable = y.flags.writeable = False
    fold = plan.final
    data = [
        trial_split(X, y, i.train, i.validation, make_scaler("unit"), smr()) for i in fold.inner
    ]
    for split in data:
        for array in (*vars(split).values(), *vars(split.prepared).values()):
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
    trace = FoldTrace()
    for _ in run_in_lockstep([smr() for _ in data], data, Evaluation("native"), trace):
        pass
    assert trace == traced(X, y, fold, Evaluation("native"))[0]


def test_a_configuration_is_null_where_every_inner_fit_is(digits, plan):
    X, y = digits
    fold = plan.folds[0]
    trace, iterations = traced(X, y, fold, Evaluation("knn", N_FEATURES), alpha=1.0)
    assert (trace.null, iterations) == (True, [1])
    for inner, actual in zip(fold.inner, trace.inner, strict=True):
        X_train, y_train, X_test, y_test = alone(X, y, inner)
        majority = (
            DummyClassifier(strategy="most_frequent").fit(X_train, y_train).score(X_test, y_test)
        )
        assert actual.scores == [[majority] * len(N_FEATURES)]
        assert (len(actual.objective), actual.converged) == (1, True)
    # Between the inner folds' own collapses some are null and some are not: that is no null.
    collapse = sorted(
        trial_split(X, y, i.train, i.validation, make_scaler("unit"), smr()).prepared.alpha_max
        for i in fold.inner
    )
    assert collapse[0] < collapse[-1]
    between = {"alpha": (collapse[0] + collapse[-1]) / 2, "alpha_scale": "absolute", "max_iter": 2}
    trace, iterations = traced(X, y, fold, Evaluation("knn", N_FEATURES), **between)
    assert not trace.null
    assert len(iterations) == 2
    assert trace.score("best") is not None
    # At or above the collapse of all of them it is; above it for p < 1 it is not, for nothing is
    # proved there.
    assert traced(X, y, fold, Evaluation("native"), alpha=collapse[-1], alpha_scale="absolute")[
        0
    ].null
    assert not traced(X, y, fold, Evaluation("native"), alpha=2.0, p=0.5, max_iter=2)[0].null
