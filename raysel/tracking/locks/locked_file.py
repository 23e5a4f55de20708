"""Small file that tells the state of a study and that only the holder of the study's lock replaces."""

from __future__ import annotations

from pathlib import Path

from raysel.files import atomic_write, remove_temporary_files
from raysel.tracking.locks.file_lock import FileLock


class LockedFile:
    """File that a process replaces while it holds the lock, and never after another has taken over.

    A process may be stopped at any instruction and go on after another has taken over. If it was stopped before it
    created the temporary file of `raysel.files.atomic_write`, it finds that the lock is lost before it moves that file;
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
