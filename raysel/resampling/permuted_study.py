"""Study with permuted labels, and its honest score and feature scores."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raysel.arrays import FloatArray, IntArray
from raysel.cv.plan import FINAL, InnerFold, NestedPlan, OuterFold
from raysel.cv.records import RefitRecord, TrialRecord
from raysel.cv.seeds import derived_seed
from raysel.cv.selection import select_winner
from raysel.data.task_blocks import as_samples, constant_features
from raysel.execution.computing import PreparedFolds
from raysel.execution.path_records import trial_records
from raysel.execution.trial_plan import TrainingSetPlan, trial_plan
from raysel.statistics.label_permutations import LabelPermutations
from raysel.study.definition import Study

#: Largest share of the machine's memory for the prepared folds of one search; several may run at once.
_MEMORY_SHARE = 0.02


@dataclass(frozen=True)
class Chosen:
    """Configuration and number of features of an outer fold's model."""

    params: Mapping[str, Any]
    position: int | None
    C: Sequence[float] = ()

    @classmethod
    def of_refit(cls, refit: RefitRecord) -> Chosen:
        """Return what a refit of the study has used."""
        return cls(refit.params, refit.position, refit.C)


def permuted_study(study: Study, number: int, seed: int) -> Study:
    """Return the study with its labels permuted, whose folds move with the labels.

    A sample gets the label of another sample together with that one's place in the folds. So it is the samples that are
    permuted against labels and folds: every training, validation and test set has the same labels as before, and no
    class is ever missing from one.
    """
    if number == 0:
        return study
    dataset = study.dataset
    permutations = LabelPermutations(dataset.y, dataset.groups, dataset.tasks, study.block_numbers)
    source = permutations.draw(np.random.default_rng(derived_seed(seed, "permutation", number)))
    return replace(study, dataset=replace(dataset, y=dataset.y[source]), plan=_moved(study.plan, source))


def _moved(plan: NestedPlan, source: IntArray) -> NestedPlan:
    """Plan in which each sample has the place of its source."""
    by_source = np.argsort(source, kind="stable")
    sorted_source = source[by_source]
    one_to_one = bool((np.diff(sorted_source) > 0).all())

    def moved(index: IntArray) -> IntArray:
        if one_to_one:
            return by_source[index]  # the inverse of the permutation
        starts, ends = (np.searchsorted(sorted_source, index, side=side) for side in ("left", "right"))
        parts = [by_source[start:end] for start, end in zip(starts, ends, strict=True)]
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])

    return NestedPlan(
        plan.n_samples,
        tuple(
            OuterFold(
                fold.name,
                fold.repeat,
                fold.index,
                moved(fold.train),
                moved(fold.test),
                tuple(InnerFold(moved(inner.train), moved(inner.validation)) for inner in fold.inner),
            )
            for fold in plan.folds
        ),
    )


def permuted_scores(
    study: Study,
    number: int,
    *,
    seed: int,
    chosen: Mapping[str, Chosen] | None,
    ranks: bool,
) -> dict[str, Any]:
    """Compute the honest score of a study with permuted labels, and the feature scores of its final model."""
    study = permuted_study(study, number, seed)
    wanted = [fold for fold in study.plan.folds if fold.name != FINAL or ranks]
    if chosen is None:
        study = replace(study, plan=NestedPlan(study.plan.n_samples, tuple(wanted)))
        chosen = _search(study)
    found: dict[str, Any] = {"scores": {}}
    for fold in wanted:
        test_score, own_scores = _refit(study, fold, chosen[fold.name])
        if test_score is not None:
            found["scores"][fold.name] = test_score
        else:
            found["feature_scores"] = packed(np.where(study.dataset.constant, 0.0, own_scores))
    return found


def _refit(study: Study, fold: OuterFold, chosen: Chosen) -> tuple[float | None, FloatArray]:
    """Test score of a configuration at the chosen number of features, None for the final fold, and feature scores."""
    X, y, state = study.dataset.X, study.dataset.y, fold.random_state(study.config.seed)
    scaler, solver = study.scaler(), study.solver(chosen.params, state)
    constant = constant_features(X[fold.train])
    X_train = as_samples(scaler.fit_transform(X[fold.train]))
    solver.fit(X_train, y[fold.train])
    if not len(fold.test):
        return None, solver.scores_
    evaluation, C = study.evaluation, chosen.C or 1.0
    if chosen.position is not None:
        last = chosen.position + 1
        evaluation, C = replace(evaluation, n_features=evaluation.n_features[:last]), chosen.C[:last] or 1.0
    X_test = as_samples(scaler.transform(X[fold.test]))
    scores = evaluation.scorer(X_train, y[fold.train], X_test, y[fold.test], state, constant, C)(solver)
    return float(scores.mean() if chosen.position is None else scores[-1]), np.empty(0)


def _search(study: Study) -> dict[str, Chosen]:
    """Search all folds of a study in this process, without its time budget; return the winner of each."""
    records = _run_trials(study)
    preference, rule = study.preference(records), study.evaluation.choose_n
    found = {}
    for fold in study.plan.folds:
        winner, _ = select_winner(records, fold.name, preference, rule)
        trace = winner.folds[fold.name]
        choice = trace.choice(rule)
        position = None if rule == "mean" or choice is None else choice.position
        found[fold.name] = Chosen(winner.params, position, trace.C)
    return found


def _run_trials(study: Study) -> list[TrialRecord]:
    plan, folds = trial_plan(study), PreparedFolds(study, _MEMORY_SHARE)
    while (config := plan.propose()) is not None:
        trial = plan.trial_class(study, config, folds)
        for _ in plan.steps(trial, config):
            pass
        plan.add(trial.record)
    return trial_records(study, plan.records) if isinstance(plan, TrainingSetPlan) else plan.records


def packed(scores: FloatArray) -> str:
    """Return scores in single precision as text for `unpacked`."""
    single = np.asarray(scores, dtype="<f4")
    if not np.isfinite(single).all():
        raise FloatingPointError("the method gave feature scores that are not finite.")
    return base64.b64encode(single.tobytes()).decode()


def unpacked(text: str) -> FloatArray:
    """Return the scores that `packed` wrote as text."""
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float64)
