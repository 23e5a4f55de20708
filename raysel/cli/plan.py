"""Plan of a study or a comparison, described before it runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from raysel.base.estimator import RECONSTRUCTED, TRANSDUCTIVE
from raysel.base.registry import solver_capabilities
from raysel.config.schema import DatasetConfig, TaskConfig
from raysel.core.arrays import IntArray
from raysel.core.errors import DataError
from raysel.core.printing import first_line, joined_lines, listed
from raysel.core.storage.location import as_uri
from raysel.core.storage.working_copy import shown_place
from raysel.data.formats.files import find_data_file
from raysel.execution.serial import MEMORY_SHARE, room_for_folds
from raysel.results import description
from raysel.results.description import Preview
from raysel.results.progress import counted, duration
from raysel.results.remarks import STORAGE_REMEDY
from raysel.results.texts import capitalized, positive_sentence
from raysel.run.course import OneStudy
from raysel.run.launch import THIS_MACHINE, Nodes, Slots, slots
from raysel.run.members import Comparison
from raysel.study.cost import (
    RAY_SECONDS,
    CostEstimate,
    estimate_cost,
    executor_sentence,
    with_executor,
)
from raysel.study.definition import Study
from raysel.study.inspection.remarks import DataRemarks
from raysel.study.stored import StoredStudy

#: Letters of the column of titles and terms, and of the narrowest and the widest text that is easy
#: to read.
_COLUMN, _LEAST, _WIDEST = 14, 30, 110
#: Number of configurations that a note names.
_NAMED, _MORE = 3, " and {n_more} more"
#: Settings that each member of a comparison has for itself.
_OF_EACH = ("searched", "fixed")


def describe(
    planned: OneStudy | Comparison, width: int | None = None, nodes: Nodes = None
) -> Iterator[str]:
    """Describe data, methods, folds with their class counts, cost, and what was noted."""
    first, plans = planned.first, []
    for label, study in planned.studies.items():
        with planned.naming(label):
            plans.append(_cost_of_member(label, study, estimate_cost(study), nodes))
    method = [*description.method_facts(first.config.to_dict()), *_positive_row(first)]
    yield from section("data", _data_headline(first), _data_rows(first, nodes), width)
    if isinstance(planned, Comparison):
        yield from _folds_section(first, width)
        yield from _members_sections(planned.config.reference, plans, method, width)
    else:
        headline = _describe_method(first) + _describe_kind(first)
        yield from section("method", headline, method, width)
        yield from _folds_section(first, width)
        yield from _cost_section(plans[0], width)
    yield from notes_section(_notes_of_members(plans), width)


def _cost_section(plan: _Cost, width: int | None) -> Iterator[str]:
    """Describe what a single study costs."""
    rows = [
        ("trials", f"{plan.study.n_trials}, {plan.cost.n_fits} fits in all"),
        ("memory", _describe_memory([plan])),
        *_executor_row(plan),
    ]
    yield from section("cost", _describe_cost(plan), rows, width)


def _members_sections(
    reference: str | None,
    plans: Sequence[_Cost],
    method: Sequence[tuple[str, str]],
    width: int | None,
) -> Iterator[str]:
    """Describe the members of a comparison, what their methods share, and what they cost."""
    rows = chain.from_iterable(_member_rows(plan, plans[0].study) for plan in plans)
    yield from section("members", f"{len(plans)}, tested against {reference}", rows, width)
    shared = [(term, text) for term, text in method if term not in _OF_EACH]
    whose = f"of {plans[0].label}, and of all others unless said"
    yield from section("method", whose, shared, width)
    memory = [("memory", f"at most {_describe_memory(plans)}")]
    yield from section("cost", _describe_total(plans), memory, width)


def _notes_of_members(plans: Sequence[_Cost]) -> list[str]:
    """Return what was noted, with the members that it is noted of where not of all."""
    first = plans[0].study
    whose: dict[str, list[str]] = {}
    for plan in plans:
        known = first.data_remarks if plan.study.dataset is first.dataset else None
        for note in (*map(joined_lines, notes(plan.study, known)), *_failure_note(plan.cost)):
            whose.setdefault(note, []).append(plan.label)
    told = []
    for note, labels in whose.items():
        of_all = len(labels) == len(plans)
        told.append(note if of_all else f"{note} ({', '.join(labels)})")
    return told


class _Cost(NamedTuple):
    """Study with its cost on the slots that it would run in."""

    label: str
    study: Study
    cost: CostEstimate
    places: Slots

    @property
    def fixed_seconds(self) -> float:
        """Elapsed seconds that do not depend on the fits: start of Ray, results, upload."""
        if self.study.executor == "ray":
            return self.cost.end_seconds + RAY_SECONDS
        return self.cost.end_seconds

    @property
    def on_slots(self) -> str:
        """On how many slots the fits run, and where, as text."""
        return f"on the {counted(self.places.n, 'slot')} of {self.places.where}"


def _cost_of_member(label: str, study: Study, cost: CostEstimate, nodes: Nodes) -> _Cost:
    if nodes is None:
        study = with_executor(study, cost)
    return _Cost(label, study, cost, slots(study, nodes))


def _executor_row(plan: _Cost) -> Iterator[tuple[str, str]]:
    """Say what ``search.executor`` auto stands for on this machine."""
    if plan.places.where == THIS_MACHINE and (sentence := executor_sentence(plan.study, plan.cost)):
        yield "executor", sentence


def _positive_row(study: Study) -> Iterator[tuple[str, str]]:
    """Say which of two classes the metrics look at."""
    data = study.dataset
    classes = [str(name) for name in data.classes] if data.target.is_one_class else ()
    evaluation, tasks = (
        study.config.evaluation.model_dump(mode="json"),
        study.dataset.layout.task_names,
    )
    if positive := positive_sentence(evaluation, classes, tasks):
        yield "positive", positive


def _member_rows(plan: _Cost, first: Study) -> Iterator[tuple[str, str]]:
    """Describe method and cost of a member, and where it differs from the first one."""
    study, cost = plan.study, plan.cost
    method, fits = _describe_method(study), f"{cost.n_fits} fits"
    if study.dataset.n_features != first.dataset.n_features:
        method += f" on {study.dataset.n_features} features"
    if cost.fit_seconds is not None:
        fits += f" of {cost.fit_seconds:.3g} s on average"
    time = _describe_time(cost, plan.places)
    yield plan.label, f"{method}{_describe_kind(study)}: {fits}, {time}"
    shared = dict(description.method_facts(first.config.to_dict()))
    for term, text in description.method_facts(study.config.to_dict()):
        if term == "searched" and not study.config.solver.space:
            continue
        if term in _OF_EACH or shared.get(term) != text:
            yield "", f"{term}: {text}"
    yield from (("", text) for _, text in _executor_row(plan))


def _describe_total(plans: Sequence[_Cost]) -> str:
    """Time and number of fits of a comparison, which starts Ray and writes its results once."""
    fixed = max(plan.fixed_seconds for plan in plans)
    seconds = sum((plan.cost.seconds or 0.0) / plan.places.n for plan in plans) + fixed
    time = _about(seconds, at_most=any(plan.cost.at_most for plan in plans))
    if unknown := [plan.label for plan in plans if plan.cost.seconds is None]:
        time += f" and the time, not known, of {', '.join(unknown)}"
    widest = max(plans, key=lambda plan: plan.places.n)
    n_fits = sum(plan.cost.n_fits for plan in plans)
    return (
        f"{time} {widest.on_slots}, if nothing else runs there: {n_fits} fits, from the processor"
        f" time of pilot fits{_pilot_place(widest.places)}, and {duration(fixed)} to start and to"
        " write the results"
    )


def section(
    title: str, headline: str, rows: Iterable[tuple[str, str]], width: int | None
) -> Iterator[str]:
    """Arrange a section of a plan: its title, and terms with their texts in two columns."""
    pairs = list(rows)
    yield from _in_columns(title, headline, _COLUMN, width)
    column = max([_COLUMN, *(len(term) + 4 for term, _ in pairs)])
    for term, text in pairs:
        yield from _in_columns(f"  {term}", text, column, width)


def _data_headline(study: Study) -> str:
    """Return the name and the size of a study's data."""
    data, name = study.dataset, study.dataset.name
    if only := study.config.dataset.only:
        name += f", only {', '.join(only)}"
    n_features = data.n_features - data.layout.n_beside
    return f"{name}: {data.n_samples} samples x {n_features} features"


