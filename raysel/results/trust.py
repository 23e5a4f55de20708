"""Agreement of the outer folds' rankings of a study, in figures and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from raysel.arrays import FloatArray
from raysel.cv.plan import FINAL
from raysel.errors import ConfigError, StudyError
from raysel.ranking.agreement import TOP_SHARE, borda_scores, consensus_sentence, curve_sizes
from raysel.ranking.feature_ranking import FeatureRanking
from raysel.results.numbers import StudyNumbers

if TYPE_CHECKING:
    import pandas as pd


#: Source of a ranking that is the mean rank over the outer folds; others are names of folds.
CONSENSUS = "consensus"
#: Choice of a number of features by the caller.
GIVEN = "as given"


class Top(NamedTuple):
    """Number of features that count as selected.

    Parameters
    ----------
    n : int
        The number.
    chosen_by : str
        How it was chosen, in words.
    """

    n: int
    chosen_by: str

    def __str__(self) -> str:
        return f"top {self.n} ({self.chosen_by})"


def choose_top(result: StudyNumbers, top: int | None = None, by: str = FINAL) -> Top:
    """Return the number of features that count as selected, and who chose it.

    Parameters
    ----------
    result : StudyNumbers
        Result of a finished study.
    top : int, optional
        The number if it is given.
    by : str, default="final"
        Source of the ranking as in `source_ranking`.

    Returns
    -------
    Top
        The given number, else that of the fold whose ranking it is, else `StudyResult.default_top`.
    """
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
    """Return the ranking of the final model, of the consensus of the outer folds, or of one of them.

    Parameters
    ----------
    result : StudyNumbers
        Result of a finished study whose method ranks features.
    top : int, optional
        Number of features that count as selected; that of `choose_top` by default.
    by : str, default="final"
        ``"final"``, ``"consensus"`` or the name of an outer fold.
    added : mapping of str to ndarray of shape (n_features,), optional
        Further columns of its table.

    Returns
    -------
    FeatureRanking
        Ranking of all features by that source. The score in the consensus is that of `borda_scores`.

    Raises
    ------
    ConfigError
        If there is no such source.
    StudyError
        If it is the final model, and the study has none.
    """
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
    return FeatureRanking.from_folds(
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


def stability_curve(result: StudyNumbers) -> pd.DataFrame:
    """Return the stability of the best N features over the outer folds for a range of N.

    Parameters
    ----------
    result : StudyNumbers
        Result of a finished study whose method ranks features.

    Returns
    -------
    DataFrame
        The columns of `StudyResult.stability_curve`.
    """
    import pandas as pd  # noqa: PLC0415 - takes half a second to import

    folds, rows = result.fold_ranks, []
    listed = result.config["evaluation"].get("n_features") or ()
    for n in curve_sizes([*listed, *result.n_features.values(), result.default_top], folds.n_features):
        found, chance = folds.stability(n), folds.chance(n)
        rows.append((n, found.value, found.lower, found.upper, chance.mean, chance.lower, chance.upper, found.reason))
    names = ["n_features", "stability", "lower", "upper", "chance", "chance_lower", "chance_upper", "undefined_because"]
    return pd.DataFrame(rows, columns=names)


def stability_in_words(result: StudyNumbers, top: int | None = None, by: str = FINAL) -> str:
    """Return stability and rank-biased overlap of the outer folds as one line, with what they are of and over.

    Parameters
    ----------
    result : StudyNumbers
        Result of a finished study whose method ranks features.
    top : int, optional
        Number of features that count as selected; that of `choose_top` by default.
    by : str, default="final"
        Whose number of features is the default, as in `source_ranking`.

    Returns
    -------
    str
        E.g. ``"of the top 10 over 5 overlapping outer folds: 0.81 (...); rank-biased overlap of their rankings 0.75
        (...)"``, with intervals, values at chance and the choice of N unless it was given.
    """
    notes = stability_notes(result, top, by)
    told = f" ({'; '.join(notes)})" if notes else ""
    value, overlap = stability_value(result, top, by)
    return f"{value}{told}; {overlap}"


def stability_value(result: StudyNumbers, top: int | None = None, by: str = FINAL) -> tuple[str, str]:
    """Return stability and rank-biased overlap of the outer folds, with what they are of and over.

    Parameters
    ----------
    result : StudyNumbers
        Result of a finished study whose method ranks features.
    top : int, optional
        Number of features that count as selected; that of `choose_top` by default.
    by : str, default="final"
        Whose number of features is the default, as in `source_ranking`.

    Returns
    -------
    stability, overlap : str
        E.g. ``"of the top 10 over 5 overlapping outer folds: 0.81"`` and ``"rank-biased overlap of their rankings
        0.75 (lowest 0.70, random rankings 0.20)"``.
    """
    chosen, folds = choose_top(result, top, by), result.fold_ranks
    over = f"{folds.n_folds} overlapping outer folds" if folds.n_folds > 1 else "1 outer fold"
    overlap = f"rank-biased overlap of their rankings {folds.overlap(chosen.n)}"
    return f"of the top {chosen.n} over {over}: {result.stability(chosen.n)}", overlap


def stability_notes(result: StudyNumbers, top: int | None = None, by: str = FINAL) -> list[str]:
    """Return what has to be known about the stability of `stability_value`.

    Parameters
    ----------
    result : StudyNumbers
        Result of a finished study whose method ranks features.
    top : int, optional
        Number of features that count as selected; that of `choose_top` by default.
    by : str, default="final"
        Whose number of features is the default, as in `source_ranking`.

    Returns
    -------
    list of str
        Choice of N unless it was given, 95 % interval and values of random rankings where they are defined.
    """
    chosen, folds = choose_top(result, top, by), result.fold_ranks
    found, chance = result.stability(chosen.n), folds.chance(chosen.n)
    notes = [] if chosen.chosen_by == GIVEN else [f"N: {chosen.chosen_by}"]
    if np.isfinite(found.lower):
        ends = f"{found.lower:.2f} to {min(found.upper, 1):.2f}"
        notes.append(f"95 % interval {ends}, too narrow for few or overlapping folds")
    if np.isfinite(chance.mean):
        ends = f"{_signed(chance.lower)} to {_signed(chance.upper)}"
        noise = ", which overlapping folds often exceed even on noise"
        notes.append(f"random rankings {_signed(chance.mean)}, 95 % {ends}{noise}")
    return notes


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # no "-0.00"


def trust_figures(result: StudyNumbers, top: int | None = None, by: str = FINAL) -> Mapping[str, Any]:
    """Return the entries of the manifest on the agreement of the outer folds.

    Parameters
    ----------
    result : StudyNumbers
        Result of a finished study.
    top : int, optional
        Number of features that count as selected; that of `choose_top` by default.
    by : str, default="final"
        Whose ranking is written, as in `source_ranking`.

    Returns
    -------
    dict
        ``ranking_of``, ``top``, ``top_chosen_by``, ``stability``, ``stability_curve``, ``rank_biased_overlap`` and
        ``consensus``; empty if the method does not rank features.
    """
    if not result.ranks_features:
        return {}
    chosen, folds = choose_top(result, top, by), result.fold_ranks
    found, overlap = result.stability(chosen.n), folds.overlap(chosen.n)
    chance = folds.chance(chosen.n)
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
            "interval": {"confidence": 0.95, "lower": found.lower, "upper": found.upper},
            "interval_holds_for": "many selections from independent samples; too narrow for few or overlapping folds",
            "at_chance": {
                **asdict(chance),
                "of": "independent random rankings with as many scores: exact mean, and 95 % range of 1000 draws; "
                "folds that share samples often exceed it even on noise",
            },
        },
        "stability_curve": stability_curve(result).drop(columns="undefined_because").to_dict("list"),
        "rank_biased_overlap": {
            "mean": overlap.mean,
            "lowest": overlap.lowest,
            "lowest_of": overlap.lowest_pair,
            "at_chance": overlap.mean_at_chance,
            "over": f"the {len(overlap.pairs)} pairs of outer folds with a ranking",
            "p": overlap.p,
            "weight_of_the_top": {"n": chosen.n, "share": TOP_SHARE},
            "undefined_because": overlap.reason or None,
        },
    }
    return entries | ({"consensus": consensus_words(result, chosen.n)} if result.is_ranked else {})


def consensus_words(result: StudyNumbers, top: int | None = None) -> str:
    """Return the sentence of `consensus_sentence`; empty if there is no ranking by a final model."""
    return consensus_sentence(source_ranking(result, top)) if result.is_ranked else ""
