"""Files of a comparison: tables, text and figure, written atomically."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysel.core import __version__
from raysel.core.errors import StudyError
from raysel.core.files import remove_results, write_result
from raysel.core.printing import short
from raysel.evaluation.ranking_files import write_manifest
from raysel.results.comparison.result import ComparisonResult, Member, pair_table, score_table
from raysel.results.comparison.rows import MemberRow
from raysel.results.comparison.texts import comparison_text
from raysel.results.page.contents import (
    Block,
    Page,
    Section,
    Table,
    Text,
    csv_download,
    glossary,
    render_page,
)
from raysel.results.tables import TextTable, csv_content
from raysel.results.texts import score_tile, spaced
from raysel.tracking.directory import StudyDirectory

if TYPE_CHECKING:
    import pandas as pd

    from raysel.results.displays.display import Display


def export_comparison(comparison: ComparisonResult, folder: str | Path) -> list[Path]:
    """Write the tables, the text and the figure of a comparison into a folder."""
    figure: Display | None = None
    if comparison.studies:
        # Loads matplotlib.
        from raysel.results.displays.comparison import ComparisonFigure  # noqa: PLC0415

        figure = ComparisonFigure.from_comparison(comparison)
    tables = {"comparison": score_table(comparison), "tests": pair_table(comparison)}
    text = comparison_text(comparison).markdown()
    return write_files(
        Path(folder),
        "comparison",
        tables=tables,
        text=text,
        figure=figure,
        described=manifest(comparison),
    )


def write_files(
    folder: Path,
    name: str,
    *,
    tables: Mapping[str, pd.DataFrame],
    text: str,
    figure: Display | None,
    described: Mapping[str, Any],
) -> list[Path]:
    """Write tables, text, figure and manifest; without a figure remove earlier pictures."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StudyError(
            f"the comparison cannot be written to {folder}: {error.strerror}."
        ) from error
    written = [
        write_result(folder / f"{stem}.csv", csv_content(frame)) for stem, frame in tables.items()
    ]
    written.append(write_result(folder / f"{name}.md", text.encode()))
    pictures = [folder / f"{name}.{kind}" for kind in ("svg", "png")]
    if figure is None:
        remove_results(pictures)
    else:
        from raysel.results.displays.display import write_figure  # noqa: PLC0415

        drawn = figure.headed_figure()
        written += [write_figure(drawn, path) for path in pictures]
    return [*written, write_manifest(folder / "manifest.json", described)]


def manifest(comparison: ComparisonResult) -> dict[str, Any]:
    """Return the manifest of a comparison: folds, and what each member is and found."""
    folds, rows = comparison.folds, comparison.rows
    described = folds and {
        "names": list(folds.names),
        "kind": "draws of the training set" if folds.are_draws else "outer folds",
        "test_train_ratio": folds.ratio,
    }
    return {
        "name": comparison.name,
        "reference": comparison.reference,
        "metric": comparison.metric or None,
        "folds": described,
        "members": [
            _member_manifest(member, rows.get(member.label)) for member in comparison.members
        ],
        "table": (
            comparison.table()
            .astype(object)
            .where(lambda table: table.notna(), None)
            .to_dict("records")
        ),
    }


def _member_manifest(member: Member, row: MemberRow | None) -> dict[str, Any]:
    described = {
        "label": member.label,
        "folder": member.path.name,
        "solver": member.solver,
        "reconstructed": member.reconstructed,
        "transductive": member.transductive,
        "failure": member.failure or None,
    }
    if row is None:
        return described
    study, facts = row.facts.study, row.facts
    return described | {
        **{
            name: getattr(study, name)
            for name in ("config", "config_hash", "data_hash", "versions")
        },
        "scores": {
            "test": row.scores,
            "report": {name: values.values for name, values in facts.report.items()},
        },
        "winners": {refit.fold: refit.params for refit in facts.outer},
        "configurations_tried": list(facts.n_tried),
        "notes": row.notes,
    }


def write_comparison_report(comparison: ComparisonResult, path: str | Path | None = None) -> Path:
    """Write the report as one HTML file that needs no network, by default into the directory."""
    html = render_page(make_page(comparison))
    if path is None:
        path = StudyDirectory(comparison.path).report
    return write_result(path, html.encode("utf-8", "replace"))


def make_page(comparison: ComparisonResult) -> Page:
    """Return the contents of the report: scores, other tables, a figure, how to read them."""
    text = comparison_text(comparison)
    first, *others = text.tables
    scores = _table(first, "scores.csv", score_table(comparison))
    blocks: list[Block] = [Text(text.answer, "answer"), scores, Text(text.notes, "note")]
    sections = [Section("answer", "The answer", blocks)]
    if comparison.studies:
        # Loads matplotlib.
        from raysel.results.displays.comparison import ComparisonFigure  # noqa: PLC0415
        from raysel.results.page.pictures import picture  # noqa: PLC0415

        drawn = picture(ComparisonFigure.from_comparison(comparison))
        sections.append(Section("scores", "Scores and differences", [drawn]))
    details: list[Block] = [_table(table) for table in others]
    members = [f"{member.label}: {member.path.name}/report.html" for member in comparison.finished]
    sections += [
        *([Section("details", "In detail", details)] if details else []),
        Section("reading", "How to read it", [Text(text.remarks)]),
        Section(
            "members", "Reports of the methods", [Text(members or ["No method has a result."])]
        ),
        glossary(),
    ]
    return Page(
        short(comparison.name, 120),
        text.title,
        sections,
        f"Written by raysel {__version__}.",
        _tiles(comparison),
    )


def _tiles(comparison: ComparisonResult) -> list[tuple[str, str, str]]:
    """Return the figures at the top: the highest score, the reference's, and what is compared."""
    rows, metric = comparison.rows, spaced(comparison.metric)
    if not rows:
        return []
    best = max(rows.values(), key=lambda row: row.facts.test.mean)
    tiles = [_score_tile(best, f"highest test {metric}")]
    if (reference := rows.get(comparison.reference)) is not None:
        tiles.append(_score_tile(reference, f"test {metric} of the reference"))
    folds = comparison.folds.describe() if comparison.folds else ""
    on_folds = f"on the same {folds}" if folds else ""
    return [*tiles, (str(len(comparison.members)), "methods", on_folds)]


def _score_tile(row: MemberRow, what: str) -> tuple[str, str, str]:
    mean, spread = score_tile(row.facts)
    return mean, what, f"{short(row.label, 40)}, {spread}"


def _table(table: TextTable, name: str = "", frame: pd.DataFrame | None = None) -> Table:
    data = None
    if frame is not None:
        data = csv_download(name, list(frame.columns), frame.itertuples(index=False))
    heads = [spaced(head) for head in table.header]
    return Table(f"{table.title}.", heads, table.rows, table.text_columns, download=data)
