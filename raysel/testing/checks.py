"""Checks that raise AssertionError, parameters of pytest made of them, and studies they run."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from raysel.config import config_from_dict
from raysel.core.arrays import LabelArray
from raysel.evaluation.nested_search import select_winner
from raysel.evaluation.records import RefitRecord
from raysel.execution.executor import Executor
from raysel.execution.trial_plan import trial_plan
from raysel.study.definition import Study
from raysel.tracking.journal import Journal, read_journal
from raysel.tracking.log import Listener, Progress, StudyLog

#: Keys of a record that say when things happened and how long they took.
_TIMES = ("started", "ended", "cpu_seconds")


class Refit(NamedTuple):
    """Refit of a fold's winner on the whole training set: its record and the fitted pipeline."""

    record: RefitRecord
    model: Any


@dataclass(frozen=True)
class ExecutorResult:
    """Trials, refits and journal of a study that an executor has run, without times."""

    trials: dict[str, dict[str, Any]]
    refits: list[Refit]
    journal: list[dict[str, Any]]


def prepare_study(path: Path, config: Mapping[str, Any]) -> Study:
    """Prepare a study of a data file."""
    return Study.prepare(
        config_from_dict({**config, "dataset": {"path": str(path), **config.get("dataset", {})}})
    )


@contextmanager
def study_log(folder: Path, study: Study, listeners: Sequence[Listener] = ()) -> Iterator[StudyLog]:
    """Open the event log of a study in a folder, and close it at the end of the context."""
    folder.mkdir(parents=True, exist_ok=True)
    progress = Progress(len(study.configurations), "accuracy")
    with (
        Journal(folder / "journal.jsonl") as journal,
        StudyLog(journal, progress, folder / "progress.json", listeners) as log,
    ):
        yield log


def compute(
    executor: Executor, study: Study, log: StudyLog, kept: Sequence[Any] = ()
) -> tuple[list[Any], list[Refit]]:
    """Run trials and refits of a study."""
    work = trial_plan(study, kept)
    with executor:
        executor.run_trials(work, log)
        records = work.finish(log)
        preference = study.preference(records)
        winners = [
            (fold, select_winner(records, fold.name, preference, study.evaluation.choose_n)[0])
            for fold in study.plan.folds
        ]
        return records, [Refit(*refit) for refit in executor.run_refits(winners)]


def run_by(
    executor: Executor, study: Study, folder: Path, kept: Sequence[Any] = ()
) -> ExecutorResult:
    """Run a study by an executor."""
    with study_log(folder, study) as log:
        records, refits = compute(executor, study, log, kept)
    trials = {record.id: timeless(record.to_json()) for record in records}
    return ExecutorResult(trials, refits, list(read_journal(folder / "journal.jsonl")))


