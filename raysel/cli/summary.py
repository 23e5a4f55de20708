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
from raysel.core.printing import mean_and_sd
from raysel.core.storage.working_copy import shown_place
from raysel.evaluation.plan import FINAL
from raysel.results import texts
from raysel.results.agreement import CONSENSUS
from raysel.results.facts import Facts
from raysel.results.progress import counted
from raysel.results.result import StudyResult
from raysel.tracking.journal_upload import notices
from raysel.tracking.mlflow_view import runs_page

_LABEL = 11  # columns of the labels, with the space behind them
_MOST_ACTIONS = 3
_HEAD = 13  # columns to which the head of a table's column is wrapped where its cells are narrower


def print_answer(result: StudyResult, out: Console, *, verbose: bool = False) -> None:
    """Print what a study found: score, verdict, references, best features, stability, and what asks for an action.

    On a terminal sentences are wrapped between words; in a file each stays on one line.
    """
    facts = result.facts
    out.print()
    _say(out, texts.headline(facts), style="bold")
    verdicts = texts.verdict_sentences(facts) if verbose else [texts.short_verdict(facts)]
    if verdict := " ".join(filter(None, [*verdicts, texts.missing_references_sentence(facts)])):
        _say(out, verdict, style="yellow")
    rows = [[row.name.rpartition(".")[2], *row[1:]] for row in texts.score_rows(facts)]
    if len(rows) > 1:
        out.print(_table(["method or reference", "features", f"test {facts.metric}", "method minus it [95 %]"], rows))
    for label, text in [*_trust(result), *(_details(facts) if verbose else [])]:
        _say(out, text, label)
    for remark in texts.format_remarks(facts.remarks if verbose else facts.actions[:_MOST_ACTIONS]):
        _say(out, remark, style="yellow")
    if verbose:
        for table in _tables(facts):
            out.print()
            out.print(table)
        out.print()
        for text in _explanations(facts):
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
    line = f"{label:<{indent}}{text}"
    if out.is_terminal:  # words, e.g. names of parameters, are never broken
        wrapper = textwrap.TextWrapper(out.width, break_long_words=False, break_on_hyphens=False)
        wrapper.subsequent_indent = " " * indent
        line = wrapper.fill(line) or line
    out.print(line, markup=False, style=style, soft_wrap=True)


def _tables(facts: Facts) -> Iterator[Table]:
    """Yield the curve over the numbers of features and the winners of the outer folds."""
    header, rows = texts.curve_rows(facts)
    if len(rows) > 1:
        references = [texts.short_reference_name(facts, name) for name in facts.references]
        yield _table([*header[: len(header) - len(references)], *references], rows, first="right")
    yield _winners_table(facts)


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


def _winners_table(facts: Facts) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("fold", no_wrap=True)
    table.add_column("winner")  # the only column that wraps where the terminal is narrow
    names = [*(["features"] if facts.has_chosen_n else []), *(["scored"] if facts.agreement else [])]
    for name in (*names, f"inner {facts.metric}", f"test {facts.metric}"):
        table.add_column(_head(name), justify="right", no_wrap=True)
    for row in texts.winner_rows(facts):
        table.add_row(*map(Text, row))
    means = mean_and_sd(facts.inner.mean), texts.format_values(facts.test)
    table.add_row("mean", "", *[""] * len(names), *means, style="bold")
    return table


def _trust(result: StudyResult) -> Iterator[tuple[str, str]]:
    """Yield label and text of the lines on further scores, on the best features and on their stability."""
    facts = result.facts
    if facts.by_task:
        yield "by task", texts.format_each(facts.by_task)
    if facts.report:
        yield "reported", f"test {texts.format_each(facts.report)}"
    if facts.agreement:
        yield "features", texts.best_features(result.ranking(by=FINAL if facts.final else CONSENSUS))
        yield "stability", texts.short_stability(facts)


def _details(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield label and text of further lines on the model, its ranking and the figures of the winners."""
    if facts.agreement:
        yield "overlap", texts.overlap(facts)
    yield "model", texts.model_sentence(facts)
    yield "optimism", texts.optimism_sentence(facts).removeprefix("Optimism: ").removesuffix(".")
    if convergence := texts.convergence(facts):
        yield "fits", convergence
    yield from (("trials", text) for text in texts.trial_sentences(facts))
    if facts.agreement and facts.agreement.consensus:
        yield "consensus", facts.agreement.consensus
    if redundancy := texts.redundancy(facts):
        yield "redundancy", redundancy
    if modalities := texts.modalities(facts):
        yield "modalities", f"{modalities} (mean of modality_scores of the outer winners; all are in manifest.json)"


def _explanations(facts: Facts) -> Iterator[str]:
    """Yield what the figures and the columns of the tables mean."""
    yield texts.rule_sentence(facts.evaluation, facts.study.choose_n)
    columns = []
    if facts.has_chosen_n:
        columns.append("features: number of best features that the scores are of")
    if facts.agreement:
        columns.append("scored: number of features with a score (above 0) in that fold's winner")
    if columns:
        yield "; ".join(columns)
    if len(facts.curve["n_features"]) > 1:
        yield "inner, test: mean ± SD over the outer folds for each number of features; of references the mean"
    if footnote := texts.interval_footnote(facts):
        yield footnote


def _files(result: StudyResult) -> Iterator[tuple[str, str]]:
    """Yield label and text of the lines on the report, the study, the next command and MLflow."""
    facts, place = result.facts, shown_place(result.path)
    more = len(facts.remarks) - len(facts.actions[:_MOST_ACTIONS])
    if result.directory.report.exists():
        others = f"; {counted(more, 'more remark')}" if more else ""
        yield "report", f"{shown_place(result.directory.report)} (all figures and tables{others})"
    yield "study", place
    for _, command in texts.open_checks(facts, shlex.quote(place))[:1]:
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
