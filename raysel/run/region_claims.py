"""Claims of regions of images and volumes that tell the labels of a finished study."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from raysel.core.arrays import FloatArray, IntArray
from raysel.data.layouts import Layout
from raysel.evaluation.plan import derived_seed
from raysel.numerics.parcels import form_regions, grid_neighbours
from raysel.numerics.regions import join_p_values, region_p_values
from raysel.results.feature_claims import FOLDER, RATES, ErrorRate
from raysel.results.region_claims import RegionClaims
from raysel.run.claim_samples import Samples
from raysel.run.pieces import FinishedStudy, Pieces, Work, all_failed, run_pieces
from raysel.study.definition import Study

#: Number of clusterings, and the share of the units that forms each.
N_CLUSTERINGS, SHARE = 11, 0.7
#: Most regions by default, and the fewest units of samples and cells a region.
_MOST_REGIONS, _UNITS_A_REGION, _CELLS_A_REGION = 200, 2, 4


def claim_regions(
    finished: FinishedStudy, n_regions: int | None, rate: ErrorRate, level: float
) -> RegionClaims:
    """Claim regions at the level of an error rate, by clusterings of a number of regions."""
    result, samples = finished.result, Samples.of(finished.study)
    n_features = result.recorded.n_candidates
    if n_regions is None:
        n_regions = default_n_regions(samples.units.n, n_features)
    work = Work(
        f"{FOLDER}/regions-{n_regions}",
        partial(compute_clustering, n_regions, n_features),
        code=(compute_clustering, region_p_values),
        settings={"regions": n_regions},
        unit="clusterings",
    )
    pieces = run_pieces(finished, work, range(N_CLUSTERINGS))
    if not pieces.values:
        raise all_failed(pieces, "clusterings")
    regions = {
        number: np.array(found["region"], dtype=np.int64) for number, found in pieces.values.items()
    }
    extents = [region_extents(of_feature, result.layout) for of_feature in regions.values()]
    p_value, adjusted = _join(pieces, regions, rate)
    return RegionClaims(
        feature_names=tuple(result.feature_names[:n_features]),
        layout=result.layout,
        p_value=p_value,
        adjusted=adjusted,
        rate=rate,
        level=level,
        n_regions=n_regions,
        n_clusterings=len(pieces.values),
        extent=float(np.median(np.concatenate(extents))),
        largest_extent=float(np.concatenate(extents).max()),
        unit=f"{samples.units.noun}s" if finished.study.block_numbers is None else "blocks",
        n_units=samples.units.n,
        errors=pieces.errors,
        identity={"data_hash": finished.record.data_hash},
        mixed=pieces.mixed,
    )


def default_n_regions(n_units: int, n_cells: int) -> int:
    """Return the number of regions that so many independent units of samples can tell apart."""
    return max(2, min(n_units // _UNITS_A_REGION, n_cells // _CELLS_A_REGION, _MOST_REGIONS))


def compute_clustering(
    n_regions: int, n_features: int, study: Study, number: int
) -> dict[str, Any]:
    """Form regions by a random subset of the samples, and test each given all others.

    ``region`` is the number of each feature's region, -1 of constant features; ``p_value`` that of
    each region, 1 of those to which a lasso of all regions gives no weight.
    """
    samples = Samples.of(study)
    columns = _columns_of_cells(samples, n_features)
    cells = samples.origin[columns]
    generator = np.random.default_rng(derived_seed(study.config.seed, "claims", number))
    n_drawn = round(SHARE * samples.units.n)
    drawn = np.isin(samples.units.member, generator.choice(samples.units.n, n_drawn, replace=False))
    neighbours = _neighbours(study.dataset.layout)[cells][:, cells]
    regions = form_regions(samples.X[np.ix_(drawn, columns)], neighbours, n_regions)
    of_feature = np.full(n_features, -1)
    of_feature[cells] = regions
    p_values = region_p_values(
        samples.X[:, columns],
        samples.Y,
        regions,
        samples.units.member,
        beside=np.delete(samples.X, columns, axis=1),
        folds=samples.folds,
    )
    return {"region": of_feature.tolist(), "p_value": p_values.tolist()}


def _columns_of_cells(samples: Samples, n_features: int) -> IntArray:
    """Return the columns that hold a feature's values; the others are confounds, say."""
    counts = np.bincount(samples.origin, minlength=n_features)
    is_cell = (samples.origin < n_features) & (counts[samples.origin] == 1)
    return np.flatnonzero(is_cell).astype(np.int64)


def _neighbours(layout: Layout) -> csr_array:
    return grid_neighbours(layout.arranged(np.arange(layout.n_features), outside=-1))


def _join(
    pieces: Pieces, regions: dict[int, IntArray], rate: ErrorRate
) -> tuple[FloatArray, FloatArray]:
    """Return the p value of each feature over the clusterings, before and after adjustment."""
    _, adjust, _ = RATES[rate]
    plain, adjusted = [], []
    for number, of_feature in regions.items():
        p_values = np.array(pieces.values[number]["p_value"])
        # The last value is that of features without a region, whose number is -1.
        plain.append(np.append(p_values, 1.0)[of_feature])
        adjusted.append(np.append(adjust(p_values), 1.0)[of_feature])
    return join_p_values(np.array(plain)), join_p_values(np.array(adjusted))


def region_extents(of_feature: IntArray, layout: Layout) -> FloatArray:
    """Return the diagonal of the box around each region, in cells or in the unit of space."""
    indices = [values[: len(of_feature)] for values in layout.coordinates().values()]
    places, inside = np.stack(indices, axis=1).astype(float), of_feature >= 0
    first = np.full((of_feature.max() + 1, places.shape[1]), np.inf)
    last = -first
    np.minimum.at(first, of_feature[inside], places[inside])
    np.maximum.at(last, of_feature[inside], places[inside])
    sides = last - first + 1
    if layout.in_space:
        sides *= np.linalg.norm(np.asarray(layout.affine)[:3, :3], axis=0)
    extents: FloatArray = np.linalg.norm(sides, axis=1)
    return extents
