"""Background process that uploads the members of a comparison to MLflow one after the other, then the comparison."""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from raysel.config import load_comparison
from raysel.config.overrides import flat
from raysel.core.credentials import changed_variables, from_pipe
from raysel.core.errors import RayselError
from raysel.tracking.comparisons.directory import ComparisonDirectory
from raysel.tracking.comparisons.record import ComparisonRecord
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.locks import FileLock, LockedFile
from raysel.tracking.mlflow_view import RunView
from raysel.tracking.uploader import (
    explain_silence,
    follow,
    is_alive,
    last_end,
    last_study,
    notices,
    send_credentials,
    tracking_status,
    waiting_limit,
)
from raysel.tracking.uri import connection

_RETRY_SECONDS = 2.0
_LONGEST_NOTE = 5000


class ComparisonUploader:
    """Handle of the background process that uploads a comparison; one process, because each imports MLflow for
    seconds.
    """

    def __init__(self, directory: ComparisonDirectory) -> None:
        self._directory = directory
        self._members: list[StudyDirectory] = []
        directory.tracking.unlink(missing_ok=True)  # state of an earlier run
        self._process = subprocess.Popen(
            [sys.executable, "-m", "raysel.tracking.comparisons.uploader", str(directory.path), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches the comparison only, which then stops this process
            text=True,
        )
        send_credentials(self._process)

    def follow(self, member: StudyDirectory) -> MemberUpload:
        """Upload a member's journal, which has been opened, until its end is recorded."""
        member.tracking.unlink(missing_ok=True)
        self._members.append(member)
        if self._process.stdin:
            with suppress(OSError):  # the process has ended; a replay uploads what is missing
                self._process.stdin.write(f"{member.path.name}\n")
                self._process.stdin.flush()
        return MemberUpload()

    def finish(self, patience: float = 60.0) -> dict[str, Any]:
        """Wait until everything is uploaded or the upload makes no progress; Ctrl-C ends the wait."""
        moved, last = time.monotonic(), -1
        limit = patience
        try:
            if self._process.stdin:
                with suppress(OSError):
                    self._process.stdin.close()
            while self._process.poll() is None:
                states = [tracking_status(member) for member in self._members]
                states.append(comparison_status(self._directory))
                if (logged := sum(state["logged"] for state in states)) != last:
                    moved, last = time.monotonic(), logged
                limit = waiting_limit(states, patience)
                if time.monotonic() - moved > limit:
                    break
                time.sleep(0.05)
            else:
                limit = math.inf  # it has ended by itself
        except KeyboardInterrupt:
            limit = math.inf  # second Ctrl-C: stop waiting
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        return explain_silence(StudyDirectory(self._directory.path), limit)


class MemberUpload:
    """Handle of a member's upload, which goes on while the next members run."""

    def finish(self, patience: float = 60.0) -> None:
        """Return at once: `ComparisonUploader.finish` waits for all members."""


def comparison_status(directory: ComparisonDirectory) -> dict[str, Any]:
    """Return the state of the upload of a comparison to MLflow."""
    return tracking_status(StudyDirectory(directory.path))


def comparison_notices(directory: ComparisonDirectory) -> list[str]:
    """Return what a user must be told of the uploads of a comparison and of its members."""
    return notices([comparison_status(directory), *map(tracking_status, _members(directory))])


def upload(
    directory: ComparisonDirectory,
    folders: Iterable[str],
    driver: int | None,
    uri: str | None = None,
    names: Mapping[str, str | None] = MappingProxyType({}),
) -> bool:
    """Upload members to MLflow below a run of the comparison, then its tables and figures."""
    from raysel.tracking.mlflow_runs.comparison import ComparisonRun  # noqa: PLC0415 - takes seconds to import
    from raysel.tracking.mlflow_runs.failure import failure_sentence, is_locked  # noqa: PLC0415

    status: dict[str, Any] = {"complete": False, "logged": 0, "error": ""}

    # The uploader of a run that was killed may still be running.
    with FileLock(directory.tracking_lock, wait=True) as lock, ExitStack() as stack:
        record = directory.read()
        record = replace(record, experiment=names.get("experiment", record.experiment) or record.name)
        store = uri or record.uri
        target, variables = connection(store)
        stack.enter_context(changed_variables(variables))
        shown = LockedFile(directory.tracking, lock)

        def said(**changes: Any) -> None:
            status.update(changes)
            shown.write(json.dumps(status))

        said()

        def failed_by(error: Exception) -> None:
            said(error=failure_sentence(error, target), locked=is_locked(error))

        parent = _insisted(lambda: ComparisonRun(record, target), driver, failed_by)
        if parent is None:
            return False
        said(error="", locked=False, notice=parent.notice, experiment_id=parent.experiment_id, run_id=parent.id)
        # Not those of the members' journals, which are not compared with those that the user has used.
        own = load_comparison(directory.config).members
        members = {
            entry.folder: {
                "experiment": record.experiment,
                "register": own[entry.label].tracking.register if entry.label in own else None,
            }
            for entry in record.members
        }
        whole = True
        for folder in folders:
            lock.check()
            done = _followed(directory.member(folder), driver, store, parent.id, {**members[folder], **names})
            whole = whole and done
            said(logged=status["logged"] + done)
        view = comparison_view(directory)
        if _insisted(lambda: parent.end(view) or True, driver, failed_by) is None:
            return False
        failed = [m.path.name for m in _members(directory) if not tracking_status(m)["complete"]]
        error = f"not complete: {', '.join(failed)}" if failed else ""
        said(error=error, complete=not failed, logged=status["logged"] + 1)
    return whole and not failed


def replay_comparison(
    directory: ComparisonDirectory, uri: str, names: Mapping[str, str | None] = MappingProxyType({})
) -> dict[str, Any]:
    """Upload a comparison that has ended, with the studies of its members."""
    upload(directory, [member.path.name for member in _members(directory)], None, uri, names)
    return comparison_status(directory)


def comparison_view(directory: ComparisonDirectory) -> RunView:
    """Return the content of the run of a comparison."""
    record = directory.read()
    ended = record.started
    metrics: dict[str, float | None] = {}
    for entry in record.members:
        journal = directory.member(entry.folder).journal
        end = last_end(journal) if journal.exists() else None
        if end is not None and "test_mean" in end.result:
            metrics[f"test_{last_study(journal).metric}_{entry.label}"] = end.result["test_mean"]
        ended = max(ended, end.ended if end else ended)
    table = directory.results / "comparison.md"
    tags = {"raysel.reference": record.reference}
    if table.exists():
        # The lines of a long heading overlap on MLflow's page.
        tags["mlflow.note.content"] = table.read_text(encoding="utf-8").removeprefix("# ")[:_LONGEST_NOTE]
    results = sorted(path for path in directory.results.glob("*") if path.is_file())
    return RunView(
        key="comparison",
        name=record.name,
        started=record.started,
        ended=ended,
        status=_run_status(record, len(metrics)),
        params=_params(directory),
        metrics=metrics,
        tags=tags,
        artifacts=[path for path in (directory.config, directory.plan) if path.exists()] + results,
    )


def _params(directory: ComparisonDirectory) -> Mapping[str, Any]:
    return dict(flat(load_comparison(directory.config).common))


def _run_status(record: ComparisonRecord, n_finished: int) -> str:
    if any(entry.error for entry in record.members):
        return "FAILED"
    return "FINISHED" if n_finished == len(record.members) else "KILLED"


def _members(directory: ComparisonDirectory) -> list[StudyDirectory]:
    """Return the directories of the members that have started."""
    found = [directory.member(entry.folder) for entry in directory.read().members]
    return [member for member in found if member.journal.exists()]


def _followed(
    member: StudyDirectory, driver: int | None, uri: str, parent: str, names: Mapping[str, str | None]
) -> bool:
    try:
        return follow(member, driver, uri, parent, names)
    except (RayselError, OSError):  # a damaged journal; the others are uploaded
        return False


def _insisted(action: Callable[[], Any], driver: int | None, failed: Callable[[Exception], None]) -> Any:
    """Return what an action returns, which is tried again after an error as long as the driver runs; else None."""
    while True:
        try:
            return action()
        except Exception as error:  # servers and databases raise many kinds of errors  # noqa: BLE001
            failed(error)
            if driver is None or not is_alive(driver):
                return None
            time.sleep(_RETRY_SECONDS)


def main() -> int:
    """Upload the members whose folders are read from the standard input, after credentials, while the driver runs."""
    parser = argparse.ArgumentParser(prog="python -m raysel.tracking.comparisons.uploader", description=main.__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("driver", type=int)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(10)  # leave the CPUs to the solvers
    arguments = parser.parse_args()
    from_pipe(sys.stdin.readline())
    folders = (line.rstrip("\n") for line in sys.stdin)
    return 0 if upload(ComparisonDirectory(arguments.directory), folders, arguments.driver) else 1


if __name__ == "__main__":
    sys.exit(main())
