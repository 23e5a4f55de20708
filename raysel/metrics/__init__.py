"""Figures of merit: ranks, classification, redundancy, stability."""

from raysel.metrics.classification import METRICS, classification_metric
from raysel.metrics.ranks import descending_order, ranks, selection_ranks
from raysel.metrics.redundancy import redundancy
from raysel.metrics.stability import Stability, nogueira_stability

__all__ = [
    "METRICS",
    "Stability",
    "classification_metric",
    "descending_order",
    "nogueira_stability",
    "ranks",
    "redundancy",
    "selection_ranks",
]
