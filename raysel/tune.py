"""``python -m raysel.tune``: run a study."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.prompt import Confirm
from rich.table import Table
from rich.text import Text

from raysel.base.registry import imports_code
from raysel.cli.plan import announce, describe
from raysel.config import load_config
from raysel.errors import ConfigError, DataError, DirectoryError, RayselError, StudyError
from raysel.execution.runner import Finished, check_start, resume, run
from raysel.execution.signals import install_sigterm_handler, was_terminated
from raysel.study.definition import Study
from raysel.study.stored import StoredStudy, newest_unfinished
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.uploader import replay
from raysel.tracking.uri import absolute_uri

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
        130 after Ctrl-C, 143 after SIGTERM.
    """
    arguments = _parser().parse_args(argv)
    console = Console(stderr=True, soft_wrap=True)
    out = Console(soft_wrap=True, highlight=False, quiet=arguments.quiet)
    path: Path | None = None
    install_sigterm_handler()
    try:
        if arguments.replay:
            path = Path(arguments.replay)
            return _replay(path, arguments, out)
        config = load_config(_config_path(arguments), arguments.set)
        _refuse_foreign_code(config.solver.name, arguments)
        directory = StudyDirectory(Path(arguments.resume)) if arguments.resume else None
        study = Study.prepare(config, directory.plan if directory else None)
        if arguments.dry_run:
            for line in describe(study):
                out.print(line, markup=False)
            return 0
        kept = StoredStudy.read(directory) if directory else _offer(study, arguments.output or config.output, out)
        path = kept.directory.path if kept else Path(arguments.output or config.output or _default(study))
        check_start(study, path, kept, address=arguments.address)
        for line in announce(study, path, kept):
            out.print(line, markup=False)
        finished = (
            resume(study, kept, address=arguments.address, console=out)
            if kept
            else run(study, path, address=arguments.address, console=out)
        )
    except KeyboardInterrupt:
        console.print(f"stopped. {_kept(path)}", markup=False, highlight=False)
        return 143 if was_terminated() else 130
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
    parser.add_argument("config", nargs="?", help=f"a YAML file, or a built-in study (default: {BUILTIN})")
    parser.add_argument(
        "--set", action="append", default=[], metavar="A.B=VALUE", help="override a key of the configuration"
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--output", metavar="DIR", help="the study's directory (default: raysel-studies/NAME-TIME)")
    place.add_argument("--resume", metavar="DIR", help="go on with the study in this directory, or add to it")
    place.add_argument("--replay", metavar="DIR", help="tell MLflow again what this study's journal says")
    parser.add_argument("--address", metavar="RAY_ADDRESS", help="join this Ray cluster instead of starting Ray here")
    parser.add_argument("--dry-run", action="store_true", help="check everything and print the plan; start nothing")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    return parser


def _config_path(arguments: argparse.Namespace) -> Path | str:
    """The configuration that is named, else that of the study to go on with, else the built-in one."""
    if arguments.config or not arguments.resume:
        return arguments.config or BUILTIN
    directory = StudyDirectory(Path(arguments.resume))
    if not directory.config.exists():
        raise DirectoryError(f"{directory.path} holds no study; --resume takes the directory of one.")
    return directory.config


def _refuse_foreign_code(solver: str, arguments: argparse.Namespace) -> None:
    """Refuse a solver's dotted name that a study's directory gives: only the user may name what is imported."""
    named = arguments.config or any(setting.startswith(("solver.name=", "solver=")) for setting in arguments.set)
    if arguments.resume and not named and imports_code(solver):
        raise ConfigError(
            f"solver.name: {solver} imports code, and is taken from you only, not from a study's directory: name the "
            f"configuration again, python -m raysel.tune CONFIG.yaml --resume {shlex.quote(arguments.resume)}."
        )


def _default(study: Study) -> Path:
    return StudyDirectory.default(study.config.name)


def _offer(study: Study, output: str | None, out: Console) -> StoredStudy | None:
    """An interrupted run of this very study that the person at the terminal wants to go on with."""
    if output:
        directory = StudyDirectory(Path(output))
        found = StoredStudy.read(directory) if directory.journal.exists() and not directory.is_running() else None
        if found is None or not found.is_of(study) or found.status == "finished":
            return None
    else:
        found = newest_unfinished(study, StudyDirectory.default(study.config.name).parent)
    if found is None:
        return None
    place = found.directory.path
    there = f"{place} holds this study, {found.status} after {found.n_trials} of {found.study['n_trials']} trials."
    if sys.stdin.isatty() and out.is_terminal:
        return found if Confirm.ask(f"{there} Go on with it?", console=out, default=True) else None
    out.print(f"{there} To go on with it: python -m raysel.tune --resume {shlex.quote(str(place))}", markup=False)
    return None


def _replay(path: Path, arguments: argparse.Namespace, out: Console) -> int:
    """Tell MLflow all that a journal says; what it knows already stays as it is."""
    directory = StudyDirectory(path)
    study = StoredStudy.read(directory).study
    settings = dict(setting.partition("=")[::2] for setting in arguments.set)
    uri = settings.pop("tracking.uri", None) or study["uri"]
    if settings or arguments.config:
        raise ConfigError(
            f"--replay tells what the study was and takes no {arguments.config or f'--set {next(iter(settings))}'}; "
            "it takes --set tracking.uri=... only."
        )
    with directory.open(0):  # a study that runs there tells MLflow itself
        status = replay(directory, absolute_uri(uri))
    if status["error"]:
        raise StudyError(f"MLflow at {uri} does not take the runs: {status['error']}. Try again later.")
    out.print(f"{status['logged']} records of {path} are in MLflow at {uri}", markup=False)
    return 0


def _kept(path: Path | None) -> str:
    """What an interrupted study leaves behind, in a sentence."""
    if path is None or not StudyDirectory(path).journal.exists():
        return "Nothing was begun."
    n = StoredStudy.read(StudyDirectory(path)).n_trials
    return (
        f"{n} trial{'' if n == 1 else 's'} had ended and {'is' if n == 1 else 'are'} kept; "
        f"go on with: python -m raysel.tune --resume {shlex.quote(str(path))}"
    )


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
    for column in ("features", f"inner {metric}", f"test {metric}"):
        table.add_column(column, justify="right", no_wrap=True)
    for refit in result.outer:
        n_scored = str(outcome.n_scored[refit.fold])
        table.add_row(refit.fold, Text(refit.name), n_scored, f"{refit.inner_score:.3f}", f"{refit.test_score:.3f}")
    summary = result.summary()
    inner_mean = sum(summary["inner"]) / len(summary["inner"])
    table.add_row(
        "mean",
        "",
        "",
        f"{inner_mean:.3f}",
        f"{summary['test_mean']:.3f} ± {summary['test_std']:.3f} (SD)",
        style="bold",
    )
    out.print()
    out.print(table)
    out.print("features: how many have a score (above 0) in that fold's winner", markup=False, style="dim")
    for remark in outcome.remarks():
        out.print(f"\n{remark}", markup=False, style="yellow")
    counts = outcome.n_trials
    if counts["null"]:
        out.print(f"\n{counts['null']} of {sum(counts.values())} trials gave the zero solution", markup=False)
    if counts["stopped"]:
        out.print(f"\n{counts['stopped']} of {sum(counts.values())} trials were stopped early", markup=False)
    search = outcome.study["config"]["search"]
    if not search["synchronous"] and (search["method"] == "tpe" or search.get("early_stopping")):
        out.print("\nnot synchronous: with another number of workers these figures can differ", markup=False)
    if outcome.task_scores:
        out.print(f"\nby task    {outcome.tasks_in_words()}", markup=False)
    found, n_features = outcome.winner_convergence, len(outcome.constant)
    out.print(
        f"\nmodel      {result.final.name}, fitted on all {outcome.study['n_samples']} samples; "
        f"{outcome.n_scored[result.final.fold]} of {n_features} features have a score",
        markup=False,
    )
    if found.n_fits:  # not recorded by version 0.1
        out.print(f"converged  {found.n_converged} of {found.n_fits} winners, the model among them", markup=False)
    out.print(f"stability  {outcome.stability_in_words()}", markup=False)
    out.print(f"ranking    {outcome.directory.ranking}/ (ranking.csv, ranking.png, model.skops, ...)", markup=False)
    out.print(f"study      {outcome.directory.path}", markup=False)
    for label, line in zip(("MLflow     ", " " * 11), _mlflow_lines(finished), strict=False):
        out.print(label + line, markup=False)
    if not finished.tracking.get("complete"):
        out.print(
            f"           not all runs are there: {finished.tracking.get('error') or 'it was too slow'}. "
            f"To tell it again: python -m raysel.tune --replay {shlex.quote(str(outcome.directory.path))}",
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
