"""Layouts: how columns are arranged, which structured methods and pictures use."""

from raysel.data.layouts.arrays import MaskedVolume, Matrix, Tensor
from raysel.data.layouts.layout import Layout, layout_from_json
from raysel.data.layouts.parts import SEPARATOR, Modalities, PartedLayout, Tasks
from raysel.data.layouts.with_confounds import WithConfounds

__all__ = [
    "SEPARATOR",
    "Layout",
    "MaskedVolume",
    "Matrix",
    "Modalities",
    "PartedLayout",
    "Tasks",
    "Tensor",
    "WithConfounds",
    "layout_from_json",
]
