"""Comparison of two runs of one study, to the last bit."""

from __future__ import annotations

from typing import Any

from raysel.testing.checks import arrays_in, require, require_equal
from raysel.testing.studies import FinishedStudy, timeless


def require_same_study(found: FinishedStudy, expected: FinishedStudy, *, journals: bool = True) -> None:
    """Raise AssertionError unless two runs agree in trials, refits and models; times and stack frames are ignored."""
    require(
        sorted(found.trials) == sorted(expected.trials),
        f"the trials are {sorted(found.trials)}, not {sorted(expected.trials)}.",
    )
    for id_, record in expected.trials.items():
        got, wanted = _comparable(found.trials[id_]), _comparable(record)
        different = [key for key in wanted if got.get(key) != wanted[key]]
        require(got == wanted, f"trial {id_} differs in {different}: {got} instead of {wanted}.")
    require(len(found.refits) == len(expected.refits), f"{len(found.refits)} refits, not {len(expected.refits)}.")
    for mine, theirs in zip(found.refits, expected.refits, strict=True):
        own, other = timeless(mine.record.to_json()), timeless(theirs.record.to_json())
        require(own == other, f"the refit of {other['fold']} differs: {own} instead of {other}.")
        for array, expected_array in zip(_arrays(mine.model), _arrays(theirs.model), strict=True):
            require_equal(array, expected_array, f"the models of {other['fold']} differ")
    if not journals:
        return
    written = [{record["kind"] for record in run.journal} for run in (found, expected)]
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
