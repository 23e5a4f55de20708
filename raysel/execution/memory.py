"""Memory of this process and of the machine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def process_memory() -> int:
    """Return the resident memory of this process.

    Returns
    -------
    int
        Bytes.
    """
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def machine_memory() -> int:
    """Return the memory of the machine, or of its container if that is less.

    Returns
    -------
    int
        Bytes.
    """
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # no limit: the file does not exist, or contains "max"
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return found
