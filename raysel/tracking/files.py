"""Files that are renewed whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write_atomically(path: Path, text: str) -> None:
    """Replace a file's text; a reader sees the old or the new one, never a part.

    Parameters
    ----------
    path : Path
    text : str
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_json_atomically(path: Path, value: Any) -> None:
    """Replace a file by a value as JSON.

    Parameters
    ----------
    path : Path
    value : object
    """
    write_atomically(path, json.dumps(value, allow_nan=False))
