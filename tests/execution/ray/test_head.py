"""A head node that does not answer interrupts the study; one that comes back in time does not."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

import pytest

from raysel.core.errors import HeadLostError
from raysel.execution.ray.head import HeadWatch


def test_a_head_that_is_gone_interrupts_the_study():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = f"127.0.0.1:{gone.getsockname()[1]}"
    watch = HeadWatch(address, lambda: "3 trials had ended and are kept", limit=0.0)
    watch.start()
    with pytest.raises(KeyboardInterrupt):
        time.sleep(60)
    watch.stop()
    assert isinstance(watch.error, HeadLostError)
    assert f"{address}, does not answer since " in str(watch.error)
    assert "3 trials had ended and are kept" in str(watch.error)


def test_a_head_that_answers_is_left_alone():
    with socket.create_server(("127.0.0.1", 0), backlog=10) as there:
        watch = HeadWatch(f"127.0.0.1:{there.getsockname()[1]}", str, limit=0.0)
        watch.start()
        time.sleep(1.5)
        watch.stop()
    assert watch.error is None


#: A study whose main thread waits in a call that no signal interrupts.
STUCK = """
import signal, sys, time
from raysel.execution.ray import head as head_watch
from raysel.core.printing import last_words
head_watch._GRACE = 0.1
signal.signal(signal.SIGINT, signal.SIG_IGN)
head_watch.HeadWatch(sys.argv[1], lambda: "3 trials had ended and are kept", limit=0.0).start()
with last_words(lambda: "resume with: python -m raysel.tune --resume study"):
    time.sleep(60)
"""


def test_a_study_that_cannot_be_interrupted_ends_with_the_command_that_resumes_it():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = f"127.0.0.1:{gone.getsockname()[1]}"
    done = subprocess.run([sys.executable, "-c", STUCK, address], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    error, command = done.stderr.splitlines()
    assert error.startswith(f"error: the head node of the Ray cluster, {address}, does not answer since ")
    assert command == "resume with: python -m raysel.tune --resume study"
