"""Layouts made from their descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raysel.core.errors import DataError
from raysel.data.layouts.arrangements import Layout, Modalities, Tasks, Tensor
from raysel.data.layouts.masked_volume import MaskedVolume


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
    if description.get("kind") == "tensor":
        return Tensor(tuple(description["shape"]))
    if description.get("kind") == "tasks":
        return Tasks(dict(description["tasks"]))
    if description.get("kind") == "modalities":
        return Modalities(description["modalities"])
    if description.get("kind") == "volume":
        return MaskedVolume.from_json(description)
    raise DataError(f"the layout {dict(description)!r} has an unknown kind; known: tensor, tasks, modalities, volume.")
