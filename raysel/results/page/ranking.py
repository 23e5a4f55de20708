"""Sections of a report on the features: maps or bars, table of the best, stability, and where the folds disagree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from raysel.arrays import FloatArray, IntArray
from raysel.data.layouts import Modalities
from raysel.display.page.contents import Block, Picture, Pictures, Section, Table, Text, csv_download
from raysel.display.style import short
from raysel.errors import DataError
from raysel.metrics.ranks import selection_ranks
from raysel.ranking.feature_ranking import FeatureRanking
from raysel.results.page.data import matrices, mean_images
from raysel.results.pictures import data as picture_data
from raysel.results.pictures.score_meaning import score_meaning
from raysel.results.result import StudyResult
from raysel.results.words import modalities_in_words, redundancy_in_words, stability_in_words

_MOST_BARS, _MOST_ROWS, _MOST_TASKS, _MOST_RANKS = 24, 20, 6, 20
_RANKING_BYTES = 400_000


def features(result: StudyResult) -> Section:
    """Return the section on the features that the final model selects.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    Section
        The section; a sentence if there is no ranking.
    """
    title = "Which features"
    if not result.is_ranked:
        why = (
            "There is no final model, and so no ranking of the features by it: cv.final is false."
            if result.ranks_features
            else "There is no ranking of the features: a winner gives no feature scores."
        )
        return Section("features", title, [Text([why])])
    ranking = result.ranking()
    empty = "" if ranking.n_scored else " The final model selects no feature: none has a score above 0."
    meaning = score_meaning(result.config["solver"]["name"])
    lead = (
        f"The score of a feature is the {meaning}. {ranking.n_scored} of {ranking.n_features} features have a score "
        f"above 0 in the final model; the {len(ranking.top())} best count as selected.{empty}"
    )
    blocks: list[Block] = [Text([lead])]
    if ranking.n_scored:
        blocks += [_drawn(result, ranking), _top_table(result, ranking)]
    if line := modalities_in_words(result):
        blocks.append(Text([f"Scores of the modalities, mean of the outer folds' winners: {line}."], "note"))
    if line := redundancy_in_words(result):
        blocks.append(Text([f"Redundancy (mean absolute correlation of the pairs) {line}."], "note"))
    return Section("features", title, blocks)


def _drawn(result: StudyResult, ranking: FeatureRanking) -> Pictures:
    pictures = list(_maps(result, ranking)) or [_bars(ranking)]
    if isinstance(result.layout, Modalities):
        pictures.append(_modalities(ranking))
    return Pictures([*pictures, *_profile(result)])


def _profile(result: StudyResult) -> Iterator[Picture]:
    from raysel.display.figures.profile import plot_profile  # noqa: PLC0415 - loads matplotlib
    from raysel.display.page.figures import framed  # noqa: PLC0415
    from raysel.display.page.svg import inline_svg  # noqa: PLC0415

    try:
        found = picture_data.profile(result)
    except DataError:  # the model file is damaged, or names a class that is not trusted
        return
    if not found or not found["features"]:
        return
    values, names, classes = found["coefficients"], found["features"], found["classes"]
    n = min(len(names), _MOST_BARS)
    caption = (
        f"Coefficients of the {n} best features in the final model (of the scaled features) by class: + speaks for the "
        "class, - against it."
    )
    width = float(np.clip(0.2 * len(values) + 2.6, 5.2, 7.0))
    figure = framed(plot_profile, 0.24 * n + 1.1, values[:, :n], names[:n], classes, width=width)
    rows = ([name, *own] for name, own in zip(names, values.T, strict=True))
    heads = [str(c) for c in classes] if len(classes) == len(values) else ["coefficient"] * len(values)
    data = csv_download("coefficients.csv", ["feature", *heads], rows)
    yield Picture(inline_svg(figure, "profile", caption), caption, data, on_white=True)


def _maps(result: StudyResult, ranking: FeatureRanking) -> Iterator[Picture]:
    """Yield the map of the scores and that of the folds' selections, for each task whose samples are matrices."""
    from raysel.display.page import figures  # noqa: PLC0415 - loads matplotlib
    from raysel.display.page.svg import inline_svg  # noqa: PLC0415

    images, axes = mean_images(result), ("row", "column")
    usable = np.where(ranking.constant, 0.0, ranking.scores)
    for i, (name, columns, shape) in enumerate(list(matrices(result.layout))[:_MOST_TASKS]):
        of, over = (f" of {short(name, 40)}" if name else ""), " over the mean image" if images else ""
        selected = ranking.selected[columns].reshape(shape)
        scores, counts = usable[columns].reshape(shape), ranking.selection_count[columns].reshape(shape)
        best = f"the {int(selected.sum())} that the final model selects are outlined"
        first = f"Scores of the features{of} in the final model{over}; {best}."
        second = f"Number of the {ranking.n_folds} outer folds that select each feature{of} among their best "
        second += f"{ranking.n_selected}{over}; {best}."
        places = np.ndindex(shape)
        rows = zip(places, scores.ravel(), counts.ravel(), selected.ravel(), strict=True)
        data = csv_download(
            f"map-{i}.csv" if name else "map.csv",
            ["row", "column", "score", "outer_folds", "selected"],
            ((*cell, *values) for cell, *values in rows),
            rest="ranking/ranking.csv",
        )
        figure = figures.score_map_figure(scores, selected, images.get(name), axes)
        yield Picture(inline_svg(figure, f"scores{i}", first), first, data, on_white=True)
        figure = figures.count_map_figure(counts, ranking.n_folds, selected, images.get(name), axes)
        yield Picture(inline_svg(figure, f"counts{i}", second), second, on_white=True)


