"""Handling of SIGTERM, which schedulers send some seconds before SIGKILL: the study ends as after Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_TERMINATED = threading.Event()


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt inside the context, and restore the previous handler at its end.

    Only the main thread can handle signals: in other threads, and inside another such context, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is _interrupt:
        yield
        return
    with sigterm_handler_restored():
        signal.signal(signal.SIGTERM, _interrupt)
        try:
            yield
        finally:
            _TERMINATED.clear()


@contextmanager
def sigterm_handler_restored() -> Iterator[None]:
    """Restore the handler of SIGTERM at the end of the context, because Ray replaces it when it starts."""
    previous = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        # None stands for a handler that Python did not install and cannot restore.
        if threading.current_thread() is threading.main_thread() and previous is not None:
            signal.signal(signal.SIGTERM, previous)


def was_terminated() -> bool:
    """Return whether SIGTERM, which Ray does not distinguish from Ctrl-C, came inside `sigterm_as_interrupt`."""
    return _TERMINATED.is_set()


def _interrupt(*_: object) -> None:
    _TERMINATED.set()
    raise KeyboardInterrupt
