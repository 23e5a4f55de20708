"""Figure of a study's data, of images or ranges of columns, and the file that keeps it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.files import write_result
from raysel.data.dataset import Dataset
from raysel.data.formats.array_files import open_npz
from raysel.data.layouts import SEPARATOR, Layout
from raysel.data.task_blocks import iter_parts, list_blocks
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays.data import Images, Ranges
from raysel.results.displays.display import DividedDisplay
from raysel.results.facts import Facts

_MOST_IMAGES = 24
_MOST_SAMPLES = 8
_MOST_COLUMNS = 40
_MOST_CLASSES = 6  # whose means are marked beside a range
_MOST_TASKS = 6
_MOST_CHANNELS = 4
_MOST_CELLS = 128 * 128  # of an image; larger ones are thinned
_QUARTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, eq=False)
class DataPreview(DividedDisplay):
    """The data as they were read: mean images and single samples, or ranges of columns."""

    key = "preview"
    section = "closer"
    what = "the data as they were read"
    exported = False

    facts: str = ""

    @classmethod
    def from_facts(cls, facts: Facts, ranking: FeatureRanking | None = None) -> Self | None:
        """Show what the directory of a study keeps of its data, if it has no modalities.

        Ranges of modalities have a figure of their own.
        """
        if facts.records.in_memory or facts.records.layout.is_multimodal:
            return None
        parts: list[Images | Ranges] = []
        for i, part in enumerate(read_preview_parts(facts.records.directory.preview_parts)):
            table = f"{part.table}-{i}" if part.table else ""
            parts.append(replace(part, key=f"closer{i}", table=table))
        if not parts:
            return None
        return cls(facts.name, parts)

    @property
    def caption(self) -> str:
        return f"{self.facts} {super().caption}"

    @classmethod
    def from_data(cls, data: Dataset, config: Mapping[str, Any]) -> Self:
        """Show a data set as it was read by the section of a configuration."""
        n = data.n_features - data.layout.n_beside
        size = f"{data.n_samples} samples x {n} features"
        facts = f"{size}, {data.describe_target()}; before scaling."
        parts = preview_parts(data, preview_orders(config))
        if not parts:
            facts += " There is no column of numbers to draw."
        return cls(data.name, parts, facts)


def preview_parts(data: Dataset, orders: Mapping[str, str] | None = None) -> list[Images | Ranges]:
    """Return what a picture of a data set shows."""
    orders = orders or {}
    if data.layout.is_multimodal:
        return [_modalities(data.parts())]
    if not data.layout.is_multitask:
        (X,) = list_blocks(data.filled)
        numbers = _numbers(data, slice(data.n_features - data.layout.n_beside))
        members = data.target.extremes(data.y, data.classes)
        return list(_make_parts(X, members, data.layout, numbers, order=orders.get("")))
    parts: list[Images | Ranges] = []
    share = max(2, len(data.layout.task_names))
    blocks = list(zip(data.layout.blocks().items(), iter_parts(data.filled), strict=True))
    for (task, (_, layout)), (rows, columns, block) in blocks[:_MOST_TASKS]:
        y = np.array([str(label).removeprefix(f"{task}{SEPARATOR}") for label in data.y[rows]])
        if all(map(str.isdecimal, np.unique(y).tolist())):
            y = y.astype(np.int64)  # 2 comes before 10
        names = _numbers(data, columns, f"{task}{SEPARATOR}")
        about: Any = {"task": task, "order": orders.get(task), "share": share}
        members = data.target.extremes(y, np.unique(y))
        parts += _make_parts(block, members, layout, names, **about)
    return parts


def _numbers(data: Dataset, columns: slice, prefix: str = "") -> dict[int, str]:
    """Names of the columns that are numbers, by their place; the codes of text are none."""
    names = enumerate(data.feature_names[columns])
    return {i: name.removeprefix(prefix) for i, name in names if name not in data.categories}


def preview_orders(dataset: Mapping[str, Any]) -> dict[str, str]:
    """Return the orders that a configuration gives for the cells of a sample, by task."""
    sections = dataset.get("tasks") or [dataset]
    return {section.get("name", ""): section.get("order") or "C" for section in sections}


def write_preview_parts(parts: Sequence[Images | Ranges], path: Path) -> None:
    """Write the data of a picture in NumPy's format for several arrays; images as 256 greys."""
    arrays: dict[str, Any] = {}
    described = []
    for i, part in enumerate(parts):
        if isinstance(part, Images):
            low, high = float(part.images.min()), float(part.images.max())
            greys = (part.images - low) * (255 / (high - low or 1.0))
            arrays[f"images_{i}"] = np.round(greys).astype(np.uint8)
            arrays[f"range_{i}"] = np.array([low, high])
            about: dict[str, Any] = {"captions": list(part.captions), "axes": list(part.axes)}
            about |= {"step": part.step, "upwards": part.upwards}
        else:
            arrays[f"quantiles_{i}"], arrays[f"means_{i}"] = part.quantiles, part.means
            about = {"names": list(part.names), "classes": list(part.classes)}
        described.append({"kind": type(part).__name__, "title": part.about, **about})
    text = np.frombuffer(json.dumps(described).encode(), dtype=np.uint8)
    content = io.BytesIO()
    np.savez_compressed(content, parts=text, **arrays)
    write_result(path, content.getvalue())


