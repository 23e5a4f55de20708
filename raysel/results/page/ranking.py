"""Section of a report on the features: maps or bars, signs by class, and the table of the best."""

from __future__ import annotations

import numpy as np

from raysel.core.printing import short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results import texts
from raysel.results.displays.meanings import score_meaning
from raysel.results.page.contents import Block, Pictures, Section, Table, Text, csv_download
from raysel.results.page.pictures import pictures
from raysel.results.result import StudyResult

_MOST_ROWS = 20
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
        blocks += [Pictures(pictures(result, "features")), _top_table(result, ranking)]
    if line := texts.modalities(result.facts):
        blocks.append(Text([f"Scores of the modalities, mean of the outer folds' winners: {line}."], "note"))
    if line := texts.redundancy(result.facts):
        blocks.append(Text([f"Redundancy (mean absolute correlation of the pairs) {line}."], "note"))
    return Section("features", title, blocks)


def _top_table(result: StudyResult, ranking: FeatureRanking) -> Table:
    table = ranking.to_table()
    further = {name: np.asarray(values)[ranking.order] for name, values in result.added_columns.items()}
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
