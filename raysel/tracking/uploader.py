"""Upload of journal records to MLflow while they are written, and its state."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from raysel.core.credentials import changed_variables
from raysel.core.errors import DirectoryError
from raysel.core.files import read_again, read_json
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import RecordReader, journal_lines, open_journal, parse_line
from raysel.tracking.locks import FileLock, LockedFile
from raysel.tracking.records import EndRecord, Record, StudyRecord
from raysel.tracking.uri import connection

_POLL_SECONDS = 0.2
_RETRY_SECONDS = (1, 2, 4)
#: Keys of the state that name something of MLflow.
_IDS = ("experiment_id", "study_run_id", "run_id", "view")
# Found without parsing, because the lines of a large study take minutes to parse.
_STUDY = re.compile(rb'\{"kind": ?"study"')
_END = re.compile(rb'\{"kind": ?"end"')


def tracking_status(directory: StudyDirectory) -> dict[str, Any]:
    """Return the state of the upload of a study's journal to MLflow."""
    try:
        return _checked_status(read_again(lambda: read_json(directory.tracking)))
    except (OSError, ValueError):
        return _checked_status({})


def notices(states: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what a user must be told of uploads, with states as `tracking_status` returns them."""
    return [text for state in states for key in ("notice", "problem") if (text := state.get(key))]


def _checked_status(raw: Any) -> dict[str, Any]:
    """Return the state with the values of the known keys that have their type, because the file may be untrusted."""
    found: dict[str, Any] = {"complete": False, "logged": 0, "error": ""}
    if not isinstance(raw, dict):
        return found
    kinds = {"complete": bool, "locked": bool, "logged": int, "error": str, "notice": str, "problem": str}
    found |= {key: raw[key] for key, kind in kinds.items() if type(raw.get(key)) is kind}
    return found | {key: raw[key] for key in _IDS if re.fullmatch(r"[\w-]{1,100}", str(raw.get(key, "")))}


def follow(
    directory: StudyDirectory,
    driver: int | None,
    uri: str | None = None,
    parent: str | None = None,
    names: Mapping[str, str | None] = MappingProxyType({}),
) -> bool:
    """Upload a journal to MLflow as it grows, and retry after errors as long as the study runs."""
    from raysel.tracking.mlflow_runs.failure import failure_sentence, is_locked  # noqa: PLC0415 - seconds to import
    from raysel.tracking.mlflow_runs.study import MLflowRuns  # noqa: PLC0415

    status: dict[str, Any] = {"complete": False, "logged": 0, "error": ""}
    # The uploader of a run that was killed may still be running.
    with FileLock(directory.tracking_lock, wait=True) as lock, ExitStack() as stack:
        shown = LockedFile(directory.tracking, lock)
        shown.write(json.dumps(status))
        runs: MLflowRuns | None = None
        for record, is_last_end in _tail(directory.journal, driver):
            lock.check()
            if runs is None:
                stack.close()
                study = _renamed(last_study(directory.journal), names)
                target, variables = connection(uri or study.uri)
                stack.enter_context(changed_variables(variables))
            attempt = 0
            while True:
                try:
                    if runs is None:
                        runs = MLflowRuns(directory, replace(study, uri=target), parent)
                        status |= {"experiment_id": runs.experiment_id, "study_run_id": runs.study_run_id}
                        status["view"] = runs.view
                    elif attempt:
                        runs.refresh()
                    runs.log(record, settle=is_last_end)
                    break
                except Exception as error:  # servers and databases raise many kinds of errors  # noqa: BLE001
                    status |= {"error": failure_sentence(error, target), "locked": is_locked(error)}
                    shown.write(json.dumps(status))
                    if driver is None or not is_alive(driver):
                        return False
                    time.sleep(_RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)])
                    attempt += 1
            status |= {"logged": status["logged"] + 1, "error": "", "complete": isinstance(record, EndRecord)}
            status |= {"notice": runs.notice, "problem": runs.problem, "locked": False}
            shown.write(json.dumps(status))
    return bool(status["logged"])


def _renamed(study: StudyRecord, names: Mapping[str, str | None]) -> StudyRecord:
    experiment = (names["experiment"] or study.name) if "experiment" in names else study.experiment
    tracking = {**study.config.get("tracking", {}), **names}
    return replace(study, experiment=experiment, config={**study.config, "tracking": tracking})


def last_study(journal: Path) -> StudyRecord:
    """Read the last record of the study itself from a journal."""
    record = _last(journal, _STUDY)
    if not isinstance(record, StudyRecord):
        raise DirectoryError(f"{journal} has no record of a study; restore the file from a copy.")
    return record


def last_end(journal: Path) -> EndRecord | None:
    """Read the last record of an end from a journal."""
    record = _last(journal, _END)
    return record if isinstance(record, EndRecord) else None


def _last(journal: Path, kind: re.Pattern[bytes]) -> Record | None:
    """Read the last whole record of a kind; None if there is none."""
    number, last = 0, b""
    with open_journal(journal) as file:
        for i, line in enumerate(journal_lines(file, journal), start=1):
            if kind.match(line):
                number, last = i, line
    return RecordReader(journal).read(parse_line(last, journal, number), number) if last else None


def _tail(journal: Path, driver: int | None) -> Iterator[tuple[Record, bool]]:
    """Yield records as they are written, and whether each is the last end, until that or the end of the driver."""
    offset, number, reader = 0, 0, RecordReader(journal, checked=True)
    while True:
        watched = driver is not None and is_alive(driver)
        if journal.exists():
            with open_journal(journal) as file:
                file.seek(offset)
                for line in journal_lines(file, journal):
                    offset, number = offset + len(line), number + 1
                    record = reader.read(parse_line(line, journal, number), number)
                    if record is None:
                        continue
                    # While the study runs, another end follows the start of a resumed study.
                    later = (_STUDY, _END) if watched else (_END,)
                    yield record, isinstance(record, EndRecord) and not _follows(journal, offset, later)
                    if isinstance(record, EndRecord) and offset == journal.stat().st_size:
                        return  # the study was not resumed
        if not watched:
            return
        time.sleep(_POLL_SECONDS)


def _follows(journal: Path, offset: int, kinds: Sequence[re.Pattern[bytes]]) -> bool:
    with open_journal(journal) as file:
        file.seek(offset)
        return any(kind.match(line) for line in journal_lines(file, journal) for kind in kinds)


def is_alive(driver: int) -> bool:
    """Return whether the driver, which is the parent of this process, still runs."""
    return os.getppid() == driver
