"""Each check of methods fails on a method that is broken as the check means."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from failing_checks import failures

from raysel.base.estimator import MODALITIES, TENSOR
from raysel.base.selector import LinearSelector
from raysel.baselines.lda import LDA
from raysel.baselines.linear_svm import LinearSVM
from raysel.baselines.pca import PCA
from raysel.data.formats.writers import save_dataset
from raysel.solvers.smml.smml import SMML
from raysel.solvers.smr.smr import SMR
from raysel.testing import MethodCase, estimator_checks
from raysel.testing.estimators import studies


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


class PreparesNothing(PCA):
    def prepare(self, X, y):
        return None


class IgnoresTheSeed(PCA):
    def _updates(self, X, y, prepared):
        for value in super()._updates(X, y, prepared):
            self.scores_ = self.scores_ + np.random.random(len(self.scores_))  # noqa: NPY002
            yield value


class ScoresConstantFeatures(PCA):
    def _updates(self, X, y, prepared):
        for value in super()._updates(X, y, prepared):
            self.scores_ = self.scores_ + 0.1
            yield value


class ScoresByPosition(PCA):
    def _updates(self, X, y, prepared):
        for value in super()._updates(X, y, prepared):
            self.scores_ = self.scores_ * np.arange(1, len(self.scores_) + 1)
            yield value


class ScoresByFirstSample(PCA):
    def _updates(self, X, y, prepared):
        for value in super()._updates(X, y, prepared):
            self.scores_ = self.scores_ + np.abs(np.nan_to_num(X[0]))
            yield value


class ScoresByNames(PCA):
    def _updates(self, X, y, prepared):
        for value in super()._updates(X, y, prepared):
            self.scores_ = self.scores_ * len(str(y[0]))
            yield value


class ScoresByFirstClass(PCA):
    def _updates(self, X, y, prepared):
        for value in super()._updates(X, y, prepared):
            self.scores_ = self.scores_ * (1 + (y == y.min()).mean() + np.abs(X[y == y.min(), 0]).sum())
            yield value


class KeepsState(PCA):
    def _updates(self, X, y, prepared):
        self.fits_ = getattr(self, "fits_", 0) + 1
        for value in super()._updates(X, y, prepared):
            self.scores_ = self.scores_ * self.fits_
            yield value


class YieldsAnother(SMR):
    def iterate(self, X, y, prepared=None):
        yield from (2 * value for value in super().iterate(X, y, prepared))


class KnowsItsEnd(SMR):
    """The scores depend on ``max_iter``, besides how many iterations were made."""

    def _updates(self, X, y, prepared):
        for value in super()._updates(X, y, prepared):
            self.scores_ = self.scores_ * self.max_iter
            yield value


class Ascends(SMR):
    def _updates(self, X, y, prepared):
        yield from (value * (1 + i) for i, value in enumerate(super()._updates(X, y, prepared)))


class ProvesTooMuch(SMR):
    def is_zero_solution(self, prepared):
        return True


class ProvesWrongly(SMR):
    """Takes for zero what is not: from half of alpha_max."""

    def is_zero_solution(self, prepared):
        return self.alpha >= 0.5


class SaysItRanks(PCA):
    def _updates(self, X, y, prepared):
        for value in super()._updates(X, y, prepared):
            del self.scores_
            yield value


class SaysItDoesNotPredict(PCA):
    capabilities = replace(PCA.capabilities, predicts=False)


class SaysItIterates(PCA):
    pass


SaysItIterates.capabilities = replace(PCA.capabilities, iterates=True)


class SaysItTakesLabels(PCA):
    capabilities = replace(PCA.capabilities, multilabel=True)


class HidesItsLabels(LinearSVM):
    capabilities = replace(LinearSVM.capabilities, multilabel=False)


class SaysItTakesModalities(SMR):
    capabilities = replace(SMR.capabilities, layouts=frozenset({TENSOR, MODALITIES}))


class SaysItHasAPath(SMR):
    capabilities = replace(SMR.capabilities, path=True)


class PreparesByAStranger(PCA):
    capabilities = replace(PCA.capabilities, prepare_parameters=frozenset({"gamma"}))


class PredictsByTheOthers(LinearSVM):
    def decision_function(self, X):
        values = super().decision_function(X)
        return values - values.mean(axis=0)


class PredictsNumbers(LinearSVM):
    def predict(self, X):
        return np.zeros(len(X), dtype=np.int64) + 7


class HoldsAFunction(PCA):
    def _updates(self, X, y, prepared):
        for value in super()._updates(X, y, prepared):
            self.weight_ = np.random.default_rng(0).random
            yield value


class KeepsTheWorst(LinearSVM):
    def _get_support_mask(self):
        return ~LinearSelector._get_support_mask(self)


class ForgetsParameters(PCA):
    def __init__(self, tasks=None, n_components=None, n_features_to_select=None):
        super().__init__(tasks, n_components or 1, n_features_to_select)


class LosesItsScores(PCA):
    def __getstate__(self):
        return {key: value for key, value in super().__getstate__().items() if key != "scores_"}


class ClonesItself(PCA):
    def __sklearn_clone__(self):
        return self


class NamesOthers(PCA):
    def get_feature_names_out(self, input_features=None):
        return np.array([f"pca{i}" for i in range(self._n_features_out + 1)])


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
    (PreparesByParameter, {"shrinkage": 0.1}, {"varied": [{"shrinkage": 0.5}]}, ["prepared_is_shared"]),
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
    (ForgetsParameters, {}, {}, ["scikit-learn[check_do_not_raise_errors_in_init_or_set_param]",
                                 "scikit-learn[check_parameters_default_constructible]"]),
    (LosesItsScores, {}, {}, ["pickle_is_the_same"]),
    (ClonesItself, {}, {}, ["clone_is_unfitted"]),
    (NamesOthers, {}, {}, ["frames_keep_their_names"]),
    (WrongPath, {"tol": 1e-3}, {"varied": [{"gamma1": 0.3}]}, ["paths_as_declared"]),
    (LearnsNothing, SVM, {}, ["study_learns"]),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "params", "knowledge", "wanted"), BROKEN, ids=lambda v: getattr(v, "__name__", None))
def test_a_broken_method_is_found(cls, params, knowledge, wanted):
    case = MethodCase(cls, params, **knowledge)
    checks = [
        check for check in estimator_checks(case) if any(check.name.partition(": ")[2].startswith(w) for w in wanted)
    ]
    assert checks, "no such check"
    assert failures(checks)


def test_a_method_that_knows_held_out_labels_is_found(monkeypatch):
    def told(dataset, path):
        Peeks.labels.update(zip((row.tobytes() for row in dataset.X), dataset.y, strict=True))
        save_dataset(dataset, path)

    monkeypatch.setattr(studies, "save_dataset", told)
    checks = [check for check in estimator_checks(Peeks, SVM) if check.kind == "study"]
    assert failures(checks) == {"study_of_permuted_labels_finds_nothing"}


def test_a_check_that_is_declared_to_fail_must_fail():
    checks = estimator_checks("pca", expected_failures={"clone_is_unfitted*": "no reason at all"})
    declared = [check for check in checks if check.expected_failure]
    assert len(declared) == 5
    with pytest.raises(AssertionError, match="declared to fail: no reason at all"):
        declared[0]()
