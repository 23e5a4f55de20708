"""Section of a report on what was asked: the data as understood, the method, the folds and the search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from raysel.data.layouts import Layout, MaskedVolume, Modalities, Tasks, Tensor
from raysel.display.page.contents import Block, Facts, Picture, Pictures, Section, csv_download
from raysel.display.planes import make_plane
from raysel.display.style import short
from raysel.results import words
from raysel.results.page.preview import Preview
from raysel.results.result import StudyResult
from raysel.study.mean_sample import has_images, in_cells, read_mean_sample

_MOST_CLASSES = 24
_MOST_TASKS = 6


def asked(result: StudyResult, preview: Preview | None) -> Section:
    """Return the section on what was asked.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.
    preview : Preview or None
        Preview of the data, if the study's directory has one.

    Returns
    -------
    Section
        The section.
    """
    pictures = list(_pictures(result, preview))
    blocks: list[Block] = [Facts([*_data_facts(result, preview), *_study_facts(result)])]
    if pictures:
        blocks.append(Pictures(pictures))
    return Section("asked", "What was asked", blocks)


def data_name(result: StudyResult) -> str:
    """Return the name of a study's data: the names of the files without their folders, or the source."""
    dataset = result.config["dataset"]
    paths = [task.get("path") or task.get("source") for task in dataset.get("tasks") or ()] or [dataset.get("path")]
    return ", ".join(Path(path).name for path in paths if path) or dataset.get("source") or result.name


def drawn_parts(layout: Layout) -> list[tuple[str, slice, Tensor | MaskedVolume]]:
    """Return the name, the columns and the layout of each task whose samples are images or volumes.

    Parameters
    ----------
    layout : Layout
        Layout of the features.

    Returns
    -------
    list of (str, slice, Tensor or MaskedVolume)
        The name is empty if there is one task.
    """
    whole = slice(0, layout.n_features)
    if isinstance(layout, Tensor | MaskedVolume):
        return [("", whole, layout)] if has_images(layout) else []
    if not isinstance(layout, Tasks):
        return []
    parts = [(name, columns, layout.tasks[name]) for name, columns in layout.slices().items()]
    own = [(name, columns, Tensor(shape)) for name, columns, shape in parts if isinstance(shape, tuple)]
    return [(name, columns, task) for name, columns, task in own if has_images(task)]


def layout_in_words(layout: Layout) -> str:
    """Return the arrangement of the features as text.

    Parameters
    ----------
    layout : Layout
        Layout of the features.

    Returns
    -------
    str
        E.g. ``"matrices of 8 x 8"``.
    """
    if isinstance(layout, Tasks):
        widths = [f"{name} ({_size(shape)})" for name, shape in layout.tasks.items()]
        return f"{len(widths)} tasks, each with features of its own: {_listed(widths)}"
    if isinstance(layout, Modalities):
        widths = [f"{name} ({width})" for name, width in layout.modalities.items()]
        return f"{len(widths)} modalities: {_listed(widths)}"
    if isinstance(layout, MaskedVolume):
        return (
            f"each sample is a volume of {_size(layout.shape)}; the {layout.n_features} voxels of a mask are features"
        )
    if isinstance(layout, Tensor) and len(layout.shape) > 1:
        return f"each sample is an array of {_size(layout.shape)}"
    return "each sample is a row of a table"


def _size(shape: int | Sequence[int]) -> str:
    return " x ".join(map(str, shape)) if isinstance(shape, Sequence) else str(shape)


def _listed(items: Sequence[str], most: int = _MOST_CLASSES) -> str:
    shown = [short(item, 40) for item in items[:most]]
    return ", ".join(shown) + (f" and {len(items) - most} more" if len(items) > most else "")


def _data_facts(result: StudyResult, preview: Preview | None) -> Iterator[tuple[str, str]]:
    study, d = result.stored.study, len(result.feature_names)
    yield "Data", f"{short(data_name(result), 120)}: {study.n_samples} samples x {d} features"
    if preview and preview.counts:
        counts = sorted(set(preview.counts))
        each = f"{counts[0]} samples each" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} samples each"
        named = [f"{name} ({count})" for name, count in zip(preview.classes, preview.counts, strict=False)]
        what = "Labels" if preview.is_multilabel else "Classes"
        yield what, f"{len(named)}, {each}: {_listed(named)}"
        if preview.n_groups is not None:
            yield "Groups", f"{preview.n_groups}; samples of one group are never divided between training and test"
    yield "Layout", layout_in_words(result.layout)
    if n_constant := int(result.constant.sum()):
        yield "Constant", f"{n_constant} of {d} features have the same value in all samples; they are never selected"
    yield "Scaling", f"{result.config['dataset']['scaling']}, fitted on the training samples of each fold"


