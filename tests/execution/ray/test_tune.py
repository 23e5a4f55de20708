"""Trials whose worker dies or whose trainable raises: they run again, and the error of a lost
one says why.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from ray import tune
from small_studies import make_study, quiet_log, run_on_ray, run_serially, write_digits

from raysel.execution.batches import Batch, Batches
from raysel.execution.executor import Recorder
from raysel.execution.ray.nodes import Cluster
from raysel.execution.ray.running import RunningBatches
from raysel.execution.ray.tasks import MAX_RETRIES
from raysel.execution.ray.tune import PlanScheduler
from raysel.execution.trial_plan import trial_plan
from raysel.tracking.journal import read_journal

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ray_here")]


@pytest.fixture
def digits(tmp_path):
    write_digits(tmp_path / "few.npz")
    return tmp_path / "few.npz"


def broken(phase, kind):
    """A trainable that Ray pickles by value, because its workers cannot import the tests."""

    def fail(_):
        if kind == "dies":
            os._exit(1)
        raise LookupError("first line\nthe file of a node is missing")

    methods = {"step": lambda _: {"done": True}, "setup": lambda _self, _config: None}
    methods[phase] = fail if phase == "step" else lambda self, _: fail(self)
    return type("Broken", (tune.Trainable,), methods)


def fit(trainable, config, scheduler, folder):
    """Run one trial with Tune."""
    tune.Tuner(
        trainable,
        param_space=config,
        tune_config=tune.TuneConfig(scheduler=scheduler),
        run_config=tune.RunConfig(storage_path=str(folder / "tune"), verbose=0),
    ).fit()


@pytest.mark.parametrize(
    ("phase", "kind", "expected"),
    [
        ("step", "raises", "LookupError: first line"),
        ("setup", "raises", "LookupError: first line"),
        ("step", "dies", "the worker process died 3 times (killed, or out of memory)"),
    ],
)
def test_the_error_of_a_lost_trial(phase, kind, expected, digits, tmp_path):
    study = make_study(digits)
    plan = trial_plan(study)
    with quiet_log(tmp_path / "run", study) as log:
        batches = Batches(plan)
        proposed = {"name": "lost", "batch": batches.next(slots=1)}
        running = RunningBatches(
            plan, Recorder(plan, log), Cluster({"CPU": 1.0}, None, log.message), batches
        )
        for _ in range(MAX_RETRIES):
            running.losses.runs_again("lost", "", None)
        fit(broken(phase, kind), proposed, PlanScheduler(plan, running), tmp_path)
    (record,) = read_journal(tmp_path / "run" / "journal.jsonl")
    assert (record["status"], record["error"]) == ("failed", expected)


def test_parts_of_a_lost_piece_are_not_recorded_and_run_alone(digits, tmp_path):
    study = make_study(digits)
    plan = trial_plan(study)
    parts = [{**config, **part} for config in iter(plan.propose, None) for part in plan.parts]
    batches = Batches(plan)
    with quiet_log(tmp_path / "run", study) as log:
        running = RunningBatches(
            plan, Recorder(plan, log), Cluster({"CPU": 1.0}, None, log.message), batches
        )
        lost = {"name": "lost", "batch": Batch(parts)}
        fit(broken("step", "raises"), lost, PlanScheduler(plan, running), tmp_path)
    assert not list(read_journal(tmp_path / "run" / "journal.jsonl"))
    assert [batches.next(slots=1).parts for _ in parts] == [[part] for part in parts]


def workers() -> set[int]:
    """The processes of this Ray that run trials."""
    pids = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            title = (entry / "cmdline").read_bytes()
            if title.startswith(b"ray::ResourceTrainable") and _is_below(int(entry.name)):
                pids.add(int(entry.name))
        except OSError:
            continue
    return pids


def _is_below(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


class Killer(threading.Thread):
    """Kills workers of trials as they appear, so many of them."""

    def __init__(self, many: int) -> None:
        super().__init__(daemon=True)
        self.many, self.killed, self.ended = many, set(), threading.Event()

    def __enter__(self):
        self.spared = workers()
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()

    def run(self):
        while len(self.killed) < self.many and not self.ended.is_set():
            for pid in workers() - self.spared - self.killed:
                if len(self.killed) < self.many:
                    self.killed.add(pid)
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


def test_a_trial_whose_worker_is_killed_starts_again(tmp_path, digits, capfd):
    """One whose worker always dies is that of the test of memory."""
    study = make_study(
        digits, solver__params={"max_iter": 150, "tol": 0.0}, solver__space={"alpha": [0.01, 0.02]}
    )
    calm, _, _ = run_serially(study, tmp_path / "calm")
    with Killer(1) as killer:
        records, _, _ = run_on_ray(study, tmp_path / "run")
    assert len(killer.killed) == 1
    assert records == calm
    assert "Traceback" not in "".join(capfd.readouterr())  # over a person's progress line
