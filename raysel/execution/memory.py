"""Memory of this process."""

from __future__ import annotations

import os
from pathlib import Path


def process_memory() -> int:
    """Return the resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