def timeless(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as it is read back from JSON, without its times."""
    return {
        key: value for key, value in json.loads(json.dumps(record)).items() if key not in _TIMES
    }


@dataclass(frozen=True)
class Check:
    """A check of a suite, called without arguments.

    Parameters
    ----------
    name : str
        The suite's subject, the check and the data, e.g. ``"smr: read_only[matrix, 3 classes]"``.
    run : callable
        Raises where the subject does not conform.
    kind : str
        The part of the suite that the check belongs to, e.g. ``"scikit-learn"`` or ``"study"``.
    expected_failure : str, default=""
        Why the check is expected to fail; empty where it is expected to pass.
    """

    name: str
    run: Callable[[], None]
    kind: str
    expected_failure: str = ""

    def __call__(self) -> None:
        """Run the check."""
        if not self.expected_failure:
            self.run()
            return
        try:
            self.run()
        except Exception:  # what a failure raises is the subject's own  # noqa: BLE001
            return
        raise AssertionError(
            f"{self.name} passes, though it is declared to fail: {self.expected_failure}"
        )


def parametrize(checks: Iterable[Check], slow: Callable[[Check], bool] | None = None) -> Any:
    """Make a decorator that runs a test function of a ``check`` once for each check.

    Parameters
    ----------
    checks : iterable of Check
        Checks to run.
    slow : callable, default=None
        Function of a check that returns whether it gets the mark ``slow``. None: no check gets it.

    Returns
    -------
    pytest.MarkDecorator
        Decorator of the test function.
    """
    import pytest  # noqa: PLC0415 - an optional dependency

    def parameter(check: Check) -> Any:
        if slow is not None and slow(check):
            return pytest.param(check, id=check.name, marks=[pytest.mark.slow])
        return pytest.param(check, id=check.name)

    return pytest.mark.parametrize("check", [parameter(check) for check in checks])


def expecting(checks: Iterable[Check], failures: Mapping[str, str]) -> Iterator[Check]:
    """Mark the checks that are expected to fail."""
    for check in checks:
        label = check.name.partition(": ")[2]
        reason = next(
            (reason for pattern, reason in failures.items() if fnmatch(label, pattern)), ""
        )
        yield replace(check, expected_failure=reason)


@contextmanager
def global_seeds() -> Iterator[Callable[[int], None]]:
    """Yield a function that seeds the global generators, which are restored."""
    state = np.random.get_state(), random.getstate()  # noqa: NPY002

    def seed(number: int) -> None:
        np.random.seed(number)  # noqa: NPY002
        random.seed(number)

    try:
        yield seed
    finally:
        np.random.set_state(state[0])  # noqa: NPY002
        random.setstate(state[1])


def require(condition: object, message: str) -> None:
    """Raise AssertionError unless a condition holds; unlike ``assert`` also under ``python -O``."""
    if not condition:
        raise AssertionError(message)


def require_equal(actual: object, expected: object, what: str) -> None:
    """Raise AssertionError unless two arrays have equal shapes and values."""
    np.testing.assert_array_equal(actual, expected, err_msg=what, strict=True)


def require_close(actual: Any, expected: Any, tolerance: float, what: str) -> None:
    """Raise AssertionError unless two arrays agree up to a share of the largest expected value."""
    largest = float(np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(
        actual, expected, rtol=0.0, atol=tolerance * (largest or 1.0), err_msg=what
    )


def arrays_in(value: Any) -> list[LabelArray]:
    """Return the arrays in nested dataclasses, tuples, lists and dicts."""
    if isinstance(value, np.ndarray):
        return [value]
    parts: Iterable[Any] = ()
    if is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, part.name) for part in fields(value)]
    elif isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, tuple | list):
        parts = value
    return list(chain.from_iterable(map(arrays_in, parts)))


def require_same_study(
    actual: ExecutorResult, expected: ExecutorResult, *, journals: bool = True
) -> None:
    """Raise AssertionError unless two runs agree in all but times and stack frames."""
    ids = [sorted(run.trials) for run in (actual, expected)]
    require(ids[0] == ids[1], f"the trials are {ids[0]}, not {ids[1]}.")
    for id_, record in expected.trials.items():
        got, wanted = _comparable(actual.trials[id_]), _comparable(record)
        different = [key for key in wanted if got.get(key) != wanted[key]]
        require(got == wanted, f"trial {id_} differs in {different}: {got} instead of {wanted}.")
    require(
        len(actual.refits) == len(expected.refits),
        f"{len(actual.refits)} refits, not {len(expected.refits)}.",
    )
    for mine, theirs in zip(actual.refits, expected.refits, strict=True):
        refit, other = timeless(mine.record.to_json()), timeless(theirs.record.to_json())
        require(
            refit == other, f"the refit of {other['fold']} differs: {refit} instead of {other}."
        )
        for array, expected_array in zip(_arrays(mine.model), _arrays(theirs.model), strict=True):
            require_equal(array, expected_array, f"the models of {other['fold']} differ")
    if not journals:
        return
    written = [{record["kind"] for record in run.journal} for run in (actual, expected)]
    require(written[0] == written[1], f"the journal holds records {written[0]}, not {written[1]}.")


def _arrays(model: Any) -> list[Any]:
    """Return the fitted arrays of all steps of a pipeline."""
    parts = [*(part for _, part in model.steps), model.method]
    return arrays_in([vars(part) for part in parts])


def _comparable(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the last line of each traceback only."""
    folds = {
        name: {**fold, "error": fold["error"].strip().rpartition("\n")[2]}
        for name, fold in record["folds"].items()
    }
    return {**record, "folds": folds}
