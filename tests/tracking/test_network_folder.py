"""A study's directory on a file server without locks: one driver, killed, stopped and resumed from another machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from network_files import network_folder, signs_of_life
from small_studies import raw_config, run_offline, write_digits

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_report")]

#: Solver whose fits take as long as the environment says, and a command that runs or resumes a study with it, without
#: MLflow.
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
from raysel.config import config_from_dict
from raysel.core.errors import RayselError
from raysel.run import course as runner
from raysel.execution.serial import SerialExecutor
from raysel.study.definition import Study
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory
from raysel.tracking import locks
from small_studies import NoUpload

locks.LEASE_SECONDS = 15.0
folder, study = Path(sys.argv[1]), Study.prepare(config_from_dict(json.loads(Path(sys.argv[2]).read_text())))
try:
    executor = SerialExecutor(study)
    if len(sys.argv) > 3:
        runner.resume(study, StudyDirectory(folder), executor, start_upload=NoUpload)
    else:
        runner.run(study, folder, executor, start_upload=NoUpload)
except RayselError as error:
    sys.exit(f"error: {error}")
"""
#: Another machine's name and start, as far as a process can tell: names and mounts of its own.
ELSEWHERE = 'mount --bind {boot} /proc/sys/kernel/random/boot_id && hostname node7 && exec "$0" "$@"'  # fmt: skip


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
def raw(tmp_path, monkeypatch) -> dict:
    (tmp_path / "slow_solver.py").write_text(SOLVER)
    monkeypatch.syspath_prepend(tmp_path)
    write_digits(tmp_path / "few.npz")
    solver = {"name": "slow_solver.Slow", "space": {"C": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]}}
    found = raw_config(tmp_path / "few.npz", solver=solver)
    (tmp_path / "study.json").write_text(json.dumps(found))
    yield found
    sys.modules.pop("slow_solver", None)


def drive(folder: Path, here: Path, *resume: str, elsewhere: bool = False) -> subprocess.Popen[str]:
    """Start a driver on this machine, or on one that cannot tell whether processes of this one live."""
    command = [sys.executable, "-c", DRIVER, str(folder), str(here / "study.json"), *resume]
    if elsewhere:
        (here / "boot_id").write_text("11111111-2222-3333-4444-555555555555\n")
        script = ELSEWHERE.format(boot=here / "boot_id")
        command = ["unshare", "--uts", "--mount", "sh", "-c", script, *command]
    path = os.pathsep.join(
        [str(here), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    variables = {**os.environ, "PYTHONPATH": path, "FIT_SECONDS": "0" if resume else "0.2"}
    STARTED.append(subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True))
    return STARTED[-1]


def ends(driver: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = driver.communicate(timeout=300)
    return driver.returncode, said


def wait_for_trials(folder: Path, number: int, driver: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 300
    while len(numbers(folder)) < number and driver.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    assert driver.poll() is None, driver.stderr.read()
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
    """Number of trials in progress.json, which is replaced meanwhile and may be missing for a moment."""
    for _ in range(100):
        with suppress(OSError):
            return json.loads((folder / "progress.json").read_text())["total"]
        time.sleep(0.05)
    return None


def lease(folder: Path) -> Path:
    """The lock file on the file server."""
    return folder.parent.parent / "behind" / folder.name / ".lease"


def test_one_driver_at_a_time_and_a_killed_one_is_resumed_at_once_on_its_machine(
    server, raw, tmp_path
):
    study = server / "study"
    first = drive(study, tmp_path)
    wait_for_trials(study, 2, first)
    assert total_in_progress(study) == 6
    first.send_signal(signal.SIGSTOP)  # so that it does not end while the next one starts
    with signs_of_life(lease(study)):
        code, said = ends(drive(study, tmp_path))
    assert code == 1
    assert f"a study is running in {study}: process {first.pid} on " in said
    first.kill()
    first.wait()
    assert ends(drive(study, tmp_path, "resume")) == (0, "")
    run_offline(raw, tmp_path / "local")
    assert numbers(study) == numbers(tmp_path / "local")


def test_another_machine_takes_over_from_a_silent_driver_which_writes_nothing_more(
    server, raw, tmp_path
):
    study = server / "study"
    first = drive(study, tmp_path)
    wait_for_trials(study, 2, first)
    first.send_signal(signal.SIGSTOP)
    with signs_of_life(lease(study)):
        code, said = ends(drive(study, tmp_path, "resume", elsewhere=True))
    assert code == 1
    assert f"process {first.pid} on " in said
    assert "if it is dead, try again in" in said
    os.utime(lease(study), (time.time() - 500,) * 2)
    assert ends(drive(study, tmp_path, "resume", elsewhere=True)) == (0, "")
    left = contents(study)
    first.send_signal(signal.SIGCONT)
    code, said = ends(first)
    assert code == 1
    assert f"another process has taken over {study}, because this one was stopped" in said
    assert contents(study) == left
    run_offline(raw, tmp_path / "local")
    assert numbers(study) == numbers(tmp_path / "local")
