"""Locks that exclude processes of all machines, also on file systems without locks.

A lock is a lease of `filelock`: a file that names its process and is touched by it. Its other locks
do not hold on the shared folders that studies lie on: `FileLock` needs flock, which some network
file systems lack or have for each machine alone, and `SoftFileLock` is never free again once its
process was killed on another machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from filelock import OwnerRecord, SoftFileLease, Timeout

from raysel.core.errors import StudyError
from raysel.core.files import atomic_write, remove_temporary_files

#: Seconds between two signs of life of a process that holds a lock.
HEARTBEAT_SECONDS = 5.0
#: A process that may run, as on another machine, counts as dead after so many seconds without a
#: sign of life, first by the clock of the file server, then by that of the process that takes over.
LEASE_SECONDS = 60.0
#: Seconds for which another process that wants the lock may withdraw.
_PATIENCE_SECONDS = 0.5


class LockHeldError(Exception):
    """Another process holds the lock; the text says which, as far as is known."""


class FileLock:
    """Lock on a file, which excludes processes of all machines that see the file."""

    def __init__(self, path: Path, *, wait: bool = False) -> None:
        self._path, self._lease = path, _lease(path)
        while True:
            before = self._lease.owner
            if before is None and path.exists() and _silence(path) > LEASE_SECONDS:
                self._lease.force_break()  # a power cut has left it empty
            try:
                self._lease.acquire(timeout=LEASE_SECONDS if wait else _patience(path, before))
                break
            except Timeout as error:
                if not wait:
                    raise LockHeldError(_describe(path, self._lease.owner)) from error
        self._token = self._lease.token
        #: Whether a process held the lock before, which may still run.
        self.evicted = before is not None

    def check(self) -> None:
        """Check that no other process has taken over, as after minutes without a sign of life."""
        owner = (
            self._lease.owner or self._lease.owner
        )  # again, if the file server had just replaced the file
        if owner is None and self._path.parent.is_dir() and self._path.exists():
            raise StudyError(f"the lock of {self._path.parent} cannot be read.")
        if owner is None or owner.token != self._token:
            raise StudyError(
                f"another process has taken over {self._path.parent}, because this one was stopped"
                " or cut off from its files for minutes; this one writes nothing more there."
            )

    def close(self) -> None:
        """Release the lock."""
        self._lease.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock on a file; nothing is waited for."""
    lease = _lease(path)
    if not path.exists():
        return False
    try:
        lease.acquire(timeout=0)
    except Timeout:
        return _silence(path) <= LEASE_SECONDS
    lease.release()
    return False


def _lease(path: Path) -> SoftFileLease:
    return SoftFileLease(
        path, lease_duration=LEASE_SECONDS, heartbeat_interval=HEARTBEAT_SECONDS, thread_local=False
    )


def _patience(path: Path, owner: OwnerRecord | None) -> float:
    """Seconds to wait for a lock: until a process that may be dead has been watched.

    One in a container that was started again has the name of another machine.
    """
    if owner is not None and _silence(path) > 3 * HEARTBEAT_SECONDS:
        return _PATIENCE_SECONDS + LEASE_SECONDS
    return _PATIENCE_SECONDS


def _silence(path: Path) -> float:
    """Return seconds since the last sign of life, by the clock of the file server."""
    try:
        with tempfile.TemporaryFile(dir=path.parent) as new, path.open("rb") as file:
            return abs(os.fstat(new.fileno()).st_mtime - os.fstat(file.fileno()).st_mtime)
    except FileNotFoundError:  # withdrawn meanwhile
        return 0.0


def _describe(path: Path, owner: OwnerRecord | None) -> str:
    if owner is None:
        return "another process"
    silence, host = _silence(path), owner.hostname.partition("?")[0]
    return (
        f"process {owner.pid} on {host!r}, whose last sign of life was {silence:.0f} s ago; if it"
        f" is dead, try again in {max(1.0, LEASE_SECONDS - silence):.0f} s, or remove {path}"
    )


class LockedFile:
    """File that a process replaces while it holds the lock, and never after another has taken over.

    A process may be stopped at any instruction and go on after another has taken over. If it was
    stopped before it created the temporary file of `atomic_write`, it finds that the lock is lost
    before it moves that file; if later, the file is missing when it moves it, because who takes
    over removes it.
    """

    def __init__(self, path: Path, lock: FileLock | None = None) -> None:
        self._path, self._lock = path, lock
        remove_temporary_files(path)

    def write(self, text: str, *, durable: bool = False) -> None:
        """Write or replace the file."""
        with atomic_write(self._path, durable) as temporary:
            temporary.write_text(text, encoding="utf-8")
            if self._lock:
                self._lock.check()


@contextlib.contextmanager
def schema_lock(store: Path) -> Iterator[None]:
    """Let one process at a time create the tables of a store, which two at once would corrupt.

    The kernel frees flock when its process dies, also in a container that starts again; a lease is
    waited for.
    """
    store.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(
        store.parent, os.O_RDONLY
    )  # the folder itself, so that no lock file is left
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:  # the file system has no locks
            with FileLock(store.with_name(f".{store.name}.lease"), wait=True):
                yield
        else:
            yield
    finally:
        os.close(descriptor)
