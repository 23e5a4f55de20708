"""Base classes of layouts, and their description in the metadata of files."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from raysel.core.arrays import FloatArray, IntArray, LabelArray
from raysel.core.errors import DataError

_KINDS: dict[str, type[Layout]] = {}


class Layout(ABC):
    """Base class of the arrangements of a data set's columns.

    What other code needs to know of a layout it asks of a method or property here, so that a
    further layout is one class: it sets `kind`, defines the abstract methods, and whatever differs
    from the defaults, which are those of columns without any order.
    """

    #: Name in the descriptions that files hold; unique.
    kind: ClassVar[str]
    #: Kind of layout as which methods take it, one of `Capabilities.layouts`: by default ``kind``.
    taken_as: ClassVar[str]
    #: Word for one of the parts that the columns form, and name of their coordinate; empty without
    #: parts.
    part: ClassVar[str] = ""
    #: Whether each sample fills the columns of one part only, which then is its task.
    is_multitask: ClassVar[bool] = False
    #: Whether each sample fills the columns of several parts.
    is_multimodal: ClassVar[bool] = False
    #: Number of the last columns that are no features, see `WithConfounds`.
    n_beside: int = 0
    #: Word for one column.
    feature_noun: ClassVar[str] = "column"
    #: Shape of a sample's array, in which some cells may be no feature: a field or property of each
    #: class.
    shape: tuple[int, ...]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:
            cls.taken_as = cls.__dict__.get("taken_as", cls.kind)
            _KINDS[cls.kind] = cls

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of columns."""

    @abstractmethod
    def coordinates(self) -> dict[str, LabelArray]:
        """Coordinates of the columns by name, each an array of shape (n_features,)."""

    @abstractmethod
    def default_names(self) -> list[str]:
        """Name of each column, made from its coordinates."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Describe the layout by its ``kind`` and values of JSON; `from_json` is the inverse."""

    @classmethod
    @abstractmethod
    def from_json(cls, description: Mapping[str, Any]) -> Self:
        """Make a layout from its description by `to_json`."""

    @property
    def grid(self) -> tuple[int, ...]:
        """Sides of the array whose cells are the columns in C order; empty if there is none."""
        return ()

    @property
    def affine(self) -> FloatArray | None:
        """Map from the indices of a cell to its position in space, (4, 4); None if it has none."""
        return None

    @property
    def unit(self) -> str | None:
        """Unit of the positions in space; None if the cells have none."""
        return None

    @property
    def space(self) -> str:
        """Name of the space of the positions, as NIfTI's codes have it."""
        return "aligned"

    @property
    def in_space(self) -> bool:
        """Whether the affine tells where the cells lie."""
        return False

    @property
    def is_image(self) -> bool:
        """Whether a sample can be drawn as an image or as slices of a volume."""
        return False

    @property
    def has_images(self) -> bool:
        """Whether the samples, or those of a task, can be drawn as images."""
        return any(block.is_image for _, block in self.blocks().values())

    @property
    def slice_axis(self) -> int:
        """Axis of ``shape`` across which volumes are cut into slices."""
        return len(self.shape) - 1

    @property
    def noun(self) -> str:
        """Word for the samples."""
        return "table"

    @property
    def default_scaling(self) -> str:
        """Scaling that fits the values: "unit" only where all features have the same unit."""
        return "zscore"

    @property
    def has_axes(self) -> bool:
        """Whether the features are cells along two or more axes."""
        return False

    @property
    def task_names(self) -> tuple[str, ...]:
        """Names of the tasks; empty for samples of one task."""
        if self.is_multitask:
            return tuple(self.slices())
        return ()

    def axes(self) -> list[str]:
        """Names of the coordinates."""
        return list(self.coordinates())

    def axis_labels(self) -> list[str]:
        """Names of the axes in pictures."""
        return self.axes()

    def slice_label(self, axis: int, index: int) -> str:
        """Name in pictures of the slice at an index of an axis."""
        return f"{self.axes()[axis]} = {index}"

    def place(self, indices: Sequence[float]) -> str:
        """Name a place by its indices along the axes, which may lie between cells."""
        named = zip(self.axes(), indices, strict=True)
        return ", ".join(f"{axis} {round(index, 1):g}" for axis, index in named)

    def hashed(self) -> dict[str, Any]:
        """Describe what of the layout is in the hash of data."""
        return self.to_json()

    def hashed_names(self, names: Sequence[str]) -> Sequence[str]:
        """Names of the columns in the hash of data, which other default names must not change."""
        return names

    def slices(self) -> dict[str, slice]:
        """Columns of each part; empty if the columns form no parts."""
        return {}

    def blocks(self) -> dict[str, tuple[slice, Layout]]:
        """Columns and layout of each task, or by the name "" of all samples if there are none."""
        return {"": (slice(0, self.n_features), self)}

    def parameters(self) -> dict[str, Any]:
        """Parameters of estimators that hold the arrangement, as ``shape`` or ``modalities``."""
        return {}

    def arranged(self, values: ArrayLike, outside: float | bool = 0) -> LabelArray:
        """Give values of the features the ``shape`` of a sample, and others those ``outside``."""
        return np.asarray(values).reshape(self.shape)

    def permutation(self, rng: np.random.Generator) -> IntArray:
        """Draw a permutation of the columns under which the layout stays as it is."""
        return np.arange(self.n_features)

    def describe(self, order: str | None = None, n_samples: Sequence[int] = ()) -> str:
        """Describe the arrangement for people, with order and numbers of samples if known."""
        return "each sample is a row of a table"


def permuted_cells(shape: Sequence[int], rng: np.random.Generator) -> IntArray:
    """Draw a permutation of the cells of an array along each of its axes."""
    cells = np.arange(math.prod(shape)).reshape(shape)
    permuted: IntArray = cells[np.ix_(*(rng.permutation(side) for side in shape))].ravel()
    return permuted


def layout_from_json(description: Mapping[str, Any]) -> Layout:
    """Make a layout from its description.

    Parameters
    ----------
    description : mapping
        Description of a layout, as ``to_json`` returns it.

    Returns
    -------
    Layout
        The described layout.

    Raises
    ------
    DataError
        If ``description["kind"]`` is unknown.
    """
    kind = description.get("kind")
    if kind not in _KINDS:
        raise DataError(
            f"the layout {dict(description)!r} has an unknown kind; known: {', '.join(_KINDS)}."
        )
    return _KINDS[kind].from_json(description)
