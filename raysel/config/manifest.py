"""Reading of the tried configurations from the manifest of another study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: Largest size of a manifest in bytes.
_MOST_BYTES = 2**30


def tried_configurations(value: Any) -> Any:
    """Return the ids of the configurations that a manifest lists as tried."""
    if isinstance(value, str):
        try:
            if not Path(value).is_file() or Path(value).stat().st_size > _MOST_BYTES:
                raise ValueError("there is no such file, or it is larger than 1 GiB")
            manifest = json.loads(Path(value).read_text(encoding="utf-8"))
            value = tuple(sorted({str(entry["id"]) for entry in manifest["tried"]}))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"{value} cannot be read as the manifest.json of a study: {error!r}") from error
    if value is not None and not value:
        raise ValueError("no configuration is listed; leave the key out to try all")
    return value
