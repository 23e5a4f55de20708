"""Layouts of samples that are arrays: rows of tables, matrices, tensors, masked volumes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.core.errors import DataError
from raysel.data.layouts.layout import Layout, permuted_cells

#: Names that no axis may have: words for what is ranked, and columns of ranking.csv.
_TAKEN = frozenset(
    ("sample", "feature", "index", "score", "rank", "selected", "constant", "task", "modality")
)
#: Letters of the directions in which the coordinates of a position fall and rise, as in NIfTI.
_DIRECTIONS = (("L", "R"), ("P", "A"), ("I", "S"))
_WORDS = {
    word[0].upper(): word
    for word in ("left", "right", "posterior", "anterior", "inferior", "superior")
}
#: Largest share of a voxel's step that may point along another coordinate, of an axis that has one
#: coordinate.
_OBLIQUE = 1e-3
#: Names of the spaces in which NIfTI's codes say that positions are, and that of most files.
SPACES = ("scanner", "aligned", "talairach", "mni", "template")
ALIGNED = "aligned"
#: Most voxels of a volume, as of the files that are read: a few numbers could claim any amount of
#: memory.
_MOST_VOXELS = 2**28


@dataclass(frozen=True)
class Tensor(Layout):
    """Layout of samples that are arrays of any order; the columns are their cells in C order.

    Parameters
    ----------
    shape : tuple of int
        Shape of a sample, e.g. (height, width) of an image.
    modes : tuple of str, default=None
        Names of the axes, e.g. (band, row, column). None: row and column, or axis0, axis1, ... of
        other orders.

    Raises
    ------
    DataError
        If ``shape`` is empty or holds anything but positive integers, or ``modes`` are not as many
        different names, or one of them is that of another column of a ranking.

    Examples
    --------
    >>> Tensor((8, 8)).n_features
    64
    """

    kind: ClassVar[str] = "tensor"

    shape: tuple[int, ...]
    modes: tuple[str, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.shape or any(not isinstance(side, int) or side < 1 for side in self.shape):
            raise DataError(
                f"shape {self.shape!r} is not a list of positive whole numbers, e.g. [32, 32]."
            )
        if self.modes is None:
            return
        if not len(self.modes) == len({*self.modes} - {""}) == len(self.shape):
            raise DataError(
                f"modes {list(self.modes)} must be {len(self.shape)} different names, one for each"
                f" axis of {' x '.join(map(str, self.shape))}."
            )
        for mode in self.modes:
            if mode in _TAKEN or mode.startswith(("rank_", "fold")):
                raise DataError(
                    f"modes: {mode} is a column of every ranking; name the axis otherwise."
                )

    @property
    def n_features(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    @property
    def grid(self) -> tuple[int, ...]:
        """Shape of a sample."""
        return self.shape

    @property
    def is_image(self) -> bool:
        """Whether a sample has two or three axes, two of them longer than 1."""
        return len(self.shape) in (2, 3) and self.has_axes

    @property
    def slice_axis(self) -> int:
        """Shortest axis, of equally short ones the last."""
        return int(len(self.shape) - 1 - np.argmin(self.shape[::-1]))

    @property
    def noun(self) -> str:
        """Word for the samples."""
        if len(self.shape) > 2:
            return "arrays of order 3 or more"
        if self._is_matrix:
            return "matrices"
        return "table"

    @property
    def default_scaling(self) -> str:
        """One range for all cells of an array, one for each column of a table."""
        return "unit" if self.has_axes else "zscore"

    @property
    def _is_matrix(self) -> bool:
        return len(self.shape) == 2 and min(self.shape) > 1

    @property
    def has_axes(self) -> bool:
        """Whether two or more axes are longer than 1."""
        return sum(side > 1 for side in self.shape) > 1

    def axes(self) -> list[str]:
        """Names of the axes: those given, or row and column, or axis0, axis1, ..."""
        if self.modes is not None:
            return [*self.modes, "column"][: max(2, len(self.modes))]
        if len(self.shape) <= 2:
            return ["row", "column"]
        return [f"axis{i}" for i in range(len(self.shape))]

    def coordinates(self) -> dict[str, LabelArray]:
        """Index along each axis, for each cell; a vector is treated as one column."""
        shape = (*self.shape, 1)[: max(2, len(self.shape))]
        indices = np.unravel_index(np.arange(self.n_features), shape)
        return {
            axis: index.astype(np.int64) for axis, index in zip(self.axes(), indices, strict=True)
        }

    def default_names(self) -> list[str]:
        """Name the cells ``r0c0, r0c1, ...`` or by the axes; of a vector ``x0, x1, ...``."""
        if len(self.shape) == 1:
            return [f"x{i}" for i in range(self.n_features)]
        separator = ""
        letters: tuple[str, ...] = ("r", "c")
        if self.modes is not None:
            separator, letters = " ", self.modes
        elif len(self.shape) > 2:
            letters = tuple(f"a{i}_" for i in range(len(self.shape)))
        form = separator.join(f"{letter.replace('%', '%%')}%d" for letter in letters)
        return [form % cell for cell in np.ndindex(self.shape)]

    def parameters(self) -> dict[str, Any]:
        """Shape of a sample that has two or more axes."""
        if len(self.shape) > 1:
            return {"shape": self.shape}
        return {}

    def permutation(self, rng: np.random.Generator) -> IntArray:
        """Draw a permutation of the cells along each axis."""
        return permuted_cells(self.shape, rng)

    def describe(self, order: str | None = None, n_samples: Sequence[int] = ()) -> str:
        """Describe the shape of a sample and the order in which its cells were read."""
        if len(self.shape) < 2:
            return super().describe()
        size = " x ".join(map(str, self.shape))
        if len(self.shape) == 2:
            sides, runs = "rows x columns", {"C": "row by row", "F": "column by column"}
        else:
            sides = f"an array of order {len(self.shape)}"
            runs = {"C": "the last axis runs fastest", "F": "the first axis runs fastest"}
        read = f"; read in order {order}, {runs[order]}" if order else ""
        return f"each sample is {size} ({sides}){read}"

    def to_json(self) -> dict[str, Any]:
        """Describe kind, shape, and the axes if they have names."""
        described: dict[str, Any] = {"kind": self.kind, "shape": list(self.shape)}
        if self.modes:
            described["modes"] = list(self.modes)
        return described

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> Self:
        """Make a layout of the described shape."""
        modes = description.get("modes")
        return cls(tuple(description["shape"]), modes and tuple(modes))


def Matrix(height: int, width: int) -> Tensor:  # noqa: N802 - reads as the layout it makes
    """Make the layout of matrix-shaped samples.

    Parameters
    ----------
    height : int
        Number of rows of a sample.
    width : int
        Number of columns of a sample.

    Returns
    -------
    Tensor
        Layout of order 2.

    Raises
    ------
    DataError
        If ``height`` or ``width`` is not a positive integer.

    Examples
    --------
    >>> Matrix(2, 2).default_names()
    ['r0c0', 'r0c1', 'r1c0', 'r1c1']
    """
    return Tensor((height, width))


@dataclass(frozen=True, eq=False, repr=False)
class MaskedVolume(Layout):
    """Layout of samples that are volumes; the columns are the voxels of a mask in C order.

    Parameters
    ----------
    mask : array of bool, shape (a, b, c)
        True for the voxels that are features. Stored read-only.
    affine : array of shape (4, 4), default=None
        Map from the indices of a voxel to a position in space, usually in mm, as in the header of a
        NIfTI file: the position is ``affine @ [i, j, k, 1]``. None: the identity. Stored in single
        precision, as NIfTI stores it, so that a layout is equal to the one read from its file.
    unit : str, default="mm"
        Unit of the positions. None: the affine does not tell where the volume lies, as of a NIfTI
        file whose sform and qform codes are 0; then, and with the identity, no feature's name has a
        position.
    space : {"scanner", "aligned", "talairach", "mni", "template"}, default="aligned"
        Space in which the positions are, as NIfTI's codes name it. It is written into maps, and
        changes nothing else.

    Raises
    ------
    DataError
        If ``mask`` is not a boolean array of three axes with at least one True, ``affine`` is not a
        finite matrix of shape (4, 4), ``unit`` is none of "mm", "m", "um" and None, or ``space`` is
        none of those above.

    Examples
    --------
    >>> import numpy as np
    >>> mask = np.zeros((2, 3, 4), bool)
    >>> mask[1, 2, :2] = True
    >>> layout = MaskedVolume(mask)
    >>> layout, layout.default_names()
    (MaskedVolume(2 voxels of 2 x 3 x 4), ['i1j2k0', 'i1j2k1'])
    >>> MaskedVolume(mask, np.diag([-2, 2, 2, 1])).default_names()[0]
    'i1j2k0 (-2 4 0 mm L)'
    """

    kind: ClassVar[str] = "volume"
    feature_noun: ClassVar[str] = "voxel"

    mask: BoolArray
    affine: FloatArray | None = None
    unit: str | None = "mm"
    space: str = ALIGNED

    def __post_init__(self) -> None:
        mask = np.array(self.mask)
        if mask.dtype != bool or mask.ndim != 3 or not mask.any():
            what = f"{mask.dtype} of shape {mask.shape}"
            if not mask.any():
                what += " without a voxel above 0"
            raise DataError(
                f"the mask is an array of {what}; give a boolean array of three axes, True"
                " somewhere."
            )
        affine = np.eye(4)
        if self.affine is not None:
            affine = np.asarray(self.affine)
        is_matrix = affine.shape == (4, 4) and affine.dtype.kind in "biuf"
        if not is_matrix or not np.isfinite(affine).all():
            raise DataError("the affine of the mask is not a finite matrix of shape (4, 4).")
        if self.unit not in (None, "mm", "m", "um"):
            raise DataError(f"unit {self.unit!r} of the mask's affine is not mm, m, um or None.")
        if self.space not in SPACES:
            raise DataError(f"space {self.space!r} of the mask is none of {', '.join(SPACES)}.")
        # Adding 0 leaves no -0.0, which is written differently.
        affine = affine.astype(np.float32).astype(np.float64) + 0.0
        for name, array in (("mask", mask), ("affine", affine)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)  # the dataclass is frozen

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.shape, self.n_features))

    def __repr__(self) -> str:
        return f"MaskedVolume({self.n_features} voxels of {' x '.join(map(str, self.shape))})"

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Shape of the volume."""
        return self.mask.shape

    @cached_property
    def n_features(self) -> int:
        """Number of voxels of the mask."""
        return int(self.mask.sum())

    @property
    def is_image(self) -> bool:
        """Always: a volume is drawn as slices."""
        return True

    @property
    def slice_axis(self) -> int:
        """Axis that runs most nearly upwards in space, the third coordinate of the positions."""
        steps = np.asarray(self.affine)[:3, :3]
        upward = np.abs(steps[2]) / np.maximum(np.linalg.norm(steps, axis=0), np.finfo(float).tiny)
        return int(2 - np.argmax(upward[::-1]))

    def parameters(self) -> dict[str, Any]:
        """The mask."""
        return {"mask": self.mask}

    def axes(self) -> list[str]:
        """Names of the axes: i, j and k, as NIfTI has them."""
        return ["i", "j", "k"]

    @property
    def in_space(self) -> bool:
        """Whether the affine tells where the voxels lie."""
        return self.unit is not None and not np.array_equal(np.asarray(self.affine), np.eye(4))

    @property
    def directions(self) -> list[str]:
        """Letter of the direction in which each index rises, L, R, P, A, I or S, if in space."""
        if not self.in_space:
            return []
        steps = np.asarray(self.affine)[:3, :3]
        main = np.abs(steps).argmax(axis=0)
        return [_DIRECTIONS[main[axis]][int(steps[main[axis], axis] > 0)] for axis in range(3)]

    def axis_labels(self) -> list[str]:
        """Names of the axes, in space with the direction of rising indices, e.g. ``"i (to R)"``."""
        if not self.in_space:
            return self.axes()
        return [f"{a} (to {to})" for a, to in zip(self.axes(), self.directions, strict=True)]

    def slice_label(self, axis: int, index: int) -> str:
        """Index of a slice, with its place if all voxels have one, e.g. ``"k = 3, z = 12 mm"``."""
        label, affine = super().slice_label(axis, index), np.asarray(self.affine)
        main = int(np.abs(affine[:3, axis]).argmax())
        across = np.delete(affine[main, :3], axis)
        if not self.in_space or np.abs(across).max() > _OBLIQUE * abs(affine[main, axis]):
            return label
        place = affine[main, axis] * index + affine[main, 3]
        side = _side(place) if main == 0 else ""
        return f"{label}, {'xyz'[main]} = {_rounded(place)} {self.unit}{side}"

    def place(self, indices: Sequence[float]) -> str:
        """Name a place by its position if voxels have one, e.g. ``"-2 4 0 mm L"``."""
        if not self.in_space:
            return super().place(indices)
        affine = np.asarray(self.affine)
        return self._position_name((affine[:3, :3] @ np.asarray(indices) + affine[:3, 3]).tolist())

    def _position_name(self, position: Sequence[float]) -> str:
        """Name a position in space, with L or R of its origin."""
        return f"{' '.join(map(_rounded, position))} {self.unit}{_side(position[0])}"

    def coordinates(self) -> dict[str, LabelArray]:
        """Index along each axis of the volume, for each voxel."""
        return {
            axis: index.astype(np.int64)
            for axis, index in zip(self.axes(), np.nonzero(self.mask), strict=True)
        }

    def default_names(self) -> list[str]:
        """Name the voxels ``i<i>j<j>k<k>``, in space with position, and L or R of its origin."""
        indices = np.argwhere(self.mask)
        names = [f"i{i}j{j}k{k}" for i, j, k in indices.tolist()]
        if not self.in_space:
            return names
        affine = np.asarray(self.affine)
        positions = indices @ affine[:3, :3].T + affine[:3, 3]
        return [
            f"{name} ({self._position_name(position)})"
            for name, position in zip(names, positions.tolist(), strict=True)
        ]

    def hashed_names(self, names: Sequence[str]) -> Sequence[str]:
        """The default names of raysel 0.8 and before in place of those of today."""
        if list(names) != self.default_names():
            return names
        return [f"a0_{i}a1_{j}a2_{k}" for i, j, k in np.argwhere(self.mask).tolist()]

    def arranged(self, values: ArrayLike, outside: float | bool = 0) -> LabelArray:
        """Put one value for each voxel of the mask into a volume, with ``outside`` elsewhere."""
        given = np.asarray(values)
        volume: LabelArray = np.full(self.shape, outside, dtype=given.dtype)
        volume[self.mask] = given
        return volume

    def describe(self, order: str | None = None, n_samples: Sequence[int] = ()) -> str:
        """Describe the shape of the volume and the size of the mask."""
        size = " x ".join(map(str, self.shape))
        text = f"each sample is a volume of {size}, of which {self.n_features} cells are features"
        if not self.in_space:
            return text
        ways = [f"{a} to {_WORDS[to]}" for a, to in zip(self.axes(), self.directions, strict=True)]
        return f"{text}; the affine says that {', '.join(ways)}"

    def to_json(self) -> dict[str, Any]:
        """Describe kind, shape, affine, and the runs outside and inside the mask, by turns."""
        flat = self.mask.ravel()
        edges = np.flatnonzero(flat[1:] != flat[:-1]) + 1
        runs = np.diff(np.concatenate([[0], edges, [flat.size]])).tolist()
        affine = np.asarray(self.affine).tolist()
        if flat[0]:
            runs = [0, *runs]
        described = {
            "kind": self.kind,
            "shape": list(self.shape),
            "runs": runs,
            "affine": affine,
        }
        if self.unit != "mm":
            described["unit"] = self.unit
        if self.space != ALIGNED:
            described["space"] = self.space
        return described

    def hashed(self) -> dict[str, Any]:
        """Describe all but the name of the space, on which no number depends."""
        return {key: value for key, value in self.to_json().items() if key != "space"}

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> Self:
        """Make a layout from its description; its runs must fill its shape."""
        shape: Sequence[int] = Tensor(tuple(description["shape"])).shape
        if math.prod(shape) > _MOST_VOXELS:
            raise DataError(
                f"a mask of the shape {list(shape)} has more than {_MOST_VOXELS} voxels."
            )
        runs = np.array(description["runs"], dtype=np.int64)
        if runs.ndim != 1 or (runs < 0).any() or runs.sum() != np.prod(shape, dtype=object):
            raise DataError(
                f"the runs of the mask do not fill its shape {list(shape)}; write the file again."
            )
        mask = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(shape)
        affine = np.array(description["affine"], dtype=np.float64)
        unit, space = description.get("unit", "mm"), description.get("space", ALIGNED)
        return cls(mask, affine, unit, space)


def _rounded(place: float) -> str:
    """Coordinate of a position to a tenth, without the zeros behind it."""
    return f"{round(place, 1) + 0.0:g}"


def _side(x: float) -> str:
    """Side of the origin of a first coordinate, with a blank before it; empty on neither."""
    if not round(x, 1):
        return ""
    return f" {_DIRECTIONS[0][int(x > 0)]}"
