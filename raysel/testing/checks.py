"""Named checks of the suites, which raise AssertionError, and pytest parameters made of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from fnmatch import fnmatch
from typing import Any

import numpy as np

from raysel.core.arrays import LabelArray
from raysel.testing.studies import FinishedStudy, timeless


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
        raise AssertionError(f"{self.name} passes, though it is declared to fail: {self.expected_failure}")


def parametrize(checks: Iterable[Check], slow: Callable[[Check], bool] | None = None) -> Any:
    """Make a decorator that runs a test function, whose one argument is ``check``, once for each check.

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

    marked = [
        pytest.param(check, id=check.name, marks=[pytest.mark.slow] if slow is not None and slow(check) else [])
        for check in checks
    ]
    return pytest.mark.parametrize("check", marked)


def expecting(checks: Iterable[Check], failures: Mapping[str, str]) -> Iterator[Check]:
    """Mark the checks that are expected to fail."""
    for check in checks:
        label = check.name.partition(": ")[2]
        reason = next((reason for pattern, reason in failures.items() if fnmatch(label, pattern)), "")
        yield replace(check, expected_failure=reason) if reason else check


@contextmanager
def global_seeds() -> Iterator[Callable[[int], None]]:
    """Yield a function that seeds the global generators, from which a careless subject draws; they are restored."""
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
    """Raise AssertionError unless two arrays have the same shape and the same values, NaN equal to NaN."""
    np.testing.assert_array_equal(actual, expected, err_msg=what, strict=True)


def require_close(actual: Any, expected: Any, tolerance: float, what: str) -> None:
    """Raise AssertionError unless two arrays agree up to a share of the largest expected value."""
    largest = float(np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * (largest or 1.0), err_msg=what)


def arrays_in(value: Any) -> list[LabelArray]:
    """Return the arrays in nested dataclasses, tuples, lists and dicts."""
    if isinstance(value, np.ndarray):
        return [value]
    if is_dataclass(value) and not isinstance(value, type):
        return [array for part in fields(value) for array in arrays_in(getattr(value, part.name))]
    if isinstance(value, dict):
        return [array for part in value.values() for array in arrays_in(part)]
    if isinstance(value, tuple | list):
        return [array for part in value for array in arrays_in(part)]
    return []


def require_same_study(actual: FinishedStudy, expected: FinishedStudy, *, journals: bool = True) -> None:
    """Raise AssertionError unless two runs agree in trials, refits and models; times and stack frames are ignored."""
    ids = [sorted(run.trials) for run in (actual, expected)]
    require(ids[0] == ids[1], f"the trials are {ids[0]}, not {ids[1]}.")
    for id_, record in expected.trials.items():
        got, wanted = _comparable(actual.trials[id_]), _comparable(record)
        different = [key for key in wanted if got.get(key) != wanted[key]]
        require(got == wanted, f"trial {id_} differs in {different}: {got} instead of {wanted}.")
    require(len(actual.refits) == len(expected.refits), f"{len(actual.refits)} refits, not {len(expected.refits)}.")
    for mine, theirs in zip(actual.refits, expected.refits, strict=True):
        refit, other = timeless(mine.record.to_json()), timeless(theirs.record.to_json())
        require(refit == other, f"the refit of {other['fold']} differs: {refit} instead of {other}.")
        for array, expected_array in zip(_arrays(mine.model), _arrays(theirs.model), strict=True):
            require_equal(array, expected_array, f"the models of {other['fold']} differ")
    if not journals:
        return
    written = [{record["kind"] for record in run.journal} for run in (actual, expected)]
    require(written[0] == written[1], f"the journal holds records {written[0]}, not {written[1]}.")


def _arrays(model: Any) -> list[Any]:
    """Return the fitted arrays of all steps of a pipeline."""
    parts = [*(part for _, part in model.steps), model.method]
    return [array for part in parts for array in arrays_in(vars(part))]


def _comparable(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the last line of each traceback only, because stack frames differ between executors."""
    folds = {
        name: {**fold, "error": fold["error"].strip().rpartition("\n")[2]} for name, fold in record["folds"].items()
    }
    return {**record, "folds": folds}