def _data_rows(study: Study, nodes: Nodes = None) -> Iterator[tuple[str, str]]:
    """Describe the data of a study as they were understood."""
    data, source = study.dataset, study.config.dataset
    tasks = [f"{task.name}: {_origin(task)}" for task in source.tasks or ()]
    yield "read from", "; ".join(tasks) or _origin(source)
    if nodes is not None and source.in_memory:
        size = f"{data.X.nbytes / 2**20:.0f} MiB"
        yield (
            "shipped",
            f"once to each node by Ray's object store, {size}; no other machine needs the file",
        )
    yield from description.data_facts(
        Preview.of(data),
        study.config.to_dict()["dataset"],
        data.layout,
        data.feature_names,
        study.config.cv.groups,
    )


def _folds_section(study: Study, width: int | None) -> Iterator[str]:
    """Describe the folds of a study with their class counts."""
    folds = study.plan.folds
    final = "no final fold, so no model"
    if study.config.cv.final:
        final = "and a final fold on all data"
    blocks = description.format_blocks(study.config.to_dict()["cv"])
    rows = []
    for fold in folds:
        sets = [f"{len(fold.train)} train{_spread(study, fold.train)}"]
        if len(fold.test):
            sets.append(f"{len(fold.test)} test{_spread(study, fold.test)}")
        rows.append((fold.name, ", ".join(sets)))
    how = _stratified(study)
    yield from section(
        "folds",
        f"{len(study.plan.outer)} outer x {len(folds[0].inner)} inner{blocks}{how}, {final}",
        rows,
        width,
    )


