"""From fitted folds to a ranking of features, its stability, its pictures and its files."""

from raysel.ranking.feature_ranking import FeatureRanking
from raysel.ranking.figures import ranking_figure
from raysel.ranking.files import write_figure, write_manifest, write_ranking
from raysel.ranking.models import load_model, save_model, trusted_types

__all__ = [
    "FeatureRanking",
    "load_model",
    "ranking_figure",
    "save_model",
    "trusted_types",
    "write_figure",
    "write_manifest",
    "write_ranking",
]
