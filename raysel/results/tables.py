"""Tables of a study: inner fits by iteration, winners, trials, and columns of a stored table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from raysel.core.arrays import LabelArray
from raysel.core.errors import headline
from raysel.data.formats.isolated import check_columnar
from raysel.evaluation.plan import FINAL
from raysel.evaluation.records import TrialRecord
from raysel.study.stored import StoredStudy

if TYPE_CHECKING:
    import pandas as pd


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


def summary_table(stored: StoredStudy, top: int) -> pd.DataFrame:
    """Return the winners of the outer folds that have been refitted, one a row.

    Columns ``outer_fold``, ``winner``, ``n_features`` (chosen number of best features; missing for the classifier
    ``native``), ``training_<metric>`` (missing if it was not recorded), ``inner_<metric>``, ``test_<metric>``,
    ``test_<name>`` for each further metric, ``features_with_score`` (missing if the method does not rank features),
    ``redundancy`` (missing if it was not recorded) and ``converged``.
    """
    import pandas as pd  # noqa: PLC0415 - takes half a second to import

    metric = stored.study.metric
    evaluation = stored.study.config["evaluation"]
    report, sizes = evaluation.get("report", ()), list(evaluation.get("n_features") or (top,))
    rows = []
    for fold in stored.study.folds:
        refit = stored.refits.get(fold)
        if refit is None or fold == FINAL:
            continue
        n_scored = None
        if refit.feature_scores is not None:
            n_scored = sum(score > 0 for score in refit.feature_scores)
        recorded = dict(zip(sizes, refit.redundancy, strict=False))
        row: dict[str, Any] = {"outer_fold": fold, "winner": refit.name, "n_features": refit.n_features}
        row |= {f"training_{metric}": refit.training_score, f"inner_{metric}": refit.inner_score}
        row |= {f"test_{metric}": refit.test_score} | {f"test_{name}": refit.reported(name) for name in report}
        row |= {"features_with_score": n_scored, "redundancy": recorded.get(top), "converged": refit.converged}
        rows.append(row)
    scores = [f"training_{metric}", f"inner_{metric}", f"test_{metric}", *(f"test_{name}" for name in report)]
    columns = ["outer_fold", "winner", "n_features", *scores, "features_with_score", "redundancy", "converged"]
    kinds = {"n_features": "Int64", "features_with_score": "Int64", "redundancy": "float64"}
    kinds |= {f"training_{metric}": "float64", **{f"test_{name}": "float64" for name in report}}
    return pd.DataFrame(rows, columns=columns).astype(kinds)


def trial_frame(stored: StoredStudy) -> pd.DataFrame:
    """Return the trials that have ended, one a row, the best validation score first.

    Columns of `StudyResult.trials`.
    """
    import pandas as pd  # noqa: PLC0415

    score = f"val_{stored.study.metric}"
    if not stored.trials:
        return pd.DataFrame(columns=["trial", "status", score, "objective", "converged", "seconds", "error"])
    frame = pd.DataFrame([_trial_row(record, stored) for record in stored.trials])
    return frame.sort_values(score, ascending=False, kind="stable", ignore_index=True)


def _trial_row(record: TrialRecord, stored: StoredStudy) -> dict[str, Any]:
    metric, rule = stored.study.metric, stored.study.choose_n
    curves = record.curves(metric, stored.study.labels, rule)
    last = {name: curve[-1] for name, curve in curves.items()}
    convergence = record.convergence()
    row: dict[str, Any] = {"trial": record.id}
    if record.fold:
        row["outer_fold"] = record.fold
    row |= {f"param_{name}": value for name, value in record.params.items()}
    row["status"] = record.status
    row[f"val_{metric}"] = last.get(f"val_{metric}")
    # Not from the curves, whose sums are in another order: the winner's score is the inner score to the last bit.
    row |= {f"val_{metric}/{fold}": trace.score(rule) for fold, trace in record.folds.items() if not trace.error}
    row["objective"] = last.get("objective")
    row["converged"] = convergence.n_converged / convergence.n_fits if convergence.n_fits else None
    # Along a path all configurations are fitted together.
    row["seconds"] = np.nan if stored.paths else max(0.0, record.ended - record.started)
    row["error"] = headline(record.failure)
    return row


def trace_frame(stored: StoredStudy) -> pd.DataFrame:
    """Return objective and scores of every inner fit by iteration.

    Columns of `trace_table`.
    """
    return trace_table(stored.trials, stored.study.labels).to_pandas()


def read_numbers(path: Path, columns: Iterable[str], n_rows: int) -> dict[str, LabelArray]:
    """Read columns of numbers, after a process of its own has read the file under a limit of memory."""
    names = list(columns)
    check_columnar(path)
    with pa.parquet.ParquetFile(path) as file:
        if file.metadata.num_rows != n_rows:
            raise ValueError(f"{path.name} has {file.metadata.num_rows} rows, not {n_rows}")
        for name in names:
            position = file.schema_arrow.get_field_index(name)
            kind = None if position < 0 else file.schema_arrow.field(position).type
            if kind is None or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                raise ValueError(f"{path.name} has no column {name} of numbers")
        table = file.read(columns=names)
    return {name: table[name].to_numpy() for name in names}
