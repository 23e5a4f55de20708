"""Stability selection: how often complementary halves of the samples select each feature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from raysel.base.estimator import read_convergence
from raysel.core.arrays import BoolArray, IntArray, LabelArray
from raysel.core.errors import ConfigError, DataError
from raysel.data.targets import find_target
from raysel.data.targets.folds import Units
from raysel.evaluation.group_ranking import fixed_groups
from raysel.evaluation.plan import derived_seed
from raysel.evaluation.split import set_parameters
from raysel.numerics.rankings import bounded_top, descending_order, threshold_on_grid
from raysel.results.maps import stability_maps, write_maps
from raysel.results.stability import (
    FOLDER,
    GROUPS,
    StabilitySelectionResult,
    write_stability_selection,
)
from raysel.run.options import RunOptions
from raysel.run.pieces import FinishedStudy, Pieces, Work, all_failed, finished_study, run_pieces
from raysel.study.definition import Study
from raysel.tracking.log import Listener

#: Number of best features of a half that are kept at least, so that another ``top`` up to it
#: computes nothing again.
_KEPT = 500
#: Most subsamples of a selection; the list of so many takes memory before the first is fitted.
_MOST = 100_000


def check_halves(y: LabelArray, groups: LabelArray | None) -> None:
    """Check that every class can be in both halves; quantities are in both."""
    units = Units.find(groups, len(y))
    for what, mask in find_target(y).members(y):
        if len(np.unique(units.member[mask])) < 2:
            raise DataError(
                f"{what} is that of one {units.noun} only, so one half of the samples would lack"
                " it; run a study without it."
            )


def draw_halves(
    y: LabelArray, groups: LabelArray | None, random_state: int
) -> tuple[IntArray, IntArray]:
    """Draw a complementary pair: two disjoint halves of the samples, or of the groups.

    Both have floor(m / 2) of the m samples, or groups, and as many of each class, up to one, or of
    each fifth of a quantity; the class of a group is the most frequent one of its samples. Without
    groups, samples of several labels are divided by the two folds of
    `raysel.evaluation.splitters.split`, which leave no sample out and whose sizes can differ by
    more.

    Groups are not divided by `split`: where their sizes differ, its folds hardly depend on the
    seed, so that all pairs would be the same.
    """
    return find_target(y).halves(y, groups=groups, random_state=random_state)


def stability_selection(
    path: str | Path,
    config: str | Path | Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    subsamples: int = 100,
    top: int | None = None,
    threshold: float | None = None,
    executor: Literal["serial", "ray"] | None = None,
    address: str | None = None,
    allow_mixed_versions: bool = False,
    progress: bool | Listener = True,
) -> StabilitySelectionResult:
    r"""Select the features that a study's winner selects on most halves of the samples.

    The samples are split at random into pairs of disjoint halves, stratified by class and with
    whole groups. Scaler and solver of the final model are fitted to each half with the winner's
    hyperparameters, and the ``top`` best features with a score are selected. The share of the
    halves that select a feature is its selection probability :math:`\Pi`.

    With a half that selects at most q of p features, B pairs, a threshold :math:`\tau > 1/2` and
    :math:`\theta = q / p`, the number V of features with :math:`\Pi \ge \tau`, although a random
    half selects them with a probability of at most :math:`\theta`, obeys

    .. math:: E V \le \frac{q^2}{(2 \tau - 1) p}, \quad E V \le C(\tau, B) \frac{q^2}{p}

    The first bound needs no assumption about the procedure or the samples except that these are
    independent and of one distribution (with groups or blocks: these). The second needs the share
    of pairs that select such a feature twice to have a unimodal distribution. Neither says that
    such a feature has no effect on the label: this reading (Meinshausen & Buehlmann 2010) needs the
    selections of the features without an effect to be exchangeable and no more frequent than by
    guessing; features that depend on one with an effect count as true.

    It uses all samples, also those that tested the outer folds: it judges the ranking, and no
    score. The configuration was chosen on the same samples; the bounds are for this configuration,
    as if it had been given.

    Finished halves are kept in ``<path>/stability/journal.jsonl``: an interrupted call continues
    there, and a call with more subsamples computes only those that are missing. The result is
    written to ``selection.parquet``, ``selection.csv`` and ``result.json`` beside it, and the
    study's ranking table gets the column ``selection_probability``. Volumes get NIfTI maps of the
    probabilities and of the set there. Of a study with ``dataset.feature_groups`` a group counts as
    selected by a half that selects one of its members; the folder ``stability/groups`` has the
    files, `StudyResult.group_selection` the result. A study that another version of
    raysel or of a library ran is taken as well, which a remark says.

    Parameters
    ----------
    path : str or Path
        Directory of the finished study.
    config : str, Path or mapping, optional
        Configuration of the study; that in the directory by default. Needed only if its solver
        imports code.
    overrides : mapping of str to object, or iterable of str, default=()
        Values that replace those of the configuration and cannot change a number, e.g.
        ``dataset.path`` if the data have moved.
    subsamples : int, default=100
        Number of halves, even: twice the number of pairs B. The paper recommends B = 50.
    top : int, optional
        Largest number of features that a half selects; by default that of the final model. Where no
        threshold bounds the false ones of so many by 1, as of all features, it is the largest for
        which one of 0.9 does.
    threshold : float, optional
        Selection probability, above 0.5 and at most 1, from which a feature is in the set; by
        default the smallest whose unimodal bound is at most 1 (the simple bound where there is no
        unimodal one), else 1.
    executor : {"serial", "ray"}, optional
        Where to compute; ``search.executor`` of the configuration by default. The numbers are the
        same.
    address : str, optional
        HOST:PORT of the Ray cluster to use; by default Ray is started on this machine.
    allow_mixed_versions : bool, default=False
        Whether nodes of the cluster may compute whose versions can change numbers; the result names
        them.
    progress : bool or Listener, default=True
        Whether to print a progress line, or an object that shows the progress.

    Returns
    -------
    StabilitySelectionResult
        Selection probabilities, the set and its bounds.

    Raises
    ------
    ConfigError, DataError
        If a parameter, the configuration or the data cannot be used, or a class has too few samples
        or groups.
    DirectoryError
        If the directory holds no study or is in use, cannot be written, or holds halves of another
        state of the study, or of another version.
    UnfinishedStudyError
        If the study has not finished.
    StudyError
        If the study has no final model, its method does not rank features, or fewer than two pairs
        of halves succeed.

    Examples
    --------
    >>> found = stability_selection("raysel-studies/faces", threshold=0.9)  # doctest: +SKIP
    >>> found.thresholds()  # doctest: +SKIP
    """
    check_numbers(subsamples, threshold)
    options = RunOptions.of(address, allow_mixed_versions, progress)
    with finished_study(path, config, overrides, executor=executor, options=options) as finished:
        result = finished.result
        n_best = result.ranking(top).n_selected  # raises where there is none, or not so many
        data = finished.study.dataset
        beside = np.arange(data.n_features) >= result.recorded.n_candidates
        constant = data.constant | beside  # confounds cannot be selected either
        n_of_model = None
        if top is None:
            bounded = bounded_top(n_best, int((~constant).sum()), subsamples // 2)
            if bounded < n_best:
                n_best, n_of_model = bounded, n_best
        check_halves(finished.study.dataset.y, finished.study.kept_whole)
        pieces = run_pieces(finished, _work(finished, n_best), range(subsamples))
        identity = {"winner": dict(finished.winner.params), "data_hash": finished.record.data_hash}
        selection = count_selections(
            pieces, n_best, subsamples=subsamples, constant=constant, identity=identity
        )
        selection = replace(selection, unit=_unit(finished.study), n_of_model=n_of_model).at(
            threshold
        )
        folder = result.path / FOLDER
        names = result.feature_names[: result.recorded.n_candidates]
        places = result.layout.coordinates().items()
        coordinates = {axis: values[: result.recorded.n_candidates] for axis, values in places}
        write_stability_selection(selection, folder, names, coordinates)
        if finished.study.feature_groups:
            group_names, numbers = result.recorded.numbered_groups
            of_groups = count_groups(pieces, selection, numbers).at(threshold)
            (folder / GROUPS).mkdir(exist_ok=True)
            write_stability_selection(of_groups, folder / GROUPS, group_names, {})
        write_maps(stability_maps(selection), result.layout, folder)
        finished.export()
    return selection


def check_numbers(subsamples: int, threshold: float | None, name: str = "subsamples") -> None:
    """Check a number of halves, by the name of its parameter, and a threshold."""
    if (
        isinstance(subsamples, bool)
        or not isinstance(subsamples, int)
        or not 4 <= subsamples <= _MOST
        or subsamples % 2
    ):
        raise ConfigError(
            f"{name}={subsamples!r} must be an even whole number from 4 to {_MOST}: two for"
            " each pair."
        )
    if threshold is not None:
        threshold_on_grid(threshold, subsamples // 2)


def _unit(study: Study) -> str:
    """What halves keep whole."""
    if study.kept_whole is None:
        return "samples"
    if study.block_numbers is None:
        return "groups"
    return "blocks"


def _work(finished: FinishedStudy, top: int) -> Work:
    kept = finished.study.dataset.n_features
    if top <= _KEPT:
        kept = min(kept, _KEPT)
    params = finished.winner.params
    return Work(
        FOLDER,
        partial(rank_on_half, params, kept),
        code=(rank_on_half, draw_halves),
        settings={f"best features kept of each half (all for a top above {_KEPT})": kept},
        unit="halves",
    )


def rank_on_half(params: Mapping[str, Any], kept: int, study: Study, number: int) -> dict[str, Any]:
    """Fit scaler and solver to one half of the samples and return its best features."""
    dataset, (pair, side) = study.dataset, divmod(number, 2)
    half = draw_halves(
        dataset.y, study.kept_whole, derived_seed(study.config.seed, "halves", pair)
    )[side]
    solver = study.solver(params, derived_seed(study.config.seed, "half fit", pair, side))
    split = study.fit_split(half, params=params)
    if split.preparation is None:
        split = replace(split, constant=dataset.constant)
    set_parameters(solver, split.parameters)
    solver.fit(split.X_train, split.y_train)
    scores = split.feature_scores(solver)
    if not np.isfinite(scores).all():
        raise DataError("the solver gave scores that are NaN or infinite.")
    n_scored = int((scores > 0).sum())
    return {
        "best": descending_order(scores)[: min(kept, n_scored)].tolist(),
        "n_scored": n_scored,
        "converged": read_convergence(solver)[0],
    }


def count_selections(
    pieces: Pieces, top: int, subsamples: int, constant: BoolArray, identity: Mapping[str, Any]
) -> StabilitySelectionResult:
    """Count how often each feature is selected by the pairs whose two halves both succeeded."""
    halves = pieces.values
    counted: list[Mapping[str, Any]] = []
    for first in range(0, subsamples, 2):
        if first in halves and first + 1 in halves:
            counted += [halves[first], halves[first + 1]]
    if len(counted) < 4:
        raise all_failed(pieces, "halves")
    selected = _masks([half["best"][:top] for half in counted], len(constant))
    return StabilitySelectionResult(
        top=top,
        threshold=1.0,
        is_default=True,
        counts=selected.sum(axis=0),
        pair_counts=(selected[::2] & selected[1::2]).sum(axis=0),
        n_selected=selected.sum(axis=1),
        constant=constant,
        n_halves=subsamples,
        errors=pieces.errors,
        n_unconverged=sum(half["converged"] is False for half in counted),
        identity=identity,
        mixed=pieces.mixed,
    )


def count_groups(
    pieces: Pieces, selection: StabilitySelectionResult, numbers: IntArray
) -> StabilitySelectionResult:
    """Count how often a member of each group of features is selected.

    `numbers` has the group of each feature, -1 of one that is in none.
    """
    values = {}
    for number, half in pieces.values.items():
        chosen = np.unique(numbers[half["best"][: selection.top]])
        values[number] = {**half, "best": chosen[chosen >= 0].tolist()}
    counted = count_selections(
        replace(pieces, values=values),
        selection.top,
        subsamples=selection.n_halves,
        constant=fixed_groups(numbers, selection.constant),
        identity=selection.identity,
    )
    return replace(counted, unit=selection.unit, of_groups=True)


def _masks(selections: Sequence[Sequence[int]], n_features: int) -> BoolArray:
    """Masks of selected features, shape (len(selections), n_features)."""
    masks = np.zeros((len(selections), n_features), dtype=bool)
    for mask, selection in zip(masks, selections, strict=True):
        mask[list(selection)] = True
    return masks
