"""``python -m raysel.tune``: run a study."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raysel.config import load_config
from raysel.errors import ConfigError, DataError, DirectoryError, RayselError
from raysel.search.describe import describe, warnings
from raysel.search.run import Finished, run
from raysel.search.study import Study
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import read_journal

BUILTIN = "digits-smr"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        0 when the study is finished; 2 when something given to it cannot be used; 1 when it failed;
        130 after Ctrl-C.
    """
    arguments = _parser().parse_args(argv)
    console = Console(stderr=True, soft_wrap=True)
    out = Console(soft_wrap=True, highlight=False)
    path: Path | None = None
    try:
        config = load_config(arguments.config, arguments.set)
        study = Study.prepare(config)
        if arguments.dry_run:
            for line in describe(study):
                out.print(line, markup=False)
            return 0
        path = Path(arguments.output or config.output or StudyDirectory.default(config.name))
        out.print(
            f"{config.name}: {len(study.configurations)} configurations x {study.n_inner} inner fits on "
            f"{study.dataset.name} ({study.dataset.n_samples} x {study.dataset.n_features}) -> {path}",
            markup=False,
        )
        for line in warnings(study):
            out.print(line, markup=False)
        finished = run(study, path, address=arguments.address, console=out)
    except KeyboardInterrupt:
        console.print(f"stopped. {kept(path)}", markup=False, highlight=False)
        return 130
    except RayselError as error:
        console.print(f"error: {error}", markup=False, highlight=False, style="red")
        return 2 if isinstance(error, ConfigError | DataError | DirectoryError) else 1
    report(finished, out)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m raysel.tune",
        description="Run a study: a nested search over solver configurations, tracked and ranked.",
    )
    parser.add_argument(
        "config", nargs="?", default=BUILTIN, help=f"a YAML file, or a built-in study (default: {BUILTIN})"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="A.B=VALUE", help="override a key of the configuration"
    )
    parser.add_argument("--output", metavar="DIR", help="the study's directory (default: raysel-studies/NAME-TIME)")
    parser.add_argument("--address", metavar="RAY_ADDRESS", help="join this Ray cluster instead of starting Ray here")
    parser.add_argument("--dry-run", action="store_true", help="check everything and print the plan; start nothing")
    return parser


def kept(path: Path | None) -> str:
    """What an interrupted study leaves behind, in a sentence."""
    if path is None or not StudyDirectory(path).journal.exists():
        return "Nothing was begun."
    journal = StudyDirectory(path).journal
    trials = sum(record["kind"] == "trial" for record in read_journal(journal))
    return f"{trials} trial{'' if trials == 1 else 's'} had ended; the journal {journal} keeps them."


def report(finished: Finished, out: Console) -> None:
    """Print what a study found, where its files are and how to open MLflow.

    Parameters
    ----------
    finished : Finished
    out : Console
    """
    outcome = finished.outcome
    result, metric = outcome.result, outcome.result.metric
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("fold", no_wrap=True)
    table.add_column("winner")  # the only one that gives way where the terminal is narrow
    for column in (f"inner {metric}", f"test {metric}"):
        table.add_column(column, justify="right", no_wrap=True)
    for refit in result.outer:
        table.add_row(refit.fold, Text(refit.name), f"{refit.inner_score:.3f}", f"{refit.test_score:.3f}")
    summary = result.summary()
    inner_mean = sum(summary["inner"]) / len(summary["inner"])
    table.add_row(
        "mean", "", f"{inner_mean:.3f}", f"{summary['test_mean']:.3f} ± {summary['test_std']:.3f}", style="bold"
    )
    out.print()
    out.print(table)
    counts = outcome.n_trials
    if counts["failed"]:
        why = f"their errors stand in {outcome.directory.journal}"
        out.print(f"\n{counts['failed']} of {sum(counts.values())} trials failed: {why}", markup=False)
    if counts["null"]:
        out.print(f"\n{counts['null']} of {sum(counts.values())} trials gave the zero solution", markup=False)
    stability = outcome.ranking().stability
    out.print(f"\nmodel      {result.final.name}, fitted on all {outcome.study['n_samples']} samples", markup=False)
    out.print(f"stability  of the top {outcome.default_top}: {stability}", markup=False)
    out.print(f"ranking    {outcome.directory.ranking}/ (ranking.csv, ranking.png, model.skops, ...)", markup=False)
    out.print(f"study      {outcome.directory.path}", markup=False)
    for label, line in zip(("MLflow     ", " " * 11), _mlflow_lines(finished), strict=False):
        out.print(label + line, markup=False)
    if not finished.tracking.get("complete"):
        out.print(
            f"           not all runs are there: {finished.tracking.get('error') or 'it was too slow'}. "
            f"{outcome.directory.journal} keeps them.",
            markup=False,
        )


def _mlflow_lines(finished: Finished) -> list[str]:
    """The command that opens MLflow, and the page with the trials, best first."""
    experiment, metric = finished.tracking.get("experiment_id", "0"), finished.outcome.result.metric
    page = (
        f"/#/experiments/{experiment}/runs?workflowType=machine_learning"
        f"&orderByKey=metrics.%60val_{metric}%60&orderByAsc=false"
    )
    if not finished.uri.startswith("sqlite:"):
        return [finished.uri.rstrip("/") + page]
    stored = Path(finished.uri.removeprefix("sqlite:///"))
    shown = stored.relative_to(Path.cwd()) if stored.is_relative_to(Path.cwd()) else stored
    command = f"{shlex.quote(sys.executable)} -m mlflow ui --backend-store-uri {shlex.quote(f'sqlite:///{shown}')}"
    return [command, f"then open http://127.0.0.1:5000{page}"]


if __name__ == "__main__":
    sys.exit(main())
