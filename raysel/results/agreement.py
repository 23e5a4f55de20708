"""Agreement of the outer folds' rankings of a study, and the ranking of each source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from raysel.core.arrays import FloatArray
from raysel.core.errors import ConfigError, StudyError
from raysel.evaluation.agreement import (
    TOP_SHARE,
    FoldRanks,
    RankOverlap,
    consensus_scores,
    consensus_sentence,
    curve_sizes,
)
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.records import FINAL
from raysel.numerics.rankings import Stability
from raysel.results.records import StudyRecords
from raysel.results.stability import StabilitySelectionResult
from raysel.tracking.records import NoiseRecord

#: Source of a ranking that is the consensus of the outer folds; others are names of folds.
CONSENSUS = "consensus"
#: Choice of a number of features by the caller.
GIVEN = "as given"


class Top(NamedTuple):
    """Number of features that count as selected."""

    n: int
    chosen_by: str

    def __str__(self) -> str:
        return f"top {self.n} ({self.chosen_by})"


def choose_top(records: StudyRecords, top: int | None = None, by: str = FINAL) -> Top:
    """Return the number of features that count as selected, and who chose it."""
    if top is not None:
        return Top(top, GIVEN)
    chosen, listed = records.n_features, records.config["evaluation"].get("n_features")
    if by in chosen:
        return Top(chosen[by], f"chosen by the inner scores of {_source_name(by)}")
    if FINAL in chosen:
        return Top(records.default_top, f"chosen by the inner scores of {_source_name(FINAL)}")
    if chosen:
        return Top(records.default_top, "median of the outer folds' choices")
    if listed:
        return Top(records.default_top, "middle value of evaluation.n_features")
    return Top(records.default_top, "a tenth of the features")


def _source_name(by: str) -> str:
    return {FINAL: "the final model", CONSENSUS: "the consensus"}.get(by, by)


def source_ranking(
    records: StudyRecords,
    top: int | None = None,
    by: str = FINAL,
    added: Mapping[str, FloatArray] | None = None,
) -> FeatureRanking:
    """Return the ranking of the final model, of the consensus, or of an outer fold."""
    outer = [refit.fold for refit in records.outer]
    if by not in (FINAL, CONSENSUS, *outer):
        raise ConfigError(
            f"by={by!r} is not the source of a ranking; choose one of"
            f" {', '.join((FINAL, CONSENSUS, *outer))}."
        )
    if by == FINAL and not records.has_final:
        raise StudyError(
            f"the study {records.name} has no final model, because cv.final is false. Rank by"
            f" {CONSENSUS!r} or by the outer fold {outer[0]!r}, or run a study with cv.final:"
            " true."
        )
    n, chosen_by = choose_top(records, top, by)
    scores = {refit.fold: refit.feature_scores or () for refit in records.refits}
    own: ArrayLike = scores.get(by, ())
    if by == CONSENSUS:
        own = consensus_scores(records.fold_ranks)
    ranking = FeatureRanking.from_folds(
        own,
        [scores[fold] for fold in outer],
        feature_names=records.feature_names,
        fold_names=outer,
        n_selected=n,
        coordinates=records.layout.coordinates(),
        constant=records.constant,
        source=_source_name(by),
        chosen_by=chosen_by,
        added=added or {},
    )
    if noise := noise_level(records, n):
        return replace(ranking, noise=noise.mean)
    return ranking


class NoiseLevel(NamedTuple):
    """Stability of an F-test ranking over the study's outer training sets with permuted labels."""

    mean: float
    lowest: float
    highest: float


def noise_level(records: StudyRecords, n: int) -> NoiseLevel | None:
    """Return the stability with permuted labels of as many features as the folds select."""
    noise = records.stored.noise
    if noise is None or not noise.mean:
        return None
    size = int(
        np.minimum(n, records.fold_ranks.n_scored).mean().round()
    )  # fewer than n where fewer have a score
    values = [curve[max(size, 1) - 1] for curve in (noise.mean, noise.lowest, noise.highest)]
    known = [value for value in values if value is not None]
    if len(known) < 3:
        return None
    return NoiseLevel(*known)


