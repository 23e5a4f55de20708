"""Drafts of studies: a commented configuration that fits a data file."""

from __future__ import annotations

import os
import re
import shlex
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from raysel.config import StudyConfig, config_from_dict
from raysel.config.plain_data import dump_key, parse_yaml
from raysel.config.schema import NIFTI
from raysel.core.errors import ConfigError
from raysel.core.files import atomic_write
from raysel.core.printing import first_line, list_doubt, listed, short_middle
from raysel.core.storage.location import as_uri, parse_location
from raysel.data.formats.compressed import data_stem
from raysel.data.formats.files import at_home
from raysel.data.targets import LABELS
from raysel.data.whole_numbers import other_notes
from raysel.study.definition import Study
from raysel.study.draft.choices import (
    FILTERS,
    DraftedKey,
    evaluation_entries,
    fold_entries,
    method_entries,
    scaling_entry,
)
from raysel.study.draft.data_file import Recognised, recognise, with_reasons

#: Suffixes of the files of studies.
SUFFIXES = (".yaml", ".yml")
_SECTIONS = ("name", "seed", "dataset", "solver", "evaluation", "cv", "search")
_WIDTH = 120
#: Longest path that an error shows whole.
_LONGEST = 200
#: Characters that would end a comment or could not be read back.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, repr=False)
class Draft:
    """A study that was drafted for a data file."""

    config: StudyConfig
    text: str
    findings: Mapping[str, str]
    doubts: tuple[str, ...]
    path: Path | None = None

    def __repr__(self) -> str:
        findings = [f"{name:<12}{text}" for name, text in self.findings.items()]
        doubts = [list_doubt(doubt) for doubt in self.doubts]
        return "\n".join([f"Draft({self.config.name})", *findings, *doubts])


def init_study(
    path: str | Path,
    label: str | None = None,
    *,
    labels: str | Path | None = None,
    mask: str | Path | None = None,
    output: str | Path | None = None,
) -> Draft:
    """Draft a study that fits a data file, with a comment on each key.

    Label, groups, index columns, shape and modalities are recognised; solver, search space, numbers
    of features, folds, scaling and metric are chosen by the kind, the size and the values of the
    data. Nothing is fitted, and no choice depends on how well features predict the labels.

    Parameters
    ----------
    path : str or Path
        Data file or folder as for `load_dataset`, or the name of one of scikit-learn's data sets.
    label : str, default=None
        Name of the column or array that holds the labels. None: the one of a usual name, else the
        most likely one.
    labels : str or Path, default=None
        File that holds the labels, where the data file holds the samples only.
    mask : str or Path, default=None
        NIfTI file whose voxels above 0 are the features, where the data file is a table of NIfTI
        files. None: the one beside the table that is called a mask.
    output : str or Path, default=None
        File to write the YAML text to, ending in .yaml, in an existing folder; it must not exist.
        None: nothing is written.

    Returns
    -------
    Draft
        Configuration, text, findings and doubts. The study was prepared with the data: it runs.

    Raises
    ------
    DataError
        If the file cannot be read or used, or no label is found; names the defect and how to fix
        it.
    ConfigError
        If the output exists, has another suffix, or its folder does not exist.

    Examples
    --------
    >>> draft = init_study("wine")
    >>> draft.config.solver.name, draft.config.dataset.scaling, draft.config.evaluation.n_features
    ('linear_svm', 'zscore', (1, 2, 3, 5, 8, 13))
    >>> draft.findings["label"]
    '3 classes (0: 59, 1: 71, 2: 48)'
    """
    target = None
    if output is not None:
        target = check_output(output, path)
    data = recognise(path, label, labels, mask)
    entries = _entries(data, target)
    study = Study.prepare(_config(_text(data, entries, target)), read=data.dataset)
    data.doubts += map(first_line, chain(*study.data_remarks))
    text = _text(data, entries, target)
    values = {entry.key: entry.value for entry in entries}
    findings = _findings(data) | {
        "method": (
            f"{values['solver.name']}, {study.n_configurations} configurations; scaling "
            f"{values['dataset.scaling']}"
        ),
        "folds": f"{study.config.cv.outer} outer x {study.config.cv.inner} inner",
    }
    if target is not None:
        _write(target, text)
    return Draft(study.config, text, findings=findings, doubts=tuple(data.doubts), path=target)


