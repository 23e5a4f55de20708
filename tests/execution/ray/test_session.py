"""Ray on this machine: it starts what a study uses, and a study is computed without it where it
does not start.
"""

from __future__ import annotations

import os
import subprocess
import sys
from unittest.mock import MagicMock

import pytest
import ray
from ray.tune.execution import class_cache
from small_studies import NoUpload, make_study, quiet_log, write_digits

from raysel.core.errors import ConfigError, RayStartError
from raysel.execution.ray import session
from raysel.execution.trial_plan import trial_plan
from raysel.execution.trials import ConfigurationTrial
from raysel.run import course
from raysel.run.launch import make_executor
from raysel.tracking.journal import read_journal


def run(folder, script):
    environment = {name: value for name, value in os.environ.items() if name != "RAY_AUTH_MODE"} | {
        "HOME": str(folder)
    }
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def slow_servers(monkeypatch):
    """A Ray that does not start, and the number of attempts to start it."""
    attempts = []

    def too_slow(**_: object):
        attempts.append(1)
        raise Exception("The current node timed out during startup.")  # as Ray itself raises

    monkeypatch.setattr(session.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(session.ray, "init", too_slow)
    monkeypatch.setattr(
        session.ray, "shutdown", lambda: None
    )  # it would end the Ray of the other tests
    return attempts


def test_servers_that_take_too_long_to_start_are_started_again_then_an_error(slow_servers):
    with (
        pytest.raises(
            RayStartError, match="Ray cannot be started on this machine: The current node timed out"
        ),
        session.ray_session(None),
    ):
        pass
    assert len(slow_servers) == 2


def test_where_ray_does_not_start_a_study_is_computed_in_this_process(tmp_path, slow_servers):
    write_digits(tmp_path / "few.npz")
    studies = [
        make_study(tmp_path / "few.npz", search__executor=name) for name in ("ray", "serial")
    ]
    actual, output = [], []
    for study, name in zip(studies, ("ray", "serial"), strict=True):
        listener = MagicMock()
        result = course.run(study, tmp_path / name, make_executor(study), [listener], NoUpload)
        output += [call.args[0] for call in listener.message.call_args_list]
        actual.append(
            [
                (r.fold, r.params, r.inner_score, r.test_score, r.feature_scores)
                for r in result.refits
            ]
        )
    assert actual[0] == actual[1]
    assert len(slow_servers) == 2
    (message,) = [text for text in output if "Ray cannot be started" in text]
    assert message.endswith(
        "The study is computed in this process, one fit after the other, with the same numbers"
    )
    with pytest.warns(UserWarning, match="computed in this process"):
        ends = list(make_executor(studies[0]).run_tasks(lambda _, number: number**2, [2, 3]))
    assert [end.value for end in ends] == [4, 9]


@pytest.mark.parametrize(
    ("address", "is_loopback"), [("127.0.0.1", True), ("::1", True), ("192.0.2.7", False)]
)
def test_ray_that_would_listen_on_all_interfaces_is_not_started(
    address, is_loopback, slow_servers, monkeypatch
):
    monkeypatch.setattr(session.ray.util, "get_node_ip_address", lambda: address)
    expected = RayStartError if is_loopback else ConfigError
    with pytest.raises(expected) as raised, session.ray_session(None):
        pass
    assert bool(slow_servers) == is_loopback
    assert is_loopback or "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0" in str(raised.value)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_actors_of_tune_get_no_key(tmp_path, monkeypatch):
    """Ray's dashboard shows the variables that they are given."""

    class Told(ConfigurationTrial):
        def steps(self):
            given = ray.get_runtime_context().runtime_env["env_vars"]
            raise LookupError(" ".join(given))

    for name in class_cache.ENV_VARS_TO_PROPAGATE:
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, "secret")
    write_digits(tmp_path / "few.npz")
    study = make_study(tmp_path / "few.npz", search={}, solver__space={"alpha": [0.1]})
    plan = trial_plan(study)
    monkeypatch.setattr(plan, "trial_class", Told)
    with quiet_log(tmp_path / "run", study) as log, make_executor(study) as executor:
        executor.run_trials(plan, log)
    (record,) = read_journal(tmp_path / "run" / "journal.jsonl")
    given = record["error"].removeprefix("LookupError: ").split()
    assert set(given) == {"PL_DISABLE_FORK", "RAY_CHDIR_TO_TRIAL_DIR"}
    assert os.environ["AWS_SECRET_ACCESS_KEY"] == "secret"


ENVIRONMENT = """
import os, secrets
from contextlib import suppress
from pathlib import Path
from raysel.execution.ray.session import ray_session
import ray

@ray.remote
def environment():
    return os.environ["MINE"]

def holders(password):
    # Other processes that have the password in their environment.
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            environment = (process / "environ").read_text(errors="replace")
            if int(process.name) != os.getpid() and password in environment:
                yield (process / "cmdline").read_text()

os.environ |= {"MINE": "here", "PGPASSWORD": secrets.token_hex()}
os.environ["MLFLOW_TRACKING_PASSWORD"] = secrets.token_hex()
with ray_session(None):
    print(ray.get(environment.remote()))
    passwords = os.environ["PGPASSWORD"], os.environ["MLFLOW_TRACKING_PASSWORD"]
    print([command for password in passwords for command in holders(password)])
"""


@pytest.mark.slow
def test_processes_of_ray_have_the_variables_of_this_one_but_no_passwords(tmp_path):
    assert run(tmp_path, ENVIRONMENT) == ["here", "[]"]


@pytest.mark.parametrize(
    ("own", "token", "takes_none"), [(0, 1, 1), (1, 1, 1), (0, 0, 1), (0, 1, 0)]
)
def test_workers_that_end_on_a_cluster_without_tokens_are_told_so(
    own, token, takes_none, monkeypatch
):
    """A cluster that the caller joined after a Ray on this machine, whose token this process
    demands to its end.
    """
    joined = []

    def join(address, variables):
        joined.append((address, variables["RAY_AUTH_MODE"]))
        return ["joined"] if takes_none else ["Unauthenticated"]

    address = f"127.0.0.1:{own}{token}{takes_none}"
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    monkeypatch.setattr(session, "_is_own", bool(own))
    monkeypatch.setattr(session, "_started_with_token", bool(token))
    monkeypatch.setattr("raysel.execution.ray.head._try_to_join", join)
    monkeypatch.setattr(session.ray, "get_runtime_context", lambda: MagicMock(gcs_address=address))
    refused = session.token_refusal()
    assert (refused is not None) == (takes_none and token and not own)
    assert joined == ([(address, "disabled")] if token and not own else [])
    if refused:
        assert "takes no token, and this process demands one" in str(refused)
