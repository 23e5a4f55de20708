"""Summary of a finished study, and the lines and tables of all summaries."""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from raysel.core.credentials import bare_uri
from raysel.core.errors import StudyError
from raysel.core.printing import program
from raysel.core.storage.working_copy import shown_place
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.records import FINAL
from raysel.results import texts
from raysel.results.agreement import CONSENSUS
from raysel.results.facts import Facts
from raysel.results.progress import counted
from raysel.results.remarks import format_remarks, short_remarks
from raysel.results.result import StudyResult
from raysel.results.tables import TextTable
from raysel.tracking.journal_upload import notices
from raysel.tracking.mlflow_store import store_file, with_store_file
from raysel.tracking.mlflow_view import ALL_STUDIES, runs_page

#: Columns of most labels, with the space behind them.
_LABEL = 8
_MOST_ACTIONS = 3
#: Lines of the screen that the end of a study fits, and of them those of its files.
_SCREEN, _FILE_LINES = 24, 5
#: What stands for the remarks on the data at the end of a study that has printed them at its start.
_NOTED = "The score may say less than it seems to: see the notes on the data above."
#: Width of the tables where the output is no terminal.
_WIDTH = 100
#: Width up to which a cell is kept from breaking.
_WIDEST = 26
#: Blanks between two columns.
_GAP = 2

# --- study -------------------------------------------------------------------------------------


def print_answer(
    result: StudyResult, out: Console, *, verbose: bool = False, noted: bool = False
) -> None:
    """Print what a study found, and what of it asks for an action.

    Remarks on the data that the command has ``noted`` before are not repeated. On a
    terminal sentences are wrapped between words; in a file each stays on one line.
    """
    if verbose:
        _print_all(result, out)
        return
    _print_found(result, out)
    for remark in _that_fit(_asked(result.facts, noted=noted), _height(result, out), out.width):
        print_sentence(out, remark, style="yellow")


def _print_found(result: StudyResult, out: Console) -> None:
    """Print score, verdict, references and the ten best features on less than a screen."""
    facts = result.facts
    print_sentence(out, f"{texts.headline(facts)}.", style="bold")
    if verdict := texts.short_verdict(facts):
        print_sentence(out, verdict, style="yellow")
    if facts.references:
        print_table(texts.score_table(facts), out)
    if facts.agreement:
        ranking = result.ranking(by=FINAL if facts.final else CONSENSUS)
        print_table(texts.best_features_table(facts, ranking), out)
        if groups := facts.rank_groups(ranking):
            print_sentence(out, texts.first_groups(groups), "groups")
    for label, text in _further_scores(facts):
        print_sentence(out, text, label)
    for text in _planted(facts):
        print_sentence(out, text)


def _height(result: StudyResult, out: Console) -> int:
    """Return the number of lines that `_print_found` takes."""
    with out.capture() as found:
        _print_found(result, out)
    return len(found.get().splitlines())


def _asked(facts: Facts, *, noted: bool) -> list[str]:
    """Return what asks for an action, those on the data in one sentence if they were noted."""
    asks = [remark for remark in facts.actions if not (noted and remark.key == "data")]
    told = short_remarks(asks)
    return told if len(asks) == len(facts.actions) else [_NOTED, *told]


def _that_fit(remarks: Sequence[str], height: int, width: int) -> Iterator[str]:
    """Yield the first remarks: one, and up to three while the screen has lines for them."""
    for i, remark in enumerate(remarks[:_MOST_ACTIONS]):
        height += len(textwrap.wrap(remark, width))
        if i and height > _SCREEN - _FILE_LINES:
            return
        yield remark


def _print_all(result: StudyResult, out: Console) -> None:
    """Print all sentences, tables and remarks of a study."""
    facts = result.facts
    print_sentence(out, f"{texts.headline(facts)}.", style="bold")
    if notes := " ".join(texts.headline_notes(facts)):
        print_sentence(out, notes)
    if verdict := " ".join(texts.verdict_sentences(facts)):
        print_sentence(out, verdict, style="yellow")
    if facts.references:
        print_table(texts.score_table(facts), out)
    if missing := texts.missing_references_sentence(facts):
        print_sentence(out, missing, style="dim")
    if facts.agreement:
        print_features(result, result.ranking(by=FINAL if facts.final else CONSENSUS), out)
    for label, text in (*_further_scores(facts), *_details(facts)):
        print_sentence(out, text, label)
    for text in _planted(facts):
        print_sentence(out, text)
    for remark in format_remarks(facts.remarks):
        print_sentence(out, remark, style="yellow")
    for table in (texts.curve_table(facts), texts.winners_table(facts)):
        if len(table.rows) > 1:
            out.print()
            print_table(table, out)
    out.print()
    for text in _explanations(facts):
        print_sentence(out, text, style="dim")


