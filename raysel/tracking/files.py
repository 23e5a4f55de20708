"""Files that are renewed whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from raysel.files import whole


def write_atomically(path: Path, text: str, durable: bool = True) -> None:
    """Replace a file's text; a reader sees the old or the new one, never a part.

    Parameters
    ----------
    path : Path
    text : str
    durable : bool, default=True
        Whether it must outlast a power cut.
    """
    with whole(path, durable) as beside:
        beside.write_text(text, encoding="utf-8")


def write_json_atomically(path: Path, value: Any) -> None:
    """Replace a file that is renewed again and again by a value as JSON.

    Parameters
    ----------
    path : Path
    value : object
    """
    write_atomically(path, json.dumps(value, allow_nan=False), durable=False)
