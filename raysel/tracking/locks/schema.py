"""Lock of a sqlite store while its tables are created."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from raysel.tracking.locks.file_lock import FileLock


@contextlib.contextmanager
def schema_lock(uri: str) -> Iterator[None]:
    """Let one process at a time create the tables of a sqlite store, because two at once would corrupt them."""
    if not uri.startswith("sqlite:///"):
        yield
        return
    store = Path(uri.removeprefix("sqlite:///"))
    store.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(store.parent, os.O_RDONLY)  # the folder itself, so that no lock file is left
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:  # the file system has no locks
            with FileLock(store.with_name(f".{store.name}.lock"), wait=True):
                yield
        else:
            yield
    finally:
        os.close(descriptor)
