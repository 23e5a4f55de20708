"""Handling of SIGTERM, which schedulers send some seconds before SIGKILL: the study ends as after Ctrl-C."""

from __future__ import annotations

import signal
import threading

_TERMINATED = threading.Event()


def install_sigterm_handler() -> None:
    """Let SIGTERM raise KeyboardInterrupt in the main thread; Ray replaces the handler when it starts."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupt)


def was_terminated() -> bool:
    """Return whether this process has received SIGTERM, which Ray does not distinguish from Ctrl-C."""
    return _TERMINATED.is_set()


def _interrupt(*_: object) -> None:
    _TERMINATED.set()
    raise KeyboardInterrupt
