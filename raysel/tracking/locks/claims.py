"""Claims: files beside a lock file, one for each process that holds or wants the lock, which say who that is.

They also exclude processes on machines that share a directory whose file system has no locks, or has locks of each
machine alone (NFS mounted with ``nolock`` or ``local_lock``). A process first writes its claim and then looks for
others, so that of two at least one sees the other; the holder touches its claim every few seconds.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from raysel.files import read_again
from raysel.tracking.locks.owner import Owner

#: Seconds between two signs of life of a process that holds a lock.
HEARTBEAT_SECONDS = 5.0
#: A process on another machine counts as dead after so many seconds of the file server's clock without a sign of life.
DEAD_AFTER_SECONDS = 120.0
#: It must then be silent for so many seconds more of this machine's clock: the server's may have been set.
_WATCH_SECONDS = 2.5 * HEARTBEAT_SECONDS


@dataclass(frozen=True)
class Other:
    """Claim of another process."""

    path: Path
    owner: Owner | None
    touched: float

    def is_alive(self, *, flocked: bool) -> bool | None:
        """Return whether the process holds or wants the lock; None if only its signs of life can tell."""
        if self.owner is None:
            return None
        if flocked and self.owner.flock and self.owner.on_this_machine():
            return False  # the lock of the operating system would not be free
        return self.owner.is_alive()

    def is_silent(self, now: float) -> bool:
        """Return whether there was no sign of life for long; also if the file server's clock was set back."""
        return abs(now - self.touched) > DEAD_AFTER_SECONDS

    def describe(self, now: float) -> str:
        """Return who it is and, if that matters, since when it is silent."""
        if self.owner is None:
            return f"a process that {self.path.name} does not name"
        if self.owner.is_alive():
            return str(self.owner)
        silent = max(0.0, now - self.touched)
        return (
            f"{self.owner}, whose last sign of life was {silent:.0f} s ago; if it is dead, try again in "
            f"{max(1.0, DEAD_AFTER_SECONDS - silent):.0f} s, or remove {self.path}"
        )


class Claim:
    """Claim of this process."""

    def __init__(self, lock: Path, *, flock: bool) -> None:
        self._token = secrets.token_hex(8)
        self._path = lock.with_name(f"{lock.name}.{self._token}")
        self._content = Owner.current(flock=flock).to_json()
        self._ended = threading.Event()
        try:
            with self._path.open("x", encoding="utf-8") as file:
                file.write(self._content)
        except OSError:
            self._remove()
            raise

    def keep(self) -> None:
        """Give signs of life until the claim is closed."""
        threading.Thread(target=self._beat, name=f"lock of {self._path.parent.name}", daemon=True).start()

    def _beat(self) -> None:
        while not self._ended.wait(HEARTBEAT_SECONDS):
            try:
                os.utime(self._path)  # without a time: the file server sets its own
            except FileNotFoundError:
                return  # `is_held` says so
            except OSError:
                continue  # the file server does not answer; it may again

    def is_held(self) -> bool:
        """Return whether no other process has removed the claim."""
        try:
            return read_again(lambda: self._path.read_text(encoding="utf-8")) == self._content
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Withdraw the claim."""
        self._ended.set()
        self._remove()

    def _remove(self) -> None:
        with suppress(OSError):
            self._path.unlink()

    def others(self, lock: Path) -> list[Other]:
        """Return the claims of other processes."""
        found = {other.path: other for other in claims(lock)}
        if found.pop(self._path, None) is None:
            raise OSError(errno.EIO, "a new file is missing in the list of the folder's files")
        return list(found.values())


def claims(lock: Path) -> Iterator[Other]:
    """Find the claims of a lock."""
    name = re.compile(re.escape(lock.name) + r"\.[0-9a-f]{16}")
    for path in sorted(lock.parent.iterdir()):
        if name.fullmatch(path.name):
            with suppress(FileNotFoundError):  # withdrawn meanwhile
                yield read_again(lambda: _read(path))  # noqa: B023 - called at once


def _read(path: Path) -> Other:
    with path.open(encoding="utf-8", errors="replace") as file:  # opened, NFS asks the server for the times
        return Other(path, Owner.from_json(file.read(4096)), os.fstat(file.fileno()).st_mtime)


def stays_silent(other: Other) -> bool:
    """Wait for a sign of life of a process on another machine."""
    until = time.monotonic() + _WATCH_SECONDS
    while time.monotonic() < until:
        time.sleep(0.5)
        try:
            if read_again(lambda: _read(other.path)).touched != other.touched:
                return False
        except FileNotFoundError:
            return True
    return True
