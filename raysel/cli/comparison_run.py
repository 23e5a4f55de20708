"""Command that runs a comparison: its plan, its run, and what is kept of an interrupted one."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from raysel.cli.comparison import print_comparison
from raysel.cli.messages import print_error, resume_with
from raysel.cli.plan import (
    data_headline,
    data_rows,
    failure_note,
    folds_section,
    memory_in_words,
    method_in_words,
    notes,
    notes_section,
    pilot_place,
    refit_bytes,
    section,
    shared_bytes,
    time_in_words,
)
from raysel.cli.preview import show_preview
from raysel.config import is_comparison
from raysel.core.credentials import bare_uri
from raysel.core.errors import ConfigError, DirectoryError, HeadLostError
from raysel.core.printing import last_words, print_path
from raysel.core.storage.working_copy import shown_place
from raysel.results.comparison.tables import ComparisonResult
from raysel.results.description import method_facts
from raysel.results.progress import ProgressLine, counted, duration
from raysel.run.comparison_api import comparison_directory, prepare_comparison, resume_comparison, run_comparison
from raysel.run.comparison_course import state_of
from raysel.run.comparison_definition import Comparison
from raysel.run.launch import Nodes, joined, slots, working_folder
from raysel.study.cost import estimate_cost
from raysel.study.definition import Study
from raysel.tracking.comparisons.directory import ComparisonDirectory
from raysel.tracking.comparisons.uploader import comparison_notices, comparison_status

#: Settings that each member has of its own.
_OWN = ("searched", "fixed")


def asks_for_comparison(arguments: argparse.Namespace) -> bool:
    """Return whether the arguments of the command ask for a comparison."""
    if arguments.config:
        return is_comparison(arguments.config, arguments.set)
    return bool(arguments.resume) and ComparisonDirectory(Path(arguments.resume)).members.exists()


def compare(arguments: argparse.Namespace, places: ExitStack, console: Console, out: Console) -> int:
    """Run, resume or describe the comparison that the arguments ask for."""
    path: Path | None = None
    try:
        directory = ComparisonDirectory(Path(arguments.resume)) if arguments.resume else None
        comparison = prepare_comparison(arguments.config, arguments.set, resumed=directory)
        if arguments.dry_run:
            studies, mixed = list(comparison.studies.values()), arguments.allow_mixed_versions
            with joined(studies, arguments.address, allow_mixed_versions=mixed) as nodes:
                for line in describe_comparison(comparison, out.width if out.is_terminal else None, nodes):
                    out.print(line, markup=False)
            show_preview(comparison.first, arguments.output, out)
            return 0
        data, progress = comparison.first.dataset, ProgressLine(out)
        if directory:
            path = directory.path
        else:
            place = comparison_directory(comparison, arguments.output)
            path = places.enter_context(working_folder(place, [progress], new=True))
        places.enter_context(last_words(lambda: _progress_kept(arguments, path)))
        where = {"address": arguments.address, "allow_mixed_versions": arguments.allow_mixed_versions}
        size = f"{data.name} ({data.n_samples} x {data.n_features})"
        out.print(
            f"{comparison.config.name}: {len(comparison.studies)} members on {size} -> {shown_place(path)}",
            markup=False,
        )
        if directory:
            result = resume_comparison(path, comparison, **where, progress=progress)
        else:
            result = run_comparison(comparison, output=path, **where, progress=progress)
    except KeyboardInterrupt:
        console.print(f"stopped. {_progress_kept(arguments, path)}", markup=False, highlight=False)
        raise
    except HeadLostError as error:
        print_error(error)
        console.print(_progress_kept(arguments, path), markup=False, highlight=False)
        return 1
    _print_result(result, ComparisonDirectory(path), out)
    if arguments.quiet:
        print_path(shown_place(path))
    failed = [entry for entry in ComparisonDirectory(path).read().members if entry.error is not None]
    for entry in failed:
        console.print(f"error: {entry.label} failed: {entry.error}", markup=False, highlight=False, style="red")
    return 1 if failed else 0


def describe_comparison(comparison: Comparison, width: int | None = None, nodes: Nodes = None) -> Iterator[str]:
    """Describe the data, the folds, the members with their costs, and the cost of a comparison."""
    first, n_fits, seconds, fixed, at_most, n_bytes = comparison.first, 0, 0.0, 0.0, False, 0
    yield from section("data", data_headline(first), data_rows(first, nodes), width)
    yield from folds_section(first, width)
    fit_bytes: list[int | None] = []
    of_refits: list[int | None] = []
    found: dict[str, list[str]] = {}
    members = []
    unknown: list[str] = []
    for label, study in comparison.studies.items():
        try:
            cost, places = estimate_cost(study), slots(study, nodes)
        except ConfigError as error:
            raise ConfigError(f"compare.{label}: {error}") from error
        d = study.dataset.n_features
        on = "" if d == first.dataset.n_features else f" on {d} features"
        each = "" if cost.fit_seconds is None else f" of up to {cost.fit_seconds:.3g} s"
        fits = f"{cost.n_fits} fits{each}, {time_in_words(cost, places)}"
        members.append((label, f"{method_in_words(study, on)}: {fits}"))
        members += [("", f"{term}: {text}") for term, text in _own_settings(study, first)]
        n_fits, at_most = n_fits + cost.n_fits, at_most or cost.at_most
        unknown += [label] * (cost.seconds is None)
        seconds, fixed = (
            seconds + (cost.seconds or 0.0) / places.n,
            max(fixed, cost.fixed_seconds),
        )  # one Ray, one upload
        n_bytes = max(n_bytes, shared_bytes(study, cost))
        fit_bytes.append(cost.fit_bytes)
        of_refits.append(refit_bytes(study, cost))
        known = first.data_remarks if study.dataset is first.dataset else None
        for note in (*notes(study, known), *failure_note(cost)):
            found.setdefault(note, []).append(label)
    shared = [(term, text) for term, text in method_facts(first.config.to_dict()) if term not in _OWN]
    number = f"{len(comparison.studies)}, tested against {comparison.config.reference}"
    yield from section("members", number, members, width)
    yield from section("method", f"of {next(iter(comparison.studies))}, and of all others unless said", shared, width)
    beside = f" and the time, not known, of {', '.join(unknown)}" if unknown else ""
    places = max((slots(study, nodes) for study in comparison.studies.values()), key=lambda found: found.n)
    yield from section(
        "cost",
        f"{'at most about' if at_most else 'about'} {duration(seconds + fixed)}{beside} on the "
        f"{counted(places.n, 'slot')} of {places.where}, if nothing else uses its processors: {n_fits} fits, from the "
        f"processor time of pilot fits{pilot_place(places)}, and {duration(fixed)} to start and to write the results",
        [("memory", f"at most {memory_in_words(n_bytes, _largest(fit_bytes), _largest(of_refits))}")],
        width,
    )
    whose = {note: "" if len(own) == len(comparison.studies) else f" ({', '.join(own)})" for note, own in found.items()}
    yield from notes_section([f"{note}{of}" for note, of in whose.items()], width)


def _largest(found: Iterable[int | None]) -> int | None:
    return max((n for n in found if n is not None), default=None)


def _own_settings(study: Study, first: Study) -> Iterator[tuple[str, str]]:
    """Settings of a member's own method, and those in which it differs from the first member."""
    shared = dict(method_facts(first.config.to_dict()))
    for term, text in method_facts(study.config.to_dict()):
        if (term in _OWN and (study.config.solver.space or term != "searched")) or (
            term not in _OWN and shared.get(term) != text
        ):
            yield term, text


