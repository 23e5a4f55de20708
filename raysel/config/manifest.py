"""What a configuration takes from the manifest of another study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def tried_configurations(value: Any) -> Any:
    """Ids of the configurations that a manifest lists as tried.

    Parameters
    ----------
    value : str or list of str or None
        The path of a ``manifest.json``; anything else is passed on.

    Returns
    -------
    tuple of str, or the value itself

    Raises
    ------
    ValueError
        If the file is no manifest, or there are no ids.
    """
    if isinstance(value, str):
        try:
            manifest = json.loads(Path(value).read_text(encoding="utf-8"))
            value = tuple(sorted({str(entry["id"]) for entry in manifest["tried"]}))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"{value} is no manifest.json of a study ({error!r})") from error
    if value is not None and not value:
        raise ValueError("it lists no configuration; leave the key out to try all")
    return value
