"""Definition of a comparison: its members as studies on the same folds, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from raysel.base.registry import solver_capabilities
from raysel.config import ComparisonConfig, StudyConfig, load_comparison, member_folders
from raysel.core.errors import ConfigError, DataError, DirectoryError
from raysel.data.dataset import Dataset
from raysel.study.definition import Study
from raysel.tracking.comparisons.directory import ComparisonDirectory
from raysel.tracking.comparisons.record import ComparisonRecord, MemberEntry


@dataclass(frozen=True)
class Comparison:
    """Members of one comparison."""

    config: ComparisonConfig
    studies: Mapping[str, Study]
    folders: Mapping[str, str]

    @classmethod
    def prepare(
        cls, config: ComparisonConfig, resumed: ComparisonDirectory | None = None, own: Dataset | None = None
    ) -> Comparison:
        """Load the data, draw the folds once for all members, and check every member."""
        known = {entry.label: entry.folder for entry in resumed.read().members} if resumed else {}
        if gone := [label for label in known if label not in config.compare]:
            raise DirectoryError(
                f"the member {gone[0]!r} of the comparison to resume is not in the configuration; add it to `compare`, "
                "or start a new comparison in another directory."
            )
        folders = member_folders(list(config.compare), known)
        studies: dict[str, Study] = {}
        for label, folder in folders.items():
            member = config.study(label, folder)
            with _naming(label):
                studies[label] = Study.prepare(member, resumed.plan if resumed else None, _like(member, studies), own)
        raw = config.to_dict()
        first = next(iter(studies.values()))
        raw["dataset"] = {"scaling": first.dataset.layout.default_scaling, **raw["dataset"]}
        return cls(load_comparison(raw), studies, folders)

    @property
    def first(self) -> Study:
        """Study of the first member."""
        return next(iter(self.studies.values()))

    def with_data_at(self, path: Path) -> Comparison:
        """Return the comparison whose own data, if it has any, are read from a file."""
        if self.first.own is None:
            return self
        raw = self.config.to_dict()
        raw["dataset"] = {**raw["dataset"], "path": str(path.absolute())}
        studies = {label: study.with_data_at(path) for label, study in self.studies.items()}
        return Comparison(load_comparison(raw), studies, self.folders)

    def record(self, *, id_: str, uri: str, started: float) -> ComparisonRecord:
        """Return the list of members, none of which has failed."""
        members = tuple(_entry(label, self.folders[label], study) for label, study in self.studies.items())
        config = self.config
        reference = config.reference or members[0].label
        return ComparisonRecord(id_, config.name, reference, config.experiment, uri, started, members)


def _like(config: StudyConfig, studies: Mapping[str, Study]) -> Study | None:
    """Return a study whose folds and, if there is one that reads them, whose data a member shares."""
    alike = (study for study in studies.values() if study.reads_alike(config))
    return next(alike, next(iter(studies.values()), None))


@contextmanager
def _naming(label: str) -> Iterator[None]:
    """Name the member in errors of its preparation."""
    try:
        yield
    except (ConfigError, DataError, DirectoryError) as error:
        raise type(error)(f"compare.{label}: {error}") from error


def _entry(label: str, folder: str, study: Study) -> MemberEntry:
    name = study.config.solver.name
    can = solver_capabilities(name)
    return MemberEntry(label, folder, name, can.reconstructed, transductive=can.transductive)
