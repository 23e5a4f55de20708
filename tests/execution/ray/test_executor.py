"""A study that is interrupted or fails leaves no task running in a Ray that goes on."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import SimpleNamespace

import pytest
import ray
from small_studies import make_study, quiet_log, write_digits

from raysel.core.errors import StudyError
from raysel.execution.ray import executor as ray_executor
from raysel.execution.ray.executor import RayExecutor
from raysel.execution.trial_plan import trial_plan

pytestmark = pytest.mark.usefixtures("ray_here")


def endless(raises_first=False):
    """A task that Ray pickles by value, because its workers cannot import the tests."""

    @ray.remote
    def task(study, fold, *_):
        if raises_first and fold.name == study.plan.folds[0].name:
            raise ArithmeticError("no refit")
        while True:
            time.sleep(0.1)

    return task


@pytest.fixture
def study(tmp_path):
    write_digits(tmp_path / "few.npz")
    return make_study(tmp_path / "few.npz", search={})


def n_free() -> float:
    return ray.available_resources().get("CPU", 0.0)


def interrupt_when_busy(n: float) -> None:
    """Send SIGINT to this process once fewer CPUs are free."""

    def wait() -> None:
        while n_free() >= n:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()


def wait_until_free(n: float) -> None:
    for _ in range(600):
        if n_free() >= n:
            return
        time.sleep(0.1)
    pytest.fail(f"{n_free()} of {n} CPUs are free")


@pytest.fixture
def n_cpus():
    n = ray.cluster_resources()["CPU"]
    wait_until_free(n)
    return n


def winners(study):
    return [
        (fold, SimpleNamespace(name="c0", started=0.0, ended=60.0)) for fold in study.plan.folds
    ]


@pytest.mark.slow
def test_an_interrupt_ends_the_refits(study, n_cpus, monkeypatch):
    monkeypatch.setattr(ray_executor, "_refit", endless())
    interrupt_when_busy(n_cpus)
    with pytest.raises(KeyboardInterrupt), RayExecutor(study, None) as executor:
        list(executor.run_refits(winners(study)))
    wait_until_free(n_cpus)


@pytest.mark.slow
def test_a_failed_refit_ends_the_others(study, n_cpus, monkeypatch):
    monkeypatch.setattr(ray_executor, "_refit", endless(raises_first=True))
    with (
        pytest.raises(StudyError),
        RayExecutor(study, None) as executor,
    ):
        list(executor.run_refits(winners(study)))
    wait_until_free(n_cpus)


@pytest.mark.slow
def test_an_interrupt_ends_the_preparation_of_folds(study, n_cpus, monkeypatch, tmp_path):
    monkeypatch.setattr(ray_executor, "_prepare", endless())
    monkeypatch.setattr(ray_executor, "_SHORT", 0.0)  # else this process prepares them
    interrupt_when_busy(n_cpus)
    with (
        pytest.raises(KeyboardInterrupt),
        quiet_log(tmp_path / "run", study) as log,
        RayExecutor(study, None) as executor,
    ):
        executor.run_trials(trial_plan(study), log)
    wait_until_free(n_cpus)
