"""Course of the command ``tune``: a study or a comparison that is run, resumed, described or uploaded again."""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.prompt import Confirm
from rich.text import Text

from raysel.cli.command import BUILTIN
from raysel.cli.comparison_run import asks_for_comparison, compare
from raysel.cli.messages import print_error, resume_with
from raysel.cli.plan import announce, describe
from raysel.cli.preview import show_preview
from raysel.cli.summary import print_answer, print_files
from raysel.config import load_comparison
from raysel.core.credentials import bare_uri, keep_all_credentials, keep_credentials
from raysel.core.errors import ConfigError, DirectoryError, HeadLostError, RayselError, StudyError
from raysel.core.files import result_path
from raysel.core.printing import Terminal, last_words, print_path
from raysel.core.storage.location import as_uri
from raysel.core.storage.working_copy import opened_at, running_at, shown_place
from raysel.execution.signals import interrupt_status, sigterm_as_interrupt
from raysel.results.progress import ProgressLine, counted
from raysel.run import course
from raysel.run.api import prepare_study
from raysel.run.launch import check_resources, joined, make_executor, output_directory, working_folder
from raysel.study.definition import Study
from raysel.study.stored import StoredStudy, newest_unfinished
from raysel.tracking.comparisons.directory import ComparisonDirectory
from raysel.tracking.comparisons.record import ComparisonRecord
from raysel.tracking.comparisons.uploader import comparison_notices, replay_comparison
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.places import check_names, check_place, names_in_mlflow, note_names, note_place
from raysel.tracking.records import StudyRecord
from raysel.tracking.uploader import notices, replay
from raysel.tracking.uri import absolute_uri


def run(arguments: argparse.Namespace) -> int:
    """Run, resume, upload or describe what the arguments ask for, and return the exit status."""
    for name in ("output", "resume", "replay"):
        setattr(arguments, name, keep_all_credentials(getattr(arguments, name)))
    with sigterm_as_interrupt():
        return _run(arguments, Terminal(stderr=True), Terminal(quiet=arguments.quiet))


def _run(arguments: argparse.Namespace, console: Console, out: Console) -> int:
    """Run the study that the arguments ask for and return the exit status."""
    try:
        with ExitStack() as places:
            _open_places(arguments, places, out)
            if not arguments.replay and asks_for_comparison(arguments):
                _directory_to_resume(arguments)
                return compare(arguments, places, console, out)
            return _course(arguments, places, console, out)
    except KeyboardInterrupt:
        return interrupt_status()
    except RayselError as error:
        return print_error(error)


def _course(arguments: argparse.Namespace, places: ExitStack, console: Console, out: Console) -> int:
    """Run one study in a folder of this machine, which is copied to a URI meanwhile."""
    path: Path | None = None
    progress = ProgressLine(out)
    try:
        if arguments.replay:
            path = Path(arguments.replay)
            return _replay(path, arguments, out)
        directory = _directory_to_resume(arguments)
        if directory and ComparisonDirectory(directory.path).members.exists():
            raise DirectoryError(
                f"{directory.path} holds a comparison, and {arguments.config} is the configuration of one study; give "
                "one with `compare`, or none to resume with that in the directory."
            )
        study = prepare_study(arguments.config or (None if directory else BUILTIN), arguments.set, resumed=directory)
        width = out.width if out.is_terminal else None
        mixed = arguments.allow_mixed_versions
        if arguments.dry_run:
            with joined([study], arguments.address, allow_mixed_versions=mixed) as nodes:
                for line in describe(study, width, nodes):
                    out.print(line, markup=False)
            show_preview(study, arguments.output, out)
            return 0
        stored = StoredStudy.read(directory) if directory else _offer(study, arguments.output, out)
        check_resources(study, arguments.address)
        place = stored.directory.path if stored else output_directory(study, arguments.output)
        path = places.enter_context(working_folder(place, [progress], new=True))
        places.enter_context(last_words(lambda: resume_with(arguments, path, [study.config.solver.name])))
        with joined([study], arguments.address, allow_mixed_versions=mixed) as nodes:
            course.check_directory(study, path, stored)
            for line in announce(study, path, stored, width, nodes):
                out.print(line, markup=False)
            executor = make_executor(study, arguments.address, allow_mixed_versions=mixed)
            show = partial(print_answer, out=out, verbose=arguments.verbose)
            if stored:
                result = course.resume(study, stored, executor, [progress], show=show)
            else:
                result = course.run(study, path, executor, [progress], show=show)
    except KeyboardInterrupt:
        console.print(f"stopped. {_progress_kept(arguments, path)}", markup=False, highlight=False)
        raise
    except HeadLostError as error:
        print_error(error)
        if path:
            console.print(resume_with(arguments, path, [study.config.solver.name]), markup=False, highlight=False)
        return 1
    print_files(result, out)
    if arguments.quiet:
        print_path(shown_place(result.path))
    return 0


