"""Process that holds a lock, as it is named in a file that processes on other machines read."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

from raysel.files import parse_json


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
