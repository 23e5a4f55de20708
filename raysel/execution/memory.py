"""How much memory this process uses, and how much there is."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def process_memory() -> int:
    """Resident bytes of this process.

    Returns
    -------
    int
    """
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def machine_memory() -> int:
    """Bytes of the machine's memory, or of the container's where that is less.

    Returns
    -------
    int
    """
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # no such file, or "max": no limit
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return found
