"""Batches: how many parts travel together, and what becomes of those that come back or are lost."""

from __future__ import annotations

import pytest
from small_studies import make_study, write_digits

from raysel.evaluation.records import FoldTrace, InnerTrace
from raysel.execution.batches import Batches
from raysel.execution.trial_plan import trial_plan

SLOTS = 2


@pytest.fixture
def plan(tmp_path):
    write_digits(tmp_path / "few.npz")
    alphas = [0.01 + 0.001 * i for i in range(60)]
    return trial_plan(make_study(tmp_path / "few.npz", solver__space={"alpha": alphas}))


def record(plan, part, status="finished", seconds=0.001):
    """The record of a part that has ended: an objective that tells which part it was."""
    found = plan.empty_record(part)
    error = "Traceback" if status == "failed" else ""
    objective = [float(part["configuration"]), float(len(part["fold"]))]
    found.folds[part["fold"]] = FoldTrace(status == "null", [InnerTrace(objective)], error)
    found.status, found.ended = status, seconds
    return found


def run(plan, batches, n_in_time, seconds=0.001):
    """Run all batches, of each so many parts at most that take so long; return the batches'
    sizes and the trials.
    """
    sizes, trials = [], []
    while batch := batches.next(SLOTS):
        done = batch.parts[:n_in_time]
        batches.ended(batch, len(done))
        sizes.append(len(batch.parts))
        trials += [
            whole
            for part in done
            if (whole := batches.join(part, record(plan, part, seconds=seconds)))
        ]
    assert batches.exhausted
    return sizes, trials


@pytest.mark.parametrize(
    ("n_in_time", "seconds", "largest"),
    [(1, 30.0, 1), (10, 0.1, 10), (1000, 0.001, 45), (3, 0.1, 10)],  # the last: some come back
)
def test_as_many_parts_travel_together_as_take_about_a_second(plan, n_in_time, seconds, largest):
    sizes, trials = run(plan, Batches(plan), n_in_time, seconds)
    assert sizes[0] == sizes[-1] == 1  # nothing is known yet; all slots end together
    assert max(sizes) == largest
    folds = [fold.name for fold in plan.study.plan.folds]
    assert sorted(trial.id for trial in trials) == sorted(c.id for c in plan.study.configurations)
    for trial in trials:
        assert list(trial.folds) == folds
        (number,) = {trace.inner[0].objective[0] for trace in trial.folds.values()}
        assert trial.id == plan.study.configurations[int(number)].id
        assert [trace.inner[0].objective[1] for trace in trial.folds.values()] == list(
            map(len, folds)
        )


def test_parts_of_a_lost_piece_run_alone_and_the_lost_trial_no_more(plan):
    batches = Batches(plan)
    (first,) = batches.next(SLOTS).parts
    batches.join(first, record(plan, first))
    lost = batches.next(SLOTS)
    assert len(lost.parts) > 8
    batches.again(lost.parts)
    guilty, other = lost.parts[:2]
    assert guilty["name"] == other["name"] == first["name"]
    assert batches.next(SLOTS).parts == [guilty]
    assert batches.lose(guilty)
    assert not batches.lose(other)  # it was running elsewhere, and its worker ended too
    assert batches.join(other, record(plan, other)) is None
    rest = [part for part in lost.parts if part["name"] != guilty["name"]]
    assert [batches.next(SLOTS).parts for _ in rest] == [[part] for part in rest]
    _, trials = run(plan, batches, 1000)
    assert guilty["name"] not in {trial.id for trial in trials}


def test_the_status_of_a_trial_is_that_of_all_its_parts(plan):
    config = plan.propose()
    parts = [{**config, **part} for part in plan.parts]

    def joined(*statuses):
        return plan.join(
            [record(plan, part, status) for part, status in zip(parts, statuses, strict=True)]
        ).status

    assert joined("null", "null", "null") == "null"
    assert joined("null", "finished", "null") == "finished"
    assert joined("null", "failed", "finished") == "failed"


@pytest.mark.parametrize(("seconds", "size"), [(30.0, 1), (0.1, 10), (0.3, 3)])
def test_the_number_of_batches_to_come_is_that_of_places_that_they_could_fill(plan, seconds, size):
    batches, n_parts = Batches(plan), 60 * len(plan.parts)
    assert batches.n_left == 60
    (first,) = batches.next(SLOTS).parts
    batches.join(first, record(plan, first, seconds=seconds))
    assert batches.n_left == -(-(n_parts - 1) // size)
    run(plan, batches, 1000, seconds)
    assert batches.n_left == 0
