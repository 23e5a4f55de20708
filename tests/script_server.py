"""Runs scripts in processes forked from this one, which has imported what most of them import.

A line of JSON on stdin asks for scripts; their exit status is the line that answers.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import matplotlib.figure  # noqa: F401
import pandas  # noqa: F401, ICN001
import pytest
import scipy.stats  # noqa: F401
import sklearn.model_selection  # noqa: F401
from forked_commands import fork_commands
from forked_uploads import forking
from small_studies import raw_config, run_offline, upload_nothing, write_digits

import raysel.cli.tune
import raysel.results.export
import raysel.run.api  # noqa: F401
from raysel.results.page import report
from raysel.run import members
from raysel.tracking import upload_process

SECONDS = 600


def run(commands: Sequence[Sequence[str]], folder: str, log: str, *, on_ray: bool) -> None:
    """Run scripts as ``python script arguments`` does in a folder, with their output in a file.

    Reports and MLflow take seconds and have tests: only the scripts on Ray, which wait for all of
    their runs, write to it, by processes that are forked. So are the commands of the others, which
    write none either.
    """
    changed = pytest.MonkeyPatch()
    changed.setattr(report, "write_final_report", lambda _: None)
    changed.setattr(members, "write_comparison_report", lambda _: None)
    for place in (folder, *(str(Path(script).parent) for script, *_ in commands)):
        changed.setenv("PYTHONPATH", place, prepend=os.pathsep)
    if on_ray:
        os.sched_setaffinity(
            0, {max(os.sched_getaffinity(0))}
        )  # each worker imports for seconds: one at a time
        changed.setattr(upload_process, "subprocess", forking)
    else:
        upload_nothing(changed)
        fork_commands(changed)
    signal.alarm(SECONDS)
    with Path(os.devnull).open() as nothing, Path(log).open("w") as file:
        for source, target in ((nothing, 0), (file, 1), (file, 2)):
            os.dup2(source.fileno(), target)
    os.chdir(folder)
    session = nullcontext()
    if on_ray:
        from raysel.execution.ray.session import ray_session  # noqa: PLC0415 - takes seconds

        session = ray_session(None)
    with session:
        for script, *arguments in commands:
            sys.argv = [script, *arguments]
            sys.path[0] = str(Path(script).parent)
            runpy.run_path(script, run_name="__main__")


def compute_a_study() -> None:
    """Compute one study, by which this process imports and reads what any study needs."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as changed:
        changed.setattr(report, "write_final_report", lambda _: None)
        data = Path(folder, "few.npz")
        write_digits(data)
        run_offline(raw_config(data), Path(folder, "study"))


if __name__ == "__main__":
    compute_a_study()
    for line in sys.stdin:
        process = os.fork()
        if not process:
            run(**json.loads(line))
            break
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