def _write(target: Path, text: str) -> None:
    try:
        with atomic_write(target) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:  # a text that is no name is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"{short_middle(str(target), _LONGEST)} cannot be written: {reason}; name another file"
            " by --output."
        ) from error


def _config(text: str) -> StudyConfig:
    return config_from_dict(parse_yaml(text, "the drafted study"), "the drafted study")


def _entries(data: Recognised, target: Path | None) -> list[DraftedKey]:
    """Keys of the configuration in their order."""
    dataset = data.dataset
    method = method_entries(dataset)
    if method[0].value in FILTERS.values():
        data.doubts.append(
            f"solver: {method[0].value} was chosen for the size of the data; others rank features"
            " jointly."
        )
    entries = [
        DraftedKey(
            "name",
            f"{plain_name(data.path)}-{method[0].value}",
            "of the study's folder, and in MLflow",
        ),
        DraftedKey(
            "seed",
            0,
            "folds and random numbers are drawn from it; the same seed gives the same numbers",
        ),
        *_dataset_entries(data, target),
        scaling_entry(dataset),
        *method,
        *evaluation_entries(dataset),
        *fold_entries(dataset, data.options.get("groups")),
    ]
    return sorted(entries, key=lambda entry: _SECTIONS.index(entry.key.partition(".")[0]))


def _dataset_entries(data: Recognised, target: Path | None) -> list[DraftedKey]:
    """Keys of the section ``dataset``, without the scaling."""
    path = _stated_path(data.path, target)
    if data.is_builtin:
        entries = [DraftedKey("dataset.source", data.path, "data set that scikit-learn includes")]
    elif Path(path).is_absolute():
        entries = [DraftedKey("dataset.path", path, "data file")]
    else:
        looked_up = "looked up from the working directory, then from $RAYSEL_DATA"
        entries = [DraftedKey("dataset.path", path, looked_up)]
    if "mask" in data.options:
        entries.insert(0, DraftedKey("dataset.source", NIFTI, "the data file names volumes"))
    for name, value in data.options.items():
        if name == "drop" and value:
            entries.append(
                DraftedKey("dataset.drop", value, f"no features: {with_reasons(data.reasons)}")
            )
        elif name in ("labels", "mask"):
            entries.append(
                DraftedKey(
                    f"dataset.{name}", _stated_path(value, target), data.comments.get(name, "")
                )
            )
        elif name not in ("drop", "groups"):
            entries.append(DraftedKey(f"dataset.{name}", value, data.comments.get(name, "")))
    steps, why = data.preparation
    if steps:
        entries.append(
            DraftedKey(
                "dataset.prepare", steps, f"fitted on the training samples of each fold: {why}"
            )
        )
    if not data.dataset.target.is_of_classes:
        comment = "the label is a quantity; classification would take each value as a class"
        entries.append(DraftedKey("dataset.task", "regression", comment))
    return entries


def _stated_path(given: str, target: Path | None) -> str:
    """Path of a file as given, if it is found from where the study lies, else absolute."""
    if as_uri(given):
        return given
    path = at_home(given)
    here = target is None or target.parent.resolve() == Path.cwd()
    if here or not path.exists():  # $RAYSEL_DATA has it
        return str(path)
    return str(path.absolute())


def _text(data: Recognised, entries: Sequence[DraftedKey], target: Path | None) -> str:
    dataset, file = data.dataset, "STUDY.yaml"
    if target is not None:
        file = shlex.quote(str(target))
    size = (
        f"{dataset.n_samples} samples x {dataset.n_features} features, {dataset.describe_target()}"
    )
    headline = [
        f"Study of {data.path} ({size}), drafted by raysel init.",
        f"To check it: raysel tune {file} --dry-run",
        f"To run it:   raysel tune {file}",
        "All keys:    raysel tune --help-config",
    ]
    return study_text(headline, data.doubts, entries)


def study_text(
    headline: Sequence[str], doubts: Sequence[str], entries: Iterable[DraftedKey]
) -> str:
    """Return a configuration as YAML that explains each key, behind it or above it."""
    lines = [*chain.from_iterable(map(_comment, headline))]
    if doubts:
        lines += ["# To check:", *chain.from_iterable(map(_listed_comment, doubts))]
    section: list[str] = []
    for entry in entries:
        *parts, name = entry.key.split(".")
        shared = 0
        while shared < min(len(parts), len(section)) and parts[shared] == section[shared]:
            shared += 1
        lines += [f"{'  ' * depth}{parts[depth]}:" for depth in range(shared, len(parts))]
        section, indent = parts, "  " * len(parts)
        written = dump_key(name, entry.value)
        line = f"{indent}{written[0]}   # {_UNPRINTABLE.sub(' ', entry.comment)}"
        if len(written) == 1 and len(line) <= _WIDTH:
            lines.append(line)
        else:
            lines += [*_comment(entry.comment, indent), *(f"{indent}{part}" for part in written)]
    return "\n".join(lines) + "\n"


