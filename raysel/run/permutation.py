"""Permutation test: the honest score and the feature scores of a study with permuted labels."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import numpy as np

from raysel.base.registry import solver_capabilities
from raysel.config.preparation import joins_columns
from raysel.core.arrays import FloatArray, IntArray
from raysel.core.errors import ConfigError, StudyError
from raysel.evaluation.nested_search import select_winner
from raysel.evaluation.plan import InnerFold, NestedPlan, OuterFold, derived_seed
from raysel.evaluation.records import FINAL, EstimatorFailure, RefitRecord, TrialRecord
from raysel.evaluation.split import set_parameters
from raysel.execution.serial import PreparedFolds
from raysel.execution.trial_plan import TrainingSetPlan, trial_plan
from raysel.execution.trials import trial_records
from raysel.numerics.permutation import LabelPermutations, feature_p_values, permutation_p_value
from raysel.results.maps import permutation_maps, write_maps
from raysel.results.permutation import FOLDER, PermutationTest, identity
from raysel.run.options import RunOptions
from raysel.run.pieces import FinishedStudy, Pieces, Work, all_failed, finished_study, run_pieces
from raysel.study.definition import Study
from raysel.tracking.log import Listener

#: Largest share of the machine's memory for the prepared folds of one search; several may run at
#: once.
_MEMORY_SHARE = 0.02
#: Largest number of permutations.
MOST_PERMUTATIONS = 1_000_000


@dataclass(frozen=True)
class Chosen:
    """Configuration and number of features of an outer fold's model."""

    params: Mapping[str, Any]
    position: int | None
    settings: Sequence[Mapping[str, Any]]
    #: Positions of the numbers of features with which the estimator does not fail, or of the tasks.
    scored: Sequence[int]

    @classmethod
    def of_refit(cls, refit: RefitRecord) -> Chosen:
        """Return what a refit of the study has used."""
        return cls(refit.params, refit.position, refit.settings, refit.scored_numbers)


def permuted_study(study: Study, number: int, seed: int) -> Study:
    """Return the study with its labels permuted, whose folds move with the labels.

    A sample gets the label of another sample together with that one's place in the folds. So it is
    the samples that are permuted against labels and folds: every training, validation and test set
    has the same labels as before, and no class is ever missing from one.
    """
    if number == 0:
        return study
    dataset = study.dataset
    permutations = dataset.permutations(study.block_numbers)
    source = permutations.draw(np.random.default_rng(derived_seed(seed, "permutation", number)))
    return replace(
        study, dataset=replace(dataset, y=dataset.y[source]), plan=_moved(study.plan, source)
    )


def _moved(plan: NestedPlan, source: IntArray) -> NestedPlan:
    """Plan in which each sample has the place of its source."""
    by_source = np.argsort(source, kind="stable")
    sorted_source = source[by_source]
    one_to_one = bool((np.diff(sorted_source) > 0).all())

    def moved(index: IntArray) -> IntArray:
        if one_to_one:
            return by_source[index]  # the inverse of the permutation
        starts, ends = (
            np.searchsorted(sorted_source, index, side=side) for side in ("left", "right")
        )
        parts = [by_source[start:end] for start, end in zip(starts, ends, strict=True)]
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])

    def moved_inner(inner: InnerFold) -> InnerFold:
        return InnerFold(moved(inner.train), moved(inner.validation))

    folds = [
        replace(
            fold,
            train=moved(fold.train),
            test=moved(fold.test),
            inner=tuple(map(moved_inner, fold.inner)),
        )
        for fold in plan.folds
    ]
    return NestedPlan(plan.n_samples, tuple(folds))


def permuted_scores(
    study: Study,
    number: int,
    *,
    seed: int,
    chosen: Mapping[str, Chosen] | None,
    ranks: bool,
) -> dict[str, Any]:
    """Compute the honest score and the final feature scores with permuted labels."""
    study = permuted_study(study, number, seed)
    wanted = [fold for fold in study.plan.folds if fold.name != FINAL or ranks]
    if chosen is None:
        study = replace(study, plan=NestedPlan(study.plan.n_samples, tuple(wanted)))
        chosen = _search(study)
    values: dict[str, Any] = {"scores": {}}
    for fold in wanted:
        test_score, own_scores = _refit(study, fold, chosen[fold.name])
        if test_score is not None:
            values["scores"][fold.name] = test_score
        else:
            values["feature_scores"] = packed(own_scores)
    return values


