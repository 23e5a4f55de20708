"""Summary of a finished study as the command prints it."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raysel.core.credentials import bare_uri
from raysel.core.storage.working_copy import shown_place
from raysel.evaluation.plan import FINAL
from raysel.results import words
from raysel.results.error_control import open_checks
from raysel.results.progress import counted
from raysel.results.result import StudyResult
from raysel.results.trust import CONSENSUS
from raysel.tracking.mlflow_view import runs_page
from raysel.tracking.uploader import notices

_LABEL = 11  # columns of the labels, with the space behind them
_MOST_ACTIONS = 3
_HEAD = 13  # columns to which the head of a table's column is wrapped where its cells are narrower


def print_answer(result: StudyResult, out: Console, *, verbose: bool = False) -> None:
    """Print what a study found: score, verdict, references, best features, stability, and what asks for an action.

    On a terminal sentences are wrapped between words; in a file each stays on one line.
    """
    out.print()
    _say(out, words.headline(result), style="bold")
    verdicts = words.verdict_sentences(result) if verbose else [words.verdict_in_short(result)]
    if verdict := " ".join(filter(None, [*verdicts, words.missing_references_sentence(result)])):
        _say(out, verdict, style="yellow")
    rows = [[row.name.rpartition(".")[2], *row[1:]] for row in words.score_rows(result)]
    if len(rows) > 1:
        out.print(_table(["method or reference", "features", f"test {result.metric}", "method minus it [95 %]"], rows))
    for label, text in (_details if verbose else _trust)(result):
        _say(out, text, label)
    remarks = result.remarks() if verbose else result.actions()[:_MOST_ACTIONS]
    for remark in remarks:
        _say(out, remark, style="yellow")
    if verbose:
        for table in _tables(result):
            out.print()
            out.print(table)
        out.print()
        for text in _explanations(result):
            _say(out, text, style="dim")


def print_files(result: StudyResult, out: Console) -> None:
    """Print where the report and the study are, the next command, and how to open MLflow; no path is broken."""
    for label, text in _files(result):
        out.print(f"{label:<{_LABEL}}{text}", markup=False, soft_wrap=True)
    for text in notices([result.tracking]):
        _say(out, text, " ", style="yellow")
    if not result.tracking.get("complete"):
        why = result.tracking.get("error") or "MLflow was too slow"
        _say(out, f"not all runs are uploaded: {why}. To upload:", " ", style="yellow")
        command = f"python -m raysel.tune --replay {shlex.quote(shown_place(result.path))}"
        out.print(f"{'':<{_LABEL}}{command}", markup=False, soft_wrap=True)


def _say(out: Console, text: str, label: str = "", style: str | None = None) -> None:
    """Print a sentence behind its label, wrapped on a terminal."""
    indent = _LABEL if label else 0
    parts = _wrapped(f"{label:<{indent}}{text}", out.width, indent) if out.is_terminal else [f"{label:<{indent}}{text}"]
    out.print("\n".join(parts), markup=False, style=style, soft_wrap=True)


def _wrapped(text: str, width: int, indent: int) -> list[str]:
    """Lines of a sentence, the later ones indented; words, e.g. names of parameters, are never broken."""
    return textwrap.wrap(
        text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    ) or [text]


def _tables(result: StudyResult) -> Iterator[Table]:
    """Yield the curve over the numbers of features and the winners of the outer folds."""
    header, rows = words.curve_rows(result)
    if len(rows) > 1:
        references = [words.short_reference(result, name) for name in result.references]
        yield _table([*header[: len(header) - len(references)], *references], rows, first="right")
    yield _winners_table(result)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], first: str = "left") -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, name in enumerate(header):
        left = i == 0 and first == "left"
        head = _head(name, max(len(row[i]) for row in rows)) if i else Text(name)
        table.add_column(head, justify="left" if left else "right", no_wrap=i > 0)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _head(name: str, width: int = 0) -> Text:
    """Head of a column of cells of some width, on several lines if it is longer."""
    return Text("\n".join(textwrap.wrap(name.replace("_", " "), max(width, _HEAD))))


def _winners_table(result: StudyResult) -> Table:
    metric = result.metric
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("fold", no_wrap=True)
    table.add_column("winner")  # the only column that wraps where the terminal is narrow
    ranked, chosen = result.ranks_features, words.shows_n_features(result)
    names = [*(["features"] if chosen else []), *(["scored"] if ranked else []), f"inner {metric}", f"test {metric}"]
    for name in names:
        table.add_column(_head(name), justify="right", no_wrap=True)
    for refit in result.outer:
        numbers = [str(refit.n_features)] if chosen else []
        numbers += [str(result.n_scored[refit.fold])] if ranked else []
        table.add_row(refit.fold, Text(refit.name), *numbers, f"{refit.inner_score:.3f}", f"{refit.test_score:.3f}")
    inner_mean = sum(result.inner_scores) / len(result.inner_scores)
    mean = [f"{inner_mean:.3f}", words.values_in_words(result.test_scores)]
    table.add_row("mean", "", *[""] * (chosen + ranked), *mean, style="bold")
    return table


def _trust(result: StudyResult) -> Iterator[tuple[str, str]]:
    """Yield label and text of the lines on further scores, on the best features and on their stability."""
    if result.task_scores:
        yield "by task", words.tasks_in_words(result)
    if result.report:
        yield "reported", f"test {words.report_in_words(result)}"
    if result.ranks_features:
        ranking = result.ranking(by=FINAL if result.has_final else CONSENSUS)
        yield "features", words.best_features_in_words(ranking)
        yield "stability", words.stability_in_short(result)


def _details(result: StudyResult) -> Iterator[tuple[str, str]]:
    """Yield those lines, and label and text of others on the model, its ranking and the figures of the winners."""
    yield from _trust(result)
    if result.ranks_features:
        yield "overlap", words.overlap_in_words(result)
    if result.has_final:
        model = f"{result.final.name}, fitted on all {result.stored.study.n_samples} samples"
        if result.final.n_features is not None:
            model += f"; it predicts by its {result.final.n_features} best features"
        if result.is_ranked:
            model += f"; {result.n_scored[result.final.fold]} of {len(result.feature_names)} features have a score"
        yield "model", model
    else:
        yield "model", "none (cv.final is false)"
    yield "optimism", words.optimism_sentence(result).removeprefix("Optimism: ").removesuffix(".")
    if told := words.convergence_in_words(result.refits):
        yield "fits", told
    yield from (("trials", text) for text in _trials_in_words(result))
    if told := result.consensus_sentence():
        yield "consensus", told
    if redundancy := words.redundancy_in_words(result):
        yield "redundancy", redundancy
    if modalities := words.modalities_in_words(result):
        yield "modalities", f"{modalities} (mean of modality_scores of the outer winners; all are in manifest.json)"


def _explanations(result: StudyResult) -> Iterator[str]:
    """Yield what the figures and the columns of the tables mean."""
    yield words.rule_sentence(result)
    columns = []
    if words.shows_n_features(result):
        columns.append("features: number of best features that the scores are of")
    if result.ranks_features:
        columns.append("scored: number of features with a score (above 0) in that fold's winner")
    if columns:
        yield "; ".join(columns)
    if len(words.curve_rows(result)[1]) > 1:
        yield "inner, test: mean ± SD over the outer folds for each number of features; of references the mean"
    if footnote := words.interval_footnote(result):
        yield footnote


def _trials_in_words(result: StudyResult) -> list[str]:
    counts, search = result.n_trials, result.config["search"]
    total, lines = sum(counts.values()), []
    if counts["null"]:
        lines.append(f"{counts['null']} of {total} trials gave the zero solution")
    if counts["stopped"]:
        lines.append(f"{counts['stopped']} of {total} trials were stopped early")
    if not search["synchronous"] and (search["method"] == "tpe" or search.get("early_stopping")):
        lines.append("not synchronous: with another number of workers these figures can differ")
    return lines


def _files(result: StudyResult) -> Iterator[tuple[str, str]]:
    """Yield label and text of the lines on the report, the study, the next command and MLflow."""
    place, more = shown_place(result.path), len(result.remarks()) - len(result.actions()[:_MOST_ACTIONS])
    if result.directory.report.exists():
        others = f"; {counted(more, 'more remark')}" if more else ""
        yield "report", f"{shown_place(result.directory.report)} (all figures and tables{others})"
    yield "study", place
    for _, command in open_checks(result, shlex.quote(place))[:1]:
        yield "next", command
    yield from zip(("MLflow", ""), _mlflow_lines(result), strict=False)


def _mlflow_lines(result: StudyResult) -> list[str]:
    """Return the command that opens MLflow, and the address of the page with the trials, best first."""
    uri = result.stored.study.uri
    page = runs_page(result.tracking.get("experiment_id", "0"), result.tracking.get("view", ""))
    if not uri.startswith("sqlite:"):
        place = bare_uri(uri)
        if uri.lower().startswith("http"):
            return [place.rstrip("/") + page]
        return [place, f"of its pages that of the study is {page}, where mlflow server has it as --backend-store-uri"]
    stored = Path(uri.removeprefix("sqlite:///"))
    shown = stored.relative_to(Path.cwd()) if stored.is_relative_to(Path.cwd()) else stored
    command = f"{shlex.quote(sys.executable)} -m mlflow ui --backend-store-uri {shlex.quote(f'sqlite:///{shown}')}"
    return [command, f"then open http://127.0.0.1:5000{page}"]
