"""The conformance suite of executors, which `SerialExecutor` is the reference of."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from raysel.evaluation.records import PathRecord, TrialRecord
from raysel.execution.executor import Executor
from raysel.execution.serial import SerialExecutor
from raysel.execution.trial_plan import trial_plan
from raysel.study.definition import Study
from raysel.testing.checks import (
    Check,
    ExecutorResult,
    prepare_study,
    require,
    require_same_study,
    run_by,
    study_log,
)
from raysel.tracking.journal import read_journal
from raysel.tracking.log import Progress
from raysel.tracking.records import record_from_line

#: Makes the executor of a study; not entered.
MakeExecutor: TypeAlias = Callable[[Study], Executor]

#: Trials of a study that asks nothing of several at once: each worker process imports for seconds.
ONE_AT_A_TIME = {"max_concurrent": 1}
_SMR = {
    "name": "smr",
    "params": {"max_iter": 4},
    "space": {"alpha": [0.01, 0.1, 2.0], "rank": [1, 2]},
}

#: The kinds of study that an executor must compute: each search, each evaluation, trials that fail.
STUDIES: dict[str, dict[str, Any]] = {
    "grid": {"solver": {**_SMR, "params": {"max_iter": 4, "init": "random"}}},
    "linear svm": {"solver": _SMR, "evaluation": {"estimator": "linear_svm", "n_features": [4, 8]}},
    "one-shot method": {
        "solver": {
            "name": "linear_svm",
            "params": {"penalty": "l1"},
            "space": {"C": [1e-4, 0.1, 1.0]},
        },
        "evaluation": {"estimator": "native"},
    },
    "failing": {
        # Such an alpha times the penalty of zeros under such a zeta overflows to infinity.
        "solver": {
            "name": "smr",
            "params": {"max_iter": 3, "alpha_scale": "absolute", "p": 0.5, "alpha": 1e250},
            "space": {"zeta": [1e-10, 1e300]},
        }
    },
    "path": {
        "solver": {
            "name": "smml",
            "params": {"tol": 1e-2},
            "space": {"gamma1": [0.1, 0.4, 2.0], "gamma2": [0.0, 0.2]},
        },
        "evaluation": {"estimator": "native"},
        "search": {"method": "path"},
    },
    "asha": {
        "solver": {
            "name": "smr",
            "params": {"max_iter": 12, "tol": 0.0},
            "space": {"alpha": [0.01, 0.05, 0.1, 0.3, 0.6, 2.0]},
        },
        "search": {
            "early_stopping": "asha",
            "synchronous": True,
            "batch_size": 3,
            "reduction_factor": 2,
        },
    },
    "tpe": {
        "solver": {
            "name": "smr",
            "params": {"max_iter": 3},
            "space": {"alpha": {"loguniform": [0.01, 0.5]}},
        },
        "search": {"method": "tpe", "num_samples": 8, "synchronous": True, "batch_size": 4},
    },
}


def executor_checks(
    name: str, make: MakeExecutor, studies: Mapping[str, Mapping[str, Any]] = STUDIES
) -> Iterator[Check]:
    """Generate the checks of an executor, of the kinds "numbers", "resume", "end" and "interrupt".

    `make` takes a study and returns a new executor of it; `studies` are configurations by name,
    without the section ``dataset``.
    """
    for study, sections in studies.items():
        yield Check(
            f"{name}: same_numbers[{study}]", partial(_same_numbers, make, sections), "numbers"
        )
        yield Check(
            f"{name}: resumed_anywhere[{study}]",
            partial(_resumed_anywhere, make, sections),
            "resume",
        )
    for check in (_failures_are_recorded, _a_time_budget_ends_the_search, _tasks_are_independent):
        yield Check(f"{name}: {check.__name__.strip('_')}", partial(check, make), "end")
    yield Check(
        f"{name}: an_interrupt_leaves_whole_trials",
        partial(_an_interrupt_leaves_whole_trials, make),
        "interrupt",
    )


def _study(folder: Path, sections: Mapping[str, Any], **search: Any) -> Study:
    """A study of 48 matrices of 6 x 6 cells in three classes."""
    rng = np.random.default_rng(4)
    y = np.arange(48) % 3
    X = rng.standard_normal((3, 6, 6))[y] + rng.standard_normal((48, 6, 6))
    np.savez(folder / "suite.npz", X=X, y=y)
    config = {
        "name": "suite",
        "seed": 3,
        "cv": {"outer": 2, "inner": 2},
        "evaluation": {"n_features": [4, 8]},
    }
    limits = {"executor": "serial", "max_concurrent": 2, **sections.get("search", {}), **search}
    return prepare_study(folder / "suite.npz", {**config, **sections, "search": limits})


def _reference(sections: Mapping[str, Any]) -> tuple[ExecutorResult, str]:
    """Return the study that the serial executor has run, and the text of its progress at the
    end.
    """
    return _run_serially(json.dumps(sections, sort_keys=True))


@cache
def _run_serially(sections: str) -> tuple[ExecutorResult, str]:
    with tempfile.TemporaryDirectory() as folder:
        study = _study(Path(folder), json.loads(sections))
        finished = run_by(SerialExecutor(study), study, Path(folder, "serial"))
        return finished, Path(folder, "serial", "progress.json").read_text(encoding="utf-8")


def _same_numbers(make: MakeExecutor, sections: Mapping[str, Any]) -> None:
    """Trials, refits and models are those of the serial executor, to the last bit."""
    with tempfile.TemporaryDirectory() as folder:
        study = _study(Path(folder), sections)
        expected, progress = _reference(sections)
        require_same_study(run_by(make(study), study, Path(folder, "other")), expected)
        found = Path(folder, "other", "progress.json").read_text(encoding="utf-8")
        require(found == progress, f"the progress ends as {found}, not {progress}.")


def _resumed_anywhere(make: MakeExecutor, sections: Mapping[str, Any]) -> None:
    """A study that is resumed from any part of its journal has the same result, and computes
    nothing twice.
    """
    with tempfile.TemporaryDirectory() as folder:
        study = _study(Path(folder), sections)
        expected, _ = _reference(sections)
        lines = expected.journal
        for cut in sorted({1, len(lines) // 2, len(lines) - 1}):
            kept = [record_from_line(line) for line in lines[:cut]]
            trials = [record for record in kept if isinstance(record, TrialRecord | PathRecord)]
            again = run_by(make(study), study, Path(folder, f"cut{cut}"), trials)
            before, after = (
                {(line["kind"], _key(line)) for line in part}
                for part in (lines[:cut], again.journal)
            )
            require(
                not before & after,
                f"after a cut of {cut} records {sorted(before & after)} were computed again.",
            )
            require_same_study(again, expected, journals=False)


def _key(line: Mapping[str, Any]) -> str:
    """Return the kind of a journal record and what it belongs to."""
    return str(line["id"] if "id" in line else (line["fold"], line["inner"], sorted(line["fits"])))


def _failures_are_recorded(make: MakeExecutor) -> None:
    """A trial that fails has the error of each fold, and the others have the numbers of the
    serial executor.
    """
    with tempfile.TemporaryDirectory() as folder:
        study = _study(Path(folder), STUDIES["failing"], **ONE_AT_A_TIME)
        actual = run_by(make(study), study, Path(folder, "run"))
    require_same_study(actual, _reference(STUDIES["failing"])[0])
    by_zeta = {record["params"]["zeta"]: record for record in actual.trials.values()}
    require(by_zeta[1e-10]["status"] == "finished", f"a good trial is {by_zeta[1e-10]['status']}.")
    require(
        by_zeta[1e300]["status"] == "failed", f"a trial that raises is {by_zeta[1e300]['status']}."
    )
    for name, fold in by_zeta[1e300]["folds"].items():
        require(
            fold["error"].startswith("Traceback"), f"{name} has no traceback: {fold['error']!r}"
        )
        require(
            "FloatingPointError: the objective became inf" in fold["error"],
            f"{name} failed by {fold['error']!r}",
        )


def _a_time_budget_ends_the_search(make: MakeExecutor) -> None:
    """A search without time left makes no trial that is not whole, says so, and can be gone on
    with.
    """
    with tempfile.TemporaryDirectory() as folder:
        study = _study(Path(folder), STUDIES["grid"], time_budget=1e-6)
        plan = trial_plan(study)
        with study_log(Path(folder, "run"), study) as log, make(study) as executor:
            ended = executor.run_trials(plan, log)
        require(ended, "run_trials does not say that the time budget ended the search.")
        require(plan.n_left > 0, "all trials were made in a microsecond.")
        unlimited = _study(Path(folder), STUDIES["grid"], **ONE_AT_A_TIME)
        rest = run_by(make(unlimited), unlimited, Path(folder, "rest"), plan.records)
        require_same_study(rest, _reference(STUDIES["grid"])[0], journals=False)


def _tasks_are_independent(make: MakeExecutor) -> None:
    """Every task ends once, with its value or its error, and one that fails does not end the
    others.
    """

    def task(study: Study, number: int) -> float:  # not of the module, which workers cannot import
        return float(np.asarray(study.dataset.X)[number, 0]) * (1 / (number - 4))

    with tempfile.TemporaryDirectory() as folder:
        study = _study(Path(folder), STUDIES["grid"])
        expected = {
            end.argument: (end.value, end.error)
            for end in SerialExecutor(study).run_tasks(task, range(9))
        }
        with make(study) as executor:
            ends = list(executor.run_tasks(task, range(9)))
    actual = {end.argument: (end.value, end.error) for end in ends}
    require(len(ends) == len(actual) == 9, f"9 tasks ended {len(ends)} times.")
    require(actual == expected, f"the tasks ended as {actual}, not {expected}.")
    require(
        actual[4] == (None, "ZeroDivisionError: division by zero"),
        f"a task that raises ended as {actual[4]}.",
    )


class _Interrupts:
    """A listener that raises KeyboardInterrupt, as Ctrl-C does, once a trial has ended."""

    def show(self, progress: Progress) -> None:
        if progress.finished:
            raise KeyboardInterrupt

    def message(self, text: str) -> None:
        pass

    def __enter__(self) -> _Interrupts:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _an_interrupt_leaves_whole_trials(make: MakeExecutor) -> None:
    """An interrupt passes through, and the journal holds the trials that had ended, each whole."""
    with tempfile.TemporaryDirectory() as folder:
        study = _study(Path(folder), STUDIES["grid"])
        passed = False
        try:
            with (
                study_log(Path(folder, "run"), study, [_Interrupts()]) as log,
                make(study) as executor,
            ):
                executor.run_trials(trial_plan(study), log)
        except KeyboardInterrupt:
            passed = True
        require(passed, "run_trials continues after a KeyboardInterrupt.")
        expected, _ = _reference(STUDIES["grid"])
        lines = list(read_journal(Path(folder, "run", "journal.jsonl")))
        require(0 < len(lines) < len(expected.journal), f"the journal holds {len(lines)} records.")
        kept = [
            record for record in map(record_from_line, lines) if isinstance(record, TrialRecord)
        ]
        require(len(kept) == len(lines), "the journal holds more than trials.")
        later = _study(Path(folder), STUDIES["grid"], **ONE_AT_A_TIME)
        rest = run_by(make(later), later, Path(folder, "rest"), kept)
        require_same_study(rest, expected, journals=False)