def _stratified(study: Study) -> str:
    """Return how the folds are divided by a quantity; empty for classes."""
    blocks, plan = study.config.cv.blocks, study.config.cv.plan
    if plan or blocks.forward:
        return ""
    whole = ""
    if study.block_numbers is not None:
        whole = "the means of blocks"
    elif study.dataset.groups is not None:
        whole = "the means of groups"
    strata = study.dataset.target.describe_strata(study.dataset.y, whole)
    return strata and f", stratified by {strata}"


def notes_section(found: Sequence[str], width: int | None) -> Iterator[str]:
    """Arrange what was noted on the data, the method or the folds."""
    headline = "nothing to note"
    if found:
        headline = counted(len(found), "note")
    yield from section("checks", headline, (("note", note) for note in found), width)


def _describe_method(study: Study) -> str:
    """Return the solver of a study, the number of configurations that are tried, and how."""
    search, number = study.config.search, counted(study.n_configurations, "configuration")
    if search.adaptive:
        number += " on each outer fold"
    how = search.method
    if search.early_stopping:
        how += f", early stopping {search.early_stopping}"
    return f"{study.config.solver.name}, {number} ({how})"


def _describe_kind(study: Study) -> str:
    """Return what is special of a study's method, as the end of its description."""
    can = solver_capabilities(study.config.solver.name)
    return f"; {RECONSTRUCTED}" * can.reconstructed + f"; {TRANSDUCTIVE}" * can.transductive


def refit_bytes(study: Study, cost: CostEstimate) -> int | None:
    """Return how many bytes the largest refit of a winner may need.

    Methods hold matrices of all pairs of their samples at most, so that a refit needs at most what
    a pilot fit and its preparation needed, times the square of the ratio of their numbers of
    samples.
    """
    if cost.fit_bytes is None:
        return None
    fold, number = study.largest
    inner = fold.inner[number]
    n_pilot = len(inner.train)
    if solver_capabilities(study.config.solver.name).transductive:
        n_pilot += len(inner.validation)  # it holds the samples to predict as well
    prepared = cost.prepared_bytes / (study.n_largest * len(study.prepared_examples))
    return round((cost.fit_bytes + prepared) * (len(study.extreme_training_sets[1]) / n_pilot) ** 2)


