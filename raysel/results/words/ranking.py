"""Figures of a study's rankings in words: best features, redundancy, weights of the modalities."""

from __future__ import annotations

import numpy as np

from raysel.core.printing import short
from raysel.evaluation.feature_ranking import SELECTION_PROBABILITY, FeatureRanking
from raysel.results.numbers import StudyNumbers
from raysel.results.progress import counted


def best_features_in_words(ranking: FeatureRanking, most: int = 10) -> str:
    """Return the best features as one line, each with the consensus of the outer folds, or its selection probability.

    The last sentence says which of the two orders a paper should print.
    """
    shown = ranking.top(most)
    if not len(shown):
        return f"none has a score above 0 in {ranking.source}"
    folds, probability = counted(ranking.n_folds, "outer fold"), ranking.added.get(SELECTION_PROBABILITY)
    if probability is None:
        what, beside = "place in their consensus", [f"{place:.0f}" for place in ranking.consensus_place]
    else:
        what, beside = "selection probability", [f"{share:.2f}" for share in probability]
    counts, names = ranking.selection_count, ranking.feature_names
    named = ", ".join(f"{short(names[i], 40)} ({counts[i]}; {beside[i]})" for i in shown)
    heads = f"in brackets how many of {folds} select each, and {what}"
    return f"best {len(shown)} of {ranking.source}, {heads}: {named}. {ranking.what_to_print}"


def redundancy_in_words(result: StudyNumbers, top: int | None = None) -> str:
    """Return the redundancy of the best features as one line, with what it is of and over what."""
    values = result.fold_redundancy.get(top or result.default_top)
    if values is None:
        return ""
    known, n = [value for value in values if value is not None], result.stored.study.n_samples
    value = f"{np.mean(known):.2f}" if known else "undefined (fewer than two features have a score)"
    folds = f"{len(known)} of {len(values)}" if 0 < len(known) < len(values) else f"{len(values)}"
    return f"of the top {top or result.default_top} over all {n} samples, mean of {folds} outer folds: {value}"


def modalities_in_words(result: StudyNumbers) -> str:
    """Return the mean score or kernel weight of each modality over the winners of the outer folds as one line."""
    found = result.modality_scores
    outer = [found[refit.fold] for refit in result.outer if refit.fold in found]
    names = outer[0] if outer else ()
    return ", ".join(f"{name} {np.mean([np.mean(own[name]) for own in outer]):.3g}" for name in names)