def _study_facts(result: StudyResult) -> Iterator[tuple[str, str]]:
    config = result.config
    solver, search, cv = config["solver"], config["search"], config["cv"]
    space = [f"{name} ({_domain_in_words(domain)})" for name, domain in solver.get("space", {}).items()]
    fixed = [f"{name} = {_value(value)}" for name, value in solver.get("params", {}).items()]
    searched = f"searched: {', '.join(space)}" if space else "nothing is searched"
    yield "Method", "; ".join([solver["name"], searched, *([f"fixed: {', '.join(fixed)}"] if fixed else [])])
    yield "Score", f"{result.metric.replace('_', ' ')}. {words.rule_sentence(result)}"
    test = (
        f"{cv['train_per_class']} training samples of each class, drawn {len(result.outer)} times"
        if cv.get("train_per_class")
        else f"{len(result.outer)} outer folds"
    )
    repeats = f" ({cv['repeats']} repeats)" if cv.get("repeats", 1) > 1 and not cv.get("train_per_class") else ""
    final = "; a final model is fitted on all samples" if result.has_final else ""
    yield (
        "Validation",
        (f"nested: {test}{repeats} for the test scores, {cv['inner']} inner folds in each for the search{final}"),
    )
    early = f", early stopping by {search['early_stopping']}" if search.get("early_stopping") else ""
    yield "Search", f"{search['method']}{early}, at most {result.stored.study.n_trials} trials; seed {config['seed']}"


def _domain_in_words(domain: Any) -> str:
    if isinstance(domain, Mapping):
        return "; ".join(f"{kind} {_value(value)}" for kind, value in domain.items())
    return _value(domain)


def _value(value: Any) -> str:
    """Value of a parameter as text; a long list by its ends."""
    if isinstance(value, bool) or not isinstance(value, int | float | list | tuple):
        return short(str(value), 60)
    if isinstance(value, list | tuple):
        shown = [_value(item) for item in value]
        return ", ".join(shown if len(shown) <= 8 else [*shown[:2], "...", shown[-1]])
    return f"{value:g}"


def _pictures(result: StudyResult, preview: Preview | None) -> Iterator[Picture]:
    """Yield the mean image of each task, or the range of each modality."""
    from raysel.display.page import figures, map_figures  # noqa: PLC0415 - loads matplotlib
    from raysel.display.page.svg import inline_svg  # noqa: PLC0415

    n = result.stored.study.n_samples
    mean = read_mean_sample(result.directory.mean_sample, len(result.feature_names))
    for i, (name, columns, layout) in enumerate(drawn_parts(result.layout)[:_MOST_TASKS] if mean is not None else ()):
        plane = make_plane(layout)
        if mean is None or plane is None:
            continue
        what = f"Mean of the samples of {short(name, 40)}" if name else f"Mean of all {n} samples"
        caption = f"{what}, before scaling.{f' {plane.about}.' if plane.about else ''}"
        rows = zip(*layout.coordinates().values(), mean[columns], strict=True)
        data = csv_download(f"mean-{i}.csv" if name else "mean.csv", [*layout.axes(), "mean"], rows)
        figure = map_figures.image_figure(plane, in_cells(layout, mean[columns]))
        yield Picture(inline_svg(figure, f"mean{i}", caption), caption, data, on_white=True)
    if preview and preview.ranges:
        names, *ranges = zip(*preview.ranges, strict=True)
        caption = f"Values of each modality over all {n} samples, before scaling: smallest, mean and largest."
        data = csv_download("ranges.csv", ["modality", "smallest", "mean", "largest"], preview.ranges)
        figure = figures.range_figure(names, *map(np.array, ranges))
        yield Picture(inline_svg(figure, "ranges", caption), caption, data)
