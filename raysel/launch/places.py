"""Places that a study is written to and reads from: checked, and opened as folders of this machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from raysel.base.registry import imports_code
from raysel.config import StudyConfig
from raysel.config.overrides import OWN_DATA
from raysel.errors import ConfigError
from raysel.files import result_path
from raysel.storage.location import as_uri
from raysel.storage.working_copy import running_at
from raysel.study.definition import Study
from raysel.tracking.comparisons.directory import ComparisonDirectory
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.log import Listener
from raysel.tracking.uploader import last_study
from raysel.tracking.uri import absolute_uri
from raysel.tracking.validity.places import check_names, check_place, data_on_servers, names_in_mlflow

#: Files that the folder of a new study or comparison at a URI must lack.
_FIRST_FILES = ("config.yaml", "plan.json", "journal.jsonl", "members.json", "model.skops", OWN_DATA)


def output_directory(study: Study, output: str | Path | None = None) -> str | Path:
    """Return the directory that a study is written to."""
    return results_place(output or study.config.output or StudyDirectory.default(study.config.name))


def results_place(place: str | Path) -> str | Path:
    """Return a URI as it is, and a path as `raysel.files.result_path` does."""
    return place if as_uri(place) else result_path(place)


def working_folder(place: str | Path, listeners: Sequence[Listener] = (), *, new: bool) -> AbstractContextManager[Path]:
    """Return a context that provides the folder that a study runs in, and copies it to a URI meanwhile."""

    def say(text: str) -> None:
        for listener in listeners:
            listener.message(text)

    return running_at(place, refused=_FIRST_FILES if new else None, say=say)


def check_stored_places(
    config: StudyConfig, overrides: Mapping[str, Any] | Iterable[str], directory: Path, *, tracked: bool = True
) -> None:
    """Check that this user has used the servers and the places in MLflow before that only a study's directory names."""
    if config.tracking.uri and tracked and not names_one_of(overrides, "tracking", "tracking.uri"):
        check_place("tracking.uri", absolute_uri(config.tracking.uri), directory)
    comparison, study = ComparisonDirectory(directory), StudyDirectory(directory)
    whole = comparison.read() if comparison.members.exists() else None
    names = names_in_mlflow(vars(config.tracking), whole.name if whole else config.name)
    if names and tracked:
        started = whole or (last_study(study.journal) if study.journal.exists() else None)
        given = [key for key in names if names_one_of(overrides, "tracking", f"tracking.{key}")]
        check_names(names, started.id if started else "", directory, given)
    for key, uri in data_on_servers(config).items():
        if not names_one_of(overrides, "dataset", key, "dataset.tasks"):
            check_place(key, uri, directory)


def names_one_of(overrides: Mapping[str, Any] | Iterable[str], *keys: str) -> bool:
    """Return whether an override sets one of these keys."""
    given = [overrides] if isinstance(overrides, str) else overrides or ()
    return any(str(key).partition("=")[0].strip() in keys for key in given)


def refuse_foreign_code(solver: str, path: Path) -> None:
    """Check that the configuration in a directory does not name code to import."""
    if imports_code(solver):
        raise ConfigError(
            f"solver.name: {solver} imports code, and for security it is not imported if only the "
            f"configuration in the study's directory {path} names it; give the configuration again to resume."
        )