def _refit(study: Study, fold: OuterFold, chosen: Chosen) -> tuple[float | None, FloatArray]:
    """Refit a configuration; return its test score, or the final fold's feature scores."""
    split = study.split(fold, params=chosen.params)
    solver = study.solver(chosen.params, split.random_state)
    set_parameters(solver, split.parameters)
    solver.fit(split.X_train, split.y_train)
    if not len(fold.test):
        return None, split.feature_scores(solver)
    evaluation, settings = study.evaluation, [tuple(setting.items()) for setting in chosen.settings]
    scored = list(chosen.scored)
    if chosen.position is not None:
        last = chosen.position + 1
        evaluation = replace(evaluation, n_features=evaluation.n_features[:last])
        settings, scored = settings[:last], [-1]
    failures: list[EstimatorFailure] = []
    of_score = evaluation.scorer(split.with_test(), settings)(solver, failures)[scored]
    if np.isnan(of_score).any():
        raise StudyError(f"evaluation.estimator fails on {fold.name}: {failures[-1].reason}")
    return float(of_score.mean()), np.empty(0)


def _search(study: Study) -> dict[str, Chosen]:
    """Search all folds of a study in this process, and return the winner of each."""
    records = _run_trials(study)
    preference, rule = study.preference(records), study.evaluation.choose_n
    chosen = {}
    for fold in study.plan.folds:
        winner, _ = select_winner(records, fold.name, preference, rule)
        trace = winner.folds[fold.name]
        choice = trace.choice(rule)
        position = None
        if rule != "mean" and choice is not None:
            position = choice.position
        chosen[fold.name] = Chosen(winner.params, position, trace.settings, trace.scored_numbers)
    return chosen


def _run_trials(study: Study) -> list[TrialRecord]:
    plan, folds = trial_plan(study), PreparedFolds(study, _MEMORY_SHARE)
    while (config := plan.propose()) is not None:
        trial = plan.trial_class(study, config, folds)
        for _ in plan.steps(trial, config):
            pass
        plan.add(trial.record)
    if isinstance(plan, TrainingSetPlan):
        return trial_records(study, plan.records)
    return plan.records


def packed(scores: FloatArray) -> str:
    """Return scores in single precision as text for `unpacked`."""
    single = np.asarray(scores, dtype="<f4")
    if not np.isfinite(single).all():
        raise FloatingPointError("the method gave feature scores that are not finite.")
    return base64.b64encode(single.tobytes()).decode()


def unpacked(text: str) -> FloatArray:
    """Return the scores that `packed` wrote as text."""
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float64)


