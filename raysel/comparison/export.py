"""Files of a comparison: tables, text and figure, written atomically."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysel.comparison.pairs import pairs_with_reference
from raysel.comparison.rows import MemberRow, member_rows
from raysel.comparison.stored import StoredComparison
from raysel.comparison.tables import comparison_table, pair_table, score_table
from raysel.comparison.words import comparison_text
from raysel.errors import StudyError
from raysel.files import remove_results, write_result
from raysel.printing.printable import csv_cell
from raysel.ranking.export import write_manifest

if TYPE_CHECKING:
    import pandas as pd


def export_comparison(comparison: StoredComparison, folder: str | Path) -> list[Path]:
    """Write the tables, the text and the figure of a comparison into a folder."""
    folder = make_folder(folder)
    written = [
        write_result(folder / "comparison.csv", frame_content(score_table(comparison))),
        write_result(folder / "tests.csv", frame_content(pair_table(comparison))),
        write_result(folder / "comparison.md", comparison_text(comparison).markdown().encode()),
    ]
    pictures = [folder / f"comparison.{kind}" for kind in ("svg", "png")]
    if comparison.studies:
        from raysel.display.figures.writing import write_figure  # noqa: PLC0415 - loads matplotlib

        figure = figure_of(comparison)
        written += [write_figure(figure, path) for path in pictures]
    else:
        remove_results(pictures)
    written.append(write_manifest(folder / "manifest.json", manifest(comparison)))
    return written


def frame_content(frame: pd.DataFrame) -> bytes:
    """Return a data frame as a CSV file, texts as `csv_cell` returns them."""
    return frame.rename(columns=csv_cell).map(csv_cell).to_csv(index=False).encode()


def make_folder(folder: str | Path) -> Path:
    """Create a folder if it does not exist."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StudyError(f"the comparison cannot be written to {folder}: {error.strerror}.") from error
    return folder


def figure_of(comparison: StoredComparison) -> Any:
    """Return the figure of the scores of all members that have a result."""
    from raysel.display.comparison_figure import ShownMember, comparison_figure  # noqa: PLC0415 - loads matplotlib

    rows = member_rows(comparison)
    pairs = pairs_with_reference(rows, comparison.reference, comparison.folds, comparison.metric)
    shown = []
    for label, row in rows.items():
        pair, difference = pairs.get(label), None
        if pair is not None:
            bounds = (pair.test.lower, pair.test.upper) if pair.test else (float("nan"), float("nan"))
            difference = (pair.compared.mean, *bounds)
        by_n = dict(zip(row.n_features, row.by_label.values(), strict=True)) if row.n_features else {}
        shown.append(ShownMember(label, row.scores, by_n, difference))
    missing = [member.label for member in comparison.members if member.label not in rows]
    return comparison_figure(
        shown,
        name=comparison.name,
        metric=comparison.metric,
        runs=comparison.folds.in_words() if comparison.folds else "",
        reference=comparison.reference,
        interval="95 % interval",
        at=_scored_at([row for row in rows.values() if len(row.n_features) > 1]),
        remarks=[f"Not shown, because they have no result: {', '.join(missing)}."] if missing else [],
    )


def _scored_at(rows: Sequence[MemberRow]) -> str:
    """Return the number of features that the scores of members with a curve refer to, as text."""
    kinds = {"at the chosen number of features" if row.chosen else "mean over the curve" for row in rows}
    return " or ".join(sorted(kinds))


def manifest(comparison: StoredComparison) -> dict[str, Any]:
    """Return the manifest of a comparison: its folds, and settings, versions, hashes and figures of each member."""
    rows, folds = member_rows(comparison), comparison.folds
    listed = []
    for member in comparison.members:
        described: dict[str, Any] = {
            "label": member.label,
            "folder": member.path.name,
            "solver": member.solver,
            "reconstructed": member.reconstructed,
            "transductive": member.transductive,
            "failure": member.failure or None,
        }
        if member.result is not None:
            described |= _study_manifest(comparison, rows[member.label])
        listed.append(described)
    return {
        "name": comparison.name,
        "reference": comparison.reference,
        "metric": comparison.metric or None,
        "folds": {
            "names": list(folds.names),
            "kind": "draws of the training set" if folds.are_draws else "outer folds",
            "test_train_ratio": folds.ratio,
        }
        if folds
        else None,
        "members": listed,
        "table": comparison_table(comparison)
        .astype(object)
        .where(lambda table: table.notna(), None)
        .to_dict("records"),
    }


def _study_manifest(comparison: StoredComparison, row: MemberRow) -> Mapping[str, Any]:
    study = comparison.studies[row.label]
    record = study.stored.study
    return {
        "config": record.config,
        "config_hash": record.config_hash,
        "data_hash": record.data_hash,
        "versions": record.versions,
        "scores": {"test": row.scores, "report": row.report},
        "winners": {refit.fold: refit.params for refit in study.outer},
        "configurations_tried": list(row.n_tried),
        "notes": row.notes,
    }
