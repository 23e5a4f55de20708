"""Lock on a file: that of the operating system, where the file system has it, and a claim beside the file."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

from raysel.errors import StudyError
from raysel.files import open_regular
from raysel.tracking.locks.claims import Claim, Other, claims, stays_silent

#: What flock answers if another process holds the lock; every other error means that there are no locks.
_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
#: A claim may be of a process that wants the lock as well and withdraws: it is looked at again for so many seconds.
_PATIENCE_SECONDS = 2.0


class LockHeldError(Exception):
    """Another process holds the lock; the text says which, as far as is known."""


class FileLock:
    """Lock of this process on a file, which excludes processes of all machines that see the file.

    It is both a lock of the operating system (``flock``), which ends with the process but which some network file
    systems lack or have for each machine alone, and a claim (`raysel.tracking.locks.claims`), which a process that is
    killed leaves behind.
    """

    def __init__(self, path: Path, *, wait: bool = False) -> None:
        self._path, self.evicted = path, False
        self._file = _open(path)
        try:
            self._flocked = _flock(self._file, path, wait=wait)
            self._claim = self._claimed(wait=wait)
        except BaseException:
            self._file.close()
            raise
        self._claim.keep()

    def _claimed(self, *, wait: bool) -> Claim:
        """Return a claim beside which there is no other of a process that may live."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            claim = Claim(self._path, flock=self._flocked)
            try:
                held = self._remove_dead(claim)
                if held is None:
                    return claim
            except BaseException:
                claim.close()
                raise
            claim.close()
            if not wait and time.monotonic() > until:
                raise LockHeldError(held)
            # At random, so that of two that want the lock and see each other one is first.
            time.sleep(random.uniform(0.05, 0.5))  # noqa: S311 - no secret

    def _remove_dead(self, own: Claim) -> str | None:
        """Remove the claims of dead processes; return who holds the lock, if any does."""
        silent = []
        for other in own.others(self._path):
            alive, now = other.is_alive(flocked=self._flocked), _server_time(self._file)
            if alive is False:
                other.path.unlink(missing_ok=True)
            elif alive or not other.is_silent(now):
                return other.describe(now)
            else:
                silent.append(other)
        for other in silent:
            if not stays_silent(other):
                return other.describe(_server_time(self._file))
            other.path.unlink(missing_ok=True)
            self.evicted = True
        return self._remove_dead(own) if silent else None  # others may have come meanwhile

    def check(self) -> None:
        """Check that no other process has taken over, which only happens if this one gave no sign of life for long."""
        try:
            held = self._claim.is_held()
        except OSError as error:
            raise StudyError(f"the lock of {self._path.parent} cannot be read: {error.strerror}.") from error
        if not held:
            raise StudyError(
                f"another process has taken over {self._path.parent}, because this one was stopped or cut off from its "
                "files for minutes; this one writes nothing more there."
            )

    def close(self) -> None:
        """Release the lock."""
        self._claim.close()  # first, so that who gets the lock of the operating system finds no claim
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock on a file; nothing is waited for."""
    with _open(path) as file:
        try:
            flocked = _flock(file, path, wait=False)
        except LockHeldError:
            return True
        now = _server_time(file)
        found = [(other, other.is_alive(flocked=flocked)) for other in claims(path)]
        return any(alive or (alive is None and not other.is_silent(now)) for other, alive in found)


def _open(path: Path) -> IO[str]:
    """Open a lock file, which is created if it does not exist; not through a link, which a stranger may have put."""
    return os.fdopen(open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), "a+")


def _flock(file: IO[str], path: Path, *, wait: bool) -> bool:
    """Take the lock of the operating system; return False if the file system has none."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in _HELD:
            raise LockHeldError(_holder(path, _server_time(file))) from error
        return False
    return True


def _holder(path: Path, now: float) -> str:
    """Return who claims the lock."""
    found: list[Other] = []
    with suppress(OSError):
        found = [other for other in claims(path) if other.is_alive(flocked=False) is not False]
    return found[0].describe(now) if found else "another process"


def _server_time(file: IO[str]) -> float:
    """Return the time by the clock of the file server, which sets the times of the claims too."""
    os.utime(file.fileno())
    return os.fstat(file.fileno()).st_mtime
