"""Every executor meets the suite of executors: in one process, in several and on Ray a study
gives equal numbers.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from executor_checks import executor_checks
from failing_checks import failures

from raysel.execution.processes import ProcessExecutor
from raysel.execution.ray.executor import RayExecutor
from raysel.execution.serial import SerialExecutor
from raysel.testing import parametrize


# A study that is resumed after its first record is computed nearly whole once more, so it is the
# same numbers twice.
@parametrize(
    executor_checks("serial", SerialExecutor),
    slow=lambda check: (
        check.kind in ("numbers", "resume") and not check.name.endswith(("[grid]", "[tpe]"))
    ),
)
def test_serial(check):
    check()


def on_ray(study):
    """An executor that joins the Ray that is up."""
    return RayExecutor(study, None)


def not_elsewhere(checks):
    """The checks that the serial executor does not answer for all.

    A study in other processes takes seconds to start. What a resumed study leaves out is the
    plan's, whatever executes it. The numbers of a grid are compared by the checks of failures, of a
    time budget and of an interrupt too.
    """
    for check in checks:
        if check.kind in ("end", "interrupt") or check.name.endswith(
            ("same_numbers[asha]", "same_numbers[path]")
        ):
            yield check


@pytest.mark.slow
@parametrize(not_elsewhere(executor_checks("processes", lambda study: ProcessExecutor(study, 2))))
def test_processes(check):
    check()


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
@parametrize(not_elsewhere(executor_checks("ray", on_ray)))
def test_ray(check):
    check()


# --- executors that are broken as a check means


class OtherNumbers(SerialExecutor):
    def run_refits(self, winners):
        for record, model in super().run_refits(winners):
            yield replace(record, test_scores=[score / 2 for score in record.test_scores]), model


class ForgetsWhatIsKept(SerialExecutor):
    def run_trials(self, plan, log):
        for record in plan.records:
            log.record(record)
        return super().run_trials(plan, log)


class GoesOn(SerialExecutor):
    def run_trials(self, plan, log):
        with contextlib.suppress(KeyboardInterrupt):
            super().run_trials(plan, log)
        return False


class EndsAtAnError(SerialExecutor):
    def run_tasks(self, function, arguments, limit=None):
        for end in super().run_tasks(function, arguments, limit):
            if end.error:
                return
            yield end


@pytest.mark.parametrize(
    ("executor", "wanted"),
    [
        (OtherNumbers, "same_numbers[grid]"),
        (ForgetsWhatIsKept, "resumed_anywhere[grid]"),
        (GoesOn, "an_interrupt_leaves_whole_trials"),
        (GoesOn, "a_time_budget_ends_the_search"),
        (EndsAtAnError, "tasks_are_independent"),
    ],
)
def test_a_broken_executor_is_found(executor, wanted):
    assert failures(c for c in executor_checks("broken", executor) if wanted in c.name) == {wanted}