def shared_bytes(study: Study, cost: CostEstimate) -> int:
    """Return the bytes of the data and of the prepared folds that are kept for all trials."""
    kept: float = cost.prepared_bytes
    if study.executor == "serial":
        kept = min(kept, room_for_folds(study, MEMORY_SHARE))
    return study.dataset.X.nbytes + round(kept)


def _describe_memory(plans: Sequence[_Cost]) -> str:
    """Return the largest memory that workers share, and that of a fit and a refit, if known."""
    shared = max(shared_bytes(plan.study, plan.cost) for plan in plans)
    fits = filter(None, (plan.cost.fit_bytes for plan in plans))
    refits = filter(None, (refit_bytes(plan.study, plan.cost) for plan in plans))
    text = f"{shared / 2**20:.0f} MiB shared by all workers"
    if fit := max(fits, default=None):
        text += f", and up to {fit / 2**20:.0f} MiB for each fit that runs at once"
    if refit := max(refits, default=None):
        text += f", {refit / 2**20:.0f} MiB for the refit of a winner"
    return text


def announce_members(comparison: Comparison, path: Path) -> str:
    """Say what is about to run: how many members, on which data, in which directory."""
    what = f"{len(comparison.studies)} members on {_short_data(comparison.first)}"
    return f"{comparison.config.name}: {what} -> {shown_place(path)}"


def announce(
    study: Study,
    path: Path,
    stored: StoredStudy | None,
    width: int | None = None,
    nodes: Nodes = None,
    cost: CostEstimate | None = None,
) -> Iterator[str]:
    """Describe a study that is about to run: configurations, directory, notes and cost."""
    n_inner, where = study.n_inner, ""
    if study.config.search.adaptive:
        n_inner, where = n_inner // len(study.plan.folds), " on each outer fold"
    tried = f"{counted(study.n_configurations, 'configuration')}{where}"
    each = f"{counted(n_inner, 'inner fit')} on {_short_data(study)}"
    text = f"{study.config.name}: {tried} x {each} -> {shown_place(path)}"
    yield from _in_columns("", text, 0, width)
    n_done = 0
    if stored:
        n_done, verb = stored.n_trials, "are"
        if study.n_trials == 1:
            verb = "is"
        yield f"{n_done} of {counted(study.n_trials, 'trial')} {verb} done"
    cost = cost or estimate_cost(study, n_done)
    plan = _cost_of_member(study.config.name, study, cost, nodes)
    asking = [note for note in notes(study) if note not in study.data_remarks.others]
    for note in (*map(first_line, asking), *_failure_note(cost)):
        yield from _in_columns("note", note, 10, width)
    yield from _in_columns("", _short_cost(plan), 0, width)
    for _, sentence in _executor_row(plan):
        yield from _in_columns("", sentence, 0, width)


def _short_data(study: Study) -> str:
    data = study.dataset
    return f"{data.name} ({data.n_samples} x {data.n_features - data.layout.n_beside})"


def _short_cost(plan: _Cost) -> str:
    """Return how long a study takes in one sentence, without what the dry run tells of it."""
    time = capitalized(_describe_time(plan.cost, plan.places, plan.fixed_seconds))
    if plan.cost.seconds is not None:
        time += " if nothing else runs there"
    return f"{time}: {plan.cost.n_fits} fits {plan.on_slots}."


