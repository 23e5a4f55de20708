"""File system that shows a folder as a file server without locks does, mounted through FUSE.

flock fails with ENOLCK; the answer to each first rename onto a name is lost, so that the repeated
call says ENOENT; the first read of a file that was replaced since it was last opened fails with
ESTALE; the server's clock is an hour ahead.
"""

from __future__ import annotations

import ctypes.util
import errno
import importlib.util
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

AHEAD = 3600.0
#: Nanoseconds that stand for the current time, as in <sys/stat.h>.
UTIME_NOW = (1 << 30) - 1


@contextmanager
def network_folder(folder: Path) -> Iterator[Path]:
    """Mount such a file system below a folder, or skip the test and say what is missing."""
    missing = [
        name
        for name, found in {
            "/dev/fuse": os.access("/dev/fuse", os.R_OK | os.W_OK),
            "root": os.geteuid() == 0,
            "libfuse3 (Debian: fuse3)": ctypes.util.find_library("fuse3"),
            "the Python package mfusepy": importlib.util.find_spec("mfusepy"),
        }.items()
        if not found
    ]
    if missing:
        pytest.skip(
            f"needs FUSE: {', '.join(missing)} missing; locks without flock are NOT tested here"
        )
    behind, place = folder / "behind", folder / "mounted"
    behind.mkdir()
    place.mkdir()
    command = [sys.executable, __file__, str(behind), str(place)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            while not os.path.ismount(place):
                if server.poll() is not None:
                    pytest.skip(f"needs FUSE: it cannot be mounted: {server.stderr.read()}")
                time.sleep(0.02)
            yield place
        finally:
            subprocess.run(["umount", "--lazy", place], check=False)
            server.terminate()


@contextmanager
def signs_of_life(lock: Path) -> Iterator[None]:
    """Touch a lock again and again, as a process that holds it does."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(0.2):
            os.utime(lock)

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def serve(behind: Path, place: Path) -> None:
    """Show a folder at a place until it is unmounted."""
    import mfusepy  # noqa: PLC0415 - only in the process that serves

    class Server(mfusepy.Operations):
        use_ns = True

        def __init__(self) -> None:
            self.moved: set[str] = set()  # names whose first rename has been answered wrongly
            self.replaced: set[str] = set()  # names whose next read says ESTALE

        def at(self, path: str) -> Path:
            return behind / path.lstrip("/")

        def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
            found = os.lstat(self.at(path))
            keys = ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid", "st_ino", "st_blocks")
            ahead = int(AHEAD * 1e9)
            times = {
                "st_atime": found.st_atime_ns,
                "st_mtime": found.st_mtime_ns + ahead,
                "st_ctime": found.st_ctime_ns,
            }
            return {key: getattr(found, key) for key in keys} | times

        def readdir(self, path: str, fh: int) -> list[tuple[str, dict[str, int], int]]:
            found = [(file.name, file.lstat()) for file in self.at(path).iterdir()]
            found += [(name, self.at(path).lstat()) for name in (".", "..")]
            return [
                (name, {"st_ino": stat.st_ino, "st_mode": stat.st_mode}, 0) for name, stat in found
            ]

        def statfs(self, path: str) -> dict[str, int]:
            found = os.statvfs(self.at(path))
            keys = (
                "f_bavail",
                "f_bfree",
                "f_blocks",
                "f_bsize",
                "f_favail",
                "f_ffree",
                "f_files",
                "f_frsize",
            )
            return {key: getattr(found, key) for key in keys}

        def open(self, path: str, flags: int) -> int:
            return os.open(self.at(path), flags)

        def create(self, path: str, mode: int, fi: Any = None) -> int:
            return os.open(self.at(path), os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)

        def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
            if path in self.replaced:
                self.replaced.discard(path)
                raise mfusepy.FuseOSError(errno.ESTALE)
            return os.pread(fh, size, offset)

        def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
            return os.pwrite(fh, data, offset)

        def truncate(self, path: str, length: int, fh: int | None = None) -> int:
            os.truncate(self.at(path), length)
            return 0

        def rename(self, old: str, new: str) -> int:
            replaces = self.at(new).exists()
            self.at(old).rename(self.at(new))
            if not new.endswith(".json"):
                return 0
            if replaces:
                self.replaced.add(new)
            if new in self.moved:
                return 0
            self.moved.add(new)
            raise mfusepy.FuseOSError(errno.ENOENT)

        def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
            now = time.time_ns()  # "now" is no time, UTIME_NOW or, of libfuse 2, the client's clock
            if times is None or times[1] == UTIME_NOW or abs(times[1] - now) < AHEAD / 2 * 1e9:
                os.utime(self.at(path))
            else:
                os.utime(self.at(path), ns=(times[0], times[1] - int(AHEAD * 1e9)))
            return 0

        def flock(self, path: str, fh: int, op: int) -> int:
            raise mfusepy.FuseOSError(errno.ENOLCK)

        def mkdir(self, path: str, mode: int) -> int:
            self.at(path).mkdir(mode)
            return 0

        def rmdir(self, path: str) -> int:
            self.at(path).rmdir()
            return 0

        def unlink(self, path: str) -> int:
            self.at(path).unlink()
            return 0

        def chmod(self, path: str, mode: int) -> int:
            self.at(path).chmod(mode)
            return 0

        def access(self, path: str, amode: int) -> int:
            return 0

        def fsync(self, path: str, datasync: int, fh: int) -> int:
            os.fsync(fh)
            return 0

        def release(self, path: str, fh: int) -> int:
            os.close(fh)
            return 0

    mfusepy.FUSE(Server(), str(place), foreground=True, use_ino=True, fsname="raysel-test")


if __name__ == "__main__":
    serve(Path(sys.argv[1]), Path(sys.argv[2]))
