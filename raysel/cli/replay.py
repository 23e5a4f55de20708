"""Option ``--replay`` of ``tune``, which uploads a study or a comparison to MLflow again."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from raysel.config import load_comparison
from raysel.core.credentials import bare_uri, keep_credentials
from raysel.core.errors import ConfigError, StudyError
from raysel.core.storage.working_copy import shown_place
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import ComparisonRecord, StudyDirectory, started_members
from raysel.tracking.journal_upload import notices, replay, tracking_status
from raysel.tracking.places import (
    absolute_uri,
    check_experiment,
    check_names,
    check_place,
    check_store,
    names_in_mlflow,
    note_names,
    note_place,
    place_now,
)
from raysel.tracking.records import StudyRecord

#: Keys that may be set, by the name that an upload has for them.
_KEYS = {name: f"tracking.{name}" for name in ("uri", "experiment", "register")}
#: Values that leave a key out.
_NULL = ("", "null", "~")


def run_replay(path: Path, arguments: Namespace, out: Console) -> int:
    """Upload a study or a comparison again; runs that are there already stay as they are."""
    directory, given = StudyDirectory(path), _settings(arguments)
    uri = given.pop("uri", None)
    stored, sections = _stored(directory)
    if uri is None and sections[0].get("uri") is None:  # the configuration leaves it to the user
        uri = os.environ.get("MLFLOW_TRACKING_URI") or None
    if uri is None:
        uri = place_now(stored.uri, path)
        check_place("tracking.uri", uri, path)
    for section in sections:
        stored_names = names_in_mlflow({**section, "experiment": stored.experiment}, stored.name)
        check_names(stored_names, stored.id, path, given)
    uri = absolute_uri(keep_credentials(uri))
    check_store(uri)
    by_default = "experiment" in given or stored.experiment == stored.name
    if by_default and not given.get("experiment"):
        check_experiment(uri, stored.name, stored.id, path)
    note_place(uri)
    note_names({key: name for key, name in given.items() if name}, stored.id)
    with directory.open(0):  # a running study uploads its journal itself
        status = replay(directory, uri, given, out.print)
    for text in notices(map(tracking_status, (directory, *started_members(directory)))):
        out.print(text)
    if status["error"]:
        why = status["error"].rstrip(".")
        raise StudyError(f"the upload failed: {why}. Repeat the command once that is mended.")
    what = "records"
    if isinstance(stored, ComparisonRecord):
        what = "studies and comparisons"
    out.print(f"{status['logged']} {what} of {shown_place(path)} are in MLflow at {bare_uri(uri)}")
    return 0


def _settings(arguments: Namespace) -> dict[str, str | None]:
    """Return what ``--set`` gives, None for a name that is left out; other options are refused."""
    settings = dict(setting.partition("=")[::2] for setting in arguments.set)
    others = [f"--set {key}" for key in settings if key not in _KEYS.values()]
    if arguments.dry_run:
        raise ConfigError("--replay uploads at once and has nothing to try; leave --dry-run out.")
    if arguments.config or others:
        raise ConfigError(
            "--replay uploads the stored study and cannot be combined with "
            f"{arguments.config or others[0]}; only --set of tracking.uri, "
            "tracking.experiment and tracking.register is allowed."
        )
    given = {name: settings[key] for name, key in _KEYS.items() if key in settings}
    return given | {name: None for name in given if given[name] in _NULL and name != "uri"}


def _stored(
    directory: StudyDirectory,
) -> tuple[StudyRecord | ComparisonRecord, Sequence[Mapping[str, Any]]]:
    """Return the record in a directory, and the section ``tracking`` of each member."""
    if directory.members.exists():
        record = ComparisonRecord.read(directory)
        members = load_comparison(directory.config).members.values()
        return record, [vars(member.tracking) for member in members]
    study = StoredStudy.read(directory).study
    return study, [study.config.get("tracking", {})]