def _open_places(arguments: argparse.Namespace, places: ExitStack, out: Console) -> None:
    """Replace the URIs of stored studies, and that to which a dry run writes, by folders of this machine."""
    if arguments.replay:
        arguments.replay = places.enter_context(opened_at(arguments.replay, write=True))
    elif arguments.resume and arguments.dry_run:
        arguments.resume = places.enter_context(opened_at(arguments.resume))
    elif arguments.resume:
        arguments.resume = places.enter_context(working_folder(arguments.resume, [ProgressLine(out)], new=False))
    elif arguments.dry_run and as_uri(arguments.output):
        arguments.output = str(places.enter_context(running_at(arguments.output, refused=())))


def _directory_to_resume(arguments: argparse.Namespace) -> StudyDirectory | None:
    """Return the directory given by --resume, after a check that it holds a study."""
    if not arguments.resume:
        return None
    directory = StudyDirectory(result_path(arguments.resume))
    if not arguments.config and not directory.config.exists():
        raise DirectoryError(
            f"{directory.path} holds no study; give --resume the directory of a study or of a comparison."
        )
    return directory


def _offer(study: Study, output: str | None, out: Console) -> StoredStudy | None:
    """Return an interrupted run of the same study if the user confirms to resume it."""
    output = output or study.config.output
    if as_uri(output):
        return None
    if output:
        directory = StudyDirectory(result_path(output))
        found = StoredStudy.read(directory) if directory.journal.exists() and not directory.is_running() else None
        if found is None or not found.is_of(study) or found.status == "finished":
            return None
    else:
        found = newest_unfinished(study, StudyDirectory.default(study.config.name).parent)
    if found is None:
        return None
    place = found.directory.path
    there = f"{place} holds this study, {found.status} after {found.n_trials} of {found.study.n_trials} trials."
    if sys.stdin.isatty() and out.is_terminal and not out.quiet:
        return found if Confirm.ask(Text(f"{there} Resume it?"), console=out, default=True) else None
    out.print(f"{there} To resume it: python -m raysel.tune --resume {shlex.quote(str(place))}", markup=False)
    return None


def _replay(path: Path, arguments: argparse.Namespace, out: Console) -> int:
    """Upload a journal to MLflow again; runs that are already there are not changed."""
    comparison, directory = ComparisonDirectory(path), StudyDirectory(path)
    is_one = comparison.members.exists()
    stored: ComparisonRecord | StudyRecord = comparison.read() if is_one else StoredStudy.read(directory).study
    settings = {name: value for name, _, value in (setting.partition("=") for setting in arguments.set)}
    uri = settings.pop("tracking.uri", None)
    given = {}
    for key in ("experiment", "register"):
        if (name := settings.pop(f"tracking.{key}", None)) is not None:
            given[key] = None if name in ("", "null", "~") else name
    if arguments.dry_run:
        raise ConfigError("--replay uploads at once and has nothing to try; leave --dry-run out.")
    if settings or arguments.config:
        raise ConfigError(
            f"--replay uploads the stored study and cannot be combined with "
            f"{arguments.config or f'--set {next(iter(settings))}'}; only --set of tracking.uri, "
            "tracking.experiment and tracking.register is allowed."
        )
    if uri is None:
        check_place("tracking.uri", uri := stored.uri, path)
    sections = (
        [vars(member.tracking) for member in load_comparison(comparison.config).members.values()]
        if isinstance(stored, ComparisonRecord)
        else [stored.config.get("tracking", {})]
    )
    for section in sections:
        names = names_in_mlflow({**section, "experiment": stored.experiment}, stored.name)
        check_names(names, stored.id, path, given)
    uri = absolute_uri(keep_credentials(uri))
    note_place(uri)
    note_names({key: name for key, name in given.items() if name}, stored.id)
    with directory.open(0):  # a running study uploads its journal itself
        status = replay_comparison(comparison, uri, given) if is_one else replay(directory, uri, given)
    for text in comparison_notices(comparison) if is_one else notices([status]):
        out.print(text, markup=False)
    if status["error"]:
        raise StudyError(f"the upload failed: {status['error']}. Try again later.")
    what = "studies and comparisons" if is_one else "records"
    out.print(f"{status['logged']} {what} of {shown_place(path)} are in MLflow at {bare_uri(uri)}", markup=False)
    return 0


def _progress_kept(arguments: argparse.Namespace, path: Path | None) -> str:
    """Return a sentence on the trials of an interrupted study and the command that resumes it."""
    if path is None or not StudyDirectory(path).journal.exists():
        return "No study was started."
    stored = StoredStudy.read(StudyDirectory(path))
    n, again = stored.n_trials, resume_with(arguments, path, [stored.study.config["solver"]["name"]])
    return f"{counted(n, 'trial')} had ended and {'is' if n == 1 else 'are'} kept; {again}"
