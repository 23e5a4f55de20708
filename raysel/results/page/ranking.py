"""Section of a report on the features: maps or bars, signs by class, and the table of the best."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.core.errors import DataError
from raysel.core.printing import short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results import texts
from raysel.results.displays import data as picture_data
from raysel.results.displays.drawing import picture_background, score_meaning
from raysel.results.displays.planes import make_plane
from raysel.results.page.contents import Block, Picture, Pictures, Section, Table, Text, csv_download
from raysel.results.page.data import drawn_parts
from raysel.results.result import StudyResult

_MOST_BARS, _MOST_ROWS, _MOST_TASKS = 24, 20, 6
_MOST_CLASSES = 24  # more cannot be read in a small figure
_RANKING_BYTES = 400_000


def features(result: StudyResult) -> Section:
    """Return the section on the features that the final model selects."""
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
    how = f" ({ranking.chosen_by})" if ranking.chosen_by else ""
    n_top = len(ranking.top())
    selected = f"the {n_top} best count as selected{how}"
    if 0 < n_top < result.default_top:
        selected = f"these count as selected, fewer than {result.default_top}{how}"
    lead = (
        f"The score of a feature is the {meaning}. {ranking.n_scored} of {ranking.n_features} features have one "
        f"above 0 in the final model; {selected}.{empty}"
    )
    blocks: list[Block] = [Text([lead])]
    if ranking.n_scored:
        blocks += [_drawn(result, ranking), _top_table(result, ranking)]
    if line := texts.modalities(result.facts):
        blocks.append(Text([f"Scores of the modalities, mean of the outer folds' winners: {line}."], "note"))
    if line := texts.redundancy(result.facts):
        blocks.append(Text([f"Redundancy (mean absolute correlation of the pairs) {line}."], "note"))
    return Section("features", title, blocks)


def _drawn(result: StudyResult, ranking: FeatureRanking) -> Pictures:
    pictures = list(_maps(result, ranking)) or [_bars(ranking)]
    if result.layout.is_multimodal:
        pictures.append(_modalities(ranking))
    return Pictures([*pictures, *_profile(result)])


def _profile(result: StudyResult) -> Iterator[Picture]:
    from raysel.results.displays.profile import plot_profile  # noqa: PLC0415 - loads matplotlib
    from raysel.results.page.figures import framed  # noqa: PLC0415
    from raysel.results.page.svg import inline_svg  # noqa: PLC0415

    try:
        found = picture_data.profile(result)
    except DataError:  # the model file is damaged, or names a class that is not trusted
        return
    if not found or not found["features"] or len(found["coefficients"]) > _MOST_CLASSES:
        return
    values, names, classes = found["coefficients"], found["features"], found["classes"]
    n = min(len(names), _MOST_BARS)
    caption = (
        f"Coefficients of the {n} best features in the final model (of the scaled features) by class: + favours it, "
        "- is against it."
    )
    width = float(np.clip(0.2 * len(values) + 2.6, 5.2, 7.0))
    figure = framed(plot_profile, 0.24 * n + 1.1, values[:, :n], names[:n], classes, width=width)
    rows = ([name, *own] for name, own in zip(names, values.T, strict=True))
    heads = [str(c) for c in classes] if len(classes) == len(values) else ["coefficient"] * len(values)
    data = csv_download("coefficients.csv", ["feature", *heads], rows)
    yield Picture(inline_svg(figure, "profile", caption), caption, data, on_white=True)


def _maps(result: StudyResult, ranking: FeatureRanking) -> Iterator[Picture]:
    """Yield the map of the scores and that of the folds' selections, for each task whose samples have a plane."""
    from raysel.results.page import figures  # noqa: PLC0415 - loads matplotlib
    from raysel.results.page.svg import inline_svg  # noqa: PLC0415

    images, what = picture_background(result)
    usable = ranking.usable_scores
    for i, (name, columns, layout) in enumerate(drawn_parts(result.layout)[:_MOST_TASKS]):
        plane = make_plane(layout, usable[columns])
        if plane is None:
            continue
        of, over = (f" of {short(name, 40)}" if name else ""), f" over the {what}" if images is not None else ""
        selected = ranking.selected[columns]
        scores, counts = usable[columns], ranking.selection_count[columns]
        n_own, n_all = int(selected.sum()), int(ranking.selected.sum())
        best = f"outlined: {f'{n_own} of ' if name else ''}the {n_all} best features of the final model"
        first = f"Scores of the features{of} in the final model{over}; {best}. Cells without colour have no score."
        first += f" {plane.about}." if plane.about else ""
        second = f"Number of the {ranking.n_folds} outer folds that select each feature{of} among their best "
        second += f"{ranking.n_selected}{over}; {best}."
        rows = zip(*layout.coordinates().values(), scores, counts, selected, strict=True)
        data = csv_download(
            f"map-{i}.csv" if name else "map.csv",
            [*layout.axes(), "score", "outer_folds", "selected"],
            rows,
            rest="ranking/ranking.csv",
        )
        image = images[columns] if images is not None and name else images
        figure = figures.score_map_figure(plane, scores, selected, image)
        yield Picture(inline_svg(figure, f"scores{i}", first), first, data, on_white=True)
        figure = figures.count_map_figure(plane, counts, ranking.n_folds, selected, image)
        yield Picture(inline_svg(figure, f"counts{i}", second), second, on_white=True)


def _bars(ranking: FeatureRanking) -> Picture:
    from raysel.results.page import figures  # noqa: PLC0415 - loads matplotlib
    from raysel.results.page.svg import inline_svg  # noqa: PLC0415

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
    from raysel.results.page import figures  # noqa: PLC0415 - loads matplotlib
    from raysel.results.page.svg import inline_svg  # noqa: PLC0415

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
    added = {name: values for name, values in further.items() if name not in table.column_names}
    columns = [*table.column_names, *added]
    data = csv_download(
        "ranking.csv",
        columns,
        zip(*table.to_pydict().values(), *added.values(), strict=True),
        _RANKING_BYTES,
        "ranking/ranking.csv",
    )
    shown = ranking.top(_MOST_ROWS)
    part = ranking.part_axis
    heads = ["rank", "feature", *([part] if part else []), "score"]
    heads += ["selected by", "place in the consensus", "mean rank ± SD over folds"]
    rows = []
    for place, i in enumerate(shown):
        row = [f"{ranking.ranks[i]:g}", short(ranking.feature_names[i], 60)]
        row += [short(str(ranking.coordinates[part][i]), 30)] if part else []
        spread = "" if np.isnan(ranking.rank_sd[i]) else f" ± {ranking.rank_sd[i]:.1f}"
        row += [f"{ranking.scores[i]:.4g}", f"{ranking.selection_count[i]} of {ranking.n_folds} folds"]
        row += [f"{ranking.consensus_place[i]:.0f}", f"{ranking.consensus_rank[i]:.1f}{spread}"]
        rows.append([*row, *(f"{values[place]:.3g}" for values in further.values())])
    caption = (
        f"The {len(shown)} best features of the final model. Selected by: outer folds that have the feature among "
        f"their best {ranking.n_selected}. Consensus: order by the mean rank over the outer folds. "
        f"{ranking.what_to_print}"
    )
    heads += [name.replace("_", " ") for name in further]
    return Table(caption, heads, rows, (1, 2) if part else (1,), download=data)


def error_columns(result: StudyResult) -> dict[str, FloatArray]:
    """Return selection probabilities and p-values of the features, if they have been computed."""
    return result.added_columns
