"""Files that are renewed whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from raysel.files import whole


def write_atomically(path: Path, text: str) -> None:
    """Replace a file's text; a reader sees the old or the new one, never a part.

    Parameters
    ----------
    path : Path
    text : str
    """
    with whole(path) as beside:
        beside.write_text(text, encoding="utf-8")


def write_json_atomically(path: Path, value: Any) -> None:
    """Replace a file by a value as JSON.

    Parameters
    ----------
    path : Path
    value : object
    """
    write_atomically(path, json.dumps(value, allow_nan=False))
