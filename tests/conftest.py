"""What every test may use: the real data sets, read where RAYSEL_DATA says, Ray started once, a
finished study.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from _pytest.doctest import DoctestItem, DoctestModule
from forked_uploads import forking
from small_studies import CommandRun, upload_nothing, write_digits, write_yaml
from threadpoolctl import threadpool_limits

from raysel.tracking import upload_process

#: Test files import Ray before raysel does: a Ray of theirs listens on loopback all the same.
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
os.environ[LOOPBACK] = "0"
#: Commands name the programs of this environment as a shell finds them that has activated it.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
#: Files beside tests/run that use the finished study or upload, for which each process starts
#: others.
SHARING = {
    "tests/cli/test_select.py",
    "tests/cli/test_summary.py",
    "tests/cli/test_tune.py",
    "tests/execution/test_resume.py",
    "tests/test_faults.py",
    "tests/tracking/test_mlflow_client.py",
    "tests/tracking/test_mlflow_runs.py",
}
PACKAGE = Path(__file__).resolve().parent.parent / "raysel"
#: Files whose slow tests take longest, which begin first: those that wait for others between those
#: that compute.
FIRST = (
    "tests/test_cluster_launch.py",
    "tests/experiments/test_papers.py",
    "tests/experiments/test_scripts.py",
    "tests/execution/ray/test_nodes.py",
    "tests/experiments/test_guide.py",
    "tests/execution/ray/test_code_shipping.py",
    "tests/execution/ray/test_two_hosts.py",
    "tests/results/page/test_report.py",
    "tests/tracking/test_upload_process.py",
    "tests/execution/ray/test_tune.py",
    "tests/experiments/test_examples.py",
    "tests/execution/ray/test_token_modes.py",
    "tests/test_slurm.py",
    "tests/execution/test_survival.py",
    "tests/cli/test_tune.py",
    "tests/execution/ray/test_memory.py",
    "tests/tracking/test_postgresql.py",
    "tests/tracking/test_network_folder.py",
)
#: Folder of files that share a finished comparison, whose runs are uploaded.
RUNS = "tests/run/"
#: Fixtures that are made for minutes of slow tests: one process runs all tests that ask for one.
MADE_ONCE = ("ray_here", "finished_study")
#: Files whose slow tests share nothing that takes long: any process runs any of them.
APART = {
    "tests/execution/test_processes.py",
    "tests/execution/test_scorers.py",
    "tests/execution/test_survival.py",
    "tests/experiments/test_false_claims.py",
    "tests/experiments/test_guide.py",
    "tests/experiments/test_papers.py",
    "tests/run/test_estimator.py",
    "tests/study/inspection/test_leaks.py",
    "tests/testing/test_method_suite.py",
}


class Doctests:
    """Plugin for the examples in docstrings, which stand elsewhere than the tests."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Iterator[None]:
        """Look for examples in the package's files that have some: other files would be imported
        for nothing.
        """
        collectors = yield
        if file_path.is_relative_to(PACKAGE) and ">>> " in file_path.read_text(encoding="utf-8"):
            return collectors
        return [collector for collector in collectors if not isinstance(collector, DoctestModule)]

    @pytest.fixture(autouse=True)
    def _bare_studies(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Upload no studies of examples: that takes seconds, and has tests."""
        if isinstance(request.node, DoctestItem):
            upload_nothing(monkeypatch)


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same examples in every quick run, fewer than usual, and let none fail for its
    time.
    """
    config.pluginmanager.register(Doctests(), "raysel-doctests")
    if (
        "PYTEST_XDIST_WORKER" in os.environ
    ):  # two processes share the processors: one BLAS thread each
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            os.environ.setdefault(name, "1")  # of the processes that tests start
        threadpool_limits(1)
    quick = config.option.markexpr == "not slow"
    hypothesis.settings.register_profile(
        "tests", deadline=None, derandomize=quick, max_examples=30 if quick else 100
    )
    hypothesis.settings.load_profile("tests")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Let one process run the files that share what takes long to make."""
    from xdist.scheduler import LoadFileScheduling  # noqa: PLC0415 - where pytest-xdist is installed

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            if file in SHARING or file.startswith(RUNS):
                return "sharing"
            return "examples" if file.startswith("raysel/") else file

    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups afterwards
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin the slow tests with the longest, end with those that any process runs, and group the
    others.

    The processes take them in this order only with ``--no-loadscope-reorder``: else the largest
    groups come first.
    """
    if config.option.markexpr == "not slow":
        return
    place = {file: number for number, file in enumerate(FIRST)}
    last = len(FIRST)
    items.sort(key=lambda item: place.get(file_of(item), last + (file_of(item) in APART)))
    for item in items:
        shared = next((name for name in MADE_ONCE if name in item.fixturenames), file_of(item))
        if shared not in APART:
            item.add_marker(pytest.mark.xdist_group(shared))


def file_of(item: pytest.Item) -> str:
    """The file that a test stands in."""
    return item.nodeid.partition("::")[0]


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Collect no garbage while the tests are collected: to walk all the objects that stay takes
    half of the time.
    """
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Collect it again, but for what stays, let processes of the tests join clusters, and refuse a
    pytest with which no groups would be made.
    """
    del os.environ[LOOPBACK]
    gc.freeze()
    gc.enable()
    if session.config.getoption("loadgroup", False):  # in a process of pytest-xdist
        for item in session.items:
            if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
                raise pytest.UsageError("this pytest-xdist groups no tests of this pytest")


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Let SIGINT and SIGHUP reach the tests' process: started in the background or by nohup it
    would ignore them.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Leave it to the system when it writes files to the disk: no test ends in a power cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the stores that the tests use, and their key, elsewhere than in the user's home
    folder.
    """
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))


@pytest.fixture(scope="session", autouse=True)
def fork_uploads() -> None:
    """Fork the processes that upload to MLflow; those of commands that tests start are as ever."""
    upload_process.subprocess = forking


@pytest.fixture
def own_upload_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the processes that upload as every user's are."""
    monkeypatch.setattr(upload_process, "subprocess", subprocess)


@pytest.fixture
def prompt_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the load of the machine neither end nor slow down the uploads of commands that the
    test starts.
    """
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "prompt"), prepend=os.pathsep)


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
    upload_nothing(monkeypatch)


@pytest.fixture
def without_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write no report.html of a study, whose figures take seconds: tests/results has the tests
    of reports.
    """
    monkeypatch.setattr("raysel.results.page.report.write_final_report", lambda _: None)


@pytest.fixture(scope="session")
def finished_study(tmp_path_factory: pytest.TempPathFactory) -> CommandRun:
    """One study run by the command line in this process, in a folder of its own with its MLflow
    store.
    """
    from raysel.tune import main  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("finished")
    write_digits(folder / "few.npz")
    write_yaml(folder / "few.yaml", pictures=["png"])
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(
            ["few.yaml", "--output", "study", "--set", "tracking.uri=sqlite:///runs/mlflow.db"]
        )
    return CommandRun(status, out.getvalue(), err.getvalue(), folder / "study")
