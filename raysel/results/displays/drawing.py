"""Descriptions of the feature scores of each method for captions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.results import texts
from raysel.results.displays import data as picture_data
from raysel.study.background import read_image

if TYPE_CHECKING:
    from raysel.evaluation.feature_ranking import FeatureRanking
    from raysel.results.result import StudyResult


_COEFFICIENTS = "norm of the feature's coefficients over the classes"
_PROJECTION = "norm of the feature's row of the weighted projection"
#: By the method's registered name; the methods' documentation has the equations.
_MEANINGS = {
    "smr": "norm of the cell's coefficients over the classes",
    "gbr": "norm of the cell's coefficients over the classes",
    "smml": _COEFFICIENTS,
    "linear_svm": _COEFFICIENTS,
    "rfs": _COEFFICIENTS,
    "mlls": _COEFFICIENTS,
    "glspfs": f"{_COEFFICIENTS}, of z-scores",
    "mtda": _PROJECTION,
    "aligned_mtda": _PROJECTION,
    "bilinear_mtda": _PROJECTION,
    "semisupervised_mtda": _PROJECTION,
    "pca": _PROJECTION,
    "lda": _PROJECTION,
    "trace_ratio_lda": _PROJECTION,
    "aggregate": _PROJECTION,
    "two_dimensional_lda": _PROJECTION,
    "dfs": "norm of the feature's row of the projection",
    "random_ranking": "place in a random order",
    "variance": "variance of the feature",
    "information_gain": "information gain in bits",
    "relieff": "(1 + W) / 2 with ReliefF's weight W",
    "fisher_score": "Fisher's ratio of scatter between and within classes, or place in the set",
    "t_test": "t statistic between classes",
    "mrmr": "order of selection, the first selected the highest",
}


def score_meaning(method: str) -> str:
    """Return what the feature scores of a method are, for a caption."""
    if "." in method:
        return f"norm of coef_ over the classes, or feature_importances_ or scores_, of {method.rpartition('.')[2]}"
    return _MEANINGS.get(method, f"score of the method {method}")


#: Suffixes of the files of a picture.
KINDS = ("png", "svg", "pdf")
#: What `picture_background` calls the mean sample.
MEAN = "mean image"


def draw_pictures(result: StudyResult, ranking: FeatureRanking | None) -> dict[str, Any]:
    """Draw all pictures of a finished study."""
    from raysel.results.displays.confusion import confusion_figure  # noqa: PLC0415 - loads matplotlib
    from raysel.results.displays.profile import profile_figure  # noqa: PLC0415
    from raysel.results.displays.score_curve import score_curve_figure  # noqa: PLC0415
    from raysel.results.displays.stability import stability_figure  # noqa: PLC0415
    from raysel.results.displays.surface import surface_figure  # noqa: PLC0415

    name, n_folds, drawn = result.name, len(result.outer), {}
    if ranking is not None:
        drawn["ranking"] = _draw_ranking(result, ranking)
    parts = result.layout.task_names
    drawn["scores"] = score_curve_figure(**picture_data.score_curves(result), name=name, parts=parts)
    if result.ranks_features:
        drawn["stability"] = stability_figure(**picture_data.stability_curve(result), name=name, n_folds=n_folds)
    tried = picture_data.tried_configurations(result)
    if len(tried) > 1:
        over = f"the inner folds of {n_folds} outer folds"
        drawn["search"] = surface_figure(tried, name=name, over=over, metric=result.metric)
    if counts := picture_data.confusion(result):
        drawn["confusion"] = confusion_figure(**counts, name=name, n_folds=n_folds)
    if ranking is not None and (linear := picture_data.profile(result, ranking.n_selected)):
        drawn["profile"] = profile_figure(**linear, name=name, n_features=len(result.feature_names))
    return drawn


def _draw_ranking(result: StudyResult, ranking: FeatureRanking) -> Any:
    from raysel.results.displays.ranking_figure import ranking_figure  # noqa: PLC0415 - loads matplotlib

    background, what = picture_background(result)
    return ranking_figure(
        ranking,
        result.layout,
        name=result.name,
        test_scores=result.test_scores,
        metric=result.metric,
        task_scores=result.task_scores,
        answer=[texts.headline(result.facts), texts.references_line(result.facts)],
        remarks=result.remarks(ranking.n_selected),
        background=background,
        below="mean of all samples" if what == MEAN else what,
        meaning=score_meaning(result.config["solver"]["name"]),
    )


def picture_background(result: StudyResult) -> tuple[FloatArray | None, str]:
    """Return the image that is shown below the maps of a study, and what it is."""
    layout, directory = result.layout, result.directory
    chosen = read_image(directory.background, math.prod(layout.shape))
    if chosen is not None:
        return chosen, f"image {Path(result.config['dataset'].get('background') or directory.background).name}"
    mean = read_image(directory.mean_sample, layout.n_features)
    return None if mean is None else layout.arranged(mean, outside=np.nan).ravel(), MEAN


def write_pictures(
    result: StudyResult,
    folder: str | Path,
    ranking: FeatureRanking | None,
    kinds: Sequence[str] = KINDS,
    *,
    all_of_them: bool = True,
) -> list[Path]:
    """Write all pictures of a finished study as PNG, SVG and PDF."""
    if not kinds:
        return []
    from raysel.results.displays.writing import write_figures  # noqa: PLC0415 - loads matplotlib

    if all_of_them:
        drawn = draw_pictures(result, ranking)
    else:
        drawn = {} if ranking is None else {"ranking": _draw_ranking(result, ranking)}
    return [path for name, figure in drawn.items() for path in write_figures(figure, folder, name, kinds)]
