"""Clusters with and without a token, joined by processes that had a Ray of their own before, or not."""

from __future__ import annotations

import sys

import pytest
from hosts import REPOSITORY, Host, Network
from small_studies import write_digits

pytestmark = pytest.mark.slow

#: A driver that runs one study after the other; where an address is "-" it starts a Ray of its own, and ends it.
DRIVER = """
import os, sys
from pathlib import Path
from raysel.core.errors import RayselError
from raysel.execution.ray.session import ray_session
from raysel.run.launch import make_executor
from raysel.testing.checks import run_by
from small_studies import make_study
for number, word in enumerate(sys.argv[1:]):
    address = None if word == "-" else word
    cv = {"outer": 2, "inner": 2, "final": False}
    study = make_study("few.npz", solver={"name": "fisher_score"}, search={}, cv=cv)
    folds = []
    try:
        with ray_session(address, [study]):
            if address:
                ended = run_by(make_executor(study, address), study, Path(f"study{number}"))
                folds = [fold for trial in ended.trials.values() for fold in trial["folds"].values()]
        print("done" if not any(fold["error"] for fold in folds) else folds, flush=True)
    except RayselError as error:
        print(error, flush=True)
    print(os.environ.get("RAY_AUTH_MODE"), flush=True)
"""


@pytest.fixture
def host(tmp_path):
    """A host with data, a driver and a token, on which no Ray runs yet."""
    with Network(tmp_path / "network") as network:
        host = network.add("head")
        host.run("mkdir -p -m 700 ~/.ray && umask 077 && printf %064d 7 > ~/.ray/auth_token")
        write_digits(host.home / "few.npz")
        (host.home / "driver.py").write_text(DRIVER)
        yield host


def start_head(host: Host, mode: str) -> str:
    """Start a head in a mode, and return its address."""
    host.start_ray("--head", "--include-dashboard=false", "--no-monitor", RAY_AUTH_MODE=mode)
    return f"{host.address}:6379"


def drive(host: Host, *addresses: str, **environment: str) -> list[str]:
    """Run a study at each address in one process; return an end and a mode for each."""
    path = f"{REPOSITORY}:{REPOSITORY}/tests"
    words = " ".join([sys.executable, "driver.py", *addresses])
    ended = host.run(words, timeout=600, PYTHONPATH=path, **environment)
    return ended.stdout.splitlines()


def test_a_cluster_without_a_token_is_joined_by_a_new_process_only(host):
    address = start_head(host, "disabled")
    local, mode, refusal, after = drive(host, "-", address)
    assert (local, mode, after) == ("done", "None", "None")  # the user's variables stay
    assert f"address {address}: the Ray cluster there takes no token" in refusal
    assert "Start a new Python process" in refusal
    assert drive(host, address) == ["done", "None"]
    assert drive(host, address, RAY_AUTH_MODE="token") == [refusal, "token"]


def test_a_cluster_with_a_token_is_joined_after_a_ray_of_one_s_own_too(host):
    address = start_head(host, "token")
    assert drive(host, "-", address) == ["done", "None"] * 2
    refusal, _ = drive(host, address)
    assert "asks for a token" in refusal
