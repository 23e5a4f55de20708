"""Claims about regions of images and volumes, as the files of a finished study hold them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from raysel.core.arrays import BoolArray, FloatArray, IntArray
from raysel.core.errors import DirectoryError
from raysel.core.files import make_instance, read_json
from raysel.core.printing import by_number, short
from raysel.data.layouts import Layout
from raysel.evaluation.ranking_files import write_manifest, write_table
from raysel.numerics.parcels import grid_neighbours
from raysel.numerics.regions import connected_sets
from raysel.results.feature_claims import RATES, RESULT, TABLE, ErrorRate, Method
from raysel.results.tables import TextTable, read_numbers

#: Name of the tables of claimed regions, without their endings.
REGIONS = "regions"
_COLUMNS = ("index", "p_value", "p_value_adjusted")
#: Largest number of regions that a table names.
_MOST_NAMED = 20


@dataclass(frozen=True, eq=False)
class ClaimedRegion:
    """Connected set of claimed cells."""

    #: Positions of the features of its cells.
    cells: IntArray
    #: The cell with the smallest p value; of several the one nearest to their centre.
    peak: int
    #: Mean of the indices of the cells along the axes.
    centre: tuple[float, ...]
    #: Adjusted p value of the peak.
    p_value: float


@dataclass(frozen=True, eq=False, kw_only=True)
class RegionClaims:
    """Which regions of neighbouring cells tell the labels beside all other regions."""

    #: Names of the features.
    feature_names: tuple[str, ...]
    layout: Layout
    #: P value of each feature, joined over the clusterings, before and after each was adjusted for
    #: all of its regions; 1 of constant features; shape (d,).
    p_value: FloatArray
    adjusted: FloatArray
    #: Error rate that claims are made at, and its level.
    rate: ErrorRate
    level: float
    #: Number of regions that a clustering forms, and of clusterings.
    n_regions: int
    n_clusterings: int
    #: Median and largest extent of the clusterings' regions, in cells or in the unit of space.
    extent: float
    largest_extent: float
    #: What is independent, and its number: "samples", "groups" or "blocks".
    unit: str
    n_units: int
    #: Errors of the clusterings whose tests failed, by number; the others are joined.
    errors: Mapping[int, str] = field(default_factory=dict)
    #: Hash of the data, by which claims that no longer hold are known.
    identity: Mapping[str, Any] = field(default_factory=dict)
    #: Sentences on other versions: those of a later raysel, and of nodes of a cluster.
    mixed: tuple[str, ...] = ()

    @property
    def method(self) -> Method:
        """How regions are tested."""
        return "covariance"

    @property
    def claimed_features(self) -> BoolArray:
        """Mask of the features in claimed regions; shape (d,)."""
        return self.adjusted <= self.level

    @cached_property
    def regions(self) -> list[ClaimedRegion]:
        """The claimed regions, the smallest p value first, of equal ones the largest region."""
        cells = self.layout.arranged(np.arange(self.layout.n_features), outside=-1)
        sets = connected_sets(self.claimed_features, grid_neighbours(cells))
        found = [self._region(np.flatnonzero(sets == number)) for number in range(sets.max() + 1)]
        return sorted(found, key=lambda region: (region.p_value, -len(region.cells)))

    def _region(self, cells: IntArray) -> ClaimedRegion:
        places = self._indices[cells]
        best = np.lexsort((self.p_value[cells], self.adjusted[cells]))[0]
        tied = self.adjusted[cells] == self.adjusted[cells[best]]
        tied &= self.p_value[cells] == self.p_value[cells[best]]
        apart = np.linalg.norm(places[tied] - places[tied].mean(axis=0), axis=1)
        peak = int(cells[tied][apart.argmin()])
        return ClaimedRegion(
            cells, peak, tuple(places.mean(axis=0).tolist()), float(self.adjusted[peak])
        )

    @cached_property
    def _indices(self) -> FloatArray:
        """Indices of each feature along the axes; shape (d, n_axes)."""
        columns = list(self.layout.coordinates().values())
        indices: FloatArray = np.stack(columns, axis=1)[: len(self.feature_names)].astype(float)
        return indices

    @cached_property
    def region(self) -> IntArray:
        """Number of each feature's claimed region, from 1, and 0 outside of them; shape (d,)."""
        number = np.zeros(len(self.feature_names), dtype=np.int64)
        for i, region in enumerate(self.regions, start=1):
            number[region.cells] = i
        return number

    @property
    def rate_name(self) -> str:
        """Name of the error rate."""
        return RATES[self.rate][0]

    @property
    def cell_noun(self) -> str:
        """Word for the cells."""
        return "voxels" if self.layout.feature_noun == "voxel" else "cells"

    @property
    def cell_size(self) -> float | None:
        """Volume of a cell in space, in cubes of the layout's unit; None without a space."""
        if not self.layout.in_space:
            return None
        return float(abs(np.linalg.det(np.asarray(self.layout.affine)[:3, :3])))

    @property
    def assumption(self) -> str:
        """What must hold."""
        return (
            f"the {self.n_units} {self.unit} are independent, a lasso fits what the other regions"
            " tell, and a place is meant up to the size of a cluster"
        )

    def number(self) -> str:
        """Say how many regions are claimed, e.g. ``"2 regions of 31 cells"``."""
        n = len(self.regions)
        if not n:
            return "no region"
        size = f"{int(self.claimed_features.sum())} {self.cell_noun}"
        return by_number(n, f"1 region of {size}", f"{n} regions of {size}")

    def claimed_labels(self) -> list[str]:
        """Name the claimed regions by their size and the cell of their peak."""
        return [
            f"{len(region.cells)} {self.cell_noun} around {self.feature_names[region.peak]}"
            for region in self.regions
        ]

    def claimed_names(self) -> list[list[str]]:
        """Return the names of the features of each claimed region, the smallest p value first."""
        return [[self.feature_names[j] for j in region.cells] for region in self.regions]

    def sentences(self) -> list[str]:
        """Return what is claimed, and under which assumptions, as sentences."""
        return [self.short_sentence(), *self._meaning(), *self._remarks()]

    def short_sentence(self) -> str:
        """Say how many regions are claimed, at which level."""
        at = f"at a {self.rate_name} of {self.level:g}"
        n = len(self.regions)
        if n:
            return f"{self.number()} {by_number(n, 'is', 'are')} claimed {at}."
        smallest = float(self.adjusted.min())
        if smallest == 1:
            return f"No region is claimed {at}, nor at any other level."
        return f"No region is claimed {at}. The smallest level at which one is: {smallest:.2g}."

    def _meaning(self) -> Iterator[str]:
        _, _, author = RATES[self.rate]
        unit = self.layout.unit if self.layout.in_space else self.cell_noun
        yield "A claimed region tells the label beside all other regions, also confounds."
        yield (
            f"Tested are {self.n_regions} regions of neighbours in each of {self.n_clusterings}"
            f" clusterings, by the generalised covariance measure, adjusted by {author}."
        )
        yield "A cell's p value is twice the median of those of its regions."
        yield (
            "Its border is known up to the size of such a cluster:"
            f" {self.extent:.2g} {unit} across in the median, {self.largest_extent:.2g} at most."
        )
        if self.rate == "fdr":
            yield (
                "The false discovery rate is that of a clustering's regions; of the joined ones it"
                " is measured, not proven."
            )
        yield f"It holds if {self.assumption}."
        yield "--regions 0 claims single features in place of regions."

    def _remarks(self) -> Iterator[str]:
        if self.errors:
            number, reason = next(iter(self.errors.items()))
            yield (
                f"{len(self.errors)} clusterings failed and are left out; number {number} first:"
                f" {reason.strip().splitlines()[0]}"
            )
        yield from self.mixed

    def figures(self) -> TextTable:
        """Return the claimed regions: size, peak, centre and adjusted p value."""
        n, size = len(self.regions), self.cell_size
        title = f"{n} claimed"
        if n > _MOST_NAMED:
            title = f"First {_MOST_NAMED} of {title}"
        header, rows = ["region", self.cell_noun, "peak", "centre", "adjusted p"], []
        for number, region in enumerate(self.regions[:_MOST_NAMED], start=1):
            peak = short(self.feature_names[region.peak], 50)
            row = [str(number), str(len(region.cells)), peak, self.layout.place(region.centre)]
            rows.append([*row, f"{region.p_value:.2g}"])
            if size is not None:
                rows[-1].insert(2, f"{size * len(region.cells):.4g}")
        if size is not None:
            header.insert(2, f"{self.layout.unit}3")
        return TextTable(header, rows, title)

    def ranking_columns(self) -> dict[str, FloatArray]:
        """Return the column ``p_value_claim_covariance`` of the ranking: joined and adjusted."""
        return {"p_value_claim_covariance": self.adjusted}

    def to_json(self) -> dict[str, Any]:
        """Return the summary of the claims for the manifest."""
        return {
            "of": "regions given all others, by the generalised covariance measure",
            "method": self.method,
            "rate": self.rate,
            "level": self.level,
            "n_regions": self.n_regions,
            "n_clusterings": self.n_clusterings,
            "claimed": self.region_table().to_pylist(),
            "sentences": self.sentences(),
        }

    def region_table(self) -> pa.Table:
        """Return the claimed regions as a table, a row each."""
        regions, axes = self.regions, self.layout.axes()
        peaks = np.array([region.peak for region in regions], dtype=np.int64)
        centres = np.array([region.centre for region in regions]).reshape(len(regions), len(axes))
        sizes = np.array([len(region.cells) for region in regions], dtype=np.int64)
        columns: dict[str, Any] = {
            "region": np.arange(1, len(regions) + 1),
            "n_cells": sizes,
            "peak": pa.array([self.feature_names[j] for j in peaks], pa.string()),
            "peak_index": peaks,
            "p_value_adjusted": self.adjusted[peaks],
        }
        for name, places in (("peak", self._indices[peaks]), ("centre", centres)):
            columns |= {f"{name}_{axis}": places[:, i] for i, axis in enumerate(axes)}
            columns |= self._positions(name, places)
        if self.cell_size is not None:
            columns[f"volume_{self.layout.unit}3"] = self.cell_size * sizes
        return pa.table(columns)

    def _positions(self, name: str, places: FloatArray) -> dict[str, FloatArray]:
        """Return columns of the positions of places in space; x rises to the right."""
        if not self.layout.in_space:
            return {}
        affine = np.asarray(self.layout.affine)
        positions = places @ affine[:3, :3].T + affine[:3, 3]
        return {f"{name}_{c}_{self.layout.unit}": positions[:, i] for i, c in enumerate("xyz")}

    def write(self, folder: Path) -> None:
        """Write ``claims`` and ``regions``, each as CSV and Parquet, and ``result.json``."""
        d = len(self.feature_names)
        places = self.layout.coordinates().items()
        order = np.lexsort((np.arange(d), self.p_value, self.adjusted))
        columns: dict[str, Any] = {
            "feature": np.array(self.feature_names),
            "index": np.arange(d),
            **{axis: values[:d] for axis, values in places},
            "region": self.region,
            "p_value": self.p_value,
            "p_value_adjusted": self.adjusted,
            "claimed": self.claimed_features,
        }
        table = pa.table({name: pa.array(np.asarray(c)[order]) for name, c in columns.items()})
        write_table(table, folder, TABLE)
        write_table(self.region_table(), folder, REGIONS)
        described = {
            "schema": 1,
            "sentences": self.sentences(),
            "claimed": self.claimed_labels(),
            **{name: getattr(self, name) for name in _Stored.__dataclass_fields__},
            "errors": {str(number): reason for number, reason in self.errors.items()},
            "mixed": list(self.mixed),
        }
        write_manifest(folder / RESULT, described)


