"""Ray on this machine: it starts what a study uses, and a study is computed without it where it
does not start.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from unittest.mock import MagicMock

import pytest
import ray._private.node
import ray._private.utils
from ray.tune.execution import class_cache
from small_studies import NoUpload, make_study, write_digits

from raysel.core.errors import RayStartError
from raysel.execution.ray import session
from raysel.run import course
from raysel.run.launch import make_executor


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


def test_ray_has_the_methods_that_start_servers_which_a_study_does_not_use():
    assert all(callable(getattr(ray._private.node.Node, name)) for name in session.UNUSED_SERVERS)
    assert callable(ray._private.utils.get_dashboard_dependency_error)
    assert callable(class_cache._ActorClassCache.get)


def test_other_versions_of_ray_start_as_they_do_by_themselves(monkeypatch):
    monkeypatch.delattr(class_cache, "_ActorClassCache")
    for name in session.UNUSED_SERVERS:
        monkeypatch.delattr(ray._private.node.Node, name)
    with session.without_unused_servers(), session.waiting_workers_used():
        assert not hasattr(ray._private.node.Node, session.UNUSED_SERVERS[0])


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_a_session_on_this_machine_starts_what_a_study_uses_and_its_actors_take_waiting_workers():
    class Worker:
        def environment(self):
            return ray.get_runtime_context().runtime_env.get("env_vars")

    assert set(ray._private.worker._global_node.all_processes) == {"gcs_server", "raylet"}
    get = class_cache._ActorClassCache.get
    with session.ray_session(None):
        worker = class_cache._ActorClassCache().get(Worker).remote()
        assert ray.get(worker.environment.remote()) is None
        ray.kill(worker)
    assert class_cache._ActorClassCache.get is get


ENVIRONMENT = """
import os, secrets
from contextlib import suppress
from pathlib import Path
import ray
from raysel.execution.ray.session import ray_session

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


def test_actors_on_a_cluster_get_no_key_of_aws(monkeypatch):
    """Their `runtime_env` is shown by Ray's dashboard; a session of this machine gives them none
    at all.
    """
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("RAY_CHDIR_TO_TRIAL_DIR", "0")
    spec = importlib.util.find_spec("ray.tune.execution.class_cache")
    as_it_comes = importlib.util.module_from_spec(
        spec
    )  # not as the Ray of the other tests has changed it
    spec.loader.exec_module(as_it_comes)
    monkeypatch.setattr("ray.tune.execution.class_cache", as_it_comes)

    def variables():
        return (
            as_it_comes._ActorClassCache()
            .get(type("Actor", (), {}))
            ._default_options["runtime_env"]["env_vars"]
        )

    assert variables()["AWS_SECRET_ACCESS_KEY"] == "secret"
    with session.keys_kept_here():
        assert variables().keys() == {"PL_DISABLE_FORK", "RAY_CHDIR_TO_TRIAL_DIR"}


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