def print_features(result: StudyResult, ranking: FeatureRanking, out: Console) -> None:
    """Print the first features of a ranking as a table, and which order it has."""
    found = result.facts.coefficients
    out.print()
    print_table(texts.feature_table(ranking, found.directions() if found else ()), out)
    print_sentence(out, ranking.what_to_print, style="dim")
    if groups := result.facts.rank_groups(ranking):
        out.print()
        print_table(texts.group_table(groups), out)
    out.print()


def _further_scores(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the scores of tasks and of further metrics, each line with its label."""
    if facts.by_task:
        yield "by task", texts.format_each(facts.by_task)
    if facts.report:
        yield "also", texts.format_each(facts.report)


def _planted(facts: Facts) -> Iterator[str]:
    """Yield what was planted in generated data and found, and what does not survive."""
    if facts.planted:
        yield texts.planted_sentence(facts.planted)
        if lost := texts.lost_sentence(facts.planted):
            yield lost


def _details(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield what is known of stability, models and trials, each with its label."""
    agreement, modalities = facts.agreement, texts.modalities(facts)
    lines = {
        "stability": texts.short_stability(facts),
        "overlap": texts.overlap(facts),
        "model": texts.model_sentence(facts),
        "scores": texts.optimism_sentence(facts).removeprefix("Scores: ").removesuffix("."),
        "fits": texts.convergence(facts),
        "trials": "; ".join(texts.trial_sentences(facts)),
        "consensus": agreement.consensus if agreement else "",
        "redundancy": texts.redundancy(facts),
        "checked": " ".join(facts.study.data_notes),
    }
    if modalities:
        lines["modalities"] = f"{modalities} (mean over the outer winners; all: manifest.json)"
    yield from ((label, text) for label, text in lines.items() if text)


def _explanations(facts: Facts) -> Iterator[str]:
    """Yield what the figures and the columns of the tables mean."""
    yield texts.rule_sentence(facts.evaluation, facts.study.choose_n)
    if positive := texts.positive_sentence(facts.evaluation, facts.classes, list(facts.by_task)):
        yield positive
    if facts.has_chosen_n:
        yield "best features: number of those that the scores are of"
    if facts.agreement:
        yield "features with a score: number of those with a score above 0 in that fold's winner"
    if len(facts.curve["n_features"]) > 1:
        yield (
            "inner, test: mean ± SD over the outer folds for each number of features; of references"
            " the mean"
        )
    if footnote := texts.interval_footnote(facts):
        yield footnote


def print_files(result: StudyResult, out: Console) -> None:
    """Print where the report of a study is, the next command, and how to open MLflow."""
    facts, place = result.facts, shown_place(result.path)
    if result.directory.report.exists():
        remarks = f" ({counted(len(facts.remarks), 'remark')})" if facts.remarks else ""
        print_line(out, "report", f"{shown_place(result.directory.report)}{remarks}")
    else:
        print_line(out, "study", place)
    for _, command in texts.open_checks(facts, shlex.quote(place), program())[:1]:
        print_line(out, "next", command)
    if not result.config.get("tracking", {}).get("mlflow", True):
        print_no_upload(result.path, out)
        return
    for label, line in zip(("MLflow", ""), _mlflow_lines(result), strict=False):
        print_line(out, label, line)
    print_upload(result.path, [result.tracking], out)


def _mlflow_lines(result: StudyResult) -> list[str]:
    """Return the command that opens MLflow, and the address of the page with the studies."""
    uri = result.stored.study.uri
    page = runs_page(result.tracking.get("experiment_id", "0"), ALL_STUDIES)
    store = store_file(uri)
    if store is None:
        place = bare_uri(uri)
        if uri.lower().startswith("http"):
            return [place.rstrip("/") + page]
        return [
            place,
            (
                f"of its pages that of the study is {page}, where mlflow server has it as"
                " --backend-store-uri"
            ),
        ]
    if store.is_relative_to(Path.cwd()):
        uri = with_store_file(uri, store.relative_to(Path.cwd()))
    command = f"{program('mlflow')} ui --backend-store-uri {shlex.quote(uri)}"
    return [command, f"http://127.0.0.1:5000{page}"]


# --- lines and tables --------------------------------------------------------------------------


def print_sentence(out: Console, text: str, label: str = "", style: str | None = None) -> None:
    """Print a sentence behind its label, wrapped on a terminal."""
    indent = max(_LABEL, len(label) + 1) if label else 0
    line = f"{label:<{indent}}{text}"
    if out.is_terminal:  # words, e.g. names of parameters, are never broken
        wrapper = textwrap.TextWrapper(out.width, break_long_words=False, break_on_hyphens=False)
        wrapper.subsequent_indent = " " * indent
        line = wrapper.fill(line) or line
    out.print(line, markup=False, style=style, soft_wrap=True)


def print_line(out: Console, label: str, text: str) -> None:
    """Print a path, an address or a command, which is not broken, behind its label."""
    out.print(f"{label:<{_LABEL}}{text}", markup=False, soft_wrap=True)


def print_no_upload(place: Path, out: Console) -> None:
    """Print that nothing was uploaded to MLflow, as asked, and the command that does it later."""
    print_line(out, "MLflow", "off by tracking.mlflow: false; to upload later:")
    print_line(out, "", f"{program()} tune --replay {shlex.quote(shown_place(place))}")


def print_upload(place: Path, states: Iterable[Mapping[str, Any]], out: Console) -> None:
    """Print what a user must know of the upload to MLflow, and the command that completes it."""
    states = list(states)
    for text in notices(states):
        print_sentence(out, text, " ", style="yellow")
    if not states[0].get("complete"):
        why = states[0].get("error") or "MLflow was too slow"
        print_sentence(out, f"not all runs are uploaded: {why}. To upload:", " ", style="yellow")
        print_line(out, "", f"{program()} tune --replay {shlex.quote(shown_place(place))}")


def print_path(path: str | Path, out: Console) -> None:
    """Print a path on a line: printable on a terminal, as it is for a program."""
    if out.is_terminal:
        out.print(str(path))
    else:
        write_for_programs(f"{path}\n")


def write_for_programs(text: str) -> None:
    """Write a text to the standard output, for a program that may end before it has read all of it.

    Paths that the encoding of the output lacks are written as they are on the disk.
    """
    if sys.stdout is None:  # closed by whoever started the command
        return
    try:
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:
            sys.stdout.flush()
            sys.stdout.buffer.write(os.fsencode(text))
        sys.stdout.flush()
    except BrokenPipeError:  # e.g. `| head`
        return
    except OSError as error:
        raise StudyError(f"the standard output cannot be written: {error.strerror}.") from error


def print_table(table: TextTable, out: Console) -> None:
    """Print a table; columns that do not fit follow below, with the names of the rows."""
    width = out.width if out.is_terminal else _WIDTH
    header = [texts.spaced(name) for name in table.header]
    if table.title:
        out.print(table.title, markup=False, style="dim")
    for number, widths in enumerate(_blocks(table, header, width)):
        shown = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
        for i, columns in widths.items():
            justify: JustifyMethod = "right" if table.is_number(i) else "left"
            shown.add_column(Text(header[i]), justify=justify, width=columns, overflow="fold")
        for row in table.rows:
            if not number or any(row[i] for i in list(widths)[1:]):
                shown.add_row(*[Text(row[i]) for i in widths])
        if number:
            out.print()
        if out.is_terminal:
            out.print(shown)
            continue
        # The width that print takes cannot exceed the console's, which is 80 without a terminal.
        before, out.width = out.width, width
        out.print(shown)
        out.width = before


def _blocks(table: TextTable, header: Sequence[str], width: int) -> Iterator[dict[int, int]]:
    """Columns that fit side by side, each with its width; the first column is in every block."""
    least, cells_only, whole = [], [], []
    for i, name in enumerate(header):
        cells = [row[i] for row in table.rows]
        # No figure, no name of a row and no word of a header is broken; settings and long remarks
        # may be.
        kept = cells
        if i and not table.is_number(i):
            kept = " ".join(cells).split()
        least.append(max([min(max(map(len, kept), default=1), _WIDEST), *map(len, name.split())]))
        cells_only.append(max(map(len, cells), default=0))
        whole.append(max(len(name), cells_only[-1]))
    start = 1
    while start < len(header):
        block, used = [0, start], least[0] + _GAP + least[start]
        while block[-1] + 1 < len(header) and used + _GAP + least[block[-1] + 1] <= width:
            block.append(block[-1] + 1)
            used += _GAP + least[block[-1]]
        start = block[-1] + 1
        widths = {i: least[i] for i in block}
        spare = max(width - used, 0)
        for wanted in (cells_only, whole):  # heads of several lines rather than cells
            for i in sorted(block, key=lambda i: wanted[i] - widths[i]):
                added = min(max(wanted[i] - widths[i], 0), spare)
                widths[i], spare = widths[i] + added, spare - added
        yield widths