@dataclass(frozen=True)
class _Stored:
    """What the file of claims says beside the table."""

    rate: ErrorRate
    level: float
    n_regions: int
    n_clusterings: int
    extent: float
    largest_extent: float
    unit: str
    n_units: int
    errors: dict[int, str]
    identity: dict[str, Any]
    mixed: tuple[str, ...]


def read_region_claims(
    folder: Path, feature_names: Sequence[str], layout: Layout, data_hash: str
) -> RegionClaims | None:
    """Read the claims that `RegionClaims.write` wrote; None if there are none of these data."""
    if not (folder / RESULT).exists():
        return None
    try:
        raw = read_json(folder / RESULT)
        if "n_regions" not in raw:
            return None
        stored = make_instance(_Stored, raw)
        if stored.identity.get("data_hash") != data_hash:
            return None
        table = read_numbers(folder / f"{TABLE}.parquet", _COLUMNS, (len(feature_names),))
        by_index = np.argsort(table["index"])
        p_value, adjusted = (table[name][by_index] for name in _COLUMNS[1:])
        if not ((p_value >= 0) & (adjusted <= 1)).all():
            raise ValueError("a p value is not between 0 and 1")
        return RegionClaims(
            feature_names=tuple(feature_names),
            layout=layout,
            p_value=p_value,
            adjusted=adjusted,
            **vars(stored),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DirectoryError(
            f"{folder} cannot be read as claims: {error}. Run raysel claims again, or remove it."
        ) from error


def remove_regions(folder: Path) -> None:
    """Remove the tables of regions, where other claims take their place."""
    for ending in ("csv", "parquet"):
        (folder / f"{REGIONS}.{ending}").unlink(missing_ok=True)
