"""Layouts: the arrangement of the columns of a 2-D ``X``, which structured methods and pictures use."""

from raysel.data.layouts.arrangements import SEPARATOR, Layout, Matrix, Modalities, PartedLayout, Tasks, Tensor
from raysel.data.layouts.descriptions import layout_from_json
from raysel.data.layouts.masked_volume import MaskedVolume

__all__ = [
    "SEPARATOR",
    "Layout",
    "MaskedVolume",
    "Matrix",
    "Modalities",
    "PartedLayout",
    "Tasks",
    "Tensor",
    "layout_from_json",
]
