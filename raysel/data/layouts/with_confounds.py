"""Layout of samples that have further columns behind the features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.core.errors import DataError
from raysel.data.layouts.layout import Layout, layout_from_json


@dataclass(frozen=True)
class WithConfounds(Layout):
    """Layout of samples whose last columns are confounds and sites, which a study takes out."""

    kind: ClassVar[str] = "confounds"

    #: Layout of the features, the columns before them.
    features: Layout
    n_beside: int

    def __post_init__(self) -> None:
        if self.n_beside < 1 or self.features.is_multitask or self.features.n_beside:
            raise DataError(
                f"{self.n_beside} confounds beside {self.features!r}: give one or more, beside the"
                " features of one task."
            )
        for name in ("taken_as", "part", "is_multimodal", "feature_noun"):
            object.__setattr__(self, name, getattr(self.features, name))  # the dataclass is frozen

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Shape of the features."""
        return self.features.shape

    @property
    def n_features(self) -> int:
        """Number of all columns."""
        return self.features.n_features + self.n_beside

    @property
    def grid(self) -> tuple[int, ...]:
        """Sides of the array of the features."""
        return self.features.grid

    @property
    def affine(self) -> FloatArray | None:
        """Map from the indices of a cell to its position in space."""
        return self.features.affine

    @property
    def unit(self) -> str | None:
        """Unit of the positions in space."""
        return self.features.unit

    @property
    def space(self) -> str:
        """Name of the space of the positions."""
        return self.features.space

    @property
    def in_space(self) -> bool:
        """Whether the affine tells where the features lie."""
        return self.features.in_space

    @property
    def is_image(self) -> bool:
        """Whether the features can be drawn as an image or as slices of a volume."""
        return self.features.is_image

    @property
    def slice_axis(self) -> int:
        """Axis of ``shape`` across which volumes are cut into slices."""
        return self.features.slice_axis

    @property
    def noun(self) -> str:
        """Word for the samples."""
        return self.features.noun

    @property
    def default_scaling(self) -> str:
        """Scaling of the features."""
        return self.features.default_scaling

    @property
    def has_axes(self) -> bool:
        """Whether the features are cells along two or more axes."""
        return self.features.has_axes

    def axes(self) -> list[str]:
        """Names of the coordinates of the features."""
        return self.features.axes()

    def place(self, indices: Sequence[float]) -> str:
        """Name a place by its indices along the axes of the features."""
        return self.features.place(indices)

    def coordinates(self) -> dict[str, LabelArray]:
        """Coordinates of the features; of the other columns -1, -2 and so on."""
        beside = -1 - np.arange(self.n_beside)
        return {
            name: np.concatenate(
                [values, beside if values.dtype.kind in "iu" else np.full(self.n_beside, "")]
            )
            for name, values in self.features.coordinates().items()
        }

    def default_names(self) -> list[str]:
        """Names of the features, and ``confound0``, ``confound1``, ..."""
        return [*self.features.default_names(), *(f"confound{i}" for i in range(self.n_beside))]

    def slices(self) -> dict[str, slice]:
        """Columns of each part of the features."""
        return self.features.slices()

    def parameters(self) -> dict[str, Any]:
        """Parameters of estimators, which get the features only."""
        return self.features.parameters()

    def arranged(self, values: ArrayLike, outside: float | bool = 0) -> LabelArray:
        """Give values of the features the ``shape`` of a sample, and leave out the others."""
        return self.features.arranged(np.asarray(values)[: self.features.n_features], outside)

    def permutation(self, rng: np.random.Generator) -> IntArray:
        """Draw a permutation of the features; the other columns stay."""
        kept = np.arange(self.features.n_features, self.n_features)
        return np.concatenate([self.features.permutation(rng), kept])

    def describe(self, order: str | None = None, n_samples: Sequence[int] = ()) -> str:
        """Describe the arrangement of the features."""
        return self.features.describe(order, n_samples)

    def to_json(self) -> dict[str, Any]:
        """Describe kind, layout of the features, and the number of the other columns."""
        return {"kind": self.kind, "features": self.features.to_json(), "n_beside": self.n_beside}

    def hashed(self) -> dict[str, Any]:
        """Describe what of the layout is in the hash of data."""
        return {**self.to_json(), "features": self.features.hashed()}

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> Self:
        """Make a layout from its description."""
        return cls(layout_from_json(description["features"]), int(description["n_beside"]))
