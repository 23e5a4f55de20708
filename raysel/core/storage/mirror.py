"""Copy of a changing folder to a URI, and markers by which one driver at a time writes there.

Object stores have no locks, so this is best effort: each driver writes a marker of its own, looks
whether there are others, and renews its own while it runs. Ages are differences of two times by the
clock of the store.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from raysel.core.errors import DirectoryError
from raysel.core.files import make_instance, parse_json
from raysel.core.storage.location import FileSystem, Location
from raysel.core.storage.transfer import (
    find_kind,
    hidden_entries,
    is_hidden,
    read_entry,
    reason,
    remove,
    upload,
)

#: Folder of the markers below that of a study; names of a study's own files that start with a dot
#: are not copied.
MARKERS = ".raysel-running"
#: Seconds between two renewals of a marker, and those after which its driver counts as dead.
RENEWAL, DEAD_AFTER = 10.0, 60.0
#: Seconds between two copies; a copy that takes long is followed by a wait of ten times as long.
INTERVAL, _SHARE = 5.0, 10.0
#: Seconds for which the last copy is tried again while the store fails, and between two attempts.
PATIENCE, _AGAIN = 60.0, 5.0


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
        return cls(socket.gethostname(), os.getpid(), _machine(), _read_start(os.getpid()))

    def is_dead(self) -> bool:
        """Return whether the process ran on this machine and has ended."""
        return self.machine == _machine() and _read_start(self.pid) != self.start


class Claim:
    """Marker of this driver at a URI."""

    def __init__(self, store: FileSystem, folder: Location) -> None:
        self.store, self.folder = store, folder
        self._name = f"{uuid.uuid4().hex}.json"
        self._renewed = time.monotonic()
        self._write()
        try:
            self._refuse_others()
        except BaseException:
            self.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def renew(self) -> bool:
        """Renew the marker if it is time to."""
        if time.monotonic() - self._renewed < RENEWAL:
            return True
        if find_kind(self.store, self.folder.child(f"{MARKERS}/{self._name}")) != "file":
            return False
        self._write()
        self._renewed = time.monotonic()
        return True

    def release(self) -> None:
        """Remove the marker and the empty folder of markers, as far as the store lets."""
        with suppress(OSError):
            remove(self.store, self.folder.child(f"{MARKERS}/{self._name}"))
            if not hidden_entries(self.store, self.folder.child(MARKERS)):
                self.store.delete_dir(self.folder.child(MARKERS).path)

    def _write(self) -> None:
        upload(
            self.store,
            json.dumps(asdict(_Driver.current())).encode(),
            self.folder,
            f"{MARKERS}/{self._name}",
        )

    def _refuse_others(self) -> None:
        markers = self.folder.child(MARKERS)
        now = read_entry(self.store, markers.child(self._name)).changed
        for entry in hidden_entries(self.store, markers):
            if entry.name == self._name:
                continue
            driver, age = self._driver(markers.child(entry.name)), max(0.0, now - entry.changed)
            if age < DEAD_AFTER and not (driver and driver.is_dead()):
                place = f"process {driver.pid} on {driver.host}" if driver else "process ? on ?"
                raise DirectoryError(
                    f"a study is running in {self.folder} ({place}, last sign of life {age:.0f} s"
                    " ago); wait until it ends, or choose another output. If it was killed, try"
                    f" again in {DEAD_AFTER - age:.0f} s."
                )
            remove(self.store, markers.child(entry.name))

    def _driver(self, marker: Location) -> _Driver | None:
        """Content of a marker; None if it is gone or of another form."""
        try:
            with self.store.open_input_stream(marker.path) as stream:
                return make_instance(_Driver, parse_json(stream.read(2**12)))
        except (OSError, ValueError):
            return None


def _machine() -> str:
    """Return the name of this machine since its start, and of its processes; or empty."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    return f"{socket.gethostname()} {uuid.uuid4()}"


def _read_start(pid: int) -> str:
    """Time at which a process started, in clock ticks; empty if there is none."""
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rpartition(")")[2].split()
        if fields[0] != "Z":  # a process that has ended
            return fields[19]
    return ""


