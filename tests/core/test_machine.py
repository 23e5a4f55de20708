"""Times go on steadily when the machine's clock is set, and limits do not count what a process
was stopped.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

from raysel.core import machine


def test_a_set_clock_moves_no_time(monkeypatch):
    before = machine.now()
    assert abs(before - time.time()) < 60
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= machine.now() - before < 60


def test_what_a_process_was_stopped_is_not_counted():
    script = (
        "import sys, time; from raysel.core import machine as clock; clock._TICK = 0.05\n"
        "running, steady = clock.running_seconds(), time.monotonic()\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "print(time.monotonic() - steady - (clock.running_seconds() - running))"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=pipe, stdout=pipe, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.0)
        process.send_signal(signal.SIGCONT)
        process.stdin.write("\n")
        process.stdin.flush()
        assert float(process.stdout.readline()) > 0.9


def test_work_and_sleep_are_counted():
    running, steady = machine.running_seconds(), time.monotonic()
    while time.monotonic() < steady + 0.05:
        sum(range(1000))
    time.sleep(0.05)
    assert machine.running_seconds() - running >= 0.1


def test_a_timer_calls_once_unless_it_is_cancelled():
    ended, never = threading.Event(), threading.Event()
    cancelled = machine.RunningTimer(0.05, never.set)
    cancelled.cancel()
    machine.RunningTimer(0.01, ended.set)
    assert ended.wait(30)
    assert not never.wait(0.1)
