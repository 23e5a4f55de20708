"""Functions that run, resume and open studies and comparisons from Python."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from raysel.config import ComparisonConfig, StudyConfig
from raysel.config.loading import ConfigT, Overrides
from raysel.core.errors import DirectoryError
from raysel.core.storage.working_copy import fetched, shown_place
from raysel.data.dataset import Dataset
from raysel.results.comparison.result import ComparisonResult
from raysel.results.result import StudyResult
from raysel.run.course import OneStudy
from raysel.run.definition import Planned, ResultT
from raysel.run.launch import output_directory, working_folder
from raysel.run.members import Comparison
from raysel.run.options import RunOptions
from raysel.study.definition import Study
from raysel.study.inputs import OwnData
from raysel.tracking.directory import ComparisonRecord, StudyDirectory
from raysel.tracking.log import Listener


def run_study(
    config: str | Path | Mapping[str, Any] | StudyConfig | Study,
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
) -> StudyResult:
    """Run a study: a nested search over solver configurations, tracked and ranked.

    Parameters
    ----------
    config : str, Path, mapping, StudyConfig or Study
        Name of a built-in study, path of a YAML file, a configuration as plain data or validated,
        or a study that `prepare_study` returned.
    overrides : mapping of str to object, or iterable of str, default=()
        Values that replace those of the configuration: by dotted key, e.g. ``{"cv.outer": 5}``, or
        as strings such as ``"cv.outer=5"``.
    X : array-like of shape (n_samples, ...), or data frame, optional
        Samples, in place of the data that the configuration names: an array (n, d), (n, height,
        width) or with more axes, or a frame of pandas or polars, whose columns are named. A
        configuration may still have ``dataset.scaling``, ``shape``, ``order``, ``drop``, ``keep``,
        ``only``, ``classes``. The samples are written into the directory of the study.
    y : array-like of shape (n_samples,) or (n_samples, n_labels), optional
        Labels, or an indicator; not needed if a column of the frame holds them.
    label : str, optional
        Column of the frame that holds the labels; by default y, label, target or another usual
        name.
    groups : str or array-like of shape (n_samples,), optional
        Column of the frame that holds the group of each sample, or the groups themselves, which
        stay whole in all folds.
    data : Dataset, optional
        Data set in place of X, y, label and groups.
    output : str or Path, optional
        Directory of the study; by default the configuration's ``output``, else
        ``raysel-studies/<name>-<time>``. Or a URI, s3://BUCKET/KEY, gs://BUCKET/KEY or
        file:///PATH: the study runs in a temporary folder, which is there until Python ends, and is
        copied to the URI meanwhile, see `raysel.core.storage.working_copy.running_at`.
    address : str, optional
        HOST:PORT of the Ray cluster to use, of which this machine is a node, or ``"auto"``; by
        default the cluster whose job this process is, if ``ray job submit`` started it, else Ray is
        started on this machine.
    allow_mixed_versions : bool, default=False
        Whether nodes of the cluster may compute whose versions of Python, raysel, the numerical
        libraries or processor features differ from this process's, so that numbers may differ in
        the last bits; it is recorded.
    progress : bool or Listener, default=True
        Whether to print a progress line, or an object that shows the progress.

    Returns
    -------
    StudyResult
        Result of the finished study.

    Raises
    ------
    ConfigError, DataError
        If the configuration or the data cannot be used; raised before anything is computed.
    DirectoryError
        If the directory holds another study, or cannot be written.
    StudyError
        If no configuration has a score, or a refit or the disk fails.

    Examples
    --------
    >>> import tempfile
    >>> small = {
    ...     "solver.space": {"alpha": [0.1]}, "cv.outer": 2, "cv.inner": 2,
    ...     "search.executor": "serial",
    ...     "solver.params.max_iter": 3, "evaluation.n_features": [16], "pictures": [],
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     small["tracking.uri"] = f"sqlite:///{folder}/mlflow.db"
    ...     study = run_study("digits-smr", small, output=f"{folder}/study", progress=False)
    ...     opened = open_study(f"{folder}/study")
    >>> study.summary().outer_fold.tolist(), opened.test_scores == study.test_scores
    (['outer0', 'outer1'], True)

    A study of arrays, ``run_study(config, X=X, y=y)``, needs no ``dataset`` in its configuration; a
    built-in one is run on them by ``run_study("digits-smr", X=images, y=y)``.
    """
    own = OwnData(X, y, label=label, groups=groups, data=data)
    options = RunOptions.of(address, allow_mixed_versions, progress)
    planned = OneStudy.prepare(config, overrides, own=own)
    return _run(planned, output, options)


def resume_study(
    path: str | Path,
    config: str | Path | Mapping[str, Any] | StudyConfig | Study | None = None,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    address: str | None = None,
    allow_mixed_versions: bool = False,
    progress: bool | Listener = True,
) -> StudyResult:
    """Resume a study that was interrupted, or extend one by more configurations.

    Parameters
    ----------
    path : str or Path
        Directory of the study, or its URI: the files are fetched to a temporary folder, and copied
        back meanwhile.
    config : str, Path, mapping, StudyConfig or Study, optional
        Configuration to resume with, which may have a larger search space or other settings that
        cannot change a number, e.g. ``search.max_concurrent``; that in the directory by default.
    overrides : mapping of str to object, or iterable of str, default=()
        Values that replace those of the configuration, as for `run_study`.
    address, allow_mixed_versions, progress : optional
        Where to compute, and what to show meanwhile, as for `run_study`.

    Returns
    -------
    StudyResult
        Result of the finished study, the same as from a run without interruption; except for an
        adaptive search that is not ``synchronous``, whose proposals depend on the order in which
        trials end.

    Raises
    ------
    ConfigError, DataError
        If the configuration or the data cannot be used; raised before anything is computed.
    DirectoryError
        If the directory holds no study or is in use, or changes invalidate its results.
    StudyError
        If no configuration has a score, or a refit or the disk fails.

    Examples
    --------
    After an interruption, and with more configurations:

    >>> study = resume_study("raysel-studies/digits-smr-20261122-101500")  # doctest: +SKIP
    >>> more = {"solver.space.rank": [1, 2, 4, 8]}
    >>> study = resume_study(study.path, overrides=more)  # doctest: +SKIP
    """
    options = RunOptions.of(address, allow_mixed_versions, progress)
    return _resume(OneStudy, path, config=config, overrides=overrides, options=options)


def open_study(path: str | Path, *, trust: bool = False) -> StudyResult:
    """Open a study from its directory, finished or not.

    Parameters
    ----------
    path : str or Path
        Directory of the study, or its URI: the files are fetched to a temporary folder, which is
        there until Python ends, and what is written to it does not reach the URI.
    trust : bool, default=False
        Whether to read models that this account has not signed, see `load_model`; all else needs no
        trust.

    Returns
    -------
    StudyResult
        Result of the study; if it has not finished, its tables show the results so far, and its
        ranking and model raise UnfinishedStudyError.

    Raises
    ------
    DirectoryError
        If the directory holds no study, or its journal is damaged.

    Examples
    --------
    >>> study = open_study("raysel-studies/digits-smr-20261122-101500")  # doctest: +SKIP
    >>> study.ranking(top=16).to_frame().head()  # doctest: +SKIP
    """
    folder = fetched(path)
    directory = StudyDirectory(folder)
    if directory.members.exists():
        folders = ", ".join(entry.folder for entry in ComparisonRecord.read(directory).members)
        place = shown_place(path)
        raise DirectoryError(
            f"{place} holds a comparison of several studies; give the folder of one of its members"
            f" ({folders}). To print it: raysel compare {shlex.quote(place)}, or"
            " open_comparison in Python."
        )
    return StudyResult.open(folder, trust=trust)


def open_comparison(path: str | Path, *, trust: bool = False) -> ComparisonResult:
    """Open a comparison of several studies from its directory, finished or not.

    Parameters
    ----------
    path : str or Path
        Directory of the comparison, or its URI, as for `open_study`.
    trust : bool, default=False
        Whether to read the members' models that this account has not signed.

    Returns
    -------
    ComparisonResult
        Result of the comparison; members that failed or have not finished have none, and say why.

    Raises
    ------
    DirectoryError
        If the directory holds no comparison, or its list of members is damaged.

    Examples
    --------
    >>> comparison = open_comparison("raysel-studies/digits-compare-20261122")  # doctest: +SKIP
    >>> comparison.table()  # doctest: +SKIP
    """
    folder = fetched(path)
    directory = StudyDirectory(folder)
    if directory.journal.exists() and not directory.members.exists():
        place = shown_place(path)
        raise DirectoryError(
            f"{place} holds no comparison but one study; its report is written by"
            f" raysel report {shlex.quote(place)} (open_study in Python opens it)."
        )
    return ComparisonResult.open(folder, trust=trust)


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
        Name of a built-in comparison, path of a YAML file, a configuration as plain data or
        validated, or a comparison that `prepare_comparison` returned.
    overrides : mapping of str to object, or iterable of str, default=()
        Values that replace those of the configuration: common keys, e.g. ``{"cv.outer": 5}`` or
        ``"cv.outer=5"``, or those of a member as ``compare.<label>.<key>``.
    X, y, label, groups, data : optional
        Samples in place of the data that the configuration names, as for `run_study`; they are
        written into the directory of the comparison.
    output : str or Path, optional
        Directory of the comparison, or its URI, as for `run_study`; by default the configuration's
        ``output``, else ``raysel-studies/<name>-<time>``.
    address, allow_mixed_versions, progress : optional
        Where to compute, and what to show meanwhile, as for `run_study`.

    Returns
    -------
    ComparisonResult
        Result of the comparison. A member that failed is part of it, with the reason.

    Raises
    ------
    ConfigError, DataError
        If the configuration of the comparison or of a member, or the data, cannot be used; raised
        before anything is computed.
    DirectoryError
        If the directory holds another study or comparison, or cannot be written.
    StudyError
        If every member fails, or the disk fails.

    Examples
    --------
    >>> comparison = run_comparison("digits-compare", {"cv.outer": 5})  # doctest: +SKIP
    >>> comparison.table()[["member", "test_accuracy", "difference"]]  # doctest: +SKIP
    """
    own = OwnData(X, y, label=label, groups=groups, data=data)
    options = RunOptions.of(address, allow_mixed_versions, progress)
    planned = Comparison.prepare(config, overrides, own=own)
    return _run(planned, output, options)


def resume_comparison(
    path: str | Path,
    config: str | Path | Mapping[str, Any] | ComparisonConfig | Comparison | None = None,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    address: str | None = None,
    allow_mixed_versions: bool = False,
    progress: bool | Listener = True,
) -> ComparisonResult:
    """Resume a comparison: its failed members are tried again, further ones are added.

    Members that have finished are not run again.

    Parameters
    ----------
    path : str or Path
        Directory of the comparison, or its URI, as for `resume_study`.
    config : str, Path, mapping, ComparisonConfig or Comparison, optional
        Configuration to resume with, which may have more members, larger search spaces or other
        settings that cannot change a number; that in the directory by default.
    overrides : mapping of str to object, or iterable of str, default=()
        Values that replace those of the configuration, as for `run_comparison`.
    address, allow_mixed_versions, progress : optional
        Where to compute, and what to show meanwhile, as for `run_study`.

    Returns
    -------
    ComparisonResult
        Result of the comparison, with the same numbers as from a run without interruption.

    Raises
    ------
    ConfigError, DataError
        If the configuration of the comparison or of a member, or the data, cannot be used; raised
        before anything is computed.
    DirectoryError
        If the directory holds no comparison or is in use, or changes invalidate the results of a
        member.
    StudyError
        If every member fails, or the disk fails.

    Examples
    --------
    >>> resume_comparison("raysel-studies/digits-compare-20261122")  # doctest: +SKIP
    """
    options = RunOptions.of(address, allow_mixed_versions, progress)
    return _resume(Comparison, path, config=config, overrides=overrides, options=options)


def prepare_study(
    config: str | Path | Mapping[str, Any] | StudyConfig | None,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    X: Any = None,
    y: Any = None,
    label: str | None = None,
    groups: Any = None,
    data: Dataset | None = None,
    resumed: StudyDirectory | None = None,
    tracked: bool = True,
) -> Study:
    """Load a study's data, draw its folds, list its configurations, and check all."""
    own = OwnData(X, y, label=label, groups=groups, data=data)
    return OneStudy.prepare(config, overrides, own=own, resumed=resumed, tracked=tracked).first


def prepare_comparison(
    config: str | Path | Mapping[str, Any] | ComparisonConfig | None,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    X: Any = None,
    y: Any = None,
    label: str | None = None,
    groups: Any = None,
    data: Dataset | None = None,
    resumed: StudyDirectory | None = None,
) -> Comparison:
    """Load a comparison's data, draw its folds, and check every member."""
    own = OwnData(X, y, label=label, groups=groups, data=data)
    return Comparison.prepare(config, overrides, own=own, resumed=resumed)


def _run(
    planned: Planned[ConfigT, ResultT], output: str | Path | None, options: RunOptions
) -> ResultT:
    """Run what is planned in a new directory."""
    with working_folder(output_directory(planned.config, output), options, new=True) as folder:
        return planned.run(folder, options)


def _resume(
    kind: type[Planned[ConfigT, ResultT]],
    path: str | Path,
    config: Any,
    overrides: Overrides,
    options: RunOptions,
) -> ResultT:
    """Resume what is in a directory."""
    with working_folder(path, options, new=False) as folder:
        directory = StudyDirectory(folder)
        if config is not None:
            kind.check(directory)
        return kind.prepare(config, overrides, resumed=directory).resume(directory, options)
