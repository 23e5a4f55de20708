"""Handling of SIGTERM, sent by schedulers, and of SIGHUP, sent when a terminal is lost."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
#: Signals of `_SIGNALS` that came, in their order.
_RECEIVED: list[int] = []


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt inside the context.

    A SIGHUP that is ignored, as ``nohup`` starts its commands, stays ignored. Only the main thread
    can handle signals: in other threads, and inside another such context, it does nothing.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is _interrupt
    ):
        yield
        return
    with sigterm_handler_restored():
        for number in _SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _interrupt)
        try:
            yield
        finally:
            _RECEIVED.clear()


@contextmanager
def sigterm_handler_restored() -> Iterator[None]:
    """Restore the handlers of SIGTERM, which Ray replaces, and of SIGHUP at the end."""
    previous = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in previous.items():
                if handler is not None:  # a handler that Python did not install and cannot restore
                    signal.signal(number, handler)


def was_terminated() -> bool:
    """Return whether SIGTERM or SIGHUP came, which Ray does not tell from Ctrl-C."""
    return bool(_RECEIVED)


def interrupt_status() -> int:
    """Return the exit status of a command that KeyboardInterrupt has ended."""
    if _RECEIVED:
        return 128 + _RECEIVED[0]
    return 128 + signal.SIGINT


def _interrupt(number: int, _: FrameType | None) -> None:
    _RECEIVED.append(number)
    if number == signal.SIGHUP:
        signal.signal(number, signal.SIG_IGN)  # the kernel and the shell each send one
        _leave_terminal()
    raise KeyboardInterrupt


def _leave_terminal() -> None:
    """Point the standard streams of a lost terminal to nowhere, as writing there fails."""
    with open(os.devnull, "r+b") as nowhere:  # noqa: PTH123 - devnull is a name
        for stream in range(3):
            with suppress(OSError):  # a closed stream
                if stat.S_ISCHR(os.fstat(stream).st_mode):
                    os.dup2(nowhere.fileno(), stream)
