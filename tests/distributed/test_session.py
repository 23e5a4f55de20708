"""A study on Ray leaves the process as it was: MLflow, Tune's integrations, the handler of SIGTERM."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from small_studies import write_digits, write_yaml

from raysel.distributed import session
from raysel.errors import StudyError

HIDDEN = """
import sys
from raysel.distributed.session import mlflow_hidden_from_tune
with mlflow_hidden_from_tune():
    from ray.air._internal.usage import _count_callbacks
    _count_callbacks([object()])
    assert "mlflow" not in sys.modules
import ray.air.integrations
assert not hasattr(ray.air.integrations, "mlflow")
from ray.air.integrations.mlflow import mlflow
print(mlflow.__name__)
with mlflow_hidden_from_tune():
    import ray.air.integrations.mlflow as integration
assert integration.mlflow is mlflow and sys.modules["mlflow"] is mlflow
"""

FAILING = """
import sys
from raysel.distributed.session import mlflow_hidden_from_tune
sys.modules["ray.tune.logger"] = None  # makes the import of the integration fail
try:
    with mlflow_hidden_from_tune():
        raise AssertionError
except ImportError:
    print("mlflow" in sys.modules, "ray.air.integrations.mlflow" in sys.modules)
"""

STUDY = """
import signal, sys
import raysel
def own(*_): pass
signal.signal(signal.SIGTERM, own)
raysel.run_study("few.yaml", output="study")
import ray
print(signal.getsignal(signal.SIGTERM) is own, ray.is_initialized(), "ray.air.integrations.mlflow" in sys.modules)
print("mlflow" in sys.modules)
"""


def run(folder, script):
    environment = {name: value for name, value in os.environ.items() if name != "RAY_AUTH_MODE"} | {"HOME": str(folder)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_tune_finds_mlflow_only_after_the_search(tmp_path):
    assert run(tmp_path, HIDDEN) == ["mlflow"]


def test_an_import_that_fails_leaves_mlflow_importable(tmp_path):
    assert run(tmp_path, FAILING) == ["False", "False"]


@pytest.mark.slow
def test_a_study_on_ray_leaves_the_process_as_it_was(tmp_path):
    write_digits(tmp_path / "few.npz")
    write_yaml(tmp_path / "few.yaml", search__executor="ray")
    token = tmp_path / ".ray/auth_token"
    token.parent.mkdir()
    token.write_text("a" * 64)
    token.chmod(0o644)  # as Ray made it in an earlier session
    assert run(tmp_path, STUDY)[-4:] == ["True", "False", "False", "False"]
    assert token.read_text() == "a" * 64
    assert token.stat().st_mode & 0o777 == 0o600


def test_servers_that_take_too_long_to_start_are_an_error_of_the_study(monkeypatch):
    def too_slow(**_: object):
        raise Exception("The current node timed out during startup.")  # as Ray itself raises

    monkeypatch.setattr(session.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(session.ray, "init", too_slow)
    with (
        pytest.raises(StudyError, match="Ray cannot be started on this machine: The current node timed out"),
        session.ray_session(None),
    ):
        pass