def _bars(ranking: FeatureRanking) -> Picture:
    from raysel.display.page import figures  # noqa: PLC0415 - loads matplotlib
    from raysel.display.page.svg import inline_svg  # noqa: PLC0415

    shown = ranking.top(min(max(ranking.n_selected, 8), _MOST_BARS))
    names = [ranking.feature_names[i] for i in shown]
    caption = (
        f"Scores of the {len(shown)} best features in the final model; the colour is the number of the "
        f"{ranking.n_folds} outer folds that select a feature among their best {ranking.n_selected}."
    )
    values, counts = ranking.scores[shown], ranking.selection_count[shown]
    figure = figures.bar_figure(names, values, counts, ranking.n_folds)
    data = csv_download("bars.csv", ["feature", "score", "outer_folds"], zip(names, values, counts, strict=True))
    return Picture(inline_svg(figure, "bars", caption), caption, data, on_white=True)


def _modalities(ranking: FeatureRanking) -> Picture:
    from raysel.display.page import figures  # noqa: PLC0415 - loads matplotlib
    from raysel.display.page.svg import inline_svg  # noqa: PLC0415

    parts = ranking.parts
    chosen = np.array([ranking.selected[f].sum() for f in parts.values()])
    folds = np.array([ranking.fold_selected[:, f].sum(axis=1) for f in parts.values()])
    by_width = np.array([ranking.n_selected * len(f) / ranking.n_features for f in parts.values()])
    caption = (
        f"Number of each modality's features among the best {ranking.n_selected}: in the final model and in each outer "
        "fold; the line is the number expected if features were drawn at random, in proportion to its width."
    )
    labels = [f"{short(name, 24)} ({len(f)})" for name, f in parts.items()]
    figure = figures.part_figure(labels, chosen, folds, by_width, ranking.n_selected)
    names = [f"selected_{name}" for name in ranking.fold_names]
    rows = ([name, len(parts[name]), *values] for name, *values in zip(parts, chosen, by_width, *folds.T, strict=True))
    data = csv_download(
        "modalities.csv", ["modality", "features", "selected_final", "expected_at_random", *names], rows
    )
    return Picture(inline_svg(figure, "modalities", caption), caption, data)


def _top_table(result: StudyResult, ranking: FeatureRanking) -> Table:
    table = ranking.to_table()
    further = {name: np.asarray(values)[ranking.order] for name, values in error_columns(result).items()}
    columns = [*table.column_names, *further]
    data = csv_download(
        "ranking.csv",
        columns,
        zip(*table.to_pydict().values(), *further.values(), strict=True),
        _RANKING_BYTES,
        "ranking/ranking.csv",
    )
    shown = ranking.top(_MOST_ROWS)
    part = ranking.part_axis
    heads = ["rank", "feature", *([part] if part else []), "score", "mean rank ± SD over folds", "selected by"]
    rows = []
    for place, i in enumerate(shown):
        row = [f"{ranking.ranks[i]:g}", short(ranking.feature_names[i], 60)]
        row += [short(str(ranking.coordinates[part][i]), 30)] if part else []
        spread = "" if np.isnan(ranking.rank_sd[i]) else f" ± {ranking.rank_sd[i]:.1f}"
        row += [f"{ranking.scores[i]:.4g}", f"{ranking.consensus_rank[i]:.1f}{spread}"]
        row.append(f"{ranking.selection_count[i]} of {ranking.n_folds} folds")
        rows.append([*row, *(f"{values[place]:.3g}" for values in further.values())])
    caption = (
        f"The {len(shown)} best features of the final model. Selected by: outer folds that have the feature among "
        f"their best {ranking.n_selected}."
    )
    heads += [name.replace("_", " ") for name in further]
    return Table(caption, heads, rows, (1, 2) if part else (1,), download=data)


def error_columns(result: StudyResult) -> dict[str, FloatArray]:
    """Return selection probabilities and p-values of the features, if they have been computed.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    dict of str to ndarray of shape (n_features,)
        By the name of the column.
    """
    found: dict[str, FloatArray] = {}
    sources = (("stability_selection", "selection_probability"), ("permutation_test", "p_value"))
    for source, column in sources:
        made: Any = getattr(result, source, None)
        for name in (column, f"{column}s", "probabilities", "feature_p_values"):
            values = getattr(made, name, None)
            if values is not None and np.shape(values) == (len(result.feature_names),):
                found[column] = np.asarray(values, dtype=np.float64)
                break
    return found


