"""Section of a report on what was asked: the data as understood, the method, the folds and the search."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from raysel.core.printing import short
from raysel.data.layouts import Layout
from raysel.results import description
from raysel.results.displays.planes import make_plane
from raysel.results.displays.preview_data import Ranges, read_preview_parts
from raysel.results.page.contents import Block, Facts, Folded, Picture, Pictures, Section, csv_download
from raysel.results.preview import Preview
from raysel.results.progress import counted
from raysel.results.result import StudyResult
from raysel.study.background import read_image

_MOST_TASKS = 6


def asked(result: StudyResult, preview: Preview | None) -> Section:
    """Return the section on what was asked."""
    pictures = list(_pictures(result, preview))
    blocks: list[Block] = [Facts([*_data_facts(result, preview), *_study_facts(result)])]
    if pictures:
        blocks.append(Pictures(pictures))
    if closer := list(_closer_pictures(result)):
        blocks.append(Folded("A closer look at the data, before scaling", closer))
    return Section("asked", "What was asked", blocks)


def drawn_parts(layout: Layout) -> list[tuple[str, slice, Layout]]:
    """Return the name, the columns and the layout of each task whose samples are images or volumes."""
    blocks = layout.blocks().items()
    return [(name, columns, block) for name, (columns, block) in blocks if block.is_image]


def _data_facts(result: StudyResult, preview: Preview | None) -> Iterator[tuple[str, str]]:
    study, dataset, names = result.stored.study, result.config["dataset"], result.feature_names
    name = short(description.data_name(dataset, result.name), 120)
    yield "Data", f"{name}: {study.n_samples} samples x {len(names)} features"
    groups = result.config["cv"].get("groups")
    for term, text in description.data_facts(preview, dataset, result.layout, names, groups):
        yield f"{term[0].upper()}{term[1:]}", text


def _study_facts(result: StudyResult) -> Iterator[tuple[str, str]]:
    config = result.config
    search, cv = config["search"], config["cv"]
    yield "Method", config["solver"]["name"]
    for term, text in description.method_facts(config):
        yield f"{term[0].upper()}{term[1:]}", text
    test = (
        f"{cv['train_per_class']} training samples of each class, drawn {len(result.outer)} times"
        if cv.get("train_per_class")
        else f"{len(result.outer)} outer folds"
    )
    repeats = f" ({cv['repeats']} repeats)" if cv.get("repeats", 1) > 1 and not cv.get("train_per_class") else ""
    final = "; a final model is fitted on all samples" if result.has_final else ""
    yield (
        "Validation",
        (
            f"nested: {test}{repeats} for the test scores, {cv['inner']} inner folds in each for the search"
            f"{description.format_blocks(cv)}{final}"
        ),
    )
    early = f", early stopping by {search['early_stopping']}" if search.get("early_stopping") else ""
    planned = result.stored.study.n_trials
    tried = f"one path on each of {counted(planned, 'inner training set')}"
    if search["method"] != "path":
        tried = f"at most {counted(planned, 'trial')}"
    yield "Search", f"{search['method']}{early}, {tried}; seed {config['seed']}"


def _pictures(result: StudyResult, preview: Preview | None) -> Iterator[Picture]:
    """Yield the mean image of each task, or the range of each modality."""
    from raysel.results.page import figures  # noqa: PLC0415 - loads matplotlib
    from raysel.results.page.svg import inline_svg  # noqa: PLC0415

    n = result.stored.study.n_samples
    mean = read_image(result.directory.mean_sample, len(result.feature_names))
    for i, (name, columns, layout) in enumerate(drawn_parts(result.layout)[:_MOST_TASKS] if mean is not None else ()):
        plane = make_plane(layout)
        if mean is None or plane is None:
            continue
        what = f"Mean of the samples of {short(name, 40)}" if name else f"Mean of all {n} samples"
        caption = f"{what}, before scaling.{f' {plane.about}.' if plane.about else ''}"
        rows = zip(*layout.coordinates().values(), mean[columns], strict=True)
        data = csv_download(f"mean-{i}.csv" if name else "mean.csv", [*layout.axes(), "mean"], rows)
        figure = figures.image_figure(plane, layout.arranged(mean[columns], outside=np.nan).ravel())
        yield Picture(inline_svg(figure, f"mean{i}", caption), caption, data, on_white=True)
    if preview and preview.ranges:
        names, *ranges = zip(*preview.ranges, strict=True)
        caption = f"Values of each modality over all {n} samples, before scaling: smallest, mean and largest."
        data = csv_download("ranges.csv", ["modality", "smallest", "mean", "largest"], preview.ranges)
        figure = figures.range_figure(names, *map(np.array, ranges))
        yield Picture(inline_svg(figure, "ranges", caption), caption, data)


def _closer_pictures(result: StudyResult) -> Iterator[Picture]:
    """Yield mean images of the classes and single samples, or ranges of columns, if the directory has them."""
    from raysel.results.displays.preview import part_figure  # noqa: PLC0415 - loads matplotlib
    from raysel.results.page.svg import inline_svg  # noqa: PLC0415

    if result.layout.is_multimodal:  # their ranges are drawn above
        return
    for i, part in enumerate(read_preview_parts(result.directory.preview_parts)):
        caption = f"{part.title[:1].upper()}{part.title[1:]}."
        data = None
        if isinstance(part, Ranges):
            heads = ["column", "smallest", "lower_quartile", "median", "upper_quartile", "largest"]
            means = [f"mean of {name}" for name in part.classes]
            rows = ([name, *row, *own] for name, row, own in zip(part.names, part.quantiles, part.means, strict=True))
            data = csv_download(f"columns-{i}.csv", [*heads, *means], rows)
        yield Picture(inline_svg(part_figure(part), f"closer{i}", caption), caption, data, on_white=True)
