"""Definition of what runs: one study, or several on the same folds; checked before it computes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, Self, TypeVar

from raysel.config import StudyConfig, names_data
from raysel.config.loading import ConfigT, Overrides, Source
from raysel.config.plain_data import OWN_DATA
from raysel.core.errors import ConfigError, DataError, DirectoryError
from raysel.data.dataset import Dataset
from raysel.run.launch import check_resources
from raysel.run.options import DEFAULTS, RunOptions
from raysel.study.checks import imported_code
from raysel.study.definition import Study
from raysel.study.inputs import OwnData, found_path, with_data_at
from raysel.tracking.directory import ComparisonRecord, StudyDirectory
from raysel.tracking.journal import last_study
from raysel.tracking.places import (
    absolute_uri,
    check_names,
    check_place,
    data_on_servers,
    names_in_mlflow,
)

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Planned(ABC, Generic[ConfigT, ResultT]):
    """Members that run on the same folds, one after the other; a single study is the only one."""

    #: What it is called in sentences.
    what: ClassVar[str]

    config: ConfigT
    #: Study of each member, by its label.
    studies: Mapping[str, Study]
    #: Folder of each member in the directory, by its label.
    folders: Mapping[str, str]

    @property
    def first(self) -> Study:
        """Study of the first member."""
        return next(iter(self.studies.values()))

    @classmethod
    def prepare(
        cls,
        config: Source | Study | Planned[ConfigT, ResultT] | None,
        overrides: Overrides = (),
        *,
        own: OwnData | None = None,
        resumed: StudyDirectory | None = None,
        tracked: bool = True,
    ) -> Self:
        """Load a configuration with its data, draw the folds, and check every member.

        What is prepared already is returned as it is.
        """
        if isinstance(config, Study | Planned):
            return cls._prepared(config, overrides, own)
        if resumed is None:
            return cls._new(config, overrides, own)
        if own:
            raise ConfigError(
                f"{resumed.path} holds the data of the {cls.what} to resume; give none."
            )
        return cls._resumed(config, overrides, resumed, tracked=tracked)

    @classmethod
    def _prepared(
        cls,
        planned: Study | Planned[ConfigT, ResultT],
        overrides: Overrides,
        own: OwnData | None,
    ) -> Self:
        """Return what was prepared before, which takes neither data nor overrides."""
        if own:
            raise ConfigError(
                f"a prepared {cls.what} has its data; give the samples to prepare_{cls.what}."
            )
        if overrides:
            raise ConfigError(
                f"a prepared {cls.what} takes no overrides; give them to prepare_{cls.what}."
            )
        return cls.of_prepared(planned)

    @classmethod
    def _new(cls, config: Source | None, overrides: Overrides, own: OwnData | None) -> Self:
        if config is None:
            raise ConfigError(
                f"config=None: give a path, the name of a built-in {cls.what} or a mapping."
            )
        loaded = cls.load(config, overrides, own_data=bool(own))
        if not own:
            return cls.of_config(loaded)
        first = next(iter(loaded.members.values()))
        data = own.dataset(first.dataset, first.cv.groups)
        return cls.of_config(with_data_at(OWN_DATA, loaded), own=data)

    @classmethod
    def _resumed(
        cls,
        config: Source | None,
        overrides: Overrides,
        directory: StudyDirectory,
        *,
        tracked: bool,
    ) -> Self:
        """Load what is resumed in a directory, wherever its data are now."""
        is_stored = config is None
        if config is None:
            config = cls._stored(directory, overrides)
            cls.check(directory)
        has_data = directory.data.exists() and not names_data(config, overrides)
        loaded = cls.load(config, overrides, own_data=has_data)
        if has_data:
            loaded = with_data_at(directory.data.absolute(), loaded)
        for member in loaded.members.values() if is_stored else ():
            uploaded = tracked and member.tracking.mlflow
            check_stored_places(member, overrides, directory.path, tracked=uploaded)
        path = next(iter(loaded.members.values())).dataset.path
        if (moved := found_path(path, directory.path)) != path:
            loaded = with_data_at(str(moved), loaded, written=False)
        try:
            return cls.of_config(loaded, directory)
        except DataError as error:
            raise DataError(
                f"{error}\nIf the data have moved since the {cls.what} started, override"
                " dataset.path."
            ) from error

    @classmethod
    def _stored(cls, directory: StudyDirectory, overrides: Overrides) -> Path:
        """Return the configuration of a directory, whose places and code may be a stranger's."""
        directory.check()
        if not directory.config.exists():
            raise DirectoryError(
                f"{directory.path} holds no study to resume; give the directory of a study."
            )
        stored = cls.load(directory.config)
        for member in stored.members.values():
            for key, name in imported_code(member):
                if not _sets_any(overrides, key.partition(".")[0], key):
                    raise ConfigError(
                        f"{key}: {name} imports code, and only the configuration in the directory"
                        f" {directory.path} names it. For security, give the configuration again to"
                        " resume."
                    )
        return directory.config

    def check_resources(self, options: RunOptions) -> None:
        """Check that the machine or the cluster can run the trials of every member."""
        for label, study in self.studies.items():
            with self.naming(label):
                check_resources(study, options.address)

    def naming(self, label: str) -> AbstractContextManager[None]:
        """Name a member in errors, unless it is the only one."""
        return nullcontext()

    @staticmethod
    @abstractmethod
    def load(source: Source, overrides: Overrides = (), *, own_data: bool = False) -> ConfigT:
        """Read, override and validate a configuration of this kind."""

    @staticmethod
    @abstractmethod
    def check(directory: StudyDirectory) -> None:
        """Refuse a directory that holds something of another kind."""

    @classmethod
    @abstractmethod
    def of_prepared(cls, planned: Study | Planned[ConfigT, ResultT]) -> Self:
        """Return something prepared as an object of this kind."""

    @classmethod
    @abstractmethod
    def of_config(
        cls, config: ConfigT, resumed: StudyDirectory | None = None, own: Dataset | None = None
    ) -> Self:
        """Load the data, draw the folds once for all members, and check every member."""

    @abstractmethod
    def run(self, path: Path, options: RunOptions = DEFAULTS) -> ResultT:
        """Run the members in a new directory, and return their result."""

    @abstractmethod
    def resume(self, directory: StudyDirectory, options: RunOptions = DEFAULTS) -> ResultT:
        """Resume the members in their directory, and return their result."""


