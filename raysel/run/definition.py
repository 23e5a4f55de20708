"""Definition of what runs: one study, or the members of a comparison on the same folds; checked
before it computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from raysel.base.registry import solver_capabilities
from raysel.config import (
    ComparisonConfig,
    StudyConfig,
    load,
    load_comparison,
    member_folders,
    names_data,
)
from raysel.config.loading import Overrides, Source
from raysel.config.plain_data import OWN_DATA
from raysel.core.errors import ConfigError, DataError, DirectoryError
from raysel.data.dataset import Dataset
from raysel.study.checks import imported_code
from raysel.study.definition import Study
from raysel.study.inputs import OwnData, found_path, with_data_at
from raysel.tracking.directory import ComparisonRecord, MemberEntry, StudyDirectory
from raysel.tracking.journal import last_study
from raysel.tracking.places import (
    absolute_uri,
    check_names,
    check_place,
    data_on_servers,
    names_in_mlflow,
)


@dataclass(frozen=True)
class Comparison:
    """Studies that run on the same folds; a single study is a comparison of one member."""

    config: StudyConfig | ComparisonConfig
    #: Studies by label; a single one by its name.
    studies: Mapping[str, Study]
    #: Folder of each member in the directory; "." for a single study.
    folders: Mapping[str, str]

    @classmethod
    def of_study(cls, study: Study) -> Comparison:
        """Return the comparison that a single study is."""
        return cls(study.config, {study.config.name: study}, {study.config.name: "."})

    @classmethod
    def prepare(
        cls,
        config: StudyConfig | ComparisonConfig,
        resumed: StudyDirectory | None = None,
        own: Dataset | None = None,
    ) -> Comparison:
        """Load the data, draw the folds once for all members, and check every member."""
        plan = resumed.plan if resumed else None
        if isinstance(config, StudyConfig):
            return cls.of_study(Study.prepare(config, plan, own=own))
        known = (
            {entry.label: entry.folder for entry in ComparisonRecord.read(resumed).members}
            if resumed
            else {}
        )
        if gone := [label for label in known if label not in config.compare]:
            raise DirectoryError(
                f"the member {gone[0]!r} of the comparison to resume is not in the configuration;"
                " add it to `compare`, or start a new comparison in another directory."
            )
        folders = member_folders(list(config.compare), known)
        studies: dict[str, Study] = {}
        for label, folder in folders.items():
            member = config.study(label, folder)
            # The folds and, if there is a study that reads them, the data of an earlier member are
            # shared.
            alike = (study for study in studies.values() if study.reads_alike(member))
            like = next(alike, next(iter(studies.values()), None))
            with naming(label):
                studies[label] = Study.prepare(member, plan, like, own)
        raw = config.to_dict()
        first = next(iter(studies.values()))
        raw["dataset"] = {"scaling": first.dataset.layout.default_scaling, **raw["dataset"]}
        return cls(load_comparison(raw), studies, folders)

    @property
    def is_study(self) -> bool:
        """Whether this is a single study, whose files lie in the directory itself."""
        return isinstance(self.config, StudyConfig)

    @property
    def first(self) -> Study:
        """Study of the first member."""
        return next(iter(self.studies.values()))

    def with_data_at(self, path: Path) -> Comparison:
        """Return the comparison whose own data, if it has any, are read from a file."""
        if self.first.own is None:
            return self
        studies = {label: study.with_data_at(path) for label, study in self.studies.items()}
        return Comparison(
            with_data_at(path.absolute(), self.config, written=False), studies, self.folders
        )

    def record(self, *, id_: str, uri: str, started: float) -> ComparisonRecord:
        """Return the list of the members of a comparison, none of which has failed."""
        if isinstance(self.config, StudyConfig):
            raise TypeError("a single study has no list of members")
        members = tuple(
            _entry(label, self.folders[label], study) for label, study in self.studies.items()
        )
        config = self.config
        reference = config.reference or members[0].label
        return ComparisonRecord(
            id=id_,
            name=config.name,
            reference=reference,
            experiment=config.experiment,
            uri=uri,
            started=started,
            members=members,
        )


def prepare(
    config: Source | Study | Comparison | None,
    overrides: Overrides = (),
    *,
    compared: bool,
    own: OwnData | None = None,
    resumed: StudyDirectory | None = None,
    tracked: bool = True,
) -> Comparison:
    """Load a study, or a comparison if it is to be ``compared``, with its data, draw the folds, and
    check all.

    One that is prepared is returned as it is.
    """
    what = "comparison" if compared else "study"
    if isinstance(config, Study | Comparison):
        if own or overrides:
            given = "has its data; give the samples" if own else "takes no overrides; give them"
            raise ConfigError(f"a prepared {what} {given} to prepare_{what}.")
        return Comparison.of_study(config) if isinstance(config, Study) else config
    if own and resumed is not None:
        raise ConfigError(f"{resumed.path} holds the data of the {what} to resume; give none.")
    if resumed is None:
        if config is None:
            raise ConfigError(
                f"config=None: give a path, the name of a built-in {what} or a mapping."
            )
        loaded = load(config, overrides, own_data=bool(own), compared=compared)
        if not own:
            return Comparison.prepare(loaded)
        first = next(iter(loaded.members.values()))
        return Comparison.prepare(
            with_data_at(OWN_DATA, loaded), own=own.dataset(first.dataset, first.cv.groups)
        )
    loaded = _resumed_config(config, overrides, resumed, compared=compared, tracked=tracked)
    try:
        return Comparison.prepare(loaded, resumed)
    except DataError as error:
        raise DataError(
            f"{error}\nIf the data have moved since the {what} started, override dataset.path."
        ) from error


def _resumed_config(
    config: Source | None,
    overrides: Overrides,
    resumed: StudyDirectory,
    *,
    compared: bool,
    tracked: bool,
) -> StudyConfig | ComparisonConfig:
    """Return the configuration of what is resumed, which is that of its directory by default."""
    if compared:
        ComparisonRecord.read(resumed)  # refuses what is no comparison
    is_stored = config is None
    if config is None:
        config = _stored(resumed, overrides, compared=compared)
    if resumed.data.exists() and not names_data(config, overrides):
        loaded = with_data_at(
            resumed.data.absolute(), load(config, overrides, own_data=True, compared=compared)
        )
    else:
        loaded = load(config, overrides, compared=compared)
    for member in loaded.members.values() if is_stored else ():
        uploaded = tracked and member.tracking.mlflow
        check_stored_places(member, overrides, resumed.path, tracked=uploaded)
    path = next(iter(loaded.members.values())).dataset.path
    if (moved := found_path(path, resumed.path)) != path:
        return with_data_at(str(moved), loaded, written=False)
    return loaded


def _stored(directory: StudyDirectory, overrides: Overrides, *, compared: bool) -> Path:
    """Return the configuration in a directory, whose places and code may be a stranger's."""
    directory.check()
    if not directory.config.exists():
        raise DirectoryError(
            f"{directory.path} holds no study to resume; give the directory of a study."
        )
    for member in load(directory.config, compared=compared).members.values():
        for key, name in imported_code(member):
            if not _names_one_of(overrides, key.partition(".")[0], key):
                raise ConfigError(
                    f"{key}: {name} imports code, and for security it is not imported if only the"
                    f" configuration in the study's directory {directory.path} names it; give the"
                    " configuration again to resume."
                )
    return directory.config


