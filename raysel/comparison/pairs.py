"""Paired tests of each member of a comparison against the reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from raysel.comparison.folds import OuterFolds
from raysel.comparison.rows import MemberRow
from raysel.metrics.classification import metric_range
from raysel.statistics.paired import PairedComparison, TTest, holm, paired_comparison


@dataclass(frozen=True)
class Pair:
    """A member compared with the reference.

    Parameters
    ----------
    label : str
        Name of the member.
    compared : PairedComparison
        Differences over the outer folds, the member's score minus the reference's, and their tests.
    main : {"plain", "corrected"}
        Test that the comparison reports first: plain for draws of the training set, corrected for folds.
    p_plain, p_corrected : float
        p values after Holm's correction over all pairs; NaN if there is no test.
    """

    label: str
    compared: PairedComparison
    main: str
    p_plain: float
    p_corrected: float

    @property
    def test(self) -> TTest | None:
        """The main test; None if there is no test."""
        return self.compared.plain if self.main == "plain" else self.compared.corrected


def pairs_with_reference(
    rows: Mapping[str, MemberRow], reference: str, folds: OuterFolds | None, metric: str
) -> dict[str, Pair]:
    """Compare every member that has a result with the reference.

    Parameters
    ----------
    rows : mapping of str to MemberRow
        Figures of the members that have a result, by label.
    reference : str
        Label of the reference.
    folds : OuterFolds or None
        Outer folds that the members share.
    metric : str
        Name of the metric, at whose range the intervals end.

    Returns
    -------
    dict of str to Pair
        Pairs by the member's label; empty if the reference has no result.
    """
    if folds is None or reference not in rows:
        return {}
    own, (low, high) = rows[reference].scores, metric_range(metric)
    found = {
        label: paired_comparison(row.scores, own, folds.ratio, largest=high - low)
        for label, row in rows.items()
        if label != reference
    }
    plain = holm([pair.plain.p_value if pair.plain else float("nan") for pair in found.values()])
    corrected = holm([pair.corrected.p_value if pair.corrected else float("nan") for pair in found.values()])
    main = "plain" if folds.are_draws else "corrected"
    return {
        label: Pair(label, pair, main, float(p), float(q))
        for (label, pair), p, q in zip(found.items(), plain, corrected, strict=True)
    }
