"""Head node of a cluster: what is said where it cannot be joined, the file of the token, and the
watch over it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest

from raysel.core.errors import ConfigError, HeadLostError
from raysel.execution.ray.head import HeadWatch, protect_token, refusal

#: Lines of Ray 2.60, each from a cluster on two hosts.
OUTPUTS = {
    "[W 218 218] gcs_client.cc:210: Failed to get cluster ID from GCS server: Unauthenticated: RPC error: InvalidAuthToken: Authentication token is missing or incorrect": (
        "asks for a token, and this process has none"
    ),
    "ray.exceptions.AuthenticationError: Token authentication is enabled but no authentication token was found": (
        "asks for a token"
    ),
    "[W 602 602] rpc_client.h:153: Failed to connect to GCS at address 10.0.0.1:6380 within 5 seconds.": (
        "no Ray cluster answers there"
    ),
    "[C 4033 4033] raylet_ipc_client.cc:85: Failed to connect to socket at address:/tmp/ray/sockets/raylet": (
        "this machine is not one of its nodes"
    ),
    "RuntimeError: Version mismatch: The cluster was started with:\n    Ray: 2.60.0\n    Python: 3.11.7\nThis process on 10.0.0.2 was started with:\n    Ray: 2.54.0\n    Python: 3.12.1\n": (
        "the cluster runs Ray 2.60.0 on Python 3.11.7, and this process Ray 2.54.0 on Python 3.12.1"
    ),
    "Traceback\nOSError: something else": "cannot be joined: OSError: something else",
    "": "cannot be joined, as it does not answer",
}


@pytest.mark.parametrize(("output", "expected"), OUTPUTS.items())
def test_the_reason_of_a_refusal_is_one_line(output, expected):
    message = refusal("10.0.0.1:6379", output)
    assert message.startswith("address 10.0.0.1:6379: ")
    assert expected in message
    assert "\n" not in message


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_new_token_is_made_before_ray_makes_it_readable(home):
    protect_token(make=False)
    assert not list(home.iterdir())
    protect_token(make=True)
    (file,) = (home / ".ray").iterdir()
    assert file.name == "auth_token"
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(bytes.fromhex(file.read_text())) == 32
    before = file.read_text()
    file.chmod(0o644)  # as Ray makes it
    protect_token(make=True)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("name", "value"), [("RAY_AUTH_MODE", "disabled"), ("RAY_AUTH_TOKEN", "a" * 64)]
)
def test_none_is_made_where_none_is_read(home, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    protect_token(make=True)
    assert not list(home.iterdir())


def test_a_file_of_one_s_own_that_others_can_read_is_refused(home, monkeypatch):
    file = home / "token"
    file.write_text("a" * 64)
    file.chmod(0o640)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(file))
    with pytest.raises(ConfigError, match=r"other users can read .*token \(mode 0640\).*chmod 600"):
        protect_token(make=True)
    file.chmod(0o600)
    protect_token(make=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_refused(home):
    protect_token(make=True)
    os.chown(home / ".ray/auth_token", 12345, -1)
    with pytest.raises(ConfigError, match="belongs to the user 12345"):
        protect_token(make=True)


@pytest.mark.slow
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


@pytest.mark.slow
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
with last_words(lambda: "resume with: raysel tune --resume study"):
    time.sleep(60)
"""


@pytest.mark.slow
def test_a_study_that_cannot_be_interrupted_ends_with_the_command_that_resumes_it():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = f"127.0.0.1:{gone.getsockname()[1]}"
    done = subprocess.run(
        [sys.executable, "-c", STUCK, address], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    error, command = done.stderr.splitlines()
    assert error.startswith(
        f"error: the head node of the Ray cluster, {address}, does not answer since "
    )
    assert command == "resume with: raysel tune --resume study"