def stability(result: StudyResult) -> Section | None:
    """Return the section on the stability of the selection; None if the method does not rank features.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    Section or None
        The section.
    """
    if not result.ranks_features:
        return None
    said = [f"Stability {stability_in_words(result)}."]
    meaning = (
        "Stability (Nogueira, Sechidis & Brown 2018) is 1 if all outer folds select the same features, and 0 in "
        "expectation if each draws as many at random. The training sets of the folds overlap, so new samples would "
        "agree less."
    )
    blocks: list[Block] = [Text(said), *_stability_picture(result), Text([meaning], "note")]
    return Section("stability", "How stable the selection is", blocks)


def _stability_picture(result: StudyResult) -> Iterator[Block]:
    from raysel.display.figures.stability import plot_stability  # noqa: PLC0415 - loads matplotlib
    from raysel.display.page.figures import framed  # noqa: PLC0415
    from raysel.display.page.svg import inline_svg  # noqa: PLC0415

    found = picture_data.stability_curve(result)
    if np.isfinite(found["stability"]).sum() < 2:
        return
    caption = (
        f"Stability of the best N features over {len(result.outer)} overlapping outer folds by N, with the 95 % "
        "interval as published, which assumes independent samples; 0 is agreement by chance."
    )
    figure = framed(plot_stability, 3.3, width=5.4, **found)
    columns = ["n_features", "stability", "lower", "upper"]
    data = csv_download("stability.csv", columns, zip(*(found[name] for name in columns), strict=True))
    yield Picture(inline_svg(figure, "stability", caption), caption, data)


def disagreement(result: StudyResult) -> Section | None:
    """Return the section on the ranks of the best features in each outer fold.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    Section or None
        None if the method does not rank features.
    """
    if not result.ranks_features:
        return None
    ranks = np.array(
        [selection_ranks(np.where(result.constant, 0.0, np.array(refit.feature_scores))) for refit in result.outer]
    )
    n, folds = result.default_top, [refit.fold for refit in result.outer]
    consensus = ranks.mean(axis=0)
    if result.is_ranked:
        ranking = result.ranking()
        order, what = ranking.order, "of the final model"
        shown = ranking.top(_MOST_RANKS)
    else:
        order, what = np.argsort(consensus, kind="stable"), "by mean rank over the outer folds"
        shown = order[: min(n, _MOST_RANKS)]
    title = "Where the folds disagree"
    if not len(shown):
        return Section("folds", title, [Text(["No feature has a score above 0 in the final model."])])
    n_scored = np.array([result.n_scored[fold] for fold in folds])
    ranks = np.where(ranks <= n_scored[:, None], ranks, np.nan)
    blocks: list[Block] = [Text(_disagreements(result, ranks, shown, what))]
    blocks.append(_rank_picture(result, ranks, order, shown, what, folds))
    return Section("folds", title, blocks)


def _disagreements(result: StudyResult, ranks: FloatArray, shown: IntArray, what: str) -> list[str]:
    """Sentences on the consensus, and the features among the best whose ranks differ most."""
    n = result.default_top
    said = []
    sentence = getattr(result, "consensus_sentence", None)
    if callable(sentence) and (told := sentence()):
        said.append(str(told))
    best = np.asarray(shown)
    outside = (~(ranks[:, best] <= n)).sum(axis=0)
    always = int((outside == 0).sum())
    said.append(
        f"Of the {len(best)} best features {what}, {always} are among the best {n} of every one of the "
        f"{len(ranks)} outer folds."
    )
    if always < len(best):
        order = np.argsort(-outside, kind="stable")[:3]
        worst = zip(best[order], outside[order], strict=True)
        told = [f"{short(result.feature_names[i], 40)} (on {left} of {len(ranks)} folds)" for i, left in worst if left]
        said.append(f"Most often not among the best {n}: {', '.join(told)}.")
    return said


def _rank_picture(
    result: StudyResult, ranks: FloatArray, order: IntArray, shown: IntArray, what: str, folds: list[str]
) -> Picture:
    from raysel.display.page import figures  # noqa: PLC0415 - loads matplotlib
    from raysel.display.page.svg import inline_svg  # noqa: PLC0415

    n = result.default_top
    caption = (
        f"Rank of the {len(shown)} best features {what} in the winner of each outer fold; grey: not among that fold's "
        f"best {n}{'; a dash: no score' if np.isnan(ranks[:, shown]).any() else ''}."
    )
    figure = figures.rank_figure([result.feature_names[i] for i in shown], ranks[:, shown], folds, n)
    rows = ([result.feature_names[i], *(None if np.isnan(r) else r for r in ranks[:, i])] for i in order)
    data = csv_download("fold-ranks.csv", ["feature", *folds], rows, rest="ranking/ranking.csv and folds/")
    return Picture(inline_svg(figure, "ranks", caption), caption, data, on_white=True)
