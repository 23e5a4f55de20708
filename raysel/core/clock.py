"""Clocks that a change of the machine's time or a stop of the process does not disturb."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

#: Clock that is never set, and on Linux goes on while the machine sleeps.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_OFFSET = time.time() - time.clock_gettime(_STEADY)
#: Seconds between two looks at the clock; a process that does not look for three times as long was stopped.
_TICK = 1.0


def now() -> float:
    """Return the time in seconds since the epoch, which goes on steadily if the machine's clock is set meanwhile."""
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
    """Return the time in seconds from an arbitrary start, without the time in which this process was stopped."""
    return _running_time.seconds()


class RunningTimer:
    """Timer that calls a function in a thread of its own, and does not count the time in which the process was
    stopped.
    """

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
