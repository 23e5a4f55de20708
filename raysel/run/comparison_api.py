"""Functions that run and resume comparisons from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from raysel.config import ComparisonConfig, load_comparison, names_data
from raysel.core.errors import ConfigError
from raysel.data.dataset import Dataset
from raysel.results.comparison.tables import ComparisonResult
from raysel.run import comparison_course
from raysel.run.comparison_definition import Comparison
from raysel.run.launch import check_stored_places, make_listeners, refuse_foreign_code, results_place, working_folder
from raysel.study.inputs import OwnData, comparison_of_own_data, comparison_with_own_data_at, found_path
from raysel.tracking.comparisons.directory import ComparisonDirectory
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.log import Listener


def run_comparison(
    config: str | Path | Mapping[str, Any] | ComparisonConfig | Comparison,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    X: Any = None,
    y: Any = None,
    label: str | None = None,
    groups: Any = None,
    data: Dataset | None = None,
    output: str | Path | None = None,
    address: str | None = None,
    allow_mixed_versions: bool = False,
    progress: bool | Listener = True,
) -> ComparisonResult:
    """Run a comparison: several methods as ordinary studies on the same samples and folds.

    Parameters
    ----------
    config : str, Path, mapping, ComparisonConfig or Comparison
        Name of a built-in comparison, path of a YAML file, a configuration as plain data or validated, or a comparison
        that `prepare_comparison` returned.
    overrides : mapping of str to object, or iterable of str, default=()
        Values that replace those of the configuration: common keys, e.g. ``{"cv.outer": 5}`` or ``"cv.outer=5"``, or
        those of a member as ``compare.<label>.<key>``.
    X, y, label, groups, data : optional
        Samples in place of the data that the configuration names, as for `run_study`; they are written into the
        directory of the comparison.
    output : str or Path, optional
        Directory of the comparison, or its URI, as for `run_study`; by default the configuration's ``output``, else
        ``raysel-studies/<name>-<time>``.
    address : str, optional
        HOST:PORT of the Ray cluster to use, of which this machine is a node, or ``"auto"``; by default the cluster
        whose job this process is, if ``ray job submit`` started it, else Ray is started on this machine.
    allow_mixed_versions : bool, default=False
        Whether nodes of the cluster may compute whose versions of Python, raysel, the numerical libraries or processor
        features differ from this process's, so that numbers may differ in the last bits; it is recorded.
    progress : bool or Listener, default=True
        Whether to print a progress line, or an object that shows the progress.

    Returns
    -------
    ComparisonResult
        Result of the comparison. A member that failed is part of it, with the reason.

    Raises
    ------
    ConfigError, DataError
        If the configuration of the comparison or of a member, or the data, cannot be used; raised before anything is
        computed.
    DirectoryError
        If the directory holds another study or comparison, or cannot be written.
    StudyError
        If every member fails, or the disk fails.

    Examples
    --------
    >>> comparison = run_comparison("digits-compare", {"cv.outer": 5})  # doctest: +SKIP
    >>> comparison.table()[["member", "test_accuracy", "difference"]]  # doctest: +SKIP
    """
    listeners = make_listeners(progress)
    comparison = _prepared(config, overrides, own=OwnData(X, y, label, groups, data))
    with working_folder(comparison_directory(comparison, output), listeners, new=True) as path:
        return comparison_course.run(comparison, path, address, listeners, allow_mixed_versions=allow_mixed_versions)


def resume_comparison(
    path: str | Path,
    config: str | Path | Mapping[str, Any] | ComparisonConfig | Comparison | None = None,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    address: str | None = None,
    allow_mixed_versions: bool = False,
    progress: bool | Listener = True,
) -> ComparisonResult:
    """Resume a comparison that was interrupted, try its failed members again, or extend it by more members.

    Members that have finished are not run again.

    Parameters
    ----------
    path : str or Path
        Directory of the comparison, or its URI, as for `resume_study`.
    config : str, Path, mapping, ComparisonConfig or Comparison, optional
        Configuration to resume with, which may have more members, larger search spaces or other settings that cannot
        change a number; that in the directory by default.
    overrides : mapping of str to object, or iterable of str, default=()
        Values that replace those of the configuration, as for `run_comparison`.
    address : str, optional
        HOST:PORT of the Ray cluster to use, of which this machine is a node, or ``"auto"``; by default the cluster
        whose job this process is, if ``ray job submit`` started it, else Ray is started on this machine.
    allow_mixed_versions : bool, default=False
        Whether nodes of the cluster may compute whose versions of Python, raysel, the numerical libraries or processor
        features differ from this process's, so that numbers may differ in the last bits; it is recorded.
    progress : bool or Listener, default=True
        Whether to print a progress line, or an object that shows the progress.

    Returns
    -------
    ComparisonResult
        Result of the comparison, with the same numbers as from a run without interruption.

    Raises
    ------
    ConfigError, DataError
        If the configuration of the comparison or of a member, or the data, cannot be used; raised before anything is
        computed.
    DirectoryError
        If the directory holds no comparison or is in use, or changes invalidate the results of a member.
    StudyError
        If every member fails, or the disk fails.

    Examples
    --------
    >>> resume_comparison("raysel-studies/digits-compare-20261122-101500")  # doctest: +SKIP
    """
    listeners = make_listeners(progress)
    with working_folder(path, listeners, new=False) as folder:
        directory = ComparisonDirectory(folder)
        comparison = _prepared(config, overrides, directory)
        return comparison_course.resume(
            comparison, directory, address, listeners, allow_mixed_versions=allow_mixed_versions
        )


def prepare_comparison(
    config: str | Path | Mapping[str, Any] | ComparisonConfig | None,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    X: Any = None,
    y: Any = None,
    label: str | None = None,
    groups: Any = None,
    data: Dataset | None = None,
    resumed: ComparisonDirectory | None = None,
) -> Comparison:
    """Load a comparison's data, draw its folds, and check every member."""
    if config is None and resumed is None:
        raise ConfigError("config=None: give a path, the name of a built-in comparison or a mapping.")
    if own := OwnData(X, y, label, groups, data):
        if resumed is not None:
            raise ConfigError(f"{resumed.path} holds the data of the comparison to resume; give none.")
        loaded, dataset = comparison_of_own_data(load_comparison(config or {}, overrides, own_data=True), own)
        return Comparison.prepare(loaded, own=dataset)
    if resumed is not None:
        resumed.read()
    if config is not None and resumed is not None and resumed.data.exists() and not names_data(config, overrides):
        loaded = load_comparison(config, overrides, own_data=True)
        return Comparison.prepare(comparison_with_own_data_at(resumed.data.absolute(), loaded), resumed)
    if config is not None or resumed is None:
        return Comparison.prepare(load_comparison(config or {}, overrides), resumed)
    stored = load_comparison(resumed.config)
    for member in stored.members.values():
        check_stored_places(member, overrides, resumed.path)
    raw = stored.to_dict()
    if path := found_path(raw["dataset"].get("path"), resumed.path):
        raw["dataset"]["path"] = path
    raw["dataset"].setdefault("scaling", "unit")  # the default of versions before 0.7, which stored none
    for member in stored.members.values():
        refuse_foreign_code(member.solver.name, resumed.path)
    return Comparison.prepare(load_comparison(raw, overrides), resumed)


def comparison_directory(comparison: Comparison, output: str | Path | None = None) -> str | Path:
    """Return the directory that a comparison is written to."""
    return results_place(output or comparison.config.output or StudyDirectory.default(comparison.config.name))


def _prepared(
    config: str | Path | Mapping[str, Any] | ComparisonConfig | Comparison | None,
    overrides: Mapping[str, Any] | Iterable[str],
    resumed: ComparisonDirectory | None = None,
    own: OwnData | None = None,
) -> Comparison:
    """Return the comparison itself if it is prepared, else prepare it."""
    if not isinstance(config, Comparison):
        return prepare_comparison(config, overrides, **vars(own or OwnData()), resumed=resumed)
    if own:
        raise ConfigError("a prepared comparison has its data; give the samples to prepare_comparison.")
    if overrides:
        raise ConfigError("a prepared comparison takes no overrides; give them to prepare_comparison.")
    return config
