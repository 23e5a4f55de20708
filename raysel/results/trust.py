"""Agreement of the outer folds' rankings of a study, in figures and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.core.errors import ConfigError, StudyError
from raysel.evaluation.agreement import TOP_SHARE, borda_scores, consensus_sentence, curve_sizes
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.plan import FINAL
from raysel.results.numbers import StudyNumbers
from raysel.results.stability import StabilitySelection

if TYPE_CHECKING:
    import pandas as pd


#: Source of a ranking that is the mean rank over the outer folds; others are names of folds.
CONSENSUS = "consensus"
#: Choice of a number of features by the caller.
GIVEN = "as given"


class Top(NamedTuple):
    """Number of features that count as selected."""

    n: int
    chosen_by: str

    def __str__(self) -> str:
        return f"top {self.n} ({self.chosen_by})"


def choose_top(result: StudyNumbers, top: int | None = None, by: str = FINAL) -> Top:
    """Return the number of features that count as selected, and who chose it."""
    if top is not None:
        return Top(top, GIVEN)
    chosen, listed = result.n_features, result.config["evaluation"].get("n_features")
    if by in chosen:
        return Top(chosen[by], f"chosen by the inner scores of {_fold_in_words(by)}")
    if FINAL in chosen:
        return Top(result.default_top, f"chosen by the inner scores of {_fold_in_words(FINAL)}")
    if chosen:
        return Top(result.default_top, "median of the outer folds' choices")
    return Top(result.default_top, "middle value of evaluation.n_features" if listed else "a tenth of the features")


def _fold_in_words(fold: str) -> str:
    return "the final model" if fold == FINAL else fold


def source_ranking(
    result: StudyNumbers, top: int | None = None, by: str = FINAL, added: Mapping[str, FloatArray] | None = None
) -> FeatureRanking:
    """Return the ranking of the final model, of the consensus of the outer folds, or of one of them."""
    outer = [refit.fold for refit in result.outer]
    if by not in (FINAL, CONSENSUS, *outer):
        raise ConfigError(
            f"by={by!r} is not the source of a ranking; choose one of {', '.join((FINAL, CONSENSUS, *outer))}."
        )
    if by == FINAL and not result.has_final:
        raise StudyError(
            f"the study {result.name} has no final model, because cv.final is false; rank the features by "
            f"{CONSENSUS!r} or by the outer fold {outer[0]!r}, or run a study with cv.final: true."
        )
    n, chosen_by = choose_top(result, top, by)
    refits = {refit.fold: refit for refit in result.refits}
    ranking = FeatureRanking.from_folds(
        borda_scores(result.fold_ranks) if by == CONSENSUS else refits[by].feature_scores or (),
        [refit.feature_scores or () for refit in result.outer],
        feature_names=result.feature_names,
        fold_names=outer,
        n_selected=n,
        coordinates=result.layout.coordinates(),
        constant=result.constant,
        source="the consensus" if by == CONSENSUS else _fold_in_words(by),
        chosen_by=chosen_by,
        added=added or {},
    )
    return replace(ranking, noise=noise.mean) if (noise := noise_level(result, n)) else ranking


def stability_curve(result: StudyNumbers) -> pd.DataFrame:
    """Return the stability of the best N features over the outer folds for a range of N.

    The columns of `StudyResult.stability_curve`.
    """
    import pandas as pd  # noqa: PLC0415 - takes half a second to import

    folds, rows = result.fold_ranks, []
    listed = result.config["evaluation"].get("n_features") or ()
    for n in curve_sizes([*listed, *result.n_features.values(), result.default_top], folds.n_features):
        found, noise = folds.stability(n), noise_level(result, n)
        rows.append((n, found.value, *(noise or [np.nan] * 3), found.reason))
    names = ["n_features", "stability", "noise", "noise_lowest", "noise_highest", "undefined_because"]
    return pd.DataFrame(rows, columns=names)


class NoiseLevel(NamedTuple):
    """Stability of an F-test ranking over the outer training sets of the study with permuted labels."""

    mean: float
    lowest: float
    highest: float


def noise_level(result: StudyNumbers, n: int) -> NoiseLevel | None:
    """Stability with permuted labels at as many features as the folds select; None if it is not known or undefined."""
    noise = result.stored.noise
    if noise is None or not noise.mean:
        return None
    size = int(np.minimum(n, result.fold_ranks.n_scored).mean().round())  # fewer than n where fewer have a score
    values = [curve[max(size, 1) - 1] for curve in (noise.mean, noise.lowest, noise.highest)]
    known = [value for value in values if value is not None]
    return NoiseLevel(*known) if len(known) == 3 else None


def stability_in_words(result: StudyNumbers, top: int | None = None, by: str = FINAL) -> str:
    """Return stability and rank-biased overlap of the outer folds as one line, with what they are of and over."""
    chosen = choose_top(result, top, by)
    notes = [] if chosen.chosen_by == GIVEN or _halves(result, top) else [f"N: {chosen.chosen_by}"]
    notes += [noise] if (noise := noise_in_words(result, top, by)) else []
    told = f" ({'; '.join(notes)})" if notes else ""
    return f"{_stability(result, top, by)}{told}; {overlap_in_words(result, top, by)}"


def stability_in_short(result: StudyNumbers) -> str:
    """Return the stability of the default top, with what noise gives beside it."""
    return "; ".join(filter(None, [_stability(result), noise_in_words(result)]))


def overlap_in_words(result: StudyNumbers, top: int | None = None, by: str = FINAL) -> str:
    """Return the rank-biased overlap of the outer folds' rankings, with what it is of."""
    overlap = result.fold_ranks.overlap(choose_top(result, top, by).n)
    return f"rank-biased overlap of the rankings of the outer folds {overlap}"