def permutation_test(
    path: str | Path,
    config: str | Path | Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    permutations: int = 200,
    retune: bool = False,
    seed: int | None = None,
    executor: Literal["serial", "ray"] | None = None,
    address: str | None = None,
    allow_mixed_versions: bool = False,
    progress: bool | Listener = True,
) -> PermutationTest:
    r"""Test by permuted labels whether a study tells more of the labels than chance.

    For each permutation the samples are assigned to the labels and their places in the folds at
    random, and the mean test score over the outer folds is computed as that of the study. With B
    permutations,

        p = (1 + #{b : score_b >= score}) / (1 + B)

    is the p value of the null hypothesis that the samples have nothing to do with the labels [1]_:
    samples exchange their labels, within their groups if there are groups whose samples differ in
    their labels, and whole groups exchange theirs if every group has one label; the samples of
    several tasks within each task. Groups of different sizes count as exchangeable. With
    ``cv.blocks`` the blocks of equal length exchange their labels as they stand. p holds if what is
    exchanged is exchangeable, which single samples of a recording or of one subject are not.
    Multi-label samples exchange the whole set of their labels.

    Each outer fold's configuration and number of features, chosen with the true labels, are held
    fixed and refitted, as if they had been given in advance: p is approximate, and can be too
    small, because with permuted labels others would have been chosen. With ``retune`` the whole
    search is repeated for each permutation, without the study's time budget, and p is exact: at
    most alpha with a probability of at most alpha.

    The final model's feature scores are compared with those of the model fitted to all samples with
    permuted labels. ``p_value`` counts the permutations in which the same feature reaches its
    score; ``p_value_fwer`` those in which any feature does, so that one or more features are named
    falsely with a probability of at most that level (maximum statistic [2]_). The scores of filters
    are compared as they are, those of models both as they are and as shares of their sum, because
    their scale differs between labels with and without information; see
    `raysel.numerics.permutation.feature_p_values`.

    The features' p values hold if no feature has to do with the labels. Where some do, they hold
    for the features that are independent of the labels only if the score of a feature depends on no
    other one, as with fisher_score and f_test (``Capabilities.univariate``). Those of a model need
    not: its scores of other features can be higher than with permuted labels, most with a weak
    penalty or a rare class; nor those of relieff and rrelieff, whose neighbours depend on all
    features, most with few neighbours. Features that are ranked by places, as by mrmr, have no p
    values, because the largest place is the same for all labels. A feature that depends on one with
    information can get a score that no permutation reaches, and features of a model that shares its
    weight among many may all remain undetected.

    The permutations are kept in the folder ``permutation`` of the study's directory as they are
    computed; a repeated call computes the missing ones only. The p values are added to the study's
    exported ranking. Of a study that another version of raysel or of a library ran, the score of
    the true labels is computed again, which a sentence says.

    Parameters
    ----------
    path : str or Path
        Directory of a finished study.
    config : str, Path or mapping, optional
        Configuration of the study; that in the directory by default. Needed only if its solver
        imports code.
    overrides : mapping of str to object, or iterable of str, default=()
        Values that replace those of the configuration and cannot change a number, e.g.
        ``dataset.path`` if the data have moved.
    permutations : int, default=200
        Number of permutations, B; the smallest possible p value is 1 / (1 + B).
    retune : bool, default=False
        Whether to repeat the whole search for each permutation, which takes B times as long as the
        study.
    seed : int, optional
        Seed of the permutations, not negative; that of the study by default.
    executor : {"serial", "ray"}, optional
        Where to compute; ``search.executor`` of the configuration by default.
    address : str, optional
        HOST:PORT of the Ray cluster to use; by default Ray is started on this machine.
    allow_mixed_versions : bool, default=False
        Whether nodes of the cluster may compute whose versions can change numbers; the result names
        them.
    progress : bool or Listener, default=True
        Whether to print a progress line, or an object that shows the progress.

    Returns
    -------
    PermutationTest
        P values; also in ``result.json``, ``features.csv`` and ``features.parquet`` of the folder,
        and for volumes as NIfTI maps of -log10 p.

    Raises
    ------
    ConfigError, DataError
        If an argument is invalid, the data cannot be used, or no permutation changes a label.
    DirectoryError
        If the directory holds no study or is in use, data or configuration have changed, or the
        permutations that are kept are of another version.
    UnfinishedStudyError
        If the study has not finished.
    StudyError
        If the study has no final model, all permutations fail, or Ray or the disk fails.

    References
    ----------
    .. [1] B. Phipson, G. K. Smyth, "Permutation P-values Should Never Be Zero", Statistical
       Applications in Genetics and Molecular Biology 9, 2010.
    .. [2] P. H. Westfall, S. S. Young, "Resampling-Based Multiple Testing", 1993.

    Examples
    --------
    >>> import tempfile
    >>> from raysel import run_study
    >>> small = {
    ...     "solver.space": {"alpha": [0.1]}, "cv.outer": 2, "cv.inner": 2,
    ...     "search.executor": "serial",
    ...     "solver.params.max_iter": 3, "evaluation.n_features": [16], "pictures": [],
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     small["tracking.uri"] = f"sqlite:///{folder}/mlflow.db"
    ...     study = run_study("digits-smr", small, output=f"{folder}/study", progress=False)
    ...     found = permutation_test(study.path, permutations=4, progress=False)
    >>> found.p_value, found.p.n_reached
    (0.2, 0)
    """
    _check_numbers(permutations, seed)
    options = RunOptions.of(address, allow_mixed_versions, progress)
    with finished_study(path, config, overrides, executor=executor, options=options) as finished:
        dataset = finished.study.dataset
        labels = dataset.permutations(finished.study.block_numbers)
        if seed is None:
            seed = finished.study.config.seed
        work = _work(finished, retune, int(seed))
        # Number 0 has the true labels: it tells whether the study's figure can be computed again.
        pieces = run_pieces(finished, work, range(int(permutations) + 1))
        test = _evaluated(
            finished, pieces, labels=labels, retune=retune, seed=int(seed), n=int(permutations)
        )
        folder = finished.result.path / FOLDER
        test.write(
            folder,
            identity(finished.result.refits, finished.result.stored.study.data_hash),
        )
        write_maps(permutation_maps(test), finished.result.layout, folder)
        finished.export()
        return test