def read_preview_parts(path: Path) -> list[Images | Ranges]:
    """Read the data of a picture."""
    try:
        with open_npz(path) as file:
            arrays = {name: file.get(name) for name in file.names}
        described = json.loads(arrays["parts"].tobytes())
        return [_restore(raw, i, arrays) for i, raw in enumerate(described)]
    except Exception:  # noqa: BLE001 - zipfile, zlib, NumPy and json raise many for a damaged file
        return []


def _restore(raw: Mapping[str, Any], i: int, arrays: Mapping[str, Any]) -> Images | Ranges:
    if raw["kind"] == "Images":
        low, high = arrays[f"range_{i}"].tolist()
        images = low + (high - low) / 255 * arrays[f"images_{i}"].astype(np.float64)
        captions = [str(text) for text in raw["captions"]]
        if not len(images) == len(captions) > 0 or images.ndim != 3:
            raise ValueError("images and captions differ in number")
        axes = (str(raw["axes"][0]), str(raw["axes"][1]))
        return Images(
            about=str(raw["title"]),
            captions=captions,
            images=images,
            axes=axes,
            step=int(raw["step"]),
            upwards=bool(raw["upwards"]),
        )
    names, classes = [str(name) for name in raw["names"]], [str(name) for name in raw["classes"]]
    quantiles, means = arrays[f"quantiles_{i}"], arrays[f"means_{i}"]
    if quantiles.shape != (len(names), 5) or means.shape != (len(names), len(classes)):
        raise ValueError("ranges and names differ in number")
    title = str(raw["title"])
    return Ranges(title, names=names, quantiles=quantiles, means=means, classes=classes)


def _make_parts(
    X: FloatArray,
    members: Mapping[str, IntArray],
    layout: Layout,
    names: Mapping[int, str],
    *,
    task: str = "",
    order: str | None = None,
    share: int = 1,
) -> Iterator[Images | Ranges]:
    """Yield parts of samples of one shape; ``share`` is the number of tasks in the figure."""
    whose, in_space = f"{task}: " if task else "", layout.affine is not None
    views = _views(layout)
    if not views and names:
        yield _columns(X, members, names, whose=whose, share=share)
    if not views:
        return
    shape = f"{' x '.join(map(str, layout.shape))} {_describe_reading(layout, order)}"
    for what, samples in _samples(X, members, len(views), share):
        arrays = [layout.arranged(values, outside=float(X.min())) for _, values in samples]
        lead = f"{whose}{what}: {shape}"
        for view in views:
            images = np.stack([array[view.cells] for array in arrays])
            step = max(1, int(np.ceil(np.sqrt(images[0].size / _MOST_CELLS))))
            images, axes = images[:, ::step, ::step], view.axes
            about = [lead]
            if step > 1:
                about.append(f"1 of {step} rows and columns")
            black, white = f"black = {images.min():.4g}", f"white = {images.max():.4g}"
            if in_space:
                black += " or outside the mask"
                images, axes = images.swapaxes(1, 2), axes[::-1]
            yield Images(
                about=f"{', '.join([*about, black, white])}{view.what}",
                captions=[name for name, _ in samples],
                images=images,
                axes=axes,
                step=step,
                upwards=in_space,
            )
            lead = f"{whose}the same"


