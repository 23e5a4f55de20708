"""Upload of journals to MLflow, while they are written or later, and its state in a file."""

from __future__ import annotations

import itertools
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from raysel.config import load_comparison
from raysel.core.credentials import bare_uri, changed_variables
from raysel.core.errors import RayselError
from raysel.core.files import read_again, read_json
from raysel.tracking.directory import ComparisonRecord, StudyDirectory, started_members
from raysel.tracking.journal import (
    END_LINE,
    STUDY_LINE,
    RecordReader,
    journal_lines,
    last_study,
    open_journal,
    parse_line,
    read_records,
)
from raysel.tracking.locks import FileLock, LockedFile
from raysel.tracking.places import connection
from raysel.tracking.records import EndRecord, Record, StudyRecord

_POLL_SECONDS = 0.2
#: Longest time between two attempts, which doubles from one second on.
_RETRY_SECONDS = 4
#: Seconds for which a store that another program has locked is waited for.
LOCKED_SECONDS = 180.0
#: Seconds between two sentences on an upload that is waited for.
TOLD_SECONDS = 20.0
#: Types of the values of the state, and its keys that name something of MLflow.
_KINDS = {
    "complete": bool,
    "locked": bool,
    "logged": int,
    "error": str,
    "notice": str,
    "problem": str,
    "place": str,
}
_IDS = ("experiment_id", "study_run_id", "run_id", "view")

Result = TypeVar("Result")
Names = Mapping[str, str | None]
#: Names in MLflow that replace those of the journal: of the experiment, of the registered model.
_NO_NAMES: Names = MappingProxyType({})


def tracking_status(directory: StudyDirectory) -> dict[str, Any]:
    """Return the state of the upload of a journal, without values of a wrong type."""
    status: dict[str, Any] = {"complete": False, "logged": 0, "error": ""}
    try:
        raw = read_again(lambda: read_json(directory.tracking))
    except (OSError, ValueError):
        return status
    if not isinstance(raw, dict):
        return status
    status |= {key: raw[key] for key, kind in _KINDS.items() if type(raw.get(key)) is kind}
    return status | {
        key: raw[key] for key in _IDS if re.fullmatch(r"[\w-]{1,100}", str(raw.get(key, "")))
    }


