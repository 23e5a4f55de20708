"""Clusters with and without a token, joined from processes that started a Ray of their own before, or did not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from small_studies import write_digits

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[2]

#: A driver that runs one study after the other: where an address is "-", on a Ray of its own.
DRIVER = """
import os, sys
from pathlib import Path
from raysel.core.errors import RayselError
from raysel.run.launch import joined, make_executor
from raysel.testing.checks import run_by
from small_studies import make_study
for number, word in enumerate(sys.argv[1:]):
    address = None if word == "-" else word
    study = make_study("few.npz", solver={"name": "fisher_score"}, search={})
    try:
        with joined([study], address):
            ended = run_by(make_executor(study, address), study, Path(f"study{number}"))
        folds = [fold for trial in ended.trials.values() for fold in trial["folds"].values()]
        print("done" if not any(fold["error"] for fold in folds) else folds, flush=True)
    except RayselError as error:
        print(error, flush=True)
    print(os.environ.get("RAY_AUTH_MODE"), flush=True)
"""


def environment(home: Path, **changes: str) -> dict[str, str]:
    """Return variables without a mode of Ray's tokens, and with a home folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**kept, "HOME": str(home), "PYTHONPATH": path, **changes}


def start_head(home: Path, mode: str) -> tuple[subprocess.Popen[str], str]:
    """Start a head in a mode; return its process and address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = f"{Path(sys.executable).parent}/ray start --head --block --port={port} --num-cpus=1"
    options = "--node-ip-address=127.0.0.1 --include-dashboard=false --disable-usage-stats"
    process = subprocess.Popen(
        f"{command} {options}".split(),
        env=environment(home, RAY_AUTH_MODE=mode),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    for line in process.stdout or ():
        if "--block" in line or "will now block" in line:
            break
    return process, f"127.0.0.1:{port}"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    (folder / ".ray").mkdir(mode=0o700)
    token = folder / ".ray/auth_token"
    token.write_text("7" * 64)
    token.chmod(0o600)
    return folder


@contextmanager
def running_head(home: Path, mode: str) -> Iterator[str]:
    """Start a head in a mode, and give its address; one at a time, as their agents share a port."""
    head, address = start_head(home, mode)
    try:
        yield address
    finally:
        head.terminate()
        head.wait(60)


def drive(folder: Path, home: Path, *addresses: str, **changes: str) -> list[str]:
    """Run a study at each address in one process; return the lines that it prints."""
    write_digits(folder / "few.npz")
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, *addresses],
        cwd=folder,
        env=environment(home, **changes),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_cluster_without_a_token_is_joined_by_a_new_process_only(tmp_path, home):
    with running_head(home, "disabled") as address:
        local, mode, refusal, after = drive(tmp_path, home, "-", address)
        alone = drive(tmp_path, home, address)
        (demanding, _) = drive(tmp_path, home, address, RAY_AUTH_MODE="token")
    assert (local, mode, after) == ("done", "None", "None")  # the user's variables stay
    assert f"address {address}: the Ray cluster there takes no token" in refusal
    assert "Start a new Python process" in refusal
    assert alone == ["done", "None"]
    assert demanding == refusal


def test_a_cluster_with_a_token_is_joined_after_a_ray_of_one_s_own_too(tmp_path, home):
    with running_head(home, "token") as address:
        assert drive(tmp_path, home, "-", address) == ["done", "None"] * 2
        assert drive(tmp_path, home, address, RAY_AUTH_MODE="token") == ["done", "token"]
        refusal, _ = drive(tmp_path, home, address)
    assert "asks for a token" in refusal
