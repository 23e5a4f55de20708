"""Summary of a finished study as the command prints it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raysel.results import words
from raysel.results.result import StudyResult
from raysel.tracking.mlflow_pages import runs_page


def print_summary(result: StudyResult, out: Console) -> None:
    """Print the result of a study, the paths of its files and the command that opens MLflow.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.
    out : Console
        Console to print to.
    """

    def line(text: str, style: str = "") -> None:
        out.print(text, markup=False, style=style or None)

    out.print()
    out.print(_winners_table(result))
    line(f"\n{words.headline(result)}", style="bold")
    if words.shows_n_features(result):
        line(
            "best: number of best features that the scores are of, chosen by the inner scores of that fold", style="dim"
        )
    if result.ranks_features:
        line("features: number of features with a score (above 0) in that fold's winner", style="dim")
    line(words.rule_sentence(result), style="dim")
    _print_answer(result, out)
    for remark in result.remarks():
        line(f"\n{remark}", style="yellow")
    for text in _trials_in_words(result):
        line(f"\n{text}")
    if result.task_scores:
        line(f"\nby task    {words.tasks_in_words(result)}")
    if result.report:
        line(f"\nreported   test {words.report_in_words(result)}")
    for text in _model_in_words(result):
        line(text)
    if modalities := words.modalities_in_words(result):
        line(f"modalities {modalities} (mean of modality_scores of the outer winners; all are in manifest.json)")
    line(f"study      {result.path}")
    for label, text in zip(("MLflow     ", " " * 11), _mlflow_lines(result), strict=False):
        line(label + text)
    if problem := result.tracking.get("problem"):
        line(f"           {problem}", style="yellow")
    if not result.tracking.get("complete"):
        line(
            f"           not all runs are uploaded: {result.tracking.get('error') or 'MLflow was too slow'}. "
            f"To upload the journal again: python -m raysel.tune --replay {shlex.quote(str(result.path))}"
        )


def _print_answer(result: StudyResult, out: Console) -> None:
    """Print the references, the curve over the numbers of features, the optimism and what the interval means."""
    metric, rows = result.metric, [list(row) for row in words.score_rows(result)]
    if len(rows) > 1:
        header = ["method or reference", "features", f"test {metric}", "method minus it [corrected 95 % interval]"]
        out.print()
        out.print(_text_table(header, rows))
    header, rows = words.curve_rows(result)
    if len(rows) > 1:
        out.print(f"\n{metric} by the number of best features: mean (± SD) over the outer folds", markup=False)
        out.print(_text_table(header, rows))
    for sentence in (*words.verdict_sentences(result), words.missing_references_sentence(result)):
        if sentence:
            out.print(sentence, markup=False, style="yellow")
    out.print(f"\n{words.optimism_sentence(result)}", markup=False)
    if footnote := words.interval_footnote(result):
        out.print(footnote, markup=False, style="dim")


def _text_table(header: list[str], rows: list[list[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, name in enumerate(header):
        table.add_column(Text(name), justify="right" if i else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _model_in_words(result: StudyResult) -> Iterator[str]:
    """Yield the lines on the model, its ranking and the figures of the winners."""
    if result.has_final:
        model = f"\nmodel      {result.final.name}, fitted on all {result.stored.study.n_samples} samples"
        if result.is_ranked:
            model += f"; {result.n_scored[result.final.fold]} of {len(result.feature_names)} features have a score"
        yield model
    else:
        yield "\nmodel      none (cv.final is false)"
    found = result.winner_convergence
    if found.n_fits:  # not recorded by version 0.1
        of = "outer folds and final model" if result.has_final else "outer folds"
        yield f"converged  {found.n_converged} of {found.n_fits} winners ({of})"
    if result.ranks_features:
        yield f"stability  {words.stability_in_words(result)}"
        if told := result.consensus_sentence():
            yield f"consensus  {told}"
    if redundancy := words.redundancy_in_words(result):
        yield f"redundancy {redundancy}"
    if result.is_ranked:
        yield f"ranking    {result.directory.ranking}/ (ranking.csv, ranking.png, model.skops, ...)"
    elif result.ranks_features:
        yield f"rankings   {result.directory.folds}/ (of the outer folds), {result.directory.ranking}/ (manifest.json)"
    else:
        yield f"result     {result.directory.ranking}/ (manifest.json, ...); there is no ranking of the features"


def _winners_table(result: StudyResult) -> Table:
    metric = result.metric
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("fold", no_wrap=True)
    table.add_column("winner")  # the only column that wraps where the terminal is narrow
    ranked, chosen = result.ranks_features, words.shows_n_features(result)
    names = [*(["best"] if chosen else []), *(["features"] if ranked else []), f"inner {metric}", f"test {metric}"]
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for refit in result.outer:
        numbers = [str(refit.n_features)] if chosen else []
        numbers += [str(result.n_scored[refit.fold])] if ranked else []
        table.add_row(refit.fold, Text(refit.name), *numbers, f"{refit.inner_score:.3f}", f"{refit.test_score:.3f}")
    inner_mean = sum(result.inner_scores) / len(result.inner_scores)
    mean = [f"{inner_mean:.3f}", words.values_in_words(result.test_scores)]
    table.add_row("mean", "", *[""] * (chosen + ranked), *mean, style="bold")
    return table


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


def _mlflow_lines(result: StudyResult) -> list[str]:
    """Return the command that opens MLflow, and the address of the page with the trials, best first."""
    uri = result.stored.study.uri
    page = runs_page(result.tracking.get("experiment_id", "0"), result.tracking.get("view", ""))
    if not uri.startswith("sqlite:"):
        return [uri.rstrip("/") + page]
    stored = Path(uri.removeprefix("sqlite:///"))
    shown = stored.relative_to(Path.cwd()) if stored.is_relative_to(Path.cwd()) else stored
    command = f"{shlex.quote(sys.executable)} -m mlflow ui --backend-store-uri {shlex.quote(f'sqlite:///{shown}')}"
    return [command, f"then open http://127.0.0.1:5000{page}"]