def notices(states: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what a user must be told of uploads, with states as `tracking_status` returns them."""
    said = ((state.get("notice"), state.get("problem")) for state in states)
    return list(filter(None, itertools.chain.from_iterable(said)))


def waiting_words(states: Iterable[Mapping[str, Any]]) -> str:
    """Return a sentence on uploads that are waited for: how far they are, and why not farther."""
    states = list(states)
    n = sum(state["logged"] for state in states)
    error = next((state["error"] for state in states if state["error"]), "")
    waiting = f"still waiting for {named_place(states)}, which has {n} records so far"
    if error:
        waiting += f": {error}"
    return waiting


def named_place(states: Iterable[Mapping[str, Any]]) -> str:
    """Return where uploads go to, as far as it is known."""
    for state in states:
        if state.get("place"):
            return f"MLflow at {state['place']}"
    return "MLflow"


class _GivenUpError(Exception):
    """MLflow fails, and the study does not run any more; the state has the error."""


class _Upload:
    """State of an upload, shown to other processes, and the attempts to reach MLflow."""

    def __init__(self, directory: StudyDirectory, lock: FileLock, driver: int | None) -> None:
        self.lock, self._file, self._driver = lock, LockedFile(directory.tracking, lock), driver
        self._state: dict[str, Any] = {"complete": False, "logged": 0, "error": ""}
        self.show()

    def show(self, *, logged: int = 0, **changes: Any) -> None:
        """Write the state: the records that are logged besides, and other changes."""
        self._state |= {"logged": self._state["logged"] + logged, **changes}
        self._file.write(json.dumps(self._state))

    def attempt(
        self,
        uri: str,
        action: Callable[[], Result],
        before_next: Callable[[], object] = lambda: None,
    ) -> Result:
        """Return what an action returns; repeat it after errors while the driver runs."""
        from raysel.tracking.mlflow_store import failure_sentence, is_locked  # noqa: PLC0415 - seconds to import

        self.show(place=bare_uri(uri))
        until = time.monotonic() + LOCKED_SECONDS
        for number in itertools.count():
            try:
                if number:
                    before_next()
                return action()
            except Exception as error:  # servers and databases raise many kinds of errors  # noqa: BLE001
                locked = is_locked(error, uri)
                self.show(error=failure_sentence(error, uri), locked=locked)
                waits = locked and time.monotonic() < until
                if not waits and (self._driver is None or not is_alive(self._driver)):
                    break
                time.sleep(min(2**number, _RETRY_SECONDS))
        raise _GivenUpError


@contextmanager
def _uploading(directory: StudyDirectory, driver: int | None) -> Iterator[_Upload]:
    """Hold the lock of the upload, for which that of a killed run may have to end first."""
    with suppress(_GivenUpError), FileLock(directory.tracking_lock, wait=True) as lock:
        yield _Upload(directory, lock, driver)


def upload_study(
    directory: StudyDirectory,
    driver: int | None,
    uri: str | None = None,
    parent: str | None = None,
    names: Names = _NO_NAMES,
) -> bool:
    """Upload a journal to MLflow as it grows, and retry after errors as long as the study runs."""
    from raysel.tracking.mlflow_runs import StudyRuns  # noqa: PLC0415 - seconds to import

    with _uploading(directory, driver) as upload:
        records = _tail(directory.journal, driver)
        if (first := next(records, None)) is None:
            return False
        study = _renamed(last_study(directory.journal), names)
        target, variables = connection(uri or study.uri)
        with changed_variables(variables):
            runs = upload.attempt(
                target, lambda: StudyRuns(directory, replace(study, uri=target), parent)
            )
            upload.show(
                experiment_id=runs.experiment_id, study_run_id=runs.study_run_id, view=runs.view
            )
            for record, is_last_end in itertools.chain([first], records):
                upload.lock.check()
                upload.attempt(target, partial(runs.log, record, settle=is_last_end), runs.refresh)
                ended = {"error": "", "locked": False, "complete": isinstance(record, EndRecord)}
                upload.show(logged=1, **ended, notice=runs.notice, problem=runs.problem)
        return True
    return False


def _renamed(study: StudyRecord, names: Names) -> StudyRecord:
    experiment = study.experiment
    if "experiment" in names:
        experiment = names["experiment"] or study.name
    tracking = {**study.config.get("tracking", {}), **names}
    return replace(study, experiment=experiment, config={**study.config, "tracking": tracking})


def upload_comparison(
    directory: StudyDirectory,
    folders: Iterable[str],
    driver: int | None,
    uri: str | None = None,
    names: Names = _NO_NAMES,
) -> bool:
    """Upload members to MLflow below a run of the comparison, then its tables and figures."""
    from raysel.tracking.mlflow_runs import ComparisonRun, comparison_view  # noqa: PLC0415 - seconds to import

    with _uploading(directory, driver) as upload:
        record = ComparisonRecord.read(directory)
        record = replace(
            record, experiment=names.get("experiment", record.experiment) or record.name
        )
        store = uri or record.uri
        target, variables = connection(store)
        with changed_variables(variables):
            run = upload.attempt(target, lambda: ComparisonRun(record, target))
            upload.show(
                error="",
                locked=False,
                notice=run.notice,
                experiment_id=run.experiment_id,
                run_id=run.id,
            )
            # Not those of the members' journals, which are not compared with those that the user
            # has used.
            configs = load_comparison(directory.config).members
            models = {
                m.folder: configs[m.label].tracking.register
                for m in record.members
                if m.label in configs
            }
            damage: dict[str, str] = {}
            for folder in folders:
                upload.lock.check()
                used = {"experiment": record.experiment, "register": models.get(folder), **names}
                member = directory.member(folder)
                try:
                    if driver is None:
                        _check_journal(member)
                    upload.show(
                        logged=upload_study(member, driver, uri=store, parent=run.id, names=used)
                    )
                except (RayselError, OSError) as error:  # of one member; the others are uploaded
                    damage[folder] = str(error)
            upload.attempt(target, partial(run.end, comparison_view(directory)))
            failed = [
                f"{name}: {why}" if (why := damage.get(name) or state["error"]) else name
                for name, state in _states(directory).items()
                if name in damage or not state["complete"]
            ]
            told = ""
            if failed:
                told = f"not complete: {'; '.join(failed)}"
            upload.show(logged=1, error=told, complete=not failed)
        return not failed
    return False


def _check_journal(directory: StudyDirectory) -> None:
    """Read a journal through, so that nothing of a damaged one is uploaded."""
    directory.check()
    for _ in read_records(directory.journal, checked=True):
        pass


def _states(directory: StudyDirectory) -> dict[str, dict[str, Any]]:
    """Return the states of the uploads of a comparison's members, by their folders."""
    return {member.path.name: tracking_status(member) for member in started_members(directory)}


def replay(
    directory: StudyDirectory,
    uri: str,
    names: Names = _NO_NAMES,
    say: Callable[[str], object] = lambda _: None,
) -> dict[str, Any]:
    """Upload a study or a comparison that has ended, and say what is waited for."""
    members = started_members(directory)
    with _telling([*members, directory], say):
        if directory.members.exists():
            folders = [member.path.name for member in members]
            upload_comparison(directory, folders, driver=None, uri=uri, names=names)
        else:
            upload_study(directory, None, uri, names=names)
    return tracking_status(directory)


@contextmanager
def _telling(directories: Sequence[StudyDirectory], say: Callable[[str], object]) -> Iterator[None]:
    """Say again and again what is waited for."""
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(TOLD_SECONDS):
            say(waiting_words(map(tracking_status, directories)))

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _tail(journal: Path, driver: int | None) -> Iterator[tuple[Record, bool]]:
    """Yield records as they are written, and whether each is the last end."""
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
                    later = (STUDY_LINE, END_LINE) if watched else (END_LINE,)
                    yield (
                        record,
                        isinstance(record, EndRecord) and not _follows(journal, offset, later),
                    )
                    if isinstance(record, EndRecord) and offset == journal.stat().st_size:
                        return  # the study was not resumed
        if not watched:
            return
        time.sleep(_POLL_SECONDS)


def _follows(journal: Path, offset: int, kinds: Sequence[re.Pattern[bytes]]) -> bool:
    with open_journal(journal) as file:
        file.seek(offset)
        lines = journal_lines(file, journal)
        return any(any(kind.match(line) for kind in kinds) for line in lines)


def is_alive(driver: int) -> bool:
    """Return whether the driver, which is the parent of this process, still runs."""
    return os.getppid() == driver