def _describe_cost(plan: _Cost) -> str:
    """Return how long a study takes, by how many fits, and what is beside them."""
    cost, places = plan.cost, plan.places
    rest = f"and {duration(plan.fixed_seconds)} to start and to write the results"
    if cost.seconds is None:
        return f"{_describe_time(cost, places)} {plan.on_slots}: {cost.n_fits} fits, {rest}"
    if cost.reference_seconds >= 1.0:
        rest = f"{duration(cost.reference_seconds)} for the references, {rest}"
    time = _describe_time(cost, places, plan.fixed_seconds)
    return (
        f"{time} {plan.on_slots}, if nothing else runs there: {cost.n_fits} fits of"
        f" {cost.fit_seconds:.3g} s of processor time on average, from pilot"
        f" fits{_pilot_place(places)}, {rest}"
    )


def _describe_time(cost: CostEstimate, places: Slots, fixed: float = 0.0) -> str:
    """Return how long the fits of a study take on its slots, or that it is not known, as text."""
    if cost.seconds is None:
        return f"time not known ({cost.unknown})"
    return _about(cost.seconds / places.n + fixed, at_most=cost.at_most)


def _about(seconds: float, *, at_most: bool) -> str:
    return f"{'at most ' * at_most}about {duration(seconds)}"


def _failure_note(cost: CostEstimate) -> Iterator[str]:
    """Yield what fails in the pilot fits: numbers of features and configurations."""
    for each in cost.failing:
        yield f"evaluation.estimator fails with {each.what}, which will be left out: {each.reason}"
    if cost.failures:
        names, reason = listed(cost.failures, _NAMED, _MORE), next(iter(cost.failures.values()))
        yield f"The fit of {names} fails, and will as a trial: {reason}"


def _pilot_place(places: Slots) -> str:
    """Return where the pilot fit ran, if the study's own fits run on other machines."""
    return " on this machine" * (places.where != THIS_MACHINE)


def notes(study: Study, on_data: DataRemarks | None = None) -> list[str]:
    """Return what in data, method or folds may affect the results, before a study runs."""
    questioning, others = on_data or study.data_remarks
    return [*questioning, *others, *study.scale_remarks, *_notes_on_method(study)]


def _notes_on_method(study: Study) -> Iterator[str]:
    if study.findings.untrusted:
        change = "not be written"
        if study.findings.storable:
            change = "lack the fitted method"
        types = ", ".join(study.findings.untrusted)
        yield f"model.skops will {change}, because a file cannot hold {types}: {STORAGE_REMEDY}."
    if study.dataset.target.may_lack:
        lacking = list(study.plan.lacking(study.dataset.y, study.dataset.label_names))
        if lacking:
            sets = listed(lacking, 1, ", and {n_more} more such sets")
            yield f"{sets}; such a label counts as 0 there."


def _spread(study: Study, index: IntArray) -> str:
    """Describe what is predicted of some samples, in brackets."""
    words = study.dataset.target.summarise(study.dataset.y, index)
    return words and f" ({words})"


def _origin(source: DatasetConfig | TaskConfig) -> str:
    """Return where samples were read from, as text."""
    if source.path is None:
        return f"{source.source}, built into raysel"
    parts = [_found(source.path)]
    if source.labels:
        parts.append(f"labels from {source.labels}")
    if isinstance(source, DatasetConfig) and source.mask:
        parts.append(f"voxels of {source.mask}")
    return ", ".join(parts)


def _found(path: str) -> str:
    """Return where a data file was found, and of a URI what was copied."""
    try:
        copy = find_data_file(path)
    except DataError:  # a folder of files, which its reader finds
        return path
    if not as_uri(path):
        return str(copy)
    size = ""
    if copy.is_file():
        size = f" ({copy.stat().st_size / 2**20:.1f} MiB)"
    return f"{path}{size}, copied to {copy}"


def _in_columns(term: str, text: str, indent: int, width: int | None) -> Iterator[str]:
    """Lines of a term with its text, wrapped at spaces and indented below its start."""
    lines = [text]
    if width is not None:
        room = max(_LEAST, min(width, _WIDEST) - indent)
        lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    yield f"{term:<{indent}}{lines[0]}"
    for line in lines[1:]:
        yield f"{'':<{indent}}{line}"
