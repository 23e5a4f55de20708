"""Command ``tune``: a study or a comparison that is run, resumed, described or uploaded again."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from raysel.base.registry import imports_code
from raysel.cli.commands import BUILTIN
from raysel.cli.compare import print_comparison_files, print_outcome
from raysel.cli.plan import announce, announce_members, describe
from raysel.cli.reference import print_references
from raysel.cli.replay import run_replay
from raysel.cli.summary import print_answer, print_files, print_path
from raysel.config import is_comparison
from raysel.config.loading import ConfigT
from raysel.config.preparation import dotted_steps
from raysel.core.errors import DirectoryError, HeadLostError, StorageError, StudyError
from raysel.core.files import result_path
from raysel.core.printing import Terminal, last_words, program
from raysel.core.storage.location import as_uri
from raysel.core.storage.working_copy import opened_at, running_at, shown_place
from raysel.execution.signals import interrupt_status, sigterm_as_interrupt, was_terminated
from raysel.results.comparison.result import ComparisonResult
from raysel.results.progress import ProgressLine, counted
from raysel.results.result import StudyResult
from raysel.run import course
from raysel.run.course import OneStudy
from raysel.run.definition import Planned, ResultT
from raysel.run.launch import joined, output_directory, working_folder
from raysel.run.members import Comparison, read_state
from raysel.run.options import RunOptions
from raysel.run.recording import mlflow_uri
from raysel.study.cost import estimate_cost, with_executor
from raysel.study.definition import Study
from raysel.study.stored import StoredStudy, newest_unfinished
from raysel.tracking.directory import ComparisonRecord, MemberEntry, StudyDirectory

#: Environment variable with what the user typed before the arguments, where a script of a cluster
#: starts ``python -m raysel.tune`` and adds the address.
_COMMAND = "RAYSEL_COMMAND"


def run(arguments: Namespace) -> int:
    """Run, resume, upload or describe what the arguments ask for, and return the exit status."""
    if not (arguments.list is arguments.help_config is arguments.list_solvers is None):
        return print_references(arguments)
    out = Terminal(quiet=arguments.quiet)
    with sigterm_as_interrupt():
        try:
            with ExitStack() as places:
                _open_places(arguments, places, out)
                if arguments.replay:
                    return run_replay(Path(arguments.replay), arguments, out)
                status = _course(arguments, places, Terminal(stderr=True), out)
            if was_terminated():  # during the last wait for MLflow: the result is as it was
                return interrupt_status()
            return status
        except KeyboardInterrupt:
            return interrupt_status()


def _course(arguments: Namespace, places: ExitStack, console: Console, out: Terminal) -> int:
    """Run what is asked for in a folder of this machine, which is copied to a URI meanwhile."""
    path: Path | None = None
    options = RunOptions(
        arguments.address,
        arguments.allow_mixed_versions,
        [ProgressLine(out)],
        partial(print_answer, out=out, verbose=arguments.verbose, noted=True),
    )
    try:
        planned, directory = _prepared(arguments)
        if arguments.dry_run:
            return _describe(planned, options, arguments.output, out)
        if isinstance(planned, OneStudy):
            directory = directory or _offer(planned.first, arguments.output, out)
        planned.check_resources(options)
        place = directory.path if directory else output_directory(planned.config, arguments.output)
        path = places.enter_context(working_folder(place, options, new=True))
        places.enter_context(last_words(partial(_kept, arguments, path)))
        result = _compute(planned, directory, path, options, out)
    except KeyboardInterrupt:
        console.print(f"stopped. {_kept(arguments, path)}")
        raise
    except DirectoryError:
        raise
    except StudyError as error:
        stopped = isinstance(error, HeadLostError | StorageError)
        if stopped or isinstance(error.__cause__, OSError):  # e.g. a full disk
            error.add_note(_kept(arguments, path))
        raise
    failed = _print_result(result, StudyDirectory(path), out)
    if arguments.quiet:
        print_path(shown_place(path), Terminal())
    for entry in failed:
        console.print(f"error: {entry.label} failed: {entry.error}", style="red")
    return 1 if failed else 0


def _print_result(
    result: StudyResult | ComparisonResult, directory: StudyDirectory, out: Console
) -> list[MemberEntry]:
    """Print a result and where its files are, and return the members that failed."""
    if isinstance(result, StudyResult):
        print_files(result, out)
        return []
    print_outcome(result, out)
    print_comparison_files(directory, out)
    entries = ComparisonRecord.read(directory).members
    return [entry for entry in entries if entry.error is not None]


def _describe(
    planned: OneStudy | Comparison, options: RunOptions, output: str | None, out: Console
) -> int:
    """Print the plan, draw the data, and compute nothing."""
    config = planned.first.config
    course.check_upload(config, mlflow_uri(config))
    with joined(list(planned.studies.values()), options) as nodes:
        for line in describe(planned, _width(out), nodes):
            out.print(line)
    if config.tracking.mlflow:
        for doubt in course.upload_doubts(mlflow_uri(config)):
            out.print(f"{'to check':<14}{doubt}")
    _show_preview(planned.first, output, out)
    return 0


def _width(out: Console) -> int | None:
    """Return the width at which lines are wrapped; None where they are not."""
    return out.width if out.is_terminal else None


def _show_preview(study: Study, folder: str | None, out: Console) -> None:
    """Write the picture of a study's data and print where it is, or print how to get it."""
    if folder is None:
        out.print(
            f"{'picture':<14}add --output DIR to draw the data as they were read into"
            " DIR/preview.png"
        )
        return
    from raysel.results.displays.display import write_figure
    from raysel.results.displays.preview_data import DataPreview

    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DirectoryError(
            f"{folder} cannot be created: {error.strerror}; choose another directory."
        ) from error
    display = DataPreview.from_data(study.dataset, study.config.to_dict()["dataset"])
    path = write_figure(display.headed_figure(), Path(folder, "preview.png"))
    out.print(f"{'picture':<14}{shown_place(path)}")


