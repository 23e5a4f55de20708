"""Clusters with and without a token, joined by processes that had a Ray of their own before, or
not.
"""

from __future__ import annotations

import sys

import pytest
from hosts import REPOSITORY, Host, Network
from small_studies import write_digits

pytestmark = pytest.mark.slow

#: A driver that joins one cluster after the other, whose nodes compute which versions they have;
#: where an address is "-" it starts a Ray of its own, and ends it.
DRIVER = """
import os, sys
from raysel.core.errors import RayselError
from raysel.execution.ray.session import ray_session
from small_studies import make_study
study = make_study("few.npz", solver={"name": "fisher_score"}, search={})
for word in sys.argv[1:]:
    try:
        with ray_session(None if word == "-" else word, [study]):
            print("done", flush=True)
    except RayselError as error:
        print(error, flush=True)
    print(os.environ.get("RAY_AUTH_MODE"), flush=True)
"""


def start_head(host: Host, mode: str, port: int) -> str:
    """Start a head in a mode, and return its address."""
    options = ("--head", "--include-dashboard=false", "--no-monitor", f"--port={port}")
    host.start_ray(*options, RAY_AUTH_MODE=mode)
    return f"{host.address}:{port}"


def test_after_a_ray_of_one_s_own_only_a_cluster_with_a_token_is_joined(tmp_path):
    """Joined without such a Ray they are by the tests of two hosts and of the shipping of code."""
    with Network(tmp_path / "network") as network:
        host = network.add("head")
        host.run("mkdir -p -m 700 ~/.ray && umask 077 && printf %064d 7 > ~/.ray/auth_token")
        write_digits(host.home / "few.npz")
        (host.home / "driver.py").write_text(DRIVER)
        without = start_head(host, "disabled", 6379)
        with_token = start_head(host, "token", 6380)
        words = f"{sys.executable} driver.py - {without} {with_token}"
        path = f"{REPOSITORY}:{REPOSITORY}/tests"
        said = host.run(words, timeout=600, PYTHONPATH=path).stdout.splitlines()
    refusal = said[2]
    assert said == ["done", "None", refusal, "None", "done", "None"]  # the user's variables stay
    assert f"address {without}: the Ray cluster there takes no token" in refusal
    assert "Start a new Python process" in refusal
