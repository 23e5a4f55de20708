"""Found and lost genes are counted by what they are."""

from __future__ import annotations

import numpy as np

from raysel.data.planted_table import BATCH, NOISE, PLANTED, PROXY, planted_roles
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results import texts
from raysel.results.planted import LostGene, PlantedGenes

ROLES = {"a": PLANTED, "b": PROXY, "c": PLANTED, "d": BATCH, "e": NOISE}


def ranking(*fold_scores):
    scores = np.array(fold_scores, dtype=float)
    names = [f"outer{number}" for number in range(len(scores))]
    return FeatureRanking.from_folds(
        scores.mean(axis=0), scores, feature_names=list(ROLES), fold_names=names, n_selected=2
    )


def test_what_is_found_is_counted_by_role():
    found = PlantedGenes.count(ranking([5, 4, 3, 2, 1], [5, 4, 3, 2, 1]), ROLES)
    assert dict(found.all) == {PLANTED: 2, PROXY: 1, BATCH: 1, NOISE: 1}
    assert dict(found.best) == {PLANTED: 1, PROXY: 1}
    assert found.lost is None
    assert "1 of 2 planted genes are found; of the first 2, 1 only" in texts.planted_sentence(found)


def test_a_gene_of_one_fold_alone_does_not_survive():
    folds = [5, 1, 4, 2, 3], [5, 1, 4, 2, 3], [5, 1, 2, 4, 3]
    found = PlantedGenes.count(ranking(*folds), ROLES)
    assert dict(found.best) == {PLANTED: 2}
    assert found.lost == LostGene("d", BATCH, 1)
    assert "d (1 of 3 folds), which only followed the plate" in texts.lost_sentence(found)


def test_only_a_generated_table_has_roles():
    assert planted_roles("digits", None) == {}
    assert len(planted_roles("planted-genes", {"n_modules": 12, "seed": 3})) == 120
