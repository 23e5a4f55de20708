"""Functions that run, resume and open studies from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from raysel.config import StudyConfig, load_config, names_data
from raysel.core.errors import ConfigError, DataError, DirectoryError
from raysel.core.storage.working_copy import fetched, shown_place
from raysel.data.dataset import Dataset
from raysel.results.comparison.tables import ComparisonResult
from raysel.results.result import StudyResult
from raysel.run import course
from raysel.run.launch import (
    check_resources,
    check_stored_places,
    make_executor,
    make_listeners,
    names_one_of,
    output_directory,
    refuse_foreign_code,
    working_folder,
)
from raysel.study.definition import Study
from raysel.study.inputs import OwnData, found_path, study_of_own_data, with_own_data_at
from raysel.study.stored import StoredStudy
from raysel.tracking.comparisons.directory import ComparisonDirectory
from raysel.tracking.directory import StudyDirectory
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
        Name of a built-in study, path of a YAML file, a configuration as plain data or validated, or a study that
        `prepare_study` returned.
    overrides : mapping of str to object, or iterable of str, default=()
        Values that replace those of the configuration: by dotted key, e.g. ``{"cv.outer": 5}``, or as strings such
        as ``"cv.outer=5"``.
    X : array-like of shape (n_samples, ...), or data frame, optional
        Samples, in place of the data that the configuration names: an array (n, d), (n, height, width) or with more
        axes, or a frame of pandas or polars, whose columns are named. A configuration may still have
        ``dataset.scaling``, ``shape``, ``order``, ``drop``, ``keep``, ``only``, ``classes``. The samples are written
        into the directory of the study.
    y : array-like of shape (n_samples,) or (n_samples, n_labels), optional
        Labels, or an indicator; not needed if a column of the frame holds them.
    label : str, optional
        Column of the frame that holds the labels; by default y, label, target or another usual name.
    groups : str or array-like of shape (n_samples,), optional
        Column of the frame that holds the group of each sample, or the groups themselves, which stay whole in all
        folds.
    data : Dataset, optional
        Data set in place of X, y, label and groups.
    output : str or Path, optional
        Directory of the study; by default the configuration's ``output``, else ``raysel-studies/<name>-<time>``. Or a
        URI, s3://BUCKET/KEY, gs://BUCKET/KEY or file:///PATH: the study runs in a temporary folder, which is there
        until Python ends, and is copied to the URI meanwhile, see `raysel.core.storage.working_copy.running_at`.
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
    ...     "solver.space": {"alpha": [0.1]}, "cv.outer": 2, "cv.inner": 2, "search.executor": "serial",
    ...     "solver.params.max_iter": 3, "pictures": [],
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     small["tracking.uri"] = f"sqlite:///{folder}/mlflow.db"
    ...     study = run_study("digits-smr", small, output=f"{folder}/study", progress=False)
    ...     opened = open_study(f"{folder}/study")
    >>> study.summary().outer_fold.tolist(), opened.test_scores == study.test_scores
    (['outer0', 'outer1'], True)

    A study of arrays, ``run_study(config, X=X, y=y)``, needs no ``dataset`` in its configuration; a built-in one is
    run on them by ``run_study("digits-smr", X=images, y=y)``.
    """
    listeners = make_listeners(progress)
    study = _prepared(config, overrides, own=OwnData(X, y, label, groups, data))
    check_resources(study, address)
    executor = make_executor(study, address, allow_mixed_versions=allow_mixed_versions)
    with working_folder(output_directory(study, output), listeners, new=True) as path:
        return course.run(study, path, executor, listeners)


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
        Directory of the study, or its URI: the files are fetched to a temporary folder, and copied back meanwhile.
    config : str, Path, mapping, StudyConfig or Study, optional
        Configuration to resume with, which may have a larger search space or other settings that cannot change a
        number, e.g. ``search.max_concurrent``; that in the directory by default.
    overrides : mapping of str to object, or iterable of str, default=()
        Values that replace those of the configuration, as for `run_study`.
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
    StudyResult
        Result of the finished study, the same as from a run without interruption; except for an adaptive search that
        is not ``synchronous``, whose proposals depend on the order in which trials end.

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
    >>> study = resume_study(study.path, overrides={"solver.space.rank": [1, 2, 4, 8]})  # doctest: +SKIP
    """
    listeners = make_listeners(progress)
    with working_folder(path, listeners, new=False) as folder:
        directory = StudyDirectory(folder)
        stored = StoredStudy.read(directory)
        study = _prepared(config, overrides, directory)
        check_resources(study, address)
        executor = make_executor(study, address, allow_mixed_versions=allow_mixed_versions)
        return course.resume(study, stored, executor, listeners)


def open_study(path: str | Path) -> StudyResult:
    """Open a study from its directory, finished or not.

    Parameters
    ----------
    path : str or Path
        Directory of the study, or its URI: the files are fetched to a temporary folder, which is there until Python
        ends, and what is written to it does not reach the URI.

    Returns
    -------
    StudyResult
        Result of the study; if it has not finished, its tables show the results so far, and its ranking and model
        raise UnfinishedStudyError.

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
    comparison = ComparisonDirectory(folder)
    if comparison.members.exists():
        folders = ", ".join(entry.folder for entry in comparison.read().members)
        raise DirectoryError(
            f"{shown_place(path)} holds a comparison of several studies; give the folder of one of its members "
            f"({folders}), or open it with open_comparison."
        )
    return StudyResult.open(folder)


