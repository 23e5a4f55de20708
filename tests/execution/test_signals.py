"""SIGTERM interrupts inside the context only, and leaves no trace for the next study of the process."""

from __future__ import annotations

import signal
import threading

import pytest

from raysel.execution.signals import sigterm_as_interrupt, sigterm_handler_restored, was_terminated


@pytest.fixture
def handler():
    """The handler of a server, which the context must give back."""

    def own(*_: object) -> None: ...

    before = signal.signal(signal.SIGTERM, own)
    yield own
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


def test_ctrl_c_is_no_termination():
    with sigterm_as_interrupt():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
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