#: Size and time of a file.
_State = tuple[int, int]


def states(folder: Path) -> dict[str, _State]:
    """Return size and time of all files of a folder, by path relative to it.

    Files and folders whose name starts with a dot are left out, and so are symbolic links.
    """
    result = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if is_hidden(name) or path.is_symlink():
            continue
        try:
            if path.is_file():
                stat = path.stat()
                result[name] = stat.st_size, stat.st_mtime_ns
        except FileNotFoundError:  # replaced meanwhile
            continue
    return result


class Mirror:
    """Thread that copies the changed files of a folder to a URI.

    Journals, the files that end in ``.jsonl``, are read first, up to their last whole line, and
    written last, so that what they name is in the store.
    """

    def __init__(self, local: Path, claim: Claim, say: Callable[[str], None]) -> None:
        self._local, self._claim, self._say = local, claim, say
        self._store, self._folder = claim.store, claim.folder
        self._copied = states(local)
        self._ending, self._abandoned = threading.Event(), threading.Event()
        self._failure: str | None = None
        self._lost = False
        self._thread = threading.Thread(target=self._follow, name="raysel-mirror", daemon=True)
        self._thread.start()

    def finish(self) -> str | None:
        """Copy what is left and end; Ctrl-C ends the wait."""
        self._ending.set()
        try:
            while self._thread.is_alive():
                self._thread.join(0.2)
        except KeyboardInterrupt:
            self._abandoned.set()
            self._failure = "interrupted"
        return self._failure

    @property
    def missing(self) -> list[str]:
        """Names of the files that the store lacks or has as they were before."""
        return sorted(
            name for name, state in states(self._local).items() if self._copied.get(name) != state
        )

    def _follow(self) -> None:
        wait = INTERVAL
        while not self._ending.wait(wait):
            started = time.monotonic()
            self._attempt()
            wait = max(INTERVAL, _SHARE * (time.monotonic() - started))
            if self._failure is not None:
                wait = min(wait, 6 * INTERVAL)
        last = time.monotonic() + PATIENCE
        while (
            not self._attempt()
            and not self._lost
            and time.monotonic() < last
            and not self._abandoned.wait(_AGAIN)
        ):
            pass

    def _attempt(self) -> bool:
        """Copy what has changed; the first failure and the first success after it are said."""
        if self._lost:
            return False
        try:
            if not self._claim.renew():
                self._lost, self._failure = True, "another driver has taken the study over"
                self._say(
                    f"{self._folder} is no longer written: another driver has taken this one for"
                    f" dead and runs the study there. What is computed here stays in {self._local}."
                )
                return False
            self._copy_changed()
        except Exception as error:  # noqa: BLE001 - no failure of a store may end a study
            if self._failure is None:
                self._say(
                    f"{self._folder} cannot be written: {reason(error, self._folder)}. The study"
                    f" goes on; its files are in {self._local}, and the copy is tried again."
                )
            self._failure = reason(error, self._folder)
            return False
        if self._failure is not None:
            self._failure = None
            self._say(f"{self._folder} is written again; nothing is missing there.")
        return True

    def _copy_changed(self) -> None:
        present = states(self._local)
        changed = [name for name, state in present.items() if self._copied.get(name) != state]
        journals = {
            name: _whole_lines(self._local / name) for name in changed if name.endswith(".jsonl")
        }
        contents = {name: self._local / name for name in changed if name not in journals} | journals
        for name, content in contents.items():
            if self._abandoned.is_set():
                return
            try:
                upload(self._store, content, self._folder, name)
            except FileNotFoundError:
                if (self._local / name).exists():
                    raise
                continue
            self._copied[name] = present[name]
        for name in self._copied.keys() - present.keys():
            remove(self._store, self._folder.child(name))
            del self._copied[name]


def _whole_lines(path: Path) -> bytes:
    content = path.read_bytes()
    return content[: content.rfind(b"\n") + 1]
