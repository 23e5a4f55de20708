"""Maps of volumes as NIfTI files: what a command knows of each voxel, in the space of the mask."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raysel.core.arrays import BoolArray, FloatArray
from raysel.core.files import write_result
from raysel.data.formats.nifti import nifti_content
from raysel.data.layouts import Layout
from raysel.evaluation.feature_ranking import SELECTION_PROBABILITY, FeatureRanking
from raysel.evaluation.ranking_files import NIFTI
from raysel.results.feature_claims import FeatureClaims
from raysel.results.permutation import PermutationTest
from raysel.results.region_claims import RegionClaims
from raysel.results.stability import StabilitySelectionResult


@dataclass(frozen=True)
class FeatureMap:
    """One value a feature, and how a viewer shows it."""

    #: Name of the file, without its ending.
    name: str
    #: Shape (n_features,).
    values: FloatArray | BoolArray
    #: What the values are, in at most 79 letters.
    description: str
    #: Least and largest value that a viewer shows.
    limits: tuple[float, float] = (0.0, 1.0)


def write_maps(maps: Iterable[FeatureMap], layout: Layout, folder: str | Path) -> list[Path]:
    """Write maps of volumes; samples without a place in space have none.

    Voxels outside of the mask hold NaN, or 0 in a map of yes and no.
    """
    if layout.affine is None:
        return []
    return [_write_map(each, layout, Path(folder, f"{each.name}{NIFTI}")) for each in maps]


def _write_map(shown: FeatureMap, layout: Layout, path: Path) -> Path:
    values = shown.values
    if values.dtype == bool:
        volume = layout.arranged(values, outside=False)
    else:
        volume = layout.arranged(values.astype(np.float32), outside=np.nan)
    described = f"raysel: {shown.description}"
    content = nifti_content(volume, layout, path, description=described, limits=shown.limits)
    return write_result(path, content)


def ranking_maps(ranking: FeatureRanking) -> Iterator[FeatureMap]:
    """Yield the maps of a ranking: scores, what is selected, and how many outer folds select it."""
    scores, n = ranking.usable_scores, ranking.n_selected
    yield FeatureMap("scores", scores, f"score in {ranking.source}", (0.0, float(scores.max())))
    best = f"1 where among the best {n} of {ranking.source}"
    yield FeatureMap("selected", ranking.selected, best)
    share = f"share of {ranking.n_folds} outer folds with it among their best {n}"
    yield FeatureMap("selection_frequency", ranking.selection_frequency, share)


def stability_maps(selection: StabilitySelectionResult) -> Iterator[FeatureMap]:
    """Yield the maps of a stability selection: the probability, and the set."""
    share = f"share of {2 * selection.n_pairs} halves with it among their best {selection.top}"
    yield FeatureMap(SELECTION_PROBABILITY, selection.probability, share)
    in_set = f"1 where that share is at least {selection.threshold:.3g}"
    yield FeatureMap("selected", selection.selected, in_set)


def permutation_maps(test: PermutationTest) -> Iterator[FeatureMap]:
    """Yield the maps of the p values of a permutation test, if its features have any."""
    limits = (0.0, -math.log10(test.p.smallest))
    for name, adjusted in (("p_value", "not adjusted"), ("p_value_fwer", "family-wise adjusted")):
        if name in test.features:
            described = f"-log10 p, {adjusted}, {test.p.n_permutations} permutations"
            values = -np.log10(test.features[name])
            yield FeatureMap(f"neg_log10_{name}", values, described, limits)


def claim_maps(claims: FeatureClaims | RegionClaims) -> Iterator[FeatureMap]:
    """Yield the maps of claims: what is claimed, regions by their numbers, and the p values."""
    at = f"{claims.rate_name} {claims.level:g}"
    if isinstance(claims, RegionClaims):
        number = claims.region.astype(np.float64)
        described = f"number of the region claimed, {at}"
        yield FeatureMap("claimed", number, described, (0.0, max(1.0, float(number.max()))))
    else:
        yield FeatureMap("claimed", claims.claimed_features, f"1 where claimed, {at}")
    (p_value,) = claims.ranking_columns().values()
    values = -np.log10(np.maximum(p_value, np.finfo(np.float64).tiny))
    limits = (0.0, max(1.0, float(values.max())))
    yield FeatureMap("neg_log10_p_value_claim", values, f"-log10 p, adjusted, {at}", limits)