def check_stored_places(
    config: StudyConfig, overrides: Overrides, directory: Path, *, tracked: bool = True
) -> None:
    """Check that this user has used the servers and the places in MLflow before that only a
    study's directory names.
    """
    if config.tracking.uri and tracked and not _names_one_of(overrides, "tracking", "tracking.uri"):
        check_place("tracking.uri", absolute_uri(config.tracking.uri), directory)
    study = StudyDirectory(directory)
    whole = ComparisonRecord.read(study) if study.members.exists() else None
    names = names_in_mlflow(vars(config.tracking), whole.name if whole else config.name)
    if names and tracked:
        started = whole or (last_study(study.journal) if study.journal.exists() else None)
        given = [key for key in names if _names_one_of(overrides, "tracking", f"tracking.{key}")]
        check_names(names, started.id if started else "", directory, given)
    for key, uri in data_on_servers(config).items():
        if not _names_one_of(overrides, "dataset", key, "dataset.tasks"):
            check_place(key, uri, directory)


def _names_one_of(overrides: Overrides, *keys: str) -> bool:
    """Return whether an override sets one of these keys."""
    given = [overrides] if isinstance(overrides, str) else overrides or ()
    return any(str(key).partition("=")[0].strip() in keys for key in given)


@contextmanager
def naming(label: str) -> Iterator[None]:
    """Name a member of a comparison in errors."""
    try:
        yield
    except (ConfigError, DataError, DirectoryError) as error:
        raise type(error)(f"compare.{label}: {error}") from error


def _entry(label: str, folder: str, study: Study) -> MemberEntry:
    name = study.config.solver.name
    can = solver_capabilities(name)
    return MemberEntry(label, folder, name, can.reconstructed, transductive=can.transductive)
