"""The error of a trial that Tune gives up says why: the worker's death or the error that was raised."""

from __future__ import annotations

import os

import pytest
from ray import tune
from small_studies import make_study, quiet_log, write_digits

from raysel.execution.executor import Recorder
from raysel.execution.ray.nodes import Cluster
from raysel.execution.ray.tasks import MAX_RETRIES, LostTrials
from raysel.execution.ray.tune import RecorderCallback
from raysel.execution.trial_plan import trial_plan
from raysel.tracking.journal import read_journal

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ray_here")]


def broken(phase, kind):
    """A trainable that Ray pickles by value, because its workers cannot import the tests."""

    def fail(_):
        if kind == "dies":
            os._exit(1)
        raise LookupError("first line\nthe file of a node is missing")

    methods = {"step": lambda _: {"done": True}, "setup": lambda _self, _config: None}
    methods[phase] = fail if phase == "step" else lambda self, _: fail(self)
    return type("Broken", (tune.Trainable,), methods)


@pytest.mark.parametrize(
    ("phase", "kind", "expected"),
    [
        ("step", "raises", "LookupError: first line"),
        ("setup", "raises", "LookupError: first line"),
        ("step", "dies", "the worker process died 3 times (killed, or out of memory)"),
    ],
)
def test_the_error_of_a_lost_trial(phase, kind, expected, tmp_path):
    write_digits(tmp_path / "few.npz")
    study = make_study(tmp_path / "few.npz")
    plan = trial_plan(study)
    with quiet_log(tmp_path / "run", study) as log:
        lost, proposed = LostTrials(), plan.propose()
        for _ in range(MAX_RETRIES):
            lost.runs_again(proposed, "", ())
        callback = RecorderCallback(plan, Recorder(plan, log), Cluster({"CPU": 1.0}, None, log.message), lost)
        config = tune.RunConfig(storage_path=str(tmp_path / "tune"), verbose=0, callbacks=[callback])
        tune.Tuner(broken(phase, kind), param_space=proposed, run_config=config).fit()
    (record,) = read_journal(tmp_path / "run" / "journal.jsonl")
    assert (record["status"], record["error"]) == ("failed", expected)
