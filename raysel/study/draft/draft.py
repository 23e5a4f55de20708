"""Drafts of studies: a data file is looked at, and a commented configuration that fits it is written."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from raysel.config import StudyConfig, config_from_dict
from raysel.config.yaml_text import parse_yaml
from raysel.core.errors import ConfigError
from raysel.core.files import atomic_write
from raysel.core.storage.location import as_uri
from raysel.study.definition import Study
from raysel.study.draft.folds import Folds, drawn_folds, effort_of, kind_of
from raysel.study.draft.looking import Looked, look_at
from raysel.study.draft.method import FOR_LARGE, evaluation_entries, method_entries, scaling_entry
from raysel.study.draft.roles import plain_name
from raysel.study.draft.text import Entry, dataset_entries, findings_of, study_text

#: Suffixes of the files of studies.
SUFFIXES = (".yaml", ".yml")
_SECTIONS = ("name", "seed", "dataset", "solver", "evaluation", "cv", "search")


@dataclass(frozen=True, repr=False)
class Draft:
    """A study that was drafted for a data file."""

    config: StudyConfig
    text: str
    findings: Mapping[str, str]
    doubts: tuple[str, ...]
    path: Path | None = None

    def __repr__(self) -> str:
        found = [f"{name:<12}{text}" for name, text in self.findings.items()]
        return "\n".join([f"Draft({self.config.name})", *found, *(f"{'to check':<12}{doubt}" for doubt in self.doubts)])


def init_study(
    path: str | Path,
    label: str | None = None,
    *,
    labels: str | Path | None = None,
    mask: str | Path | None = None,
    output: str | Path | None = None,
) -> Draft:
    """Draft a study that fits a data file, with a comment on each key.

    Label, groups, index columns, shape and modalities are recognised; solver, search space, numbers of features,
    folds, scaling and metric are chosen by the kind, the size and the values of the data. Nothing is fitted, and no
    choice depends on how well features predict the labels.

    Parameters
    ----------
    path : str or Path
        Data file or folder as for `load_dataset`, or the name of one of scikit-learn's data sets.
    label : str, default=None
        Name of the column or array that holds the labels. None: the one of a usual name, else the most likely one.
    labels : str or Path, default=None
        File that holds the labels, where the data file holds the samples only.
    mask : str or Path, default=None
        NIfTI file whose voxels above 0 are the features, where the data file is a table of NIfTI files. None: the one
        beside the table that is called a mask.
    output : str or Path, default=None
        File to write the YAML text to, ending in .yaml, in an existing folder; it must not exist. None: nothing is
        written.

    Returns
    -------
    Draft
        Configuration, text, findings and doubts. The study was prepared with the data: it runs.

    Raises
    ------
    DataError
        If the file cannot be read or used, or no label is found; names the defect and how to fix it.
    ConfigError
        If the output exists, has another suffix, or its folder does not exist.

    Examples
    --------
    >>> draft = init_study("wine")
    >>> draft.config.solver.name, draft.config.dataset.scaling, draft.config.evaluation.n_features
    ('rfs', 'zscore', (1, 2, 3, 5, 8, 13))
    >>> draft.findings["label"]
    '3 classes (0: 59, 1: 71, 2: 48)'
    """
    target = None if output is None else check_output(output, path)
    looked = look_at(path, label, labels, mask)
    study, text, findings = _prepared(looked, target)
    if target is not None:
        with atomic_write(target) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return Draft(study.config, text, findings, tuple(looked.doubts), target)


def _prepared(looked: Looked, target: Path | None) -> tuple[Study, str, dict[str, str]]:
    """Choose the keys, write the text, and prepare the study that it describes."""
    entries = _entries(looked, target)
    study = Study.prepare(_config(_text(looked, entries, target)))
    looked.doubts += study.data_remarks
    named = {entry.key: entry.value for entry in entries}
    folds = f"{study.config.cv.outer} outer x {study.config.cv.inner} inner"
    method = f"{named['solver.name']}, {study.n_configurations} configurations; scaling {named['dataset.scaling']}"
    return study, _text(looked, entries, target), findings_of(looked) | {"method": method, "folds": folds}


def _entries(looked: Looked, target: Path | None) -> list[Entry]:
    """Keys of the configuration in their order."""
    dataset, kind = looked.dataset, kind_of(looked.dataset)
    method = method_entries(dataset, kind)
    if method[0].value == FOR_LARGE:
        looked.doubts.append(f"solver: {FOR_LARGE} was chosen for the size of the data; others rank features jointly.")
    entries = [
        Entry("name", f"{plain_name(looked.path)}-{method[0].value}", "of the study's folder, and in MLflow"),
        Entry("seed", 0, "folds and random numbers are drawn from it; the same seed gives the same numbers"),
        *dataset_entries(looked, lambda path: _stated_path(path, target)),
        scaling_entry(dataset, kind),
        *method,
        *evaluation_entries(dataset, kind),
        *_fold_entries(drawn_folds(dataset, effort_of(dataset)), looked.options.get("groups")),
    ]
    return sorted(entries, key=lambda entry: _SECTIONS.index(entry.key.partition(".")[0]))


def _fold_entries(folds: Folds, groups: str | None) -> list[Entry]:
    limit = f"; no more, because {folds.why}" if folds.why else ""
    entries = [
        Entry("cv.outer", folds.outer, f"folds whose test samples, which nothing else sees, give the score{limit}"),
        Entry("cv.inner", folds.inner, "folds within each training set, which choose configuration and n_features"),
    ]
    if groups is not None:
        entries.append(
            Entry("cv.groups", groups, "the samples of one value stay in one fold; the column is no feature")
        )
    return entries


def _text(looked: Looked, entries: Sequence[Entry], target: Path | None) -> str:
    dataset, file = looked.dataset, "STUDY.yaml" if target is None else shlex.quote(str(target))
    kind = "labels" if dataset.is_multilabel else "classes"
    size = f"{dataset.n_samples} samples x {dataset.n_features} features, {len(dataset.classes)} {kind}"
    headline = [
        f"Study of {looked.path} ({size}), drafted by python -m raysel.init.",
        f"To check it: python -m raysel.tune {file} --dry-run",
        f"To run it:   python -m raysel.tune {file}",
        "All keys:    python -m raysel.tune --help-config",
    ]
    return study_text(headline, looked.doubts, entries)


def _config(text: str) -> StudyConfig:
    return config_from_dict(parse_yaml(text, "the drafted study"), "the drafted study")


def _stated_path(given: str, target: Path | None) -> str:
    """Path of a file as given if the study lies in the working directory, or $RAYSEL_DATA has it, else absolute."""
    if as_uri(given):
        return given
    path = Path(given).expanduser()
    here = target is None or target.parent.resolve() == Path.cwd()
    return str(path) if here or not path.exists() else str(path.absolute())


def check_output(output: str | Path, path: str | Path) -> Path:
    """Return the path that a drafted study is written to, after a check that it can be."""
    target = Path(output).expanduser()
    if target.is_dir():
        raise ConfigError(f"{target} is a folder; name a file in it, e.g. {target / default_output(path)}.")
    if target.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"{target} does not end in .yaml, as the file of a study does; name it {target}.yaml.")
    if target.exists() or target.is_symlink():
        raise ConfigError(f"{target} exists and is not overwritten; remove it, or choose another name.")
    if not target.parent.is_dir():
        raise ConfigError(f"{target} cannot be written: there is no folder {target.parent}; create it first.")
    return target


def default_output(path: str | Path) -> str:
    """Return the usual name of the file of a study of a data file, ``<name>-study.yaml``."""
    return f"{plain_name(path)}-study.yaml"