def _print_result(result: ComparisonResult, directory: ComparisonDirectory, out: Console) -> None:
    """Print the tables of a comparison, and where its files are."""
    print_comparison(result, out)
    status = comparison_status(directory)
    out.print(f"\nreport     {shown_place(directory.report)}", markup=False)
    out.print(
        f"comparison {shown_place(directory.results)}/ (comparison.md, comparison.csv, comparison.svg, ...)",
        markup=False,
    )
    out.print(f"MLflow     {bare_uri(directory.read().uri)}, experiment {directory.read().experiment}", markup=False)
    for text in comparison_notices(directory):
        out.print(f"           {text}", markup=False, style="yellow")
    if not status["complete"]:
        out.print(
            f"           not all runs are uploaded: {status['error'] or 'MLflow was too slow'}. "
            f"To upload them again: python -m raysel.tune --replay {shlex.quote(shown_place(directory.path))}",
            markup=False,
        )


def _progress_kept(arguments: argparse.Namespace, path: Path | None) -> str:
    """Return a sentence on the members of an interrupted comparison and the command that resumes it."""
    if path is None or not ComparisonDirectory(path).members.exists():
        return "No comparison was started."
    directory = ComparisonDirectory(path)
    n_finished = n_trials = 0
    entries = directory.read().members
    for entry in entries:
        try:
            stored = state_of(directory.member(entry.folder))
        except DirectoryError:  # the resume says so
            continue
        n_finished += stored is not None and stored.status == "finished"
        n_trials += stored.n_trials if stored else 0
    return (
        f"{n_finished} of {len(entries)} members have finished, and {counted(n_trials, 'trial')} "
        f"{'is' if n_trials == 1 else 'are'} kept; {resume_with(arguments, path, [entry.solver for entry in entries])}"
    )