def _listed_comment(doubt: str) -> list[str]:
    """Lines of a doubt, and of what can be done as a list below it."""
    first, *ways = doubt.split("\n")
    lines = _comment(first, bullet="- ")
    for way in ways:
        lines += _comment(way, bullet="  - ")
    return lines


def _comment(text: str, indent: str = "", bullet: str = "") -> list[str]:
    return textwrap.wrap(
        _UNPRINTABLE.sub(" ", text),
        _WIDTH,
        initial_indent=f"{indent}# {bullet}",
        subsequent_indent=f"{indent}# {' ' * len(bullet)}",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _findings(data: Recognised) -> dict[str, str]:
    """What was recognised."""
    dataset, layout, options = data.dataset, data.dataset.layout, data.options
    noun = layout.noun
    if dataset.target.kind == LABELS:
        noun = "several labels a sample"
    elif "mask" in options:
        noun = "volumes"
    values = dataset.target.describe_values(dataset.y, dataset.label_names)
    described = f"{dataset.describe_target()} ({values})"
    findings = {
        "data": f"{data.path}: {dataset.n_samples} samples x {dataset.n_features} features, {noun}",
        "label": ", ".join(filter(None, [dataset.label, described])),
    }
    if dataset.feature_names != tuple(layout.default_names()):
        findings["features"] = listed(dataset.feature_names)
    if layout.is_multimodal:
        parts = (
            f"{name}: {columns.stop - columns.start}" for name, columns in layout.slices().items()
        )
        findings["modalities"] = ", ".join(parts)
    elif len(layout.grid) > 1:
        order = options.get("order", "C")
        way = "row by row" if order == "C" else "column by column in the file"
        findings["shape"] = f"{' x '.join(map(str, layout.shape))}, order {order} ({way})"
    elif "mask" in options:
        findings["shape"] = f"the {dataset.n_features} voxels of {options['mask']} in volumes"
    else:
        findings["shape"] = "none: columns without an order"
    findings["groups"] = "none"
    if dataset.groups is not None:
        n_groups = len(np.unique(dataset.groups))
        findings["groups"] = f"{options.get('groups')}, {n_groups} kept whole in the folds"
    if data.reasons:
        findings["left out"] = with_reasons(data.reasons)
    for name in ("exclude_classes", "exclude_labels"):
        if name in options:
            findings["excluded"] = f"{listed(options[name])} ({data.comments[name]})"
    if notes := other_notes(dataset.notes):
        findings["notes"] = "; ".join(notes)
    return findings


def plain_name(path: str | Path) -> str:
    """Return the name of a data file without folder and suffix, as a study may be called."""
    if uri := as_uri(path):
        path = parse_location(uri).name
    stem = data_stem(at_home(path).absolute())
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem)[:80].strip("-._") or "study"


def check_output(output: str | Path, path: str | Path) -> Path:
    """Return the path that a drafted study is written to, after a check that it can be."""
    target = at_home(output)
    try:
        os.lstat(target)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:  # a name that no file can have
        raise ConfigError(
            f"{short_middle(str(target), _LONGEST)} cannot be the name of a file: {error.args[-1]};"
            " name another one."
        ) from error
    if target.is_dir():
        raise ConfigError(
            f"{target} is a folder; name a file in it, e.g. {target / default_output(path)}."
        )
    if target.suffix.lower() not in SUFFIXES:
        raise ConfigError(
            f"{target} does not end in .yaml, as the file of a study does; name it {target}.yaml."
        )
    if target.exists() or target.is_symlink():
        raise ConfigError(
            f"{target} exists and is not overwritten; remove it, or choose another name."
        )
    if not target.parent.is_dir():
        raise ConfigError(
            f"{target} cannot be written: there is no folder {target.parent}; create it first."
        )
    return target


def default_output(path: str | Path) -> str:
    """Return the usual name of the file of a study of a data file, ``<name>-study.yaml``."""
    return f"{plain_name(path)}-study.yaml"
