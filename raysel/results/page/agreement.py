"""Sections of a report on the agreement of the outer folds: stability, and where the folds disagree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from raysel.core.printing import short
from raysel.results import texts
from raysel.results.agreement import CONSENSUS
from raysel.results.page.contents import Block, Section, Text
from raysel.results.page.pictures import pictures
from raysel.results.result import StudyResult


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
    blocks: list[Block] = [Text(said), *pictures(result, "stability"), Text([meaning], "note")]
    return Section("stability", "How stable the selection is", blocks)


def disagreement(result: StudyResult) -> Section | None:
    """Return the section on the ranks of the best features in each outer fold."""
    if not result.ranks_features:
        return None
    title, drawn = "Where the folds disagree", pictures(result, "folds")
    if not drawn:
        return Section("folds", title, [Text(["No feature has a score above 0 in the final model."])])
    return Section("folds", title, [Text(list(_disagreements(result))), *drawn])


def _disagreements(result: StudyResult) -> Iterator[str]:
    """Yield sentences on the consensus, and on the features among the best whose ranks differ most."""
    n, n_folds = result.default_top, len(result.outer)
    ranking = result.ranking() if result.is_ranked else result.ranking(by=CONSENSUS)
    best = ranking.top(n) if result.is_ranked else ranking.consensus_top(n)
    if consensus := result.consensus_sentence():
        yield consensus
    outside = (~ranking.fold_selected[:, best]).sum(axis=0)
    always = int((outside == 0).sum())
    source = "of the final model" if result.is_ranked else "by mean rank over the outer folds"
    yield (
        f"Of the {len(best)} best features {source}, {always} are among the best {n} of each of the {n_folds} outer "
        "folds."
    )
    if always < len(best):
        order = [i for i in np.argsort(-outside, kind="stable")[:3] if outside[i]]
        worst = [f"{short(result.feature_names[best[i]], 40)} (on {outside[i]} of {n_folds} folds)" for i in order]
        yield f"Most often not among the best {n}: {', '.join(worst)}."