def _compute(
    planned: OneStudy | Comparison,
    directory: StudyDirectory | None,
    path: Path,
    options: RunOptions,
    out: Console,
) -> StudyResult | ComparisonResult:
    """Say what runs, and run it, or resume it in its directory; return the result."""
    if isinstance(planned, Comparison):
        out.print(announce_members(planned, path))
        return _start(planned, directory, path, options)
    study, stored, cost, n_done = planned.first, None, None, 0
    if directory:
        stored = StoredStudy.read(directory)
        n_done = stored.n_trials
    with joined([study], options) as nodes:
        course.check_directory(study, path, stored)
        if nodes is None and study.config.search.executor == "auto":
            cost = estimate_cost(study, n_done)
            study = with_executor(study, cost)
        for line in announce(study, path, stored, _width(out), nodes, cost):
            out.print(line)
        return _start(OneStudy.of(study), directory, path, options)


def _start(
    planned: Planned[ConfigT, ResultT],
    directory: StudyDirectory | None,
    path: Path,
    options: RunOptions,
) -> ResultT:
    """Resume what is planned in its directory, or run it in a new one."""
    if directory:
        return planned.resume(directory, options)
    return planned.run(path, options)


def _prepared(arguments: Namespace) -> tuple[OneStudy | Comparison, StudyDirectory | None]:
    """Return what is to run, and the directory that is resumed."""
    directory = StudyDirectory(result_path(arguments.resume)) if arguments.resume else None
    if directory and not arguments.config and not directory.config.exists():
        raise DirectoryError(
            f"{directory.path} holds no study; give --resume the directory of a study or of a"
            " comparison."
        )
    holds_comparison = compared = directory is not None and directory.members.exists()
    if arguments.config:
        compared = is_comparison(arguments.config, arguments.set)
    if directory and holds_comparison and not compared:
        raise DirectoryError(
            f"{directory.path} holds a comparison, and {arguments.config} is the configuration of"
            " one study; give one with `compare`, or none to resume with that in the directory."
        )
    kind: type[OneStudy | Comparison] = Comparison if compared else OneStudy
    if directory:
        return kind.prepare(arguments.config, arguments.set, resumed=directory), directory
    return kind.prepare(arguments.config or BUILTIN, arguments.set), None


