"""What every test may use: the real data sets, read where RAYSEL_DATA says, Ray started once, a finished study."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from small_studies import CommandRun, NoUpload, write_digits, write_yaml


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same examples in every quick run, and let none fail for its time."""
    hypothesis.settings.register_profile("tests", deadline=None, derandomize=config.option.markexpr == "not slow")
    hypothesis.settings.load_profile("tests")


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Collect no garbage while the tests are collected: to walk all the objects that stay takes half of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect it again, but for what stays."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Let SIGINT and SIGHUP reach the tests' process: started in the background or by nohup it would ignore them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let the tests note the MLflow stores that they use elsewhere than in the user's home folder."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """Give the path of a real data file, or skip and say what is missing."""

    def find(name: str) -> Path:
        folder = os.environ.get("RAYSEL_DATA")
        if not folder:
            pytest.skip(f"needs {name}: set RAYSEL_DATA to the folder of the real data sets")
        path = Path(folder) / name
        if not path.is_file():
            pytest.skip(f"needs {name}, which is not in RAYSEL_DATA={folder}")
        return path

    return find


@pytest.fixture(scope="session")
def ray_here() -> Iterator[None]:
    """Ray started once; every study of the tests that ask for it joins it."""
    from raysel.execution.ray.session import ray_session  # noqa: PLC0415 - takes seconds: only for who needs it

    with ray_session(None):
        yield


@pytest.fixture
def without_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Upload nothing to MLflow from this process: each upload imports it for seconds."""
    for name in ("__init__", "follow", "finish"):
        monkeypatch.setattr(f"raysel.tracking.upload_process.MLflowUploader.{name}", vars(NoUpload)[name])


@pytest.fixture(scope="session")
def finished_study(tmp_path_factory: pytest.TempPathFactory) -> CommandRun:
    """One study run by the command line in this process, in a folder of its own with its MLflow store."""
    from raysel.tune import main  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("finished")
    write_digits(folder / "few.npz")
    write_yaml(folder / "few.yaml", pictures=["png"])
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["few.yaml", "--output", "study", "--set", "tracking.uri=sqlite:///runs/mlflow.db"])
    return CommandRun(status, out.getvalue(), err.getvalue(), folder / "study")
