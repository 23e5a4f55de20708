"""What an earlier run of a study has left in its journal, and whether a later one may build on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raysel.config import StudyConfig, config_from_dict
from raysel.config.flatten import flat
from raysel.errors import DirectoryError
from raysel.study.definition import Study
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import read_journal

#: Whose versions change the last bits of a result.
_DECISIVE = ("raysel", "python", "numpy", "scipy", "scikit-learn", "optuna")

#: What an entry must say, or it is of another tool or damaged.
_NEEDED = {
    "study": ("id", "name", "uri", "started", "config", "config_hash", "data_hash", "versions", "folds", "n_trials"),
    "trial": ("id", "params", "status", "folds"),
    "path": ("fold", "inner", "fits"),
    "refit": ("fold", "trial"),
    "search": ("n_tried", "n_planned", "cut"),
    "end": ("status",),
}


@dataclass(frozen=True)
class StoredStudy:
    """The journal of a study that was begun.

    Parameters
    ----------
    directory : StudyDirectory
    study : mapping
        What the study was when it last ran.
    trials : list of mapping
        Entries of trials and paths, oldest first.
    refits : mapping of str to mapping
        The last entry of each fold.
    status : str
        How it ended: ``finished``, ``failed``, ``interrupted``, or ``killed`` where it did not say.
    search : mapping
        How far the last search went: ``n_tried``, ``n_planned``, ``cut``; empty where it did not end.
    """

    directory: StudyDirectory
    study: Mapping[str, Any]
    trials: list[Mapping[str, Any]]
    refits: Mapping[str, Mapping[str, Any]]
    status: str
    search: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: StudyDirectory) -> StoredStudy:
        """Read a journal.

        Parameters
        ----------
        directory : StudyDirectory

        Returns
        -------
        StoredStudy

        Raises
        ------
        DirectoryError
            If there is no journal, or it is none of a study.
        """
        study: Mapping[str, Any] | None = None
        trials: list[Mapping[str, Any]] = []
        refits: dict[str, Mapping[str, Any]] = {}
        status, search = "killed", {}
        try:
            for entry in read_journal(directory.journal):
                kind, status = entry["kind"], "killed"
                for key in _NEEDED.get(kind, ()):
                    entry[key]
                if kind == "study":
                    study = entry
                elif kind in ("trial", "path"):
                    trials.append(entry)
                elif kind == "refit":
                    refits[entry["fold"]] = entry
                elif kind == "search":
                    search = entry
                elif kind == "end":
                    status = entry["status"]
        except KeyError as error:
            raise DirectoryError(f"{directory.journal} is no journal of a study: a record has no {error}.") from error
        if study is None:
            raise DirectoryError(f"{directory.journal} is no journal of a study: it does not say which one.")
        return cls(directory, study, trials, refits, status, search)

    @property
    def n_trials(self) -> int:
        """How many of the pieces of work have ended."""
        paths = {(entry["fold"], entry["inner"]) for entry in self.trials if entry["kind"] == "path"}
        return len(paths) or len(self.trials)

    def is_of(self, study: Study) -> bool:
        """Whether this is the same study: configuration and data."""
        same = ("config_hash", study.config.hash), ("data_hash", study.dataset.content_hash)
        return all(self.study.get(key) == value for key, value in same)

    def check(self, study: Study, now: Mapping[str, Any]) -> None:
        """Refuse to build on results of other data, other code or another configuration.

        More samples, or a larger grid, are no other configuration.

        Parameters
        ----------
        study : Study
        now : mapping
            The study's entry as it would be written now.

        Raises
        ------
        DirectoryError
            Naming all that has changed.
        """
        changes = [*self._changed_config(study.config), *self._changed_trials(study)]
        if self.study["data_hash"] != now["data_hash"]:
            changes.append(f"the data of {study.dataset.name}: their content is not what it was")
        before = self.study["versions"]
        changes += [
            f"{name}: {before.get(name)} -> {now['versions'][name]}"
            for name in _DECISIVE
            if before.get(name) != now["versions"][name] and (name != "optuna" or study.config.search.method == "tpe")
        ]
        if changes:
            raise DirectoryError(
                f"{self.directory.path} cannot be resumed, for what has changed would make it another study:\n"
                + "".join(f"  {change}\n" for change in changes)
                + "Undo the change, or start a new study in another directory."
            )

    def _changed_config(self, config: StudyConfig) -> Iterator[str]:
        before = dict(flat(config_from_dict(self.study["config"]).identity()))
        now = dict(flat(config.identity()))
        for key in sorted(before.keys() | now.keys()):
            grows = key.startswith("solver.space") and config.search.method != "tpe"  # see _changed_trials
            # `solver.params` stands for itself where it is empty.
            if before.get(key) == now.get(key) or grows or key in ("search.num_samples", "solver.params"):
                continue
            yield f"{key}: {before.get(key, 'not set')} -> {now.get(key, 'not set')}"

    def _changed_trials(self, study: Study) -> Iterator[str]:
        """A search may grow, but what was tried must be part of it."""
        before = self.study["config"]["search"].get("num_samples")
        if not study.configurations:
            if before is not None and study.n_configurations < before:
                yield f"search.num_samples: {before} -> {study.n_configurations}"
            return
        there = {configuration.id for configuration in study.configurations}
        tried = {entry["id"].rpartition("-")[2] for entry in self.trials if entry["kind"] == "trial"}
        tried |= {id_ for entry in self.trials if entry["kind"] == "path" for id_ in entry["fits"]}
        if missing := len(tried - there):
            yield f"solver.space or search.num_samples: {missing} of the configurations that were tried are not in it"


def newest_unfinished(study: Study, below: Path) -> StoredStudy | None:
    """The newest interrupted run of this very study in a folder of studies.

    Parameters
    ----------
    study : Study
    below : Path

    Returns
    -------
    StoredStudy or None
    """
    folders = sorted(below.glob(f"{study.config.name}-*/journal.jsonl"), key=lambda path: path.stat().st_mtime)
    for journal in reversed(folders):
        directory = StudyDirectory(journal.parent)
        try:
            kept = StoredStudy.read(directory)
        except DirectoryError:
            continue
        if kept.is_of(study) and kept.status != "finished" and not directory.is_running():
            return kept
    return None