def open_comparison(path: str | Path) -> ComparisonResult:
    """Open a comparison of several studies from its directory, finished or not.

    Parameters
    ----------
    path : str or Path
        Directory of the comparison, or its URI, as for `open_study`.

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
    >>> comparison = open_comparison("raysel-studies/digits-compare-20261122-101500")  # doctest: +SKIP
    >>> comparison.table()  # doctest: +SKIP
    """
    folder = fetched(path)
    if StudyDirectory(folder).journal.exists() and not ComparisonDirectory(folder).members.exists():
        raise DirectoryError(f"{shown_place(path)} holds no comparison but one study; open it with open_study.")
    return ComparisonResult.open(folder)


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
    """Load a study's data, draw its folds, list its configurations, and check them against each other."""
    own = OwnData(X, y, label, groups, data)
    if own and resumed is not None:
        raise ConfigError(f"{resumed.path} holds the data of the study to resume; give none.")
    if config is None:
        if resumed is None:
            raise ConfigError("config=None: give a path, the name of a built-in study or a mapping.")
        resumed.check()
        if not resumed.config.exists():
            raise DirectoryError(f"{resumed.path} holds no study to resume; give the directory of a study.")
        stored = load_config(resumed.config)
        if not names_one_of(overrides, "solver", "solver.name"):
            refuse_foreign_code(stored.solver.name, resumed.path)
        check_stored_places(stored, overrides, resumed.path, tracked=tracked)
        config = resumed.config
    if own:
        loaded, dataset = study_of_own_data(load_config(config, overrides, own_data=True), own)
        return Study.prepare(loaded, own=dataset)
    if resumed is not None and resumed.data.exists() and not names_data(config, overrides):
        loaded = with_own_data_at(resumed.data.absolute(), load_config(config, overrides, own_data=True))
    else:
        loaded = load_config(config, overrides)
    if resumed is not None and (found := found_path(loaded.dataset.path, resumed.path)) != loaded.dataset.path:
        section = loaded.dataset.model_copy(update={"path": found})
        loaded = loaded.model_copy(update={"dataset": section})
    try:
        return Study.prepare(loaded, resumed.plan if resumed else None)
    except DataError as error:
        if resumed is None:
            raise
        raise DataError(f"{error}\nIf the data have moved since the study started, override dataset.path.") from error


def _prepared(
    config: str | Path | Mapping[str, Any] | StudyConfig | Study | None,
    overrides: Mapping[str, Any] | Iterable[str],
    resumed: StudyDirectory | None = None,
    own: OwnData | None = None,
) -> Study:
    """Return the study itself if it is prepared, else prepare it."""
    if not isinstance(config, Study):
        return prepare_study(config, overrides, **vars(own or OwnData()), resumed=resumed)
    if own:
        raise ConfigError("a prepared study has its data; give the samples to prepare_study.")
    if overrides:
        raise ConfigError("a prepared study takes no overrides; give them to prepare_study.")
    return config
