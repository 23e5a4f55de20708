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
    """A member compared with the reference."""

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
    """Compare every member that has a result with the reference."""
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
