"""Time and memory of this machine: steady clocks, and limits on the memory that data may take."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

from raysel.core.errors import ConfigError, DataError

#: Clock that is never set, and on Linux goes on while the machine sleeps.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_OFFSET = time.time() - time.clock_gettime(_STEADY)
#: Seconds between two looks at the clock; a process that does not look for three times as long was
#: stopped.
_TICK = 1.0
#: Environment variable with the most bytes of memory that the content of one data file or model may
#: take.
MAX_DATA_BYTES = "RAYSEL_MAX_DATA_BYTES"
#: Characters of a name of a feature, class or label.
MOST_CHARACTERS = 1000
#: Bytes at which each number is counted: samples are used in double precision, whatever the file
#: stores.
BYTES_OF_A_NUMBER = 8
#: Reading takes up to four times the size of the samples, e.g. for a table, its columns as one
#: array, and a copy.
_SHARE = 0.25
_CGROUPS, _OWN_CGROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def now() -> float:
    """Return the time in seconds since the epoch, steady if the clock is set meanwhile."""
    return _OFFSET + time.clock_gettime(_STEADY)


class _RunningTime:
    """Monotonic time without the time in which the process was stopped, e.g. by SIGSTOP."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen, self._cpu, self._stopped = 0.0, 0.0, 0.0
        self._ticker: threading.Thread | None = None

    def seconds(self) -> float:
        with self._lock:
            seen, cpu = time.monotonic(), time.process_time()
            if self._ticker is None:
                self._ticker = threading.Thread(target=self._tick, name="running time", daemon=True)
                self._ticker.start()
            # Native code that holds Python's lock also delays the ticker, but uses the processor.
            elif seen - self._seen > 3 * _TICK and cpu - self._cpu < 0.1 * (seen - self._seen):
                self._stopped += seen - self._seen
            self._seen, self._cpu = seen, cpu
            return seen - self._stopped

    def _tick(self) -> None:
        while True:
            time.sleep(_TICK)
            self.seconds()


_running_time = _RunningTime()


def running_seconds() -> float:
    """Return seconds from an arbitrary start, without those in which this process stood."""
    return _running_time.seconds()


class RunningTimer:
    """Timer in a thread of its own, which does not count the time in which the process stood."""

    def __init__(self, seconds: float, function: Callable[[], object]) -> None:
        self._until, self._function = running_seconds() + seconds, function
        self._cancelled = threading.Event()
        threading.Thread(target=self._run, name="timer", daemon=True).start()

    def _run(self) -> None:
        while (left := self._until - running_seconds()) > 0:
            if self._cancelled.wait(min(left, _TICK)):
                return
        self._function()

    def cancel(self) -> None:
        """Stop the timer; nothing happens if it has ended."""
        self._cancelled.set()


def machine_memory() -> int:
    """Return the memory of the machine, or of this process's container or job if less."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for file in _limit_files():
        with suppress(OSError, ValueError):  # no limit: the file does not exist, or contains "max"
            memory = min(memory, int(file.read_text()))
    return memory


def _limit_files() -> list[Path]:
    """Files with the memory limits of this process's control groups and of those above them."""
    files = [_CGROUPS / "memory.max"]
    with suppress(OSError):
        for line in _OWN_CGROUPS.read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            if kinds and "memory" not in kinds.split(","):
                continue
            root, name = _CGROUPS, "memory.max"
            if kinds:
                root, name = _CGROUPS / "memory", "memory.limit_in_bytes"
            parts = [part for part in path.split("/") if part]
            files += [root / above / name for above in accumulate(parts, os.path.join, initial="")]
    return files


def max_data_bytes() -> int:
    """Return the most bytes of memory that the content of one data file or model may take."""
    given = os.environ.get(MAX_DATA_BYTES, "").strip()
    if not given:
        return int(_SHARE * machine_memory())
    with suppress(ValueError, OverflowError):
        if (limit := int(float(given))) > 0:
            return limit
    raise ConfigError(f"{MAX_DATA_BYTES}={given}: give a number of bytes above 0, e.g. 8e9.")


def check_data_bytes(
    path: object, claimed: int, what: str = "its content", remedy: str = ""
) -> None:
    """Check the memory that the content of a file would take, before it is taken."""
    limit = max_data_bytes()
    if claimed > limit:
        source = ", a quarter of the memory of this machine"
        if os.environ.get(MAX_DATA_BYTES):
            source = ""
        raise DataError(
            f"{path}: {what} would take {format_bytes(claimed)} of memory, above the limit of"
            f" {format_bytes(limit)}{source}. If you trust the file, set the environment variable"
            f" {MAX_DATA_BYTES} to more bytes. A much smaller file is damaged or an"
            f" attack.{remedy}"
        )


def format_bytes(n_bytes: int) -> str:
    """Return a number of bytes in KiB, MiB or GiB."""
    power, unit = next(
        (power, unit)
        for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB"))
        if n_bytes >= 2**power or power == 10
    )
    return f"{n_bytes / 2**power:,.1f} {unit}"
