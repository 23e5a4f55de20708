"""Places as a report names them: from the folder where it was made, never by folders of the machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raysel.core.storage.location import as_uri
from raysel.core.storage.working_copy import shown_place

#: What stands for the folder of a file outside the folder where the report was made.
ELSEWHERE = "FOLDER"
_LOCAL = re.compile(r"((?:sqlite:///|file://)?)(/.*)", re.DOTALL)


def named(place: str | Path) -> str:
    """Return a path or URI as a report names it."""
    shown = shown_place(place)
    if as_uri(shown) and not shown.startswith("file:"):
        return shown
    path = Path(shown.removeprefix("file://")).absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else f"{ELSEWHERE}/{path.name}"


def without_folders(value: Any) -> Any:
    """Return plain data with the paths in it as a report names them."""
    if isinstance(value, Mapping):
        return {key: without_folders(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [without_folders(own) for own in value]
    found = _LOCAL.fullmatch(value) if isinstance(value, str) else None
    return f"{found[1]}{named(found[2])}" if found else value


def told(command: str) -> str:
    """Say where a command runs."""
    where = "in the folder where this report was made"
    return f"{where}, with {ELSEWHERE} as the file's own folder" if ELSEWHERE in command else where
