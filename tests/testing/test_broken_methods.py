"""Each check of methods fails on a method that is broken as the check means."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from failing_checks import failures

from raysel.base.classifiers import LinearSelector
from raysel.base.estimator import MODALITIES, TENSOR
from raysel.baselines.linear_projections import LDA, PCA
from raysel.baselines.linear_svm import LinearSVM
from raysel.data.loading import save_dataset
from raysel.data.stored_samples import StoredSamples
from raysel.data.targets import CLASSES, LABELS
from raysel.solvers.smml.smml import SMML
from raysel.solvers.smr.smr import SMR
from raysel.testing import MethodCase, estimator_checks, method_suite
from raysel.testing.method_cases import samples_for


def made(name, base, **attributes):
    """A broken class, which the suite imports by its name from this module."""
    return type(name, (base,), {"__module__": __name__, **attributes})


def scoring(name, change):
    """A class that changes its scores, ``change(scores, X, y)``, after each iteration."""

    def _updates(self, X, y, prepared):
        for value in PCA._updates(self, X, y, prepared):
            self.scores_ = change(self.scores_, X, y)
            yield value

    return made(name, PCA, _updates=_updates)


def declaring(name, base, **changes):
    """A class that declares other capabilities than it has."""
    return made(name, base, capabilities=replace(base.capabilities, **changes))


def by_first_class(scores, X, y):
    first = y == y.min()
    return scores * (1 + first.mean() + np.abs(X[first, 0]).sum())


IgnoresTheSeed = scoring(
    "IgnoresTheSeed",
    lambda scores, *_: scores + np.random.random(len(scores)),  # noqa: NPY002
)
ScoresConstantFeatures = scoring("ScoresConstantFeatures", lambda scores, *_: scores + 0.1)
ScoresByPosition = scoring(
    "ScoresByPosition", lambda scores, *_: scores * np.arange(1, len(scores) + 1)
)
ScoresByFirstSample = scoring(
    "ScoresByFirstSample", lambda scores, X, _: scores + np.abs(np.nan_to_num(X[0]))
)
ScoresByNames = scoring("ScoresByNames", lambda scores, _, y: scores * len(str(y[0])))
ScoresByFirstClass = scoring("ScoresByFirstClass", by_first_class)
SaysItDoesNotPredict = declaring("SaysItDoesNotPredict", PCA, predicts=False)
SaysItIterates = made("SaysItIterates", PCA)
SaysItIterates.capabilities = replace(PCA.capabilities, iterates=True)
SaysItTakesLabels = declaring("SaysItTakesLabels", PCA, targets=frozenset({CLASSES, LABELS}))
HidesItsLabels = declaring("HidesItsLabels", LinearSVM, targets=frozenset({CLASSES}))
SaysItTakesModalities = declaring(
    "SaysItTakesModalities", SMR, layouts=frozenset({TENSOR, MODALITIES})
)
SaysItHasAPath = declaring("SaysItHasAPath", SMR, path=True)
PreparesByAStranger = declaring("PreparesByAStranger", PCA, prepare_parameters=frozenset({"gamma"}))
PreparesNothing = made("PreparesNothing", PCA, prepare=lambda *_: None)
ProvesTooMuch = made("ProvesTooMuch", SMR, is_zero_solution=lambda *_: True)
#: Takes for zero what is not: from half of alpha_max.
ProvesWrongly = made("ProvesWrongly", SMR, is_zero_solution=lambda self, _: self.alpha >= 0.5)
PredictsNumbers = made(
    "PredictsNumbers", LinearSVM, predict=lambda _, X: np.zeros(len(X), dtype=np.int64) + 7
)
KeepsTheWorst = made(
    "KeepsTheWorst",
    LinearSVM,
    _get_support_mask=lambda self: ~LinearSelector._get_support_mask(self),
)
ClonesItself = made("ClonesItself", PCA, __sklearn_clone__=lambda self: self)
NamesOthers = made(
    "NamesOthers",
    PCA,
    get_feature_names_out=lambda self, _=None: np.array(
        [f"pca{i}" for i in range(self._n_features_out + 1)]
    ),
)


class WritesX(PCA):
    def _updates(self, X, y, prepared):
        if X.flags.writeable:
            X[0] = 0.0
        yield from super()._updates(X, y, prepared)


class WritesPrepared(SMR):
    def _updates(self, X, y, prepared):
        prepared.X_mean[:] = 0.0
        yield from super()._updates(X, y, prepared)


class PreparesByParameter(LDA):
    """Prepares what the undeclared parameter ``shrinkage`` decides."""

    def prepare(self, X, y):
        return super().prepare(X * (1 + self.shrinkage), y)


class KeepsState(PCA):
    def _updates(self, X, y, prepared):
        self.fits_ = getattr(self, "fits_", 0) + 1
        for value in super()._updates(X, y, prepared):
            self.scores_ = self.scores_ * self.fits_
            yield value


class KnowsItsEnd(SMR):
    """The scores depend on ``max_iter``, besides how many iterations were made."""

    def _updates(self, X, y, prepared):
        for value in super()._updates(X, y, prepared):
            self.scores_ = self.scores_ * self.max_iter
            yield value


class YieldsAnother(SMR):
    def iterate(self, X, y, prepared=None):
        yield from (2 * value for value in super().iterate(X, y, prepared))


class Ascends(SMR):
    def _updates(self, X, y, prepared):
        yield from (value * (1 + i) for i, value in enumerate(super()._updates(X, y, prepared)))


class SaysItRanks(PCA):
    def _updates(self, X, y, prepared):
        for value in super()._updates(X, y, prepared):
            del self.scores_
            yield value


class PredictsByTheOthers(LinearSVM):
    def decision_function(self, X):
        values = super().decision_function(X)
        return values - values.mean(axis=0)


class HoldsAFunction(PCA):
    def _updates(self, X, y, prepared):
        for value in super()._updates(X, y, prepared):
            self.weight_ = np.random.default_rng(0).random
            yield value


class ForgetsParameters(PCA):
    def __init__(self, tasks=None, n_components=None, n_features_to_select=None):
        super().__init__(tasks, n_components or 1, n_features_to_select)


class LosesItsScores(PCA):
    def __getstate__(self):
        return {key: value for key, value in super().__getstate__().items() if key != "scores_"}


class ReadsHalfOfTheBlocks(SMR):
    def prepare(self, X, y):
        if isinstance(X, StoredSamples):
            X, y = X[: len(X) // 2], y[: len(y) // 2]
        return super().prepare(X, y)


class WrongPath(SMML):
    @classmethod
    def fit_path(cls, models, X, prepared):
        for position, source in super().fit_path(models, X, prepared):
            models[position].objective_path_ = 2 * models[position].objective_path_
            yield position, source


class Peeks(LinearSVM):
    """Knows the labels of all samples, those that are held out included."""

    labels: ClassVar[dict] = {}

    def predict(self, X):
        return np.array([self.labels[row.tobytes()] for row in X])


class LearnsNothing(LinearSVM):
    def predict(self, X):
        return np.full(len(super().predict(X)), self.classes_[0])


FAST = {"max_iter": 6}
SVM = {"C": 0.05, "penalty": "l1", "tol": 1e-6}

#: A broken method, its parameters, and the checks that must find it.
BROKEN = [
    (WritesX, {}, {}, ["data_are_not_written_to"]),
    (WritesPrepared, FAST, {}, ["prepared_is_not_written_to"]),
    (
        PreparesByParameter,
        {"shrinkage": 0.1},
        {"varied": [{"shrinkage": 0.5}]},
        ["prepared_is_shared"],
    ),
    (PreparesNothing, {}, {}, ["prepared_is_the_same"]),
    (IgnoresTheSeed, {}, {}, ["seed_decides"]),
    (ScoresConstantFeatures, {}, {}, ["constant_features"]),
    (ScoresByPosition, {}, {}, ["feature_order"]),
    (ScoresByFirstSample, {}, {}, ["sample_order"]),
    (ScoresByNames, {}, {}, ["class_names"]),
    (ScoresByFirstClass, {}, {}, ["class_order"]),
    (KeepsState, {}, {}, ["fit_again"]),
    (YieldsAnother, FAST, {}, ["iterate_is_fit"]),
    (KnowsItsEnd, FAST, {}, ["stopping_is_max_iter"]),
    (Ascends, FAST, {}, ["objective_moves_one_way"]),
    (SMR, FAST, {}, ["zero_solution_is_proved"]),  # no null_params
    (ProvesTooMuch, FAST, {"null_params": {"alpha": 2.0}}, ["zero_solution_is_proved"]),
    (ProvesWrongly, FAST, {"null_params": {"alpha": 0.5}}, ["zero_solution_is_proved"]),
    (ReadsHalfOfTheBlocks, FAST, {"null_params": {"alpha": 1.0}}, ["blocks_are_the_same"]),
    (SaysItRanks, {}, {}, ["declares_what_it_has"]),
    (SaysItDoesNotPredict, {}, {}, ["declares_what_it_has"]),
    (PreparesByAStranger, {}, {}, ["declares_what_it_has"]),
    (SaysItIterates, {}, {}, ["iterates_as_declared"]),
    (SaysItTakesLabels, {}, {}, ["iterate_is_fit[modalities, 3 labels]"]),
    (HidesItsLabels, SVM, {"null_params": {"C": 1e-5}}, ["several_labels_as_declared"]),
    (SaysItTakesModalities, FAST, {}, ["iterate_is_fit[modalities, 3 classes]"]),
    (SaysItHasAPath, FAST, {}, ["paths_as_declared"]),
    (PredictsByTheOthers, SVM, {}, ["each_sample_by_itself"]),
    (PredictsNumbers, SVM, {}, ["scores_and_predictions_have_their_form"]),
    (KeepsTheWorst, SVM, {}, ["scores_and_predictions_have_their_form"]),
    (HoldsAFunction, {}, {}, ["model_file_is_the_same"]),
    (
        ForgetsParameters,
        {},
        {},
        [
            "scikit-learn[check_do_not_raise_errors_in_init_or_set_param]",
            "scikit-learn[check_parameters_default_constructible]",
        ],
    ),
    (LosesItsScores, {}, {}, ["pickle_is_the_same"]),
    (ClonesItself, {}, {}, ["clone_is_unfitted"]),
    (NamesOthers, {}, {}, ["frames_keep_their_names"]),
    (WrongPath, {"tol": 1e-3}, {"varied": [{"gamma1": 0.3}]}, ["paths_as_declared"]),
    (LearnsNothing, SVM, {}, ["study_learns"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("cls", "params", "knowledge", "wanted"), BROKEN, ids=lambda v: getattr(v, "__name__", None)
)
def test_a_broken_method_is_found(cls, params, knowledge, wanted):
    case = MethodCase(cls, params, **knowledge)
    checks = [
        check
        for check in estimator_checks(case)
        if any(check.name.partition(": ")[2].startswith(w) for w in wanted)
    ]
    assert checks, "no such check"
    assert failures(checks)


def test_a_method_that_knows_held_out_labels_is_found(monkeypatch):
    def told(dataset, path):
        Peeks.labels.update(zip((row.tobytes() for row in dataset.X), dataset.y, strict=True))
        save_dataset(dataset, path)

    monkeypatch.setattr(method_suite, "save_dataset", told)
    checks = [check for check in estimator_checks(Peeks, SVM) if check.kind == "study"]
    assert failures(checks) == {"study_of_permuted_labels_finds_nothing"}


def test_a_check_that_is_declared_to_fail_must_fail():
    checks = estimator_checks("pca", expected_failures={"clone_is_unfitted*": "no reason at all"})
    declared = [check for check in checks if check.expected_failure]
    assert len(declared) == len(list(samples_for(MethodCase("pca"))))
    with pytest.raises(AssertionError, match="declared to fail: no reason at all"):
        declared[0]()