def _check_numbers(permutations: Any, seed: Any) -> None:
    if not _is_whole(permutations) or not 1 <= permutations <= MOST_PERMUTATIONS:
        raise ConfigError(
            f"permutations={permutations!r} must be a whole number from 1 to {MOST_PERMUTATIONS},"
            " e.g. 200."
        )
    if seed is not None and (not _is_whole(seed) or seed < 0):
        raise ConfigError(f"seed={seed!r} must be a whole number that is not negative, e.g. 0.")


def _is_whole(number: Any) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool)


def _work(finished: FinishedStudy, retune: bool, seed: int) -> Work:
    """Definition of the permutations, each kind in a folder of its own."""
    result, folder, n_limits = finished.result, "fixed", len(finished.result.refits)
    chosen: Mapping[str, Chosen] | None = {
        refit.fold: Chosen.of_refit(refit) for refit in result.refits
    }
    if retune:
        folder, chosen = "searched", None
        n_limits += len(result.records) * len(finished.study.training_sets)
    ranks = result.final.feature_scores is not None
    settings = {
        "permutation seed": seed,
        "retune": retune,
        "winners": {refit.fold: [refit.trial, refit.position] for refit in result.refits},
        "configuration": finished.record.config_hash,
    }
    return Work(
        f"{FOLDER}/{folder}",
        partial(permuted_scores, seed=seed, chosen=chosen, ranks=ranks),
        code=(permuted_scores, LabelPermutations),
        settings=settings,
        unit="permutations",
        n_limits=n_limits,
    )


def _evaluated(
    finished: FinishedStudy,
    pieces: Pieces,
    labels: LabelPermutations,
    retune: bool,
    seed: int,
    n: int,
) -> PermutationTest:
    """Return the test from the permutations that have ended."""
    values = [pieces.values.get(number) for number in range(n + 1)]
    if not any(values[1:]):
        raise all_failed(pieces, "permutations")
    means = [_mean_score(value) for value in values]
    result, observed_mean = finished.result, finished.result.test_mean
    scores = result.final.feature_scores
    solver = finished.study.solver(finished.winner.params, 0)
    by_share, places, features = _by_share(finished), solver.score_scale == "place", {}
    # What is compared must be of one version: else the true labels' figures are those that are
    # computed now.
    is_recomputed = bool(finished.other_versions) and values[0] is not None
    if is_recomputed and means[0] is not None:
        observed_mean = means[0]
    if scores is not None and not places:
        observed, *permuted = map(_feature_scores, values)
        if observed is None or not is_recomputed:
            observed = unpacked(packed(np.array(scores)))  # rounded as the permuted scores are
        p = feature_p_values(observed, permuted, by_share=by_share)
        features = {
            "p_value": p.p_value[: result.recorded.n_candidates],
            "p_value_fwer": p.single_step[: result.recorded.n_candidates],
            "p_value_fwer_step_down": p.step_down[: result.recorded.n_candidates],
        }
    return PermutationTest(
        metric=result.metric,
        test_mean=observed_mean,
        permuted=tuple(means[1:]),
        p=permutation_p_value(observed_mean, np.array(means[1:], dtype=np.float64)),
        retune=retune,
        seed=seed,
        exchanged=labels.kind,
        n_movable=labels.n_movable,
        log10_arrangements=labels.log10_arrangements,
        recomputed=means[0],
        features=features,
        feature_names=tuple(result.feature_names[: result.recorded.n_candidates]),
        shares=by_share and bool(features),
        univariate=solver.univariate and not joins_columns(finished.study.config.dataset.prepare),
        places=places,
        errors={number: error for number, error in pieces.errors.items() if number},
        mixed=pieces.mixed,
    )


def _mean_score(value: Mapping[str, Any] | None) -> float | None:
    """Return the mean test score of a permutation, None for one that failed."""
    if value is None:
        return None
    return float(np.mean(list(value["scores"].values())))


def _feature_scores(value: Mapping[str, Any] | None) -> FloatArray | None:
    """Return the feature scores of a permutation, None for one that failed."""
    if value is None:
        return None
    return unpacked(value["feature_scores"])


def _by_share(finished: FinishedStudy) -> bool:
    """Return whether feature scores are also compared as shares: all but those of filters."""
    can = solver_capabilities(finished.study.config.solver.name)
    return can.predicts or can.iterates