def _describe_reading(layout: Layout, order: str | None) -> str:
    """What the sides of a sample are, and in which order its cells were read."""
    if layout.affine is not None:  # files of volumes say where each cell is
        return "(volume)"
    sides = f"order {len(layout.shape)}"
    if len(layout.shape) == 2:
        sides = "rows x columns"
    if not order:
        return f"({sides})"
    return f"({sides}), read in {order} order"


def _samples(
    X: FloatArray, members: Mapping[str, IntArray], n_views: int, share: int
) -> list[tuple[str, list[tuple[str, FloatArray]]]]:
    """Means of the classes and single samples, with their captions; in one list if they are few."""
    n_classes, n_samples = max(2, _MOST_IMAGES // (n_views * share)), max(2, _MOST_SAMPLES // share)
    first = list(members.items())[:n_classes]
    means = [(name, X[rows].mean(axis=0)) for name, rows in first if len(rows)]
    # Single samples of classes far apart show what a mean may hide, e.g. scrambled cells.
    chosen = list(members.items())[:: -(-len(members) // n_samples)]
    singles = [(f"no. {rows[0]} ({name})", X[rows[0]]) for name, rows in chosen if len(rows)]
    if len(means) + len(singles) <= _MOST_SAMPLES:
        both = [*((f"mean of {name}", mean) for name, mean in means), *singles]
        return [("mean of each class, and single samples, numbered from 0 (class)", both)]
    cut = ""
    if n_classes < len(members):
        cut = f", {n_classes} of {len(members)} shown"
    return [
        (f"mean of each class{cut}", means),
        ("single samples, numbered from 0 (class)", singles),
    ]


class _View(NamedTuple):
    """Image in an array: its cells, the names of its axes, and what is cut, as text."""

    cells: tuple[slice | int, ...]
    axes: tuple[str, str]
    what: str


def _views(layout: Layout) -> list[_View]:
    """Ways to look at an array: the image itself, its channels, or middle slices along the axes."""
    shape, every = layout.shape, slice(None)
    if len(shape) < 2 or (len(shape) == 2 and min(shape) < 2):
        return []
    axes, labels = layout.axes(), layout.axis_labels()
    sides = (axes[0], axes[1])
    is_image = layout.affine is None and min(shape[:2]) > 1
    if len(shape) == 2:
        return [_View((every, every), sides, "")]
    if len(shape) == 3 and is_image and shape[2] <= _MOST_CHANNELS:
        channels = range(shape[2])
        return [_View((every, every, i), sides, f"; channel {axes[2]} = {i}") for i in channels]
    middle = [int(np.median(index) + 0.5) for index in layout.coordinates().values()]
    wide = [axis for axis, side in enumerate(shape) if side > 1][:3]
    views = []
    for first, second in reversed(list(combinations(wide, 2))):
        cut = {axis: i for axis, i in enumerate(middle) if axis not in (first, second)}
        cells = tuple(cut.get(axis, every) for axis in range(len(shape)))
        places = ", ".join(layout.slice_label(axis, i) for axis, i in cut.items())
        views.append(_View(cells, (labels[first], labels[second]), f"; slice {places}"))
    return views


def _columns(
    X: FloatArray,
    members: Mapping[str, IntArray],
    names: Mapping[int, str],
    *,
    whose: str,
    share: int,
) -> Ranges:
    drawn = list(names)[: max(10, _MOST_COLUMNS // share)]
    n, values = len(drawn), X[:, drawn]
    classes = list(members)
    if len(members) > _MOST_CLASSES:
        classes = []
    means = [values[members[name]].mean(axis=0) for name in classes]
    shown, rest = f"all {n} columns", ""
    if n < len(names):
        shown = f"the first {n} of {len(names)} columns"
    if len(names) < X.shape[1]:
        shown, rest = f"{shown} of numbers", "; columns of text are not drawn"
    ends = "from smallest to largest value"
    return Ranges(
        about=f"{whose}{shown}, each over its own range {ends}{rest}",
        names=[names[place] for place in drawn],
        quantiles=np.quantile(values, _QUARTILES, axis=0).T,
        means=np.reshape(means, (len(classes), n)).T,
        classes=classes,
    )


def _modalities(parts: Mapping[str, FloatArray]) -> Ranges:
    return Ranges(
        about="values of each modality (number of columns) over its own range",
        names=[f"{name} ({values.shape[1]})" for name, values in parts.items()],
        quantiles=np.array([np.quantile(values, _QUARTILES) for values in parts.values()]),
        means=np.empty((len(parts), 0)),
    )
