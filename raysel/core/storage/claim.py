"""Markers by which a driver tells others that it runs a study at a URI.

Object stores have no locks, so this is best effort: each driver writes an object of its own, looks whether there are
others, and renews its own while it runs. Ages are differences of two times by the clock of the store.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from raysel.core.errors import DirectoryError
from raysel.core.files import instance_of, parse_json
from raysel.core.storage.location import FileSystem, Location
from raysel.core.storage.transfer import entry_of, hidden_entries, kind_of, remove, upload

#: Folder of the markers below that of a study; names of a study's own files that start with a dot are not copied.
MARKERS = ".raysel-running"
#: Seconds between two renewals of a marker, and those after which its driver counts as dead.
RENEWAL, PATIENCE = 10.0, 60.0


@dataclass(frozen=True)
class _Driver:
    """Process that runs a study."""

    host: str
    pid: int
    #: This machine since it was started, and the processes that are seen there.
    machine: str
    #: Time at which the process started, in clock ticks.
    start: str

    @classmethod
    def current(cls) -> _Driver:
        """Return this process."""
        return cls(socket.gethostname(), os.getpid(), _machine(), _start_of(os.getpid()))

    def is_dead(self) -> bool:
        """Return whether the process ran on this machine and has ended."""
        return self.machine == _machine() and _start_of(self.pid) != self.start


class Claim:
    """Marker of this driver at a URI."""

    def __init__(self, store: FileSystem, folder: Location) -> None:
        self._store, self._folder = store, folder
        self._name = f"{uuid.uuid4().hex}.json"
        self._renewed = time.monotonic()
        self._write()
        try:
            self._refuse_others()
        except BaseException:
            self.release()
            raise

    def renew(self) -> bool:
        """Renew the marker if it is time to."""
        if time.monotonic() - self._renewed < RENEWAL:
            return True
        if kind_of(self._store, self._folder.child(f"{MARKERS}/{self._name}")) != "file":
            return False
        self._write()
        self._renewed = time.monotonic()
        return True

    def release(self) -> None:
        """Remove the marker, and the folder of markers if it is empty; a store that fails is left as it is."""
        with suppress(OSError):
            remove(self._store, self._folder.child(f"{MARKERS}/{self._name}"))
            if not hidden_entries(self._store, self._folder.child(MARKERS)):
                self._store.delete_dir(self._folder.child(MARKERS).path)

    def _write(self) -> None:
        upload(self._store, json.dumps(asdict(_Driver.current())).encode(), self._folder, f"{MARKERS}/{self._name}")

    def _refuse_others(self) -> None:
        markers = self._folder.child(MARKERS)
        now = entry_of(self._store, markers.child(self._name)).changed
        for entry in hidden_entries(self._store, markers):
            if entry.name == self._name:
                continue
            driver, age = self._driver(markers.child(entry.name)), max(0.0, now - entry.changed)
            if age < PATIENCE and not (driver and driver.is_dead()):
                place = f"process {driver.pid} on {driver.host}" if driver else "process ? on ?"
                raise DirectoryError(
                    f"a study is running in {self._folder} ({place}, last sign of life {age:.0f} s ago); wait until "
                    f"it ends, or choose another output. If it was killed, try again in {PATIENCE - age:.0f} s."
                )
            remove(self._store, markers.child(entry.name))

    def _driver(self, marker: Location) -> _Driver | None:
        """Content of a marker; None if it is gone or of another form."""
        try:
            with self._store.open_input_stream(marker.path) as stream:
                return instance_of(_Driver, parse_json(stream.read(2**12)))
        except (OSError, ValueError):
            return None


def _machine() -> str:
    """Name of this machine since it was started, and of the processes that are seen here; empty if unknown."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    return f"{socket.gethostname()} {uuid.uuid4()}"


def _start_of(pid: int) -> str:
    """Time at which a process started, in clock ticks; empty if there is none."""
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]
    return ""
