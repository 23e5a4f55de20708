"""Watch over the cluster's head node: a study whose head node is lost ends by itself, in plain words."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable

from raysel.core.errors import HeadLostError
from raysel.core.printing import end_process

#: Seconds without an answer after which the head node counts as lost.
LIMIT = 45.0
#: Seconds between two questions, and for an answer.
_PERIOD, _TIMEOUT = 1.0, 2.0
#: Seconds for the study to end by itself before its process is ended.
_GRACE = 15.0


class HeadWatch:
    """Thread that asks the head node every second whether it is there, and interrupts the study if it is lost.

    Ray itself ends a process that cannot reach the head node for a minute, without a word on what is kept. A cut of the
    network that is shorter than `LIMIT` is survived.
    """

    def __init__(self, address: str, kept: Callable[[], str], limit: float = LIMIT) -> None:
        self._address, self._kept, self._limit = address, kept, limit
        self._ended = threading.Event()
        self.error: HeadLostError | None = None
        self._thread = threading.Thread(target=self._watch, name="raysel-head-watch", daemon=True)

    def start(self) -> None:
        """Start to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Stop to watch, which also keeps a process whose head node was lost from being ended."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        answered, since = time.monotonic(), time.time()
        while not self._ended.wait(_PERIOD):
            if self._answers():
                answered, since = time.monotonic(), time.time()
            elif time.monotonic() > answered + self._limit:
                break
        else:
            return
        clock = time.strftime("%H:%M:%S", time.localtime(since))
        self.error = HeadLostError(
            f"the head node of the Ray cluster, {self._address}, does not answer since {clock}; {self._kept()}. Resume "
            "the study on a new cluster, or without one."
        )
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        if not self._ended.wait(_GRACE):  # a call of Ray that cannot be interrupted waits for the head node
            end_process(self.error)

    def _answers(self) -> bool:
        host, _, port = self._address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_TIMEOUT).close()
        except OSError:
            return False
        return True
