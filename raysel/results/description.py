"""Description of what is asked: the data as understood, and the method with its settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.core.files import make_instance, parse_json, write_text_atomically
from raysel.core.printing import listed, quoted
from raysel.data.dataset import Dataset
from raysel.data.layouts import SEPARATOR, Layout
from raysel.data.stored_samples import StoredSamples, Summary
from raysel.data.task_blocks import list_blocks
from raysel.data.whole_numbers import other_notes
from raysel.evaluation.scoring_estimators import MOST_FOR_NEIGHBOURS
from raysel.numerics.metrics import is_of_quantities
from raysel.results.progress import counted
from raysel.results.texts import confounds_of, number_range, rule_sentence, spaced

_MOST_CLASSES = 24
_FIRST_NAMES = 6
_LONGEST_VALUE = 60
_SCALINGS = {
    "unit": "the range of all values to [0, 1]",
    "zscore": "each feature to mean 0 and variance 1",
    "none": "the values as they are",
    "zscore_sqrt_width": (
        "each feature to mean 0 and variance 1, divided by the square root of its modality's width"
    ),
    "minmax": "each feature to [0, 1]",
    "row_unit": "each sample to norm 1 in each modality",
}
#: What the keys of a data set leave out.
_LEFT_OUT = {
    "drop": "columns",
    "exclude_classes": "classes",
    "exclude_labels": "labels",
    "classes": "all classes but",
    "only": "all modalities but",
}
#: Scalings that learn nothing from samples.
_NOT_FITTED = ("none", "row_unit")
_FITTED = "fitted on the training samples of each fold"
_IN_BATCHES = (
    "no: the file is read in batches, by all workers, whose machines need it at the same path"
)
#: What ``evaluation.references`` leaves, where it is not true.
_FEWER_REFERENCES = {
    False: "none (evaluation.references: false)",
    "chance": "chance alone (evaluation.references: chance)",
}
#: Domains of parameters between two ends.
_RANGES = {
    "uniform": "any value from {} to {}",
    "loguniform": "any value from {} to {} on a log scale",
    "randint": "whole numbers from {} to {}",
}


@dataclass(frozen=True)
class Preview:
    """Description of the data that is shown before a study runs and in its report."""

    classes: list[str]
    counts: list[int]
    is_multilabel: bool
    n_groups: int | None
    ranges: list[tuple[str, float, float, float]]
    label: str | None = None
    group_sizes: tuple[int, int] | None = None
    values: tuple[float, float, float] | None = None
    n_by_task: tuple[int, ...] = ()
    n_unlabelled: int | None = None
    notes: tuple[str, ...] = ()
    #: Name, smallest value, mean, largest value and standard deviation of each quantity.
    quantities: list[tuple[str, float, float, float, float]] = field(default_factory=list)

    @classmethod
    def of(cls, data: Dataset) -> Preview:
        """Return the preview of a data set."""
        target = data.target
        n_groups: int | None = None
        group_sizes: tuple[int, int] | None = None
        if data.groups is not None:
            sizes = np.unique(data.groups, return_counts=True)[1]
            n_groups, group_sizes = len(sizes), (int(sizes.min()), int(sizes.max()))
        parts = data.excerpt.parts()
        ranges = [(name, *_range([part])) for name, part in parts.items() if name]
        values = _range([*parts.values()]) if parts else None
        if isinstance(data.X, StoredSamples):
            known = data.X.summary
            ranges = [
                (name, *_known_range(known, columns))
                for name, columns in data.layout.slices().items()
            ]
            values = _known_range(known, slice(None))
        classes: list[str] = []
        quantities: list[tuple[str, float, float, float, float]] = []
        if target.is_of_classes:
            classes = [str(name) for name in data.classes]
        else:
            quantities = _quantities(data)
        return cls(
            classes=classes,
            counts=target.counts(data.y).tolist(),
            is_multilabel=target.may_lack,
            n_groups=n_groups,
            ranges=ranges,
            label=data.label,
            group_sizes=group_sizes,
            values=values,
            n_by_task=tuple(map(len, list_blocks(data.X))) if data.layout.is_multitask else (),
            n_unlabelled=target.n_unlabelled(data.y),
            notes=tuple(data.notes),
            quantities=quantities,
        )

    def write(self, path: Path) -> None:
        """Write the preview as JSON."""
        write_text_atomically(path, json.dumps(asdict(self)), durable=False)

    @classmethod
    def read(cls, path: Path) -> Preview | None:
        """Read a preview; None if there is none, or the file is damaged."""
        try:
            return make_instance(cls, parse_json(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError):
            return None


def _range(blocks: Sequence[FloatArray]) -> tuple[float, float, float]:
    """Smallest, mean and largest value of arrays."""
    total = sum(float(block.sum()) for block in blocks)
    return (
        min(float(block.min()) for block in blocks),
        total / sum(block.size for block in blocks),
        max(float(block.max()) for block in blocks),
    )


def _known_range(summary: Summary, columns: slice) -> tuple[float, float, float]:
    """Smallest, mean and largest value of features of which the statistics are known."""
    return (
        float(summary.smallest[columns].min()),
        float(summary.mean[columns].mean()),
        float(summary.largest[columns].max()),
    )


def data_facts(
    preview: Preview | None,
    dataset: Mapping[str, Any],
    layout: Layout,
    feature_names: Sequence[str],
    groups: str | None = None,
) -> Iterator[tuple[str, str]]:
    """Describe the data as they were understood."""
    d = len(feature_names) - layout.n_beside
    beside, feature_names = feature_names[d:], feature_names[:d]
    if preview:
        yield from _describe_labels(preview, groups)
    first = ", ".join(quoted(name) for name in feature_names[:_FIRST_NAMES])
    if d > _FIRST_NAMES:
        first += f", ... {quoted(feature_names[-1])}"
    yield "features", f"{d}: {first}"
    if beside:
        yield "confounds", f"{len(beside)}, which are no features: {listed(map(quoted, beside))}"
    n_by_task: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    if preview:
        n_by_task, notes = preview.n_by_task, preview.notes
    yield "layout", layout.describe(dataset.get("order") or "C", n_by_task)
    if preview and preview.values:
        yield "values", format_ranges(preview)
    if dataset.get("in_memory") is False:
        yield "in memory", _IN_BATCHES
    if left := list(_left_out(dataset)):
        yield "left out", "; ".join(left)
    for note in other_notes(notes):
        yield "reader", note


def _quantities(data: Dataset) -> list[tuple[str, float, float, float, float]]:
    columns = data.target.columns(data.y)
    names = data.label_names or (data.label or "y",)
    return [
        (name, float(y.min()), float(y.mean()), float(y.max()), float(y.std()))
        for name, y in zip(names, columns, strict=True)
    ]


def _describe_labels(preview: Preview, groups: str | None) -> Iterator[tuple[str, str]]:
    """Describe what is predicted, and the groups of samples."""
    if preview.label is not None:
        yield "label", quoted(preview.label)
    if preview.quantities:
        name = "quantity" if len(preview.quantities) == 1 else "quantities"
        yield name, format_quantities(preview)
    else:
        yield "labels" if preview.is_multilabel else "classes", format_classes(preview)
    if preview.n_groups is not None:
        yield "groups", _format_groups(preview, groups)


def format_quantities(preview: Preview) -> str:
    """Return range, mean and standard deviation of the quantities."""
    shown = []
    for name, low, mean, high, sd in preview.quantities:
        described = f"{low:.4g} to {high:.4g}, mean {mean:.4g}, SD {sd:.3g}"
        if len(preview.quantities) > 1:
            described = f"{quoted(name)} {described}"
        shown.append(described)
    return _list_names(shown)


def format_classes(preview: Preview) -> str:
    """Return the number of classes or labels, how many samples each has, and their names."""
    if preview.n_by_task:
        by_task: dict[str, list[int]] = {}
        for name, count in zip(preview.classes, preview.counts, strict=True):
            by_task.setdefault(name.partition(SEPARATOR)[0], []).append(count)
        shown = [f"{task} {len(sizes)} ({_each(sizes)})" for task, sizes in by_task.items()]
        return f"{len(preview.classes)}: {_list_names(shown)}"
    named = [quoted(name) for name in preview.classes]
    if len(set(preview.counts)) > 1:
        pairs = zip(named, preview.counts, strict=True)
        named = [f"{name} ({count})" for name, count in pairs]
    described = f"{len(named)}, {_each(preview.counts)}: {_list_names(named)}"
    if preview.n_unlabelled:
        return f"{described}; {counted(preview.n_unlabelled, 'sample')} without any label"
    return described


def format_ranges(preview: Preview) -> str:
    """Return the smallest, mean and largest value, of each modality or task if several."""
    if preview.ranges:
        each = [
            f"{quoted(name)} {low:.4g} to {high:.4g} (mean {mean:.4g})"
            for name, low, mean, high in preview.ranges
        ]
        return ", ".join(each)
    low, mean, high = preview.values or (0.0, 0.0, 0.0)
    return f"{low:.4g} to {high:.4g}, mean {mean:.4g}"


def method_facts(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Describe the settings of the method and how it is scored."""
    solver, evaluation = config["solver"], config["evaluation"]
    searched, fixed = solver.get("space", {}).items(), solver.get("params", {}).items()
    space = [f"{name} ({format_domain(domain)})" for name, domain in searched]
    yield "searched", ", ".join(space) or "nothing"
    if fixed:
        yield "fixed", ", ".join(f"{name} = {_value(value)}" for name, value in fixed)
    if solver.get("importance"):
        loss = f"the loss of {spaced(evaluation['metric'])} on held-out training samples"
        yield "ranking", f"by permutation: {loss}"
    yield from _describe_preparation(config["dataset"])
    rule = rule_sentence(evaluation, evaluation.get("choose_n", "mean"))
    yield "score", f"{spaced(evaluation['metric'])}. {rule}"
    if evaluation["estimator"] != "native":
        yield "best N", f"{', '.join(map(str, evaluation['n_features']))} features are scored"
    if report := evaluation.get("report"):
        named = ", ".join(map(spaced, report))
        yield "reported", f"{named} on the test samples; they choose nothing"
    yield "references", _describe_references(config)


