"""SIGTERM, as schedulers send it some seconds before they kill: the study ends as by Ctrl-C, and waits for nobody."""

from __future__ import annotations

import signal
import threading

_ASKED = threading.Event()


def install_sigterm_handler() -> None:
    """Let SIGTERM interrupt the main thread; again after Ray has started, which takes the signal for itself."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupt)


def was_terminated() -> bool:
    """Whether SIGTERM has come. (Ray hands on no more than that something interrupted it.)"""
    return _ASKED.is_set()


def _interrupt(*_: object) -> None:
    _ASKED.set()
    raise KeyboardInterrupt
