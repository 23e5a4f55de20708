"""Table of the objective and scores of all inner fits by iteration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from raysel.cv.records import TrialRecord


def trace_table(records: Iterable[TrialRecord], labels: Sequence[str]) -> pa.Table:
    """Return the objective and scores of all inner fits, one row an iteration."""
    names = [f"score_{label}" for label in labels] or ["score"]
    columns: dict[str, list[object]] = {
        name: [] for name in ("trial", "configuration", "fold", "inner", "iteration", "objective", *names)
    }
    for record in records:
        for fold, trace in record.folds.items():
            for number, inner in enumerate(trace.inner):
                unscored = len(inner.objective) - len(inner.scores)
                scores = [[None] * len(names)] * unscored + inner.scores
                for iteration, (objective, row) in enumerate(zip(inner.objective, scores, strict=True)):
                    values = (record.id, record.name, fold, number, iteration, objective, *row)
                    for column, value in zip(columns.values(), values, strict=True):
                        column.append(value)
    types = [pa.string(), pa.string(), pa.string(), pa.int32(), pa.int32(), pa.float64(), *[pa.float64()] * len(names)]
    return pa.table({name: pa.array(values, kind) for (name, values), kind in zip(columns.items(), types, strict=True)})
