"""What was planted in a generated table, and how much of it a ranking finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from raysel.data.planted_table import BATCH, NOISE, PLANTED, PROXY
from raysel.evaluation.feature_ranking import FeatureRanking


@dataclass(frozen=True)
class LostGene:
    """A gene that was not planted, which some outer folds select and their consensus does not."""

    name: str
    role: str
    #: Number of outer folds that have it among their best.
    n_folds: int


@dataclass(frozen=True)
class PlantedGenes:
    """The genes that a ranking has among its best, as many as were planted, by what they are."""

    #: Number of genes with each role in the table, and among the best of the consensus.
    all: Mapping[str, int]
    best: Mapping[str, int]
    n_folds: int
    #: A selection that does not survive, if there is one.
    lost: LostGene | None

    @classmethod
    def count(cls, ranking: FeatureRanking, roles: Mapping[str, str]) -> Self:
        """Count the roles, by the names of the features, of the best genes of the consensus."""
        every = Counter(roles.values())
        names = [
            ranking.feature_names[feature] for feature in ranking.consensus_top(every[PLANTED])
        ]
        best = Counter(roles.get(name, NOISE) for name in names)
        frequency = ranking.selection_frequency_at(every[PLANTED])
        counts = np.round(frequency * ranking.n_folds).astype(int).tolist()
        selected = dict(zip(ranking.feature_names, counts, strict=True))
        others = {name: n for name, n in selected.items() if n and name not in names}
        return cls(every, best, ranking.n_folds, _lost_gene(others, roles))


def _lost_gene(selected: Mapping[str, int], roles: Mapping[str, str]) -> LostGene | None:
    """Return the gene that most folds select, of those with a role that interests most."""
    for role in (BATCH, PROXY, NOISE):
        folds = {name: n for name, n in selected.items() if roles.get(name) == role}
        if folds:
            name = max(folds, key=folds.__getitem__)
            return LostGene(name, role, folds[name])
    return None
