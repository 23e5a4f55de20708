"""Work on Ray's workers: what runs again after the end of a worker, and that nothing is left running at the end."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import SimpleNamespace

import pytest
import ray
from hypothesis import given
from hypothesis import strategies as st
from small_studies import make_study, quiet_log, write_digits

from raysel.core.errors import StudyError
from raysel.execution.ray import workers
from raysel.execution.ray.executor import RayExecutor
from raysel.execution.ray.workers import MAX_RETRIES, Piece, _lost_nodes, actor_options
from raysel.execution.trial_plan import trial_plan

NODES = ["n1", "n2", "n3", ""]
on_ray = pytest.mark.usefixtures("ray_here")


@given(st.lists(st.sampled_from(NODES), max_size=12), st.sets(st.sampled_from(NODES[:3])))
def test_a_piece_runs_once_and_for_each_lost_node_and_retry_once_more(nodes, lost):
    piece = Piece("c1", "start", (), 0)
    runs = next((n for n, node in enumerate(nodes, start=1) if not piece.runs_again(node, lost)), len(nodes) + 1)
    assert runs == min(1 + MAX_RETRIES + len(set(nodes[:runs]) & lost), len(nodes) + 1)


def test_the_end_of_a_worker_is_excused_when_its_node_is_found_lost_later():
    piece = Piece("c1", "start", (), 0)
    assert all(piece.runs_again(node, set()) for node in ("n1", "n2"))
    assert piece.runs_again("n3", {"n1", "n2"})
    assert piece.n_ends({"n1", "n2"}) == 1


def test_the_node_of_a_dead_actor():
    # As Ray 2.60 words the death of a node, and of a worker on a living one.
    node = "The actor died because its node has died. Node Id: 64ab\n\tthe actor's node was terminated unexpectedly"
    worker = "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Node Id: 64ab"
    assert [_lost_nodes(Exception(text)) for text in (node, worker)] == [["64ab"], []]


def test_needs_become_options_of_an_actor():
    assert actor_options({"CPU": 2.0, "memory": 8.0}) == {"num_cpus": 2.0, "memory": 8.0}
    assert actor_options({"GPU": 0.5, "licence": 1.0}) == {"num_gpus": 0.5, "resources": {"licence": 1.0}}


@pytest.fixture
def study(tmp_path):
    write_digits(tmp_path / "few.npz")
    return make_study(tmp_path / "few.npz", search={})


def n_free() -> float:
    return ray.available_resources().get("CPU", 0.0)


def wait_until(condition) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail(f"{n_free()} CPUs are free")


@pytest.fixture
def n_cpus():
    n = ray.cluster_resources()["CPU"]
    wait_until(lambda: n_free() >= n)
    return n


@pytest.fixture
def interrupted(n_cpus):
    """Send SIGINT to this process once a CPU is taken."""

    def wait() -> None:
        wait_until(lambda: n_free() < n_cpus)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()


@on_ray
@pytest.mark.usefixtures("interrupted")
def test_an_interrupt_ends_all_work(study, n_cpus):
    def endless(*_):
        while True:
            time.sleep(0.1)

    with pytest.raises(KeyboardInterrupt), RayExecutor(study, None) as executor:
        list(executor.run_tasks(endless, range(3)))
    wait_until(lambda: n_free() >= n_cpus)


@on_ray
@pytest.mark.slow
@pytest.mark.usefixtures("interrupted")
def test_an_interrupt_ends_the_preparation_of_folds(study, n_cpus, tmp_path):
    log, executor = quiet_log(tmp_path / "run", study), RayExecutor(study, None)
    with pytest.raises(KeyboardInterrupt), log as opened, executor:
        executor.run_trials(trial_plan(study), opened)
    wait_until(lambda: n_free() >= n_cpus)


@on_ray
@pytest.mark.slow
def test_a_failed_refit_ends_the_others(study, n_cpus):
    winners = [(fold, SimpleNamespace(name="c0")) for fold in study.plan.folds]  # without parameters
    with pytest.raises(StudyError, match=r"c0, could not be refitted: .*params"), RayExecutor(study, None) as executor:
        list(executor.run_refits(winners))
    wait_until(lambda: n_free() >= n_cpus)


@on_ray
@pytest.mark.slow
def test_work_whose_worker_finds_no_resources_goes_to_an_idle_one(study, n_cpus, monkeypatch):
    @ray.remote(num_cpus=n_cpus - 1)
    class Other:
        """Another job on the same cluster."""

    other = Other.remote()
    wait_until(lambda: n_free() <= 1)
    monkeypatch.setattr(workers, "_PATIENCE", 1.0)
    with RayExecutor(study, None) as executor:
        ends = list(executor.run_tasks(lambda _, number: number**2, range(6)))
    assert sorted(end.value for end in ends) == [0, 1, 4, 9, 16, 25]
    ray.kill(other)


@on_ray
@pytest.mark.slow
def test_a_worker_that_dies_or_hangs_is_tried_again_and_then_is_an_error(study, tmp_path):
    def work(_, number):
        with (tmp_path / f"{number}").open("a") as file:
            file.write("run ")
        if number == 1:
            os._exit(1)
        while number == 2:
            time.sleep(0.1)
        return number

    with RayExecutor(study, None) as executor:
        ends = {end.argument: end for end in executor.run_tasks(work, range(4), limit=3.0)}
    why = (
        "WorkerDiedError (one that takes over 3 s is ended): the worker process died 3 times (killed, or out of memory)"
    )
    assert [ends[n].error for n in range(4)] == ["", why, why, ""]
    assert [ends[n].value for n in (0, 3)] == [0, 3]
    assert [(tmp_path / f"{n}").read_text().split() for n in (1, 2)] == [["run"] * 3] * 2