def check_stored_places(
    config: StudyConfig, overrides: Overrides, directory: Path, *, tracked: bool = True
) -> None:
    """Check that this user has used what only a study's directory names: servers, MLflow."""
    if config.tracking.uri and tracked and not _sets_any(overrides, "tracking", "tracking.uri"):
        check_place("tracking.uri", absolute_uri(config.tracking.uri), directory)
    id_, name = _started_in(StudyDirectory(directory))
    names = names_in_mlflow(vars(config.tracking), name or config.name)
    if names and tracked:
        given = [key for key in names if _sets_any(overrides, "tracking", f"tracking.{key}")]
        check_names(names, id_, directory, given)
    for key, uri in data_on_servers(config).items():
        if not _sets_any(overrides, "dataset", key, "dataset.tasks"):
            check_place(key, uri, directory)


def _started_in(directory: StudyDirectory) -> tuple[str, str]:
    """Return id and name of the comparison in a directory, or the id of the study."""
    if directory.members.exists():
        record = ComparisonRecord.read(directory)
        return record.id, record.name
    if directory.journal.exists() and (study := last_study(directory.journal)):
        return study.id, ""
    return "", ""


def _sets_any(overrides: Overrides, *keys: str) -> bool:
    """Return whether an override sets one of these keys."""
    if isinstance(overrides, str):
        overrides = [overrides]
    return any(str(key).partition("=")[0].strip() in keys for key in overrides or ())


@contextmanager
def naming_member(label: str) -> Iterator[None]:
    """Name a member of a comparison in errors."""
    try:
        yield
    except (ConfigError, DataError, DirectoryError) as error:
        raise type(error)(f"compare.{label}: {error}") from error