def _describe_preparation(dataset: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Describe the steps before the method, and the scaling."""
    sections = dataset.get("tasks") or [dataset]
    if prepared := [_prepared(section) for section in sections if section.get("prepare")]:
        yield "prepared", f"{'; '.join(prepared)}; {_FITTED}"
    scaling = dataset["scaling"]
    described = f"{scaling} ({_SCALINGS.get(scaling, scaling)})"
    if scaling not in _NOT_FITTED:
        described += f"; {_FITTED}"
    yield "scaling", described


def _describe_references(config: Mapping[str, Any]) -> str:
    """Return what the method is compared with."""
    dataset, evaluation = config["dataset"], config["evaluation"]
    wanted = evaluation.get("references", True)
    references = "all features, the rankings by variance and by F-test, and chance"
    if wanted in _FEWER_REFERENCES:
        references = _FEWER_REFERENCES[wanted]
    elif evaluation["estimator"] == "native":
        references = _native_references(dataset, evaluation["metric"])
    beside = confounds_of(dataset)
    if not wanted or not beside:
        return references
    return f"{references}; and the confounds alone, {listed(beside)}, by a linear model"


def _native_references(dataset: Mapping[str, Any], metric: str) -> str:
    of_quantities = dataset.get("task") == "regression" or is_of_quantities(metric)
    rival = f"the 1-nearest neighbour (logistic regression above {MOST_FOR_NEIGHBOURS} samples)"
    scaled = ""
    if of_quantities:
        rival = "ridge regression"
    if dataset["scaling"] == "none" and not dataset.get("tasks"):
        scaled = ", standardised where the inner scores are better so"
    return f"all features by {rival}{scaled}, and chance"


def _describe_step(step: Mapping[str, Any]) -> str:
    described = name = next(key for key in step if key != "columns")
    given = ", ".join(f"{key} {_value(value)}" for key, value in step[name].items())
    if given:
        described = f"{name} ({given})"
    columns = step.get("columns")
    if isinstance(columns, Mapping):
        columns = columns["modality"]
    if not columns:
        return described
    if not isinstance(columns, str):
        columns = listed(columns, 5)
    return f"{described} of {columns}"


def _prepared(section: Mapping[str, Any]) -> str:
    """Return the steps of ``dataset.prepare`` as text, with the columns of each if named."""
    parts = [", ".join(map(_describe_step, section.get("prepare", ())))]
    if section.get("confounds"):
        parts.append(f"confounds {listed(section['confounds'])}")
    described = "; ".join(filter(None, parts))
    if "name" not in section:
        return described
    return f"{section['name']}: {described}"


def format_domain(domain: Any) -> str:
    """Return the values of a searched parameter as text."""
    if isinstance(domain, list | tuple):
        return _items(domain)
    if not isinstance(domain, Mapping):
        return _value(domain)
    ((kind, bounds),) = domain.items()
    low, high = (f"{bound:g}" for bound in bounds[:2])
    if kind == "logspace":
        return f"{bounds[2]} values from {low} to {high} in equal ratios"
    return _RANGES.get(kind, f"{kind} {{}} to {{}}").format(low, high)


def format_blocks(cv: Mapping[str, Any]) -> str:
    """Say, from the section ``cv``, that folds are made of consecutive rows; else nothing."""
    if not cv.get("blocks"):
        return ""
    blocks = {"size": 1, "gap": 0, "forward": False} | cv["blocks"]
    kind = f"of whole blocks of {blocks['size']} consecutive rows"
    if blocks["forward"]:
        kind = "forward in the file"
    if blocks["gap"]:
        kind += f" with {blocks['gap']} rows left out on either side of held-out ones"
    return f", {kind}"


def _format_groups(preview: Preview, name: str | None) -> str:
    groups = f"{preview.n_groups} groups"
    if preview.group_sizes:
        groups += f" of {number_range(preview.group_sizes, ' to ')} samples"
    if name:
        groups = f"{quoted(name)}: {groups}"
    return f"{groups}; a group is never divided between training and test"


def _left_out(dataset: Mapping[str, Any]) -> Iterator[str]:
    """Phrases on what the configuration leaves out of the data."""
    for section in (dataset, *(dataset.get("tasks") or ())):
        of = f"task {section['name']}: " if "name" in section else ""
        for key, what in _LEFT_OUT.items():
            beside = confounds_of(section) if key == "drop" else []  # which are read
            if names := [name for name in section.get(key) or () if name not in beside]:
                shown = _list_names([quoted(str(name)) for name in names])
                yield f"{of}{what} {shown} (dataset.{key})"


def _each(counts: Sequence[int]) -> str:
    if {*counts} == {1}:
        return "1 sample each"
    return f"{number_range(counts, ' to ')} samples each"


def _list_names(items: Sequence[str]) -> str:
    return listed(items, _MOST_CLASSES, " and {n_more} more")


def _value(value: Any) -> str:
    """Value of a parameter as text; a list in brackets."""
    if isinstance(value, list | tuple):
        return f"[{_items(value)}]"
    if isinstance(value, float):
        return f"{value:g}"
    line = " ".join(str(value).split())
    return line if len(line) <= _LONGEST_VALUE else f"{line[: _LONGEST_VALUE - 1]}…"


def _items(values: Sequence[Any]) -> str:
    """Values of a list as text, a long one by its ends."""
    shown = [_value(item) for item in values]
    if len(shown) > 12:
        shown = [*shown[:3], "...", shown[-1]]
    return ", ".join(shown)
