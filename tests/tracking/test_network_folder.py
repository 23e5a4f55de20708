"""A study's directory on a file server without locks: one driver, killed, stopped and resumed
from another machine.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from network_files import network_folder, signs_of_life
from small_studies import raw_config, resume_offline, run_offline, write_digits

from raysel.core.errors import RayselError
from raysel.tracking import locks

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_report")]

#: Silence in seconds after which a driver counts as dead: a little more than between two signs of
#: life.
LEASE_SECONDS = 6.0
#: Solver whose fits take as long as the environment says, and a process that runs or resumes a
#: study with it, without MLflow, whenever it is told to.
SOLVER = """
import os, time
from sklearn.svm import LinearSVC
class Slow(LinearSVC):
    def fit(self, X, y):
        time.sleep(float(os.environ.get("FIT_SECONDS", "0")))
        return super().fit(X, y)
"""
DRIVER = """
import json, sys
from pathlib import Path
import bare_process
from raysel.core.errors import RayselError
from raysel.tracking import locks
from small_studies import resume_offline, run_offline

locks.LEASE_SECONDS = float(sys.argv[3])
folder, raw = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
for word in sys.stdin:
    try:
        {"run": run_offline, "resume": resume_offline}[word.strip()](raw, folder)
        print("done", flush=True)
    except RayselError as error:
        print(error, flush=True)
"""
#: Another machine's name and start, as far as a process can tell: names and mounts of its own.
ELSEWHERE = (  # fmt: skip
    'mount --bind {boot} /proc/sys/kernel/random/boot_id && hostname node7 && exec "$0" "$@"'
)


@pytest.fixture
def server(tmp_path) -> Iterator[Path]:
    with network_folder(tmp_path) as place:
        yield place


#: The drivers that were started, to end those that a failing test leaves.
STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """End what a failing test leaves, also if it is stopped."""
    yield
    while STARTED:
        driver = STARTED.pop()
        driver.kill()
        driver.wait()


@pytest.fixture
def raw(tmp_path, monkeypatch) -> Iterator[dict]:
    monkeypatch.setattr(locks, "LEASE_SECONDS", LEASE_SECONDS)
    (tmp_path / "slow_solver.py").write_text(SOLVER)
    monkeypatch.syspath_prepend(tmp_path)
    write_digits(tmp_path / "few.npz")
    solver = {"name": "slow_solver.Slow", "space": {"C": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]}}
    found = raw_config(tmp_path / "few.npz", solver=solver)
    (tmp_path / "study.json").write_text(json.dumps(found))
    yield found
    sys.modules.pop("slow_solver", None)


def drive(
    folder: Path, here: Path, fit_seconds: float = 0.0, elsewhere: bool = False
) -> subprocess.Popen[str]:
    """Start a driver on this machine, or on one that cannot tell whether processes of this one
    live.
    """
    words = [str(folder), str(here / "study.json"), str(LEASE_SECONDS)]
    command = [sys.executable, "-c", DRIVER, *words]
    if elsewhere:
        (here / "boot_id").write_text("11111111-2222-3333-4444-555555555555\n")
        script = ELSEWHERE.format(boot=here / "boot_id")
        command = ["unshare", "--uts", "--mount", "sh", "-c", script, *command]
    path = os.pathsep.join(
        [str(here), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    variables = {**os.environ, "PYTHONPATH": path, "FIT_SECONDS": str(fit_seconds)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    STARTED.append(subprocess.Popen(command, env=variables, text=True, **pipes))
    return STARTED[-1]


def tell(driver: subprocess.Popen[str], word: str) -> None:
    driver.stdin.write(f"{word}\n")
    driver.stdin.flush()


def wait_for_trials(folder: Path, number: int, driver: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 300
    while len(numbers(folder)) < number and driver.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    assert driver.poll() is None
    assert len(numbers(folder)) >= number


def numbers(folder: Path) -> list[str]:
    """All records of trials and refits, without times."""
    journal = folder / "journal.jsonl"
    text = journal.read_text() if journal.exists() else ""
    lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    times = ("started", "ended", "cpu_seconds")
    return [
        json.dumps({key: value for key, value in line.items() if key not in times}, sort_keys=True)
        for line in lines
        if line["kind"] in ("trial", "refit")
    ]


def contents(folder: Path) -> dict[str, bytes]:
    """All files but the journal without a name that the stopped driver still has open."""
    files = (
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".fuse_hidden")
    )
    return {path.name: path.read_bytes() for path in files}


def total_in_progress(folder: Path) -> int | None:
    """Number of trials in progress.json, which is replaced meanwhile and may be missing for a
    moment.
    """
    for _ in range(100):
        with suppress(OSError):
            return json.loads((folder / "progress.json").read_text())["total"]
        time.sleep(0.05)
    return None


def lease(folder: Path) -> Path:
    """The lock file on the file server."""
    return folder.parent.parent / "behind" / folder.name / ".lease"


@pytest.fixture
def stopped(server, raw, tmp_path) -> subprocess.Popen[str]:  # noqa: ARG001 - its study
    """A driver that is stopped after two trials, so that it does not end while another one
    starts.
    """
    driver = drive(server / "study", tmp_path, fit_seconds=0.2)
    tell(driver, "run")
    wait_for_trials(server / "study", 2, driver)
    assert total_in_progress(server / "study") == 6
    driver.send_signal(signal.SIGSTOP)
    return driver


def test_one_driver_at_a_time_and_a_killed_one_is_resumed_at_once_on_its_machine(
    server, raw, tmp_path, stopped
):
    study = server / "study"
    running = f"a study is running in {re.escape(str(study))}: process {stopped.pid} on "
    with signs_of_life(lease(study)), pytest.raises(RayselError, match=running):
        run_offline(raw, study)
    stopped.kill()
    stopped.wait()
    resume_offline(raw, study)
    run_offline(raw, tmp_path / "local")
    assert numbers(study) == numbers(tmp_path / "local")


def test_another_machine_takes_over_from_a_silent_driver_which_writes_nothing_more(
    server, raw, tmp_path, stopped
):
    study = server / "study"
    other = drive(study, tmp_path, elsewhere=True)
    with signs_of_life(lease(study)):
        tell(other, "resume")
        said = other.stdout.readline()
    assert f"process {stopped.pid} on " in said
    assert "if it is dead, try again in" in said
    os.utime(lease(study), (time.time() - 500,) * 2)
    tell(other, "resume")
    assert other.stdout.readline() == "done\n"
    left = contents(study)
    stopped.send_signal(signal.SIGCONT)
    said = stopped.stdout.readline()
    assert f"another process has taken over {study}, because this one was stopped" in said
    assert contents(study) == left
    run_offline(raw, tmp_path / "local")
    assert numbers(study) == numbers(tmp_path / "local")