def noise_in_words(result: StudyNumbers, top: int | None = None, by: str = FINAL) -> str:
    """Compare the stability with what noise gives in its place; empty where it is undefined."""
    if _halves(result, top):
        return "the halves of a pair share no sample, so that noise gives 0 in the mean"
    n = choose_top(result, top, by).n
    found, noise, recorded = result.stability(n), noise_level(result, n), result.stored.noise
    if found.reason:
        return ""
    if recorded is None:
        return "the level of noise was not recorded, because an earlier version of raysel ran the study"
    if noise is None:
        return "there is no level of noise, because no permutation changes a label"
    verdict = "above" if found.value > noise.highest else "at"
    return (
        f"the F-test with permuted labels gives {noise.mean:.2f} on the same folds ({noise.lowest:.2f} to "
        f"{noise.highest:.2f} in {recorded.n_permutations} permutations): it is {verdict} the level of noise"
    )


def _stability(result: StudyNumbers, top: int | None = None, by: str = FINAL) -> str:
    """Stability over pairs of halves where stability selection has run, else over the outer folds."""
    if halves := _halves(result, top):
        over = f"{halves.n_pairs} pairs of disjoint halves of the samples"
        return f"of the top {halves.top} over {over}: {halves.stability:.2f}"
    n, n_folds = choose_top(result, top, by).n, result.fold_ranks.n_folds
    over = f"{n_folds} overlapping outer folds" if n_folds > 1 else "1 outer fold"
    return f"of the top {n} over {over}: {result.stability(n)}"


def _halves(result: StudyNumbers, top: int | None) -> StabilitySelection | None:
    """The stability selection, if it was run with this number of features or none is asked for."""
    halves = result.stability_selection
    return halves if halves is not None and top in (None, halves.top) else None


def trust_figures(result: StudyNumbers, top: int | None = None, by: str = FINAL) -> Mapping[str, Any]:
    """Return the entries of the manifest on the agreement of the outer folds."""
    if not result.ranks_features:
        return {}
    chosen, folds = choose_top(result, top, by), result.fold_ranks
    found, overlap = result.stability(chosen.n), folds.overlap(chosen.n)
    over = f"{folds.n_folds} overlapping outer folds" if folds.n_folds > 1 else "1 outer fold"
    entries: dict[str, Any] = {
        "ranking_of": by,
        "top": chosen.n,
        "top_chosen_by": chosen.chosen_by,
        "stability": {
            "value": found.value,
            "of_the_top": chosen.n,
            "over": over,
            "undefined_because": found.reason or None,
            "with_permuted_labels": noise_figures(result, chosen.n),
        },
        "stability_curve": stability_curve(result).drop(columns="undefined_because").to_dict("list"),
        "rank_biased_overlap": {
            "mean": overlap.mean,
            "lowest": overlap.lowest,
            "lowest_of": overlap.lowest_pair,
            "over": f"the {len(overlap.pairs)} pairs of outer folds with a ranking",
            "p": overlap.p,
            "weight_of_the_top": {"n": chosen.n, "share": TOP_SHARE},
            "undefined_because": overlap.reason or None,
        },
    }
    return entries | ({"consensus": consensus_words(result, chosen.n)} if result.is_ranked else {})


def noise_figures(result: StudyNumbers, n: int) -> dict[str, Any] | None:
    """Stability of the top n with permuted labels for the manifest; None if it is not known."""
    noise, recorded = noise_level(result, n), result.stored.noise
    if noise is None or recorded is None:
        return None
    return {
        **noise._asdict(),
        "n_permutations": recorded.n_permutations,
        "exchanged": recorded.exchanged,
        "ranked_by": "F-test",
    }


def consensus_words(result: StudyNumbers, top: int | None = None) -> str:
    """Return the sentence of `consensus_sentence`; empty if there is no ranking by a final model."""
    return consensus_sentence(source_ranking(result, top)) if result.is_ranked else ""