@dataclass(frozen=True, eq=False, kw_only=True)
class Agreement:
    """Agreement of the outer folds on the best features of a source of a ranking."""

    #: Source of the ranking: the final fold, an outer fold or the consensus.
    by: str
    #: Number of features that count as selected, and who chose it.
    top: Top
    #: Ranks of the features in the outer folds' winners.
    folds: FoldRanks
    #: Nogueira's stability of the top features over the outer folds.
    stability: Stability
    #: Its level with permuted labels, and the permutations that give it; None if it is not known,
    #: or undefined.
    noise: NoiseLevel | None
    permutations: NoiseRecord | None
    #: How the final model's best features differ from those of the consensus; empty if there is no
    #: final model.
    consensus: str
    #: Stability selection of this many features, whose pairs of halves share no sample; None if
    #: there is none.
    halves: StabilitySelectionResult | None
    #: Stability, its level with permuted labels and why it is undefined, over the number of
    #: features, by column.
    curve: Mapping[str, list[Any]]

    @classmethod
    def of(cls, records: StudyRecords, top: int | None = None, by: str = FINAL) -> Agreement:
        """Compute the agreement of a study's outer folds."""
        records.check_ranks(top)
        chosen, halves = choose_top(records, top, by), records.stability_selection
        if halves is not None and top not in (None, halves.top):
            halves = None
        consensus = ""
        if records.is_ranked:
            consensus = consensus_sentence(source_ranking(records, chosen.n))
        return cls(
            by=by,
            top=chosen,
            folds=records.fold_ranks,
            stability=records.fold_ranks.stability(chosen.n),
            noise=noise_level(records, chosen.n),
            permutations=records.stored.noise,
            consensus=consensus,
            halves=halves,
            curve=stability_curve(records),
        )

    @cached_property
    def overlap(self) -> RankOverlap:
        """Rank-biased overlap of all pairs of outer folds, the top features weighing 90 %."""
        return self.folds.overlap(self.top.n)

    @property
    def over(self) -> str:
        """What the stability is over."""
        if self.folds.n_folds == 1:
            return "1 outer fold"
        return f"{self.folds.n_folds} overlapping outer folds"

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        noise, recorded, overlap = self.noise, self.permutations, self.overlap
        permuted = None
        if noise is not None and recorded is not None:
            permuted = {
                **noise._asdict(),
                "n_permutations": recorded.n_permutations,
                "exchanged": recorded.exchanged,
                "ranked_by": "F-test",
            }
        figures: dict[str, Any] = {
            "ranking_of": self.by,
            "top": self.top.n,
            "top_chosen_by": self.top.chosen_by,
            "stability": {
                "value": self.stability.value,
                "of_the_top": self.top.n,
                "over": self.over,
                "undefined_because": self.stability.reason or None,
                "with_permuted_labels": permuted,
            },
            "stability_curve": {
                name: column for name, column in self.curve.items() if name != "undefined_because"
            },
            "rank_biased_overlap": {
                "mean": overlap.mean,
                "lowest": overlap.lowest,
                "lowest_of": overlap.lowest_pair,
                "over": f"the {len(overlap.pairs)} pairs of outer folds with a ranking",
                "p": overlap.p,
                "weight_of_the_top": {"n": self.top.n, "share": TOP_SHARE},
                "undefined_because": overlap.reason or None,
            },
        }
        if self.consensus:
            figures["consensus"] = self.consensus
        return figures


def stability_curve(records: StudyRecords) -> dict[str, list[Any]]:
    """Return the columns of `StudyResult.stability_curve`."""
    folds, rows = records.fold_ranks, []
    listed = records.config["evaluation"].get("n_features") or ()
    for n in curve_sizes(
        [*listed, *records.n_features.values(), records.default_top], records.n_candidates
    ):
        stability, noise = folds.stability(n), noise_level(records, n)
        rows.append((n, stability.value, *(noise or [np.nan] * 3), stability.reason))
    names = [
        "n_features",
        "stability",
        "noise",
        "noise_lowest",
        "noise_highest",
        "undefined_because",
    ]
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
