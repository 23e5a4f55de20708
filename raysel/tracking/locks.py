"""Process that holds a lock, as it is named in a file that processes on other machines read."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import random
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Self

from raysel.core.errors import StudyError
from raysel.core.files import atomic_write, open_regular, parse_json, read_again, remove_temporary_files


@dataclass(frozen=True)
class Owner:
    """Process that holds a lock."""

    host: str
    boot: str
    namespace: str
    pid: int
    start: str
    flock: bool

    @classmethod
    def current(cls, *, flock: bool) -> Owner:
        """Return this process."""
        pid = os.getpid()
        return cls(socket.gethostname(), _boot(), _namespace(), pid, _state(pid)[1], flock)

    @classmethod
    def from_json(cls, text: str) -> Owner | None:
        """Return the process that a file names; None if the file is not whole."""
        try:
            found = cls(**parse_json(text))
        except (TypeError, ValueError):
            return None
        kinds = {"host": str, "boot": str, "namespace": str, "pid": int, "start": str, "flock": bool}
        return found if all(type(getattr(found, name)) is kind for name, kind in kinds.items()) else None

    def to_json(self) -> str:
        """Return the content of the file."""
        return json.dumps(asdict(self))

    def on_this_machine(self) -> bool:
        """Return whether it runs, or ran, below the same running kernel as this process."""
        return self.boot == _boot() and (bool(self.boot) or self.host == socket.gethostname())

    def is_alive(self) -> bool | None:
        """Return whether it runs; None if that cannot be known from here."""
        if not self.on_this_machine() or self.namespace != _namespace():
            return None
        state, start = _state(self.pid)
        if not start and Path("/proc/self/stat").exists():
            return False
        if not start:  # a system without /proc
            return _may_exist(self.pid)
        return start == self.start and state not in "ZX"

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host!r}"


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - the text of the link, which is no path
    except OSError:
        return ""


def _state(pid: int) -> tuple[str, str]:
    """Return the state of a process and when it started; both are empty if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", ""
    fields = stat.rpartition(")")[2].split()  # the name before may contain anything
    return fields[0], fields[19]


def _may_exist(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


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


#: What flock answers if another process holds the lock; every other error means that there are no locks.
_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
#: A claim may be of a process that wants the lock as well and withdraws: it is looked at again for so many seconds.
_PATIENCE_SECONDS = 2.0


class LockHeldError(Exception):
    """Another process holds the lock; the text says which, as far as is known."""


class FileLock:
    """Lock of this process on a file, which excludes processes of all machines that see the file.

    It is both a lock of the operating system (``flock``), which ends with the process but which some network file
    systems lack or have for each machine alone, and a claim (`raysel.tracking.locks`), which a process that is
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


class LockedFile:
    """File that a process replaces while it holds the lock, and never after another has taken over.

    A process may be stopped at any instruction and go on after another has taken over. If it was stopped before it
    created the temporary file of `atomic_write`, it finds that the lock is lost before it moves that file;
    if later, the file is missing when it moves it, because who takes over removes it.
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
