"""Command ``audit``: careless and honest scores on a data file, or of a study."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from raysel.config import config_from_dict, load_config
from raysel.core.errors import ConfigError, DataError
from raysel.core.files import write_result
from raysel.core.printing import Terminal, first_line, list_doubt
from raysel.data.dataset import Dataset
from raysel.data.targets import CLASSES, QUANTITIES
from raysel.evaluation.scoring_estimators import LINEAR_SVM, RIDGE
from raysel.execution.signals import interrupt_status, sigterm_as_interrupt
from raysel.results.audit import Audit
from raysel.run.audit import audit_study
from raysel.study.definition import Study
from raysel.study.draft.draft import SUFFIXES as OF_STUDIES
from raysel.study.draft.draft import Draft, init_study

_SIZES, _C = (10, 50, 200, 1000), (0.01, 0.1, 1.0)
#: The F-test, and keys of the model on its best features, by the kind of the target.
_FILTERS = {CLASSES: "fisher_score", QUANTITIES: "f_test"}
_MODELS: Mapping[str, dict[str, Any]] = {
    CLASSES: {"estimator": LINEAR_SVM, "C": list(_C)},
    QUANTITIES: {"estimator": RIDGE},
}
_WORDS = {LINEAR_SVM: "linear SVM", RIDGE: "ridge"}
_SUFFIXES = (".png", ".svg", ".pdf", ".csv")
#: What a draft has found that is printed before the scores.
_SHOWN = ("data", "label", "groups", "left out", "excluded")


def run(arguments: Namespace) -> int:
    """Audit a study, or a simple method on a data file, and return the exit status."""
    out = Terminal()
    if arguments.output and Path(arguments.output).suffix not in _SUFFIXES:
        raise ConfigError(
            f"--output {arguments.output}: name a file with one of the suffixes"
            f" {', '.join(_SUFFIXES)}."
        )
    is_study = Path(arguments.file).suffix.lower() in OF_STUDIES
    study = _read_study(arguments, out) if is_study else _draft_study(arguments, out)
    with sigterm_as_interrupt():
        try:
            found = audit_study(
                study, arguments.permutations, n_jobs=arguments.processes, verbose=True
            )
        except KeyboardInterrupt:
            return interrupt_status()
    if arguments.output:
        _write(found, Path(arguments.output))
    out.print(repr(found))
    if arguments.output:
        out.print(arguments.output)
    return 0


def _read_study(arguments: Namespace, out: Terminal) -> Study:
    """Return the study that a file in YAML holds."""
    for name in ("label", "labels", "groups", "drop", "metric"):
        if getattr(arguments, name):
            raise ConfigError(
                f"--{name}: {arguments.file} is a study, whose data are as it says; set the key"
                " there."
            )
    study = Study.prepare(load_config(arguments.file))
    for remark in map(first_line, chain(*study.data_remarks)):
        out.print(f"{'to check':<12}{remark}")
    return study


def _draft_study(arguments: Namespace, out: Terminal) -> Study:
    """Return the study of the filter and the linear model on the columns of a draft."""
    draft = init_study(arguments.file, arguments.label, labels=arguments.labels)
    drafted = Study.prepare(draft.config)
    data = drafted.dataset
    if data.target.kind not in _MODELS or data.layout.is_multitask:
        raise DataError(f"{data.name}: an audit is of one task with one label a sample.")
    study = Study.prepare(config_from_dict(_keys(arguments, draft, data), "the audit"))
    for name in _SHOWN:
        if name in draft.findings:
            out.print(f"{name:<12}{draft.findings[name]}")
    for doubt in draft.doubts:
        out.print(list_doubt(doubt))
    sizes = ", ".join(map(str, study.config.evaluation.n_features))
    model = _WORDS[study.config.evaluation.estimator_name]
    out.print(
        f"{'method':<12}scaling {study.config.dataset.scaling}, the F-test's best {sizes} features,"
        f" {model}"
    )
    return study


def _keys(arguments: Namespace, draft: Draft, data: Dataset) -> dict[str, Any]:
    """Return the configuration of the audit: the draft's data and folds, and another method."""
    raw = draft.config.to_dict()
    groups = arguments.groups or raw["cv"].get("groups")
    drop = [name for name in raw["dataset"].get("drop", ()) if name != groups]
    raw["dataset"]["drop"] = list(dict.fromkeys([*drop, *arguments.drop]))
    n = data.n_features - len(set(arguments.drop).intersection(data.feature_names))
    if groups:
        raw["cv"]["groups"] = groups
    evaluation = {
        "n_features": [size for size in _SIZES if size < n] or [n],
        "choose_n": "best",
        "metric": arguments.metric or raw["evaluation"]["metric"],
        "references": "chance",  # no other is printed
        **_MODELS[data.target.kind],
    }
    return {
        **{name: raw[name] for name in ("name", "dataset", "cv")},
        "solver": {"name": _FILTERS[data.target.kind]},
        "evaluation": evaluation,
        "search": {"executor": "serial"},
    }


def _write(found: Audit, path: Path) -> None:
    """Write the table or the picture of an audit."""
    if path.suffix == ".csv":
        write_result(path, found.frame().to_csv(index=False).encode())
        return
    from raysel.results.displays.display import write_figure

    write_figure(found.display().headed_figure(), path)
