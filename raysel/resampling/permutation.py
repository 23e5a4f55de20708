"""Permutation test of a finished study: its labels are permuted, and its honest score is computed again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import numpy as np

from raysel.base.registry import solver_capabilities
from raysel.errors import ConfigError, DirectoryError
from raysel.launch.start import make_listeners
from raysel.resampling.finished import FinishedStudy, finished_study
from raysel.resampling.permuted_study import (
    Chosen,
    packed,
    permuted_scores,
    unpacked,
)
from raysel.resampling.pieces import Pieces, Work, all_failed, run_pieces
from raysel.results.error_control.permutation import FOLDER, PermutationTest, identity
from raysel.results.export import export_result
from raysel.results.page.assemble import write_final_report
from raysel.results.result import StudyResult
from raysel.statistics.label_permutations import LabelPermutations
from raysel.statistics.permutation import feature_p_values, permutation_p_value
from raysel.tracking.log import Listener

#: Largest number of permutations.
_MOST = 1_000_000


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
    r"""Test by permuted labels whether a study's features and method tell more of the labels than chance.

    For each permutation the samples are assigned to the labels and their places in the folds at random, and the mean
    test score over the outer folds is computed as that of the study. With B permutations,

        p = (1 + #{b : score_b >= score}) / (1 + B)

    is the p value of the null hypothesis that the samples have nothing to do with the labels [1]_: samples exchange
    their labels, within their groups if there are groups whose samples differ in their labels, and whole groups
    exchange theirs if every group has one label; the samples of several tasks within each task. Groups of different
    sizes count as exchangeable. With ``cv.blocks`` the blocks of equal length exchange their labels as they stand. p
    holds if what is exchanged is exchangeable, which single samples of a recording or of one subject are not.
    Multi-label samples exchange the whole set of their labels.

    Each outer fold's configuration and number of features, chosen with the true labels, are held fixed and refitted, as
    if they had been given in advance: p is approximate, and can be too small, because with permuted labels others would
    have been chosen. With ``retune`` the whole search is repeated for each permutation, without the study's time
    budget, and p is exact: at most alpha with a probability of at most alpha.

    The final model's feature scores are compared with those of the model fitted to all samples with permuted labels.
    ``p_value`` counts the permutations in which the same feature reaches its score; ``p_value_fwer`` those in which any
    feature does, which controls the probability of one or more false features (maximum statistic [2]_). The scores of
    filters are compared as they are, those of models both as they are and as shares of their sum, because their scale
    differs between labels with and without information; see `raysel.statistics.permutation.feature_p_values`. The test
    is of the score: a feature without information of its own that depends on one with information can get a score that
    no permutation reaches, and features of a model that shares its weight among many may all remain undetected.

    The permutations are kept in the folder ``permutation`` of the study's directory as they are computed; a repeated
    call computes the missing ones only. The p values are added to the study's exported ranking.

    Parameters
    ----------
    path : str or Path
        Directory of a finished study.
    config : str, Path or mapping, optional
        Configuration of the study; that in the directory by default. Needed only if its solver imports code.
    overrides : mapping of str to object, or iterable of str, default=()
        Values that replace those of the configuration and cannot change a number, e.g. ``dataset.path`` if the data
        have moved.
    permutations : int, default=200
        Number of permutations, B; the smallest possible p value is 1 / (1 + B).
    retune : bool, default=False
        Whether to repeat the whole search for each permutation, which takes B times as long as the study.
    seed : int, optional
        Seed of the permutations, not negative; that of the study by default.
    executor : {"serial", "ray"}, optional
        Where to compute; ``search.executor`` of the configuration by default.
    address : str, optional
        HOST:PORT of the Ray cluster to use; by default Ray is started on this machine.
    allow_mixed_versions : bool, default=False
        Whether nodes of the cluster may compute whose versions can change numbers; the result names them.
    progress : bool or Listener, default=True
        Whether to print a progress line, or an object that shows the progress.

    Returns
    -------
    PermutationTest
        P values; also in ``result.json``, ``features.csv`` and ``features.parquet`` of the folder.

    Raises
    ------
    ConfigError, DataError
        If an argument is invalid, the data cannot be used, or no permutation changes a label.
    DirectoryError
        If the directory holds no study or is in use, or data, configuration or code have changed.
    UnfinishedStudyError
        If the study has not finished.
    StudyError
        If the study has no final model, all permutations fail, or Ray or the disk fails.

    References
    ----------
    .. [1] B. Phipson, G. K. Smyth, "Permutation P-values Should Never Be Zero", Statistical Applications in Genetics
       and Molecular Biology 9, 2010.
    .. [2] P. H. Westfall, S. S. Young, "Resampling-Based Multiple Testing", 1993.

    Examples
    --------
    >>> import tempfile
    >>> from raysel import run_study
    >>> small = {
    ...     "solver.space": {"alpha": [0.1]}, "cv.outer": 2, "cv.inner": 2, "search.executor": "serial",
    ...     "solver.params.max_iter": 3, "evaluation.n_features": [16], "pictures": [],
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     small["tracking.uri"] = f"sqlite:///{folder}/mlflow.db"
    ...     study = run_study("digits-smr", small, output=f"{folder}/study", progress=False)
    ...     found = permutation_test(study.path, permutations=4, progress=False)
    >>> found.p_value, found.p.n_reached
    (0.2, 0)
    """
    if isinstance(permutations, bool) or not isinstance(permutations, Integral) or not 1 <= permutations <= _MOST:
        raise ConfigError(f"permutations={permutations!r} must be a whole number from 1 to {_MOST}, e.g. 200.")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0):
        raise ConfigError(f"seed={seed!r} must be a whole number that is not negative, e.g. 0.")
    listeners = make_listeners(progress)
    with finished_study(
        path, config, overrides, executor=executor, address=address, allow_mixed_versions=allow_mixed_versions
    ) as finished:
        dataset = finished.study.dataset
        labels = LabelPermutations(dataset.y, dataset.groups, dataset.tasks, finished.study.block_numbers)
        chosen_seed = finished.study.config.seed if seed is None else int(seed)
        work = _work(finished, retune, chosen_seed)
        try:
            work.folder.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise DirectoryError(f"{work.folder.parent} cannot be written: {error.strerror}.") from error
        # Number 0 has the true labels: it tells whether the study's figure can be computed again.
        pieces = run_pieces(finished, work, range(int(permutations) + 1), listeners)
        found = _evaluated(finished, pieces, labels, retune, chosen_seed, int(permutations))
        found.write(work.folder.parent, identity(finished.result))
        again = StudyResult.open(finished.result.path)
        export_result(again, again.directory.ranking)
        write_final_report(again)
        return found


def _work(finished: FinishedStudy, retune: bool, seed: int) -> Work:
    """Definition of the permutations, each kind in a folder of its own."""
    result = finished.result
    chosen = None if retune else {refit.fold: Chosen.of_refit(refit) for refit in result.refits}
    settings = {
        "permutation seed": seed,
        "retune": retune,
        "winners": {refit.fold: [refit.trial, refit.position] for refit in result.refits},
        "configuration": finished.record.config_hash,
    }
    return Work(
        result.path / FOLDER / ("searched" if retune else "fixed"),
        partial(permuted_scores, seed=seed, chosen=chosen, ranks=result.final.feature_scores is not None),
        (permuted_scores, LabelPermutations),
        settings,
        "permutations",
        len(result.refits) + (len(result.records) * len(finished.study.training_sets) if retune else 0),
    )


def _evaluated(
    finished: FinishedStudy, pieces: Pieces, labels: LabelPermutations, retune: bool, seed: int, n: int
) -> PermutationTest:
    """Return the test from the permutations that have ended."""
    values = [pieces.values.get(number) for number in range(n + 1)]
    if not any(values[1:]):
        raise all_failed(pieces, "permutations")
    means = [None if value is None else float(np.mean(list(value["scores"].values()))) for value in values]
    scores = finished.result.final.feature_scores
    by_share, features = _by_share(finished), {}
    if scores is not None:
        # Rounded as the permuted scores are.
        observed = unpacked(packed(np.where(finished.study.dataset.constant, 0.0, scores)))
        permuted = [None if value is None else unpacked(value["feature_scores"]) for value in values[1:]]
        p = feature_p_values(observed, permuted, by_share=by_share)
        features = {"p_value": p.p_value, "p_value_fwer": p.single_step, "p_value_fwer_step_down": p.step_down}
    result = finished.result
    return PermutationTest(
        result.metric,
        result.test_mean,
        tuple(means[1:]),
        permutation_p_value(result.test_mean, [np.nan if mean is None else mean for mean in means[1:]]),
        retune,
        seed,
        labels.kind,
        labels.n_movable,
        labels.log10_arrangements,
        means[0],
        features,
        tuple(result.feature_names),
        by_share and bool(features),
        {number: error for number, error in pieces.errors.items() if number},
        pieces.mixed,
    )


def _by_share(finished: FinishedStudy) -> bool:
    """Return whether feature scores are compared by `feature_p_values` with their shares: all but those of filters."""
    can = solver_capabilities(finished.study.config.solver.name)
    return can.predicts or can.iterates
