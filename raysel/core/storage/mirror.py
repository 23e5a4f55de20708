"""Copy of a folder to a URI that is kept up to date while the folder changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from raysel.core.storage.claim import Claim
from raysel.core.storage.location import FileSystem, Location
from raysel.core.storage.transfer import is_hidden, reason, remove, upload

#: Seconds between two copies; a copy that takes long is followed by a wait of ten times as long.
INTERVAL, _SHARE = 5.0, 10.0
#: Seconds for which the last copy is tried again while the store fails, and between two attempts.
PATIENCE, _AGAIN = 60.0, 5.0

#: Size and time of a file.
_State = tuple[int, int]


def states(folder: Path) -> dict[str, _State]:
    """Return size and time of all files of a folder, by path relative to it.

    Files and folders whose name starts with a dot are left out, and so are symbolic links.
    """
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if is_hidden(name) or path.is_symlink():
            continue
        try:
            if path.is_file():
                stat = path.stat()
                found[name] = stat.st_size, stat.st_mtime_ns
        except FileNotFoundError:  # replaced meanwhile
            continue
    return found


class Mirror:
    """Thread that copies the changed files of a folder to a URI.

    Journals, the files that end in ``.jsonl``, are read first, up to their last whole line, and written last, so that
    what they name is in the store.
    """

    def __init__(
        self,
        local: Path,
        store: FileSystem,
        folder: Location,
        known: dict[str, _State],
        claim: Claim | None,
        say: Callable[[str], None],
    ) -> None:
        self._local, self._store, self._folder = local, store, folder
        self._copied, self._claim, self._say = dict(known), claim, say
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
        return sorted(name for name, state in states(self._local).items() if self._copied.get(name) != state)

    def _follow(self) -> None:
        wait = INTERVAL
        while not self._ending.wait(wait):
            started = time.monotonic()
            self._attempt()
            wait = max(INTERVAL, _SHARE * (time.monotonic() - started))
            if self._failure is not None:
                wait = min(wait, 6 * INTERVAL)
        last = time.monotonic() + PATIENCE
        while not self._attempt() and not self._lost and time.monotonic() < last and not self._abandoned.wait(_AGAIN):
            pass

    def _attempt(self) -> bool:
        """Copy what has changed; the first failure and the first success after it are said."""
        if self._lost:
            return False
        try:
            if self._claim is not None and not self._claim.renew():
                self._lost, self._failure = True, "another driver has taken the study over"
                self._say(
                    f"{self._folder} is no longer written: another driver has taken this one for dead and runs the "
                    f"study there. What is computed here stays in {self._local}."
                )
                return False
            self._copy_changed()
        except Exception as error:  # noqa: BLE001 - no failure of a store may end a study
            if self._failure is None:
                self._say(
                    f"{self._folder} cannot be written: {reason(error, self._folder)}. The study goes on; its files "
                    f"are in {self._local}, and the copy is tried again."
                )
            self._failure = reason(error, self._folder)
            return False
        if self._failure is not None:
            self._failure = None
            self._say(f"{self._folder} is written again; nothing is missing there.")
        return True

    def _copy_changed(self) -> None:
        found = states(self._local)
        changed = [name for name, state in found.items() if self._copied.get(name) != state]
        journals = {name: _whole_lines(self._local / name) for name in changed if name.endswith(".jsonl")}
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
            self._copied[name] = found[name]
        for name in self._copied.keys() - found.keys():
            remove(self._store, self._folder.child(name))
            del self._copied[name]


def _whole_lines(path: Path) -> bytes:
    content = path.read_bytes()
    return content[: content.rfind(b"\n") + 1]
