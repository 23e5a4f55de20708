"""SIGTERM and SIGHUP interrupt inside the context only, and leave no trace for the next study of
the process.
"""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import threading

import pytest

from raysel.execution.signals import (
    interrupt_status,
    sigterm_as_interrupt,
    sigterm_handler_restored,
    was_terminated,
)


@pytest.fixture
def handler():
    """The handler of a server, which the context must give back."""

    def handle(*_: object) -> None: ...

    before = signal.signal(signal.SIGTERM, handle)
    yield handle
    signal.signal(signal.SIGTERM, before)


def test_sigterm_interrupts_and_the_previous_handler_returns(handler):
    with pytest.raises(KeyboardInterrupt), sigterm_as_interrupt():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is handler
    signal.raise_signal(signal.SIGTERM)


def test_a_termination_is_known_until_the_outermost_context_ends():
    with sigterm_as_interrupt():
        assert not was_terminated()
        with pytest.raises(KeyboardInterrupt), sigterm_as_interrupt():
            signal.raise_signal(signal.SIGTERM)
        assert was_terminated()
        with sigterm_as_interrupt():
            assert was_terminated()
    assert not was_terminated()


def test_a_handler_that_ray_installs_is_replaced(handler):
    with sigterm_handler_restored():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert signal.getsignal(signal.SIGTERM) is handler


def test_other_threads_leave_the_handler_alone(handler):
    seen = []

    def study() -> None:
        with sigterm_as_interrupt(), sigterm_handler_restored():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=study)
    thread.start()
    thread.join()
    assert seen == [handler]


@pytest.mark.usefixtures("capfd")  # a hangup closes the terminal
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_the_exit_status_names_the_signal(number, status):
    with sigterm_as_interrupt():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        assert interrupt_status() == status
    assert interrupt_status() == 130


@pytest.mark.usefixtures("capfd")
def test_one_hangup_interrupts_and_the_next_do_not():
    before = signal.getsignal(signal.SIGHUP)
    with sigterm_as_interrupt():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) == before


def test_a_hangup_that_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with sigterm_as_interrupt():
            signal.raise_signal(signal.SIGHUP)
            assert not was_terminated()
    finally:
        signal.signal(signal.SIGHUP, before)


_LOSES_ITS_TERMINAL = """
import sys, time
from raysel.execution.signals import interrupt_status, sigterm_as_interrupt
with sigterm_as_interrupt():
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("a line for the terminal", flush=True)
        open(sys.argv[1], "w").write("closed")
        sys.exit(interrupt_status())
"""


def test_output_after_the_terminal_is_lost_does_not_stop_the_closing_of_a_study(tmp_path):
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _LOSES_ITS_TERMINAL, str(tmp_path / "end")],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )
    os.close(inside)
    assert os.read(terminal, 5) == b"ready"
    os.close(terminal)
    assert process.wait(30) == 129
    assert (tmp_path / "end").read_text() == "closed"
