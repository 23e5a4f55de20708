"""Commented YAML of a drafted study."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raysel.config.schema import NIFTI
from raysel.config.yaml_text import dump_key
from raysel.core.printing import listed
from raysel.study.draft.folds import kind_of
from raysel.study.draft.looking import Looked

_WIDTH = 120
#: Characters that would end a comment or could not be read back.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True)
class Entry:
    """One key of a drafted configuration."""

    key: str
    value: Any
    comment: str

    @property
    def section(self) -> str:
        """First part of a dotted key; empty for a key without a section."""
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        """Last part of the key."""
        return self.key.rpartition(".")[2]


def study_text(headline: Sequence[str], doubts: Sequence[str], entries: Iterable[Entry]) -> str:
    """Return a configuration as YAML in which each key has its explanation."""
    lines = [line for text in headline for line in _commented(text, "", "")]
    if doubts:
        lines.append("# To check:")
        lines += [line for text in doubts for line in _commented(text, "", "- ")]
    section: list[str] = []
    for entry in entries:
        parts = entry.section.split(".") if entry.section else []
        shared = 0
        while shared < min(len(parts), len(section)) and parts[shared] == section[shared]:
            shared += 1
        lines += [f"{'  ' * depth}{parts[depth]}:" for depth in range(shared, len(parts))]
        section = parts
        lines += _entry_lines(entry, "  " * len(parts))
    return "\n".join(lines) + "\n"


def _entry_lines(entry: Entry, indent: str) -> list[str]:
    """Key and value, with the explanation behind them if it fits the line, else above them."""
    written = dump_key(entry.name, entry.value)
    comment = _UNPRINTABLE.sub(" ", entry.comment)
    line = f"{indent}{written[0]}   # {comment}"
    if len(written) == 1 and len(line) <= _WIDTH:
        return [line]
    return [*_commented(comment, indent, ""), *(f"{indent}{part}" for part in written)]


def _commented(text: str, indent: str, bullet: str) -> list[str]:
    return textwrap.wrap(
        _UNPRINTABLE.sub(" ", text),
        _WIDTH,
        initial_indent=f"{indent}# {bullet}",
        subsequent_indent=f"{indent}# {' ' * len(bullet)}",
        break_long_words=False,
        break_on_hyphens=False,
    )


def dataset_entries(found: Looked, stated: Callable[[str], str]) -> list[Entry]:
    """Return the keys of the section ``dataset``, without the scaling."""
    volumes = "mask" in found.options
    entries = [Entry("dataset.source", NIFTI, "the data file names volumes")] if volumes else []
    entries.append(
        Entry("dataset.source", found.path, "data set that scikit-learn includes")
        if found.is_builtin
        else Entry("dataset.path", stated(found.path), _path_comment(stated(found.path)))
    )
    for name, value in found.options.items():
        if name == "groups" or (name == "drop" and not value):
            continue
        comment = found.comments.get(name, "")
        if name == "drop":
            comment = "no features: " + listed(f"{name or repr(name)}, {why}" for name, why in found.reasons.items())
        entries.append(Entry(f"dataset.{name}", stated(value) if name in ("labels", "mask") else value, comment))
    return entries


def _path_comment(path: str) -> str:
    return "data file" if Path(path).is_absolute() else "looked up from the working directory, then from $RAYSEL_DATA"


def findings_of(found: Looked) -> dict[str, str]:
    """Return what was recognised, in words."""
    dataset = found.dataset
    counts = (
        dict(zip(dataset.label_names, dataset.y.sum(axis=0).tolist(), strict=True))
        if dataset.is_multilabel
        else dict(zip(*(part.tolist() for part in np.unique(dataset.y, return_counts=True)), strict=True))
    )
    kind = "labels" if dataset.is_multilabel else "classes"
    classes = f"{len(counts)} {kind} ({listed(f'{name}: {count}' for name, count in counts.items())})"
    findings = {
        "data": f"{found.path}: {dataset.n_samples} samples x {dataset.n_features} features, {kind_of(dataset)}"
    }
    findings["label"] = f"{dataset.label}, {classes}" if dataset.label else classes
    if dataset.feature_names != tuple(dataset.layout.default_names()):
        findings["features"] = listed(dataset.feature_names)
    findings["layout"] = dataset.layout.describe(found.options.get("order", "C"))
    groups = found.options.get("groups")
    n_groups = 0 if dataset.groups is None else len(np.unique(dataset.groups))
    findings["groups"] = f"{groups}, {n_groups} kept whole in the folds" if n_groups else "none"
    if found.reasons:
        findings["left out"] = listed(f"{name or repr(name)} ({why})" for name, why in found.reasons.items())
    for name in ("exclude_classes", "exclude_labels"):
        if name in found.options:
            findings["excluded"] = f"{listed(found.options[name])} ({found.comments[name]})"
    if dataset.notes:
        findings["notes"] = "; ".join(dataset.notes)
    return findings
