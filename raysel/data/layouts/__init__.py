"""Layouts: the arrangement of the columns of a 2-D ``X``, which structured methods and pictures use."""

from raysel.data.layouts.layout import Layout, PartedLayout, layout_from_json
from raysel.data.layouts.masked_volume import MaskedVolume
from raysel.data.layouts.modalities import Modalities
from raysel.data.layouts.tasks import SEPARATOR, Tasks
from raysel.data.layouts.tensor import Matrix, Tensor

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