def _open_places(arguments: Namespace, places: ExitStack, out: Console) -> None:
    """Replace the URIs of stored studies and of dry runs by folders of this machine."""
    if arguments.replay:
        arguments.replay = places.enter_context(opened_at(arguments.replay, write=True))
    elif arguments.resume and arguments.dry_run:
        arguments.resume = places.enter_context(opened_at(arguments.resume))
    elif arguments.resume:
        arguments.resume = places.enter_context(
            working_folder(arguments.resume, RunOptions(listeners=[ProgressLine(out)]), new=False)
        )
    elif arguments.dry_run and as_uri(arguments.output):
        arguments.output = str(places.enter_context(running_at(arguments.output, refused=())))


def _offer(study: Study, output: str | None, out: Terminal) -> StudyDirectory | None:
    """Return the directory of the same study, interrupted, if the user wants to resume it."""
    output = output or study.config.output
    if as_uri(output):
        return None
    if output:
        found = _unfinished_in(StudyDirectory(result_path(output)), study)
    else:
        found = newest_unfinished(study, StudyDirectory.default(study.config.name).parent)
    if found is None:
        return None
    place = found.directory.path
    there = (
        f"{place} holds this study, {found.status} after {found.n_trials} of {found.study.n_trials}"
        " trials."
    )
    if sys.stdin.isatty() and out.is_terminal and not out.quiet:
        if out.confirms(f"{there} Resume it?", default=True):
            return found.directory
        return None
    out.print(f"{there} To resume it: {program()} tune --resume {shlex.quote(str(place))}")
    return None


def _unfinished_in(directory: StudyDirectory, study: Study) -> StoredStudy | None:
    """Return a study in a directory that was interrupted, if it is this one."""
    if not directory.journal.exists() or directory.is_running():
        return None
    found = StoredStudy.read(directory)
    if not found.is_of(study) or found.status == "finished":
        return None
    return found


def _kept(arguments: Namespace, path: Path | None) -> str:
    """Say what is kept of an interrupted study or comparison, and how to resume it."""
    directory = StudyDirectory(path or Path())
    names: list[str] = []
    if path and directory.members.exists():
        entries = ComparisonRecord.read(directory).members
        found = [_state(directory.member(entry.folder)) for entry in entries]
        states = [state for state in found if state is not None]
        n_finished = sum(state.status == "finished" for state in states)
        kept = f"{n_finished} of {len(entries)} members have finished, and {{trials}}"
        names += [entry.solver for entry in entries]
    elif path and directory.journal.exists():
        states = [StoredStudy.read(directory)]
        kept = "{trials} had ended and"
    elif arguments.config and is_comparison(arguments.config, arguments.set):
        return "No comparison was started."
    else:
        return "No study was started."
    for state in states:
        names += _names(state.study.config)
    n_trials = sum(state.n_trials for state in states)
    verb = "is" if n_trials == 1 else "are"
    kept = kept.format(trials=counted(n_trials, "trial"))
    return f"{kept} {verb} kept; {resume_with(arguments, directory.path, names)}"


def _names(config: Mapping[str, Any]) -> list[str]:
    """Return the names in a configuration that may be those of code."""
    evaluation, estimator = config["evaluation"], config["evaluation"]["estimator"]
    if not isinstance(estimator, str):
        estimator = estimator["name"]
    steps: list[str] = []
    for section in config["dataset"].get("tasks") or [config["dataset"]]:
        steps += dotted_steps(section.get("prepare", ()))
    return [
        config["solver"]["name"],
        config["search"]["method"],
        estimator,
        evaluation["metric"],
        *evaluation.get("report", ()),
        *steps,
    ]


def _state(member: StudyDirectory) -> StoredStudy | None:
    try:
        return read_state(member)
    except DirectoryError:  # the resume says so
        return None


def resume_with(arguments: Namespace, path: Path, names: Iterable[str]) -> str:
    """Return the command that resumes a study, as its user has to type it."""
    words = []
    if arguments.config and any(map(imports_code, names)):
        words += [arguments.config]
        for setting in arguments.set:
            words += ["--set", setting]
    words += ["--resume", shown_place(path)]
    if arguments.address and _COMMAND not in os.environ:
        words += ["--address", arguments.address]
    if arguments.allow_mixed_versions:
        words += ["--allow-mixed-versions"]
    command = os.environ.get(_COMMAND, f"{program()} tune")
    return f"resume with: {command} {shlex.join(words)}"
