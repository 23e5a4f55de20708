"""Layout of several modalities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

from raysel.core.errors import DataError
from raysel.core.printing import listed, quoted
from raysel.data.layouts.layout import PartedLayout


@dataclass(frozen=True)
class Modalities(PartedLayout):
    """Layout of several modalities: consecutive blocks of columns, all of which every sample fills.

    Parameters
    ----------
    modalities : mapping of str to int, or sequence of (str, int)
        Name of each modality and its number of columns, in column order.

    Raises
    ------
    DataError
        If a number of columns is not a positive integer, a name is repeated, or there is no modality.

    Examples
    --------
    >>> Modalities({"hog": 2, "lbp": 1}).default_names()
    ['hog[0]', 'hog[1]', 'lbp[0]']
    """

    kind: ClassVar[str] = "modalities"
    part: ClassVar[str] = "modality"
    is_multimodal: ClassVar[bool] = True
    noun: ClassVar[str] = kind
    default_scaling: ClassVar[str] = "zscore_sqrt_width"
    default_solver: ClassVar[str] = "smml"

    modalities: Mapping[str, int]

    def __post_init__(self) -> None:
        given = self.modalities.items() if isinstance(self.modalities, Mapping) else self.modalities
        widths: dict[str, int] = {}
        for name, width in given:
            if name in widths:
                raise DataError(f"modality {name!r} is named twice: give each modality a different name.")
            if isinstance(width, bool) or not isinstance(width, Integral) or width < 1:
                raise DataError(f"modality {name!r} has {width!r} columns: give a positive whole number.")
            widths[name] = int(width)
        if not widths:
            raise DataError("modalities is empty: name each modality with its number of columns.")
        object.__setattr__(self, "modalities", widths)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Number of columns of each modality, as a shape."""
        return {name: (width,) for name, width in self.modalities.items()}

    def default_names(self) -> list[str]:
        """Name the columns ``modality[0], modality[1], ...``."""
        return [f"{name}[{column}]" for name, width in self.modalities.items() for column in range(width)]

    def parameters(self) -> dict[str, Any]:
        """Number of columns of each modality."""
        return {"modalities": dict(self.modalities)}

    def describe(self, order: str | None = None, n_samples: Sequence[int] = ()) -> str:
        """Describe the modalities by their numbers of columns."""
        widths = listed((f"{quoted(name)} ({width})" for name, width in self.modalities.items()), 24)
        return f"{len(self.modalities)} modalities: {widths}"

    def to_json(self) -> dict[str, Any]:
        """Describe kind, names and widths."""
        return {"kind": self.kind, "modalities": [[name, width] for name, width in self.modalities.items()]}

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> Self:
        """Make a layout of the described modalities."""
        return cls(description["modalities"])
