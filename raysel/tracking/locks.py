"""File locks, which the operating system releases when the process that holds them ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO


def take_lock(file: IO[str], *, wait: bool) -> bool:
    """Lock an open file for this process; closing the file releases the lock.

    Parameters
    ----------
    file : file
        File that is open for writing.
    wait : bool
        Whether to wait until another process releases the lock.

    Returns
    -------
    bool
        Whether the lock was taken; False also if the file system has no locks.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("a") as file:
    ...     take_lock(file, wait=False)
    True
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


@contextlib.contextmanager
def schema_lock(uri: str) -> Iterator[None]:
    """Let one process at a time create the tables of a sqlite store, because two at once would corrupt them.

    Parameters
    ----------
    uri : str
        Tracking URI of MLflow; only sqlite stores are locked.

    Yields
    ------
    None
        While the lock is held; without a lock if the file system has none.
    """
    if not uri.startswith("sqlite:///"):
        yield
        return
    folder = Path(uri.removeprefix("sqlite:///")).parent
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)  # the folder itself, so that no lock file is left
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
