"""Sections of a report on the agreement of the outer folds: stability, and where the folds disagree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.printing import short
from raysel.numerics.rankings import selection_ranks
from raysel.results import texts
from raysel.results.displays import data as picture_data
from raysel.results.page.contents import Block, Picture, Section, Text, csv_download
from raysel.results.result import StudyResult

_MOST_RANKS = 20


def stability(result: StudyResult) -> Section | None:
    """Return the section on the stability of the selection; None if the method does not rank features."""
    if not result.ranks_features:
        return None
    said = [f"Stability {texts.stability(result.facts)}."]
    meaning = (
        "Stability (Nogueira, Sechidis & Brown 2018) is 1 if all outer folds select the same features. Their training "
        "sets overlap, so that they agree even where the labels mean nothing, the more the more folds there are; new "
        "samples would agree less. A ranking that hardly reads the labels, as that by the variance, is above the level "
        "of noise too. Over disjoint halves of the samples, as in stability selection, noise gives 0 in the mean."
    )
    blocks: list[Block] = [Text(said), *_stability_picture(result), Text([meaning], "note")]
    return Section("stability", "How stable the selection is", blocks)


def _stability_picture(result: StudyResult) -> Iterator[Block]:
    from raysel.results.displays.stability import plot_stability  # noqa: PLC0415 - loads matplotlib
    from raysel.results.page.figures import framed  # noqa: PLC0415
    from raysel.results.page.svg import inline_svg  # noqa: PLC0415

    found = picture_data.stability_curve(result)
    if np.isfinite(found["stability"]).sum() < 2:
        return
    caption = f"Stability of the best N features over {len(result.outer)} overlapping outer folds by N."
    if np.isfinite(found["noise"]).any():
        caption += " Grey: mean and range of the F-test on the same folds with permuted labels, the level of noise."
    caption += f" Dashed: the {found['chosen']} best of the final model." if found["chosen"] else ""
    figure = framed(plot_stability, 3.3, width=5.4, **found)
    table = result.stability_curve()
    data = csv_download("stability.csv", list(table.columns), table.itertuples(index=False))
    yield Picture(inline_svg(figure, "stability", caption), caption, data)


def disagreement(result: StudyResult) -> Section | None:
    """Return the section on the ranks of the best features in each outer fold."""
    if not result.ranks_features:
        return None
    ranks = np.array([selection_ranks(np.array(refit.feature_scores)) for refit in result.outer])
    n, folds = result.default_top, [refit.fold for refit in result.outer]
    consensus = ranks.mean(axis=0)
    if result.is_ranked:
        ranking = result.ranking()
        order, what = ranking.order, "of the final model"
        best, shown = ranking.top(n), ranking.top(_MOST_RANKS)
    else:
        order, what = np.argsort(consensus, kind="stable"), "by mean rank over the outer folds"
        best, shown = order[:n], order[: min(n, _MOST_RANKS)]
    title = "Where the folds disagree"
    if not len(shown):
        return Section("folds", title, [Text(["No feature has a score above 0 in the final model."])])
    n_scored = np.array([result.n_scored[fold] for fold in folds])
    ranks = np.where(ranks <= n_scored[:, None], ranks, np.nan)
    blocks: list[Block] = [Text(_disagreements(result, ranks, best, what))]
    blocks.append(_rank_picture(result, ranks, order, shown, what, folds))
    return Section("folds", title, blocks)


def _disagreements(result: StudyResult, ranks: FloatArray, best: IntArray, what: str) -> list[str]:
    """Sentences on the consensus, and the features among the best whose ranks differ most."""
    n = result.default_top
    said = []
    if consensus := result.consensus_sentence():
        said.append(consensus)
    outside = (~(ranks[:, best] <= n)).sum(axis=0)
    always = int((outside == 0).sum())
    said.append(
        f"Of the {len(best)} best features {what}, {always} are among the best {n} of each of the {len(ranks)} outer "
        "folds."
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
    from raysel.results.page import figures  # noqa: PLC0415 - loads matplotlib
    from raysel.results.page.svg import inline_svg  # noqa: PLC0415

    n = result.default_top
    caption = (
        f"Rank of the {len(shown)} best features {what} in the winner of each outer fold; grey: not among that fold's "
        f"best {n}{'; a dash: no score' if np.isnan(ranks[:, shown]).any() else ''}."
    )
    figure = figures.rank_figure([result.feature_names[i] for i in shown], ranks[:, shown], folds, n)
    rows = ([result.feature_names[i], *(None if np.isnan(r) else r for r in ranks[:, i])] for i in order)
    data = csv_download("fold-ranks.csv", ["feature", *folds], rows, rest="ranking/ranking.csv and folds/")
    return Picture(inline_svg(figure, "ranks", caption), caption, data, on_white=True)
