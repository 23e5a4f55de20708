"""Names of studies, made of those of data files."""

from __future__ import annotations

import re
from pathlib import Path

from raysel.storage.location import as_uri, parse_location


def plain_name(path: str | Path) -> str:
    """Return the name of a data file without folder and suffix, in the characters that a study's name may have."""
    if uri := as_uri(path):
        path = parse_location(uri).name
    stem = Path(path).expanduser().absolute().stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem)[:80].strip("-._") or "study"


def shown(name: str) -> str:
    """Return a name as it is shown: in quotation marks if it is empty or not printable."""
    return repr(name) if not name or not name.isprintable() else name
