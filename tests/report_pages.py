"""Reports of small studies of every kind, and what holds of every report's HTML."""

from __future__ import annotations

import base64
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from small_studies import run_offline

from raysel.data.dataset import Dataset
from raysel.data.layouts import Matrix, Modalities, Tensor
from raysel.data.loading import save_dataset
from raysel.results.page import contents
from raysel.results.page.report import write_report
from raysel.results.result import StudyResult

_SMR = {
    "name": "smr",
    "params": {"max_iter": 4},
    "space": {"alpha": [0.01, 0.1, 2.0], "rank": [1, 2]},
}
_SMML = {
    "name": "smml",
    "params": {"tol": 1e-2},
    "space": {"gamma1": [0.05, 0.2], "gamma2": [0.0, 0.1]},
}
_NATIVE = {"classifier": "native"}
_TASKS = [{"name": "iris", "source": "iris"}, {"name": "wine", "source": "wine"}]
#: Kinds of study by name: the kind of data, and what differs from the first.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "matrix": ("matrix", {}),
    "table": (
        "table",
        {
            "solver": {
                "name": "linear_svm",
                "params": {"penalty": "l1"},
                "space": {"C": [0.01, 1.0]},
            }
        },
    ),
    "modalities": (
        "modalities",
        {"solver": _SMML, "evaluation": _NATIVE, "search": {"method": "path"}},
    ),
    "tasks": (
        "",
        {
            "dataset": {"tasks": _TASKS, "scaling": "none"},
            "solver": {"name": "mtda", "space": {"shrinkage": [0.1, 0.5]}},
            "evaluation": _NATIVE,
            "cv": {"train_per_class": 20, "repeats": 2, "inner": 2},
        },
    ),
    "multilabel": (
        "multilabel",
        {"solver": _SMML, "evaluation": {**_NATIVE, "metric": "macro_f1"}},
    ),
    "no ranking": (
        "matrix",
        {"solver": {"name": "nearest_neighbor", "space": {}}, "evaluation": _NATIVE},
    ),
    "no final model": ("matrix", {"cv": {"outer": 2, "inner": 2, "final": False}}),
    "mean over N": (
        "matrix",
        {"evaluation": {"classifier": "knn", "n_features": [4, 8], "choose_n": "mean"}},
    ),
    "one N": ("matrix", {"evaluation": {"classifier": "linear_svm", "n_features": [8]}}),
    "failed trials": (
        "matrix",
        {
            # Such an alpha times the penalty of zeros under such a zeta overflows to infinity.
            "solver": {
                "name": "smr",
                "params": {"max_iter": 3, "alpha_scale": "absolute", "p": 0.5, "alpha": 1e250},
                "space": {"zeta": [1e-10, 1e300]},
            }
        },
    ),
    "early stopping": (
        "matrix",
        {
            "solver": {
                "name": "smr",
                "params": {"max_iter": 9, "tol": 0.0},
                "space": {"alpha": [0.01, 0.1, 0.3, 2.0]},
            },
            "search": {
                "early_stopping": "asha",
                "synchronous": True,
                "batch_size": 2,
                "reduction_factor": 3,
            },
        },
    ),
}
#: Elements without an end tag.
_VOID = {"meta", "link", "img", "br", "hr", "path", "use", "image", "rect"}


def run_quietly(raw: dict[str, Any], folder: Path) -> StudyResult:
    """Run a study in this process, without MLflow."""
    result = run_offline(raw, folder)
    write_report(result)
    return result


def run_kind(kind: str, folder: Path) -> StudyResult:
    """Run a small study of a kind."""
    data, changes = KINDS[kind]
    raw: dict[str, Any] = {
        "name": f"kind {kind}".replace(" ", "-"),
        "solver": _SMR,
        "evaluation": {"classifier": "knn", "n_features": [4, 8]},
        "cv": {"outer": 2, "inner": 2},
        "pictures": [],  # they are tested elsewhere
    }
    folder.mkdir(parents=True, exist_ok=True)
    if data:
        save_dataset(_dataset(data), folder / "data.parquet")
        raw["dataset"] = {"path": str(folder / "data.parquet")}
    raw |= changes
    raw["search"] = {**raw.get("search", {}), "executor": "serial", "max_concurrent": 1}
    return run_quietly(raw, folder / "study")


def _dataset(kind: str) -> Dataset:
    X, y = load_digits(return_X_y=True)
    chosen = np.concatenate([np.flatnonzero(y == c)[:16] for c in range(3)])
    X, y = X[chosen], y[chosen]
    layouts = {"matrix": Matrix(8, 8), "modalities": Modalities({"upper": 32, "lower": 32})}
    if kind == "multilabel":
        indicator = np.stack([y == 0, y != 1, y == 2], axis=1).astype(int)
        return Dataset(
            X,
            indicator,
            Modalities({"upper": 32, "lower": 32}),
            label_names=("nought", "not one", "two"),
        )
    return Dataset(X, y, layouts.get(kind, Tensor((64,))))


def page_of(*sections: contents.Section) -> Page:
    """Read sections of a report alone, so that the figures of the others are not drawn."""
    return Page(contents.render_page(contents.Page("a study", "its sections", sections)))


class Page(HTMLParser):
    """A document that is well formed, and runs and asks for nothing; its parts are kept.

    Raises AssertionError at the first thing that is not.
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: Counter[str] = Counter()
        self.references: list[str] = []
        self.headings: list[tuple[int, str]] = []
        self.downloads: dict[str, bytes] = {}
        self.tags: Counter[str] = Counter()
        self.texts: list[str] = []
        self._open: list[str] = []
        assert html.startswith("<!DOCTYPE html>\n")
        self.feed(html)
        self.close()
        assert not self._open
        assert not [name for name, count in self.ids.items() if count > 1]
        assert set(self.references) <= set(self.ids)
        assert self.headings[0][0] == 1
        assert {level for level, _ in self.headings[1:]} == {2}
        assert self.tags["table"] == self.tags["caption"]
        assert self.tags["figure"] == self.tags["figcaption"] == self.tags["svg"]

    @property
    def text(self) -> str:
        """All text, with single spaces."""
        return " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        assert tag not in {"script", "iframe", "object", "embed", "base", "form", "img"}
        assert not [name for name in values if name.startswith("on")]
        self.tags[tag] += 1
        if tag not in _VOID:
            self._open.append(tag)
        if tag in {"h1", "h2", "h3"}:
            self.headings.append((int(tag[1]), ""))
        if "id" in values:
            self.ids[values["id"]] += 1
        for name, value in values.items():
            if name in {"href", "src", "xlink:href"}:
                assert value.startswith(("#", "data:")), value
                self.references += [value[1:]] if value.startswith("#") else []
            self.references += re.findall(r"url\(#([^)]*)\)", value)
        if "aria-labelledby" in values:
            self.references.append(values["aria-labelledby"])
        if "download" in values:
            head, _, content = values["href"].partition(",")
            assert head == "data:text/csv;charset=utf-8;base64"
            self.downloads[values["download"]] = base64.b64decode(content, validate=True)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self._open, tag
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.texts.append(data)
            if self._open[-1] in {"h1", "h2"} or (
                self._open[-1] == "bdi" and self._open[-2] == "h1"
            ):
                self.headings[-1] = (self.headings[-1][0], self.headings[-1][1] + data)
