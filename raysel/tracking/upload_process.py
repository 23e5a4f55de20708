"""Background process that uploads a study, or the members of a comparison and then the comparison, to MLflow."""

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
from typing import Any, Protocol

from raysel.config import load_comparison
from raysel.config.loading import flat
from raysel.core.credentials import changed_variables, from_pipe, to_pipe
from raysel.core.errors import RayselError
from raysel.core.files import write_text_atomically
from raysel.tracking.comparison import ComparisonRecord
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.locks import FileLock, LockedFile
from raysel.tracking.mlflow_view import RunView
from raysel.tracking.uploader import follow, is_alive, last_end, last_study, tracking_status
from raysel.tracking.uri import connection

_RETRY_SECONDS = 2.0
_LONGEST_NOTE = 5000


class Upload(Protocol):
    """Upload of a study's journal that goes on while the study runs."""

    def finish(self, patience: float = 60.0) -> object:
        """Wait until everything is uploaded or the upload makes no progress."""


class MLflowUploader:
    """Handle of the background process; one for all members of a comparison, because each imports MLflow for seconds.

    The journal of a study is uploaded at once, those of members after `follow`.
    """

    def __init__(self, directory: StudyDirectory) -> None:
        self._directory = directory
        self._members: list[StudyDirectory] = []
        directory.tracking.unlink(missing_ok=True)  # state of an earlier run
        self._process = subprocess.Popen(
            [sys.executable, "-m", "raysel.tracking.upload_process", str(directory.path), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches the study only, which then stops this process
            text=True,
        )
        self._send(to_pipe())  # where neither files nor arguments show the credentials
        if not directory.members.exists():
            self._close()

    def follow(self, member: StudyDirectory) -> MemberUpload:
        """Upload a member's journal, which has been opened, until its end is recorded."""
        member.tracking.unlink(missing_ok=True)
        self._members.append(member)
        self._send(f"{member.path.name}\n")
        return MemberUpload()

    def finish(self, patience: float = 60.0) -> dict[str, Any]:
        """Wait until everything is uploaded or the upload makes no progress; Ctrl-C ends the wait."""
        moved, last = time.monotonic(), -1
        limit = patience
        try:
            self._close()
            while self._process.poll() is None:
                states = [tracking_status(directory) for directory in (*self._members, self._directory)]
                if (logged := sum(state["logged"] for state in states)) != last:
                    moved, last = time.monotonic(), logged
                limit = _waiting_limit(states, patience)
                if time.monotonic() - moved > limit:
                    break
                time.sleep(0.05)
            else:
                limit = math.inf  # it has ended by itself
        except KeyboardInterrupt:
            limit = math.inf  # second Ctrl-C: stop waiting
        self.stop()
        return self._explain_silence(limit)

    def stop(self) -> None:
        """Stop the process; records that are not uploaded remain in the journal."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _send(self, text: str) -> None:
        if self._process.stdin:
            with suppress(OSError):  # the process has ended, which its status says; a replay uploads what is missing
                self._process.stdin.write(text)
                self._process.stdin.flush()

    def _close(self) -> None:
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.close()

    def _explain_silence(self, seconds: float) -> dict[str, Any]:
        """Record that MLflow did not answer, where the upload was given up without an error."""
        status = tracking_status(self._directory)
        if not status["complete"] and not status["error"] and seconds != math.inf:
            status["error"] = f"MLflow gave no answer for {seconds:g} s"
            with suppress(OSError):
                write_text_atomically(self._directory.tracking, json.dumps(status), durable=False)
        return status


class MemberUpload:
    """Handle of a member's upload, which goes on while the next members run."""

    def finish(self, patience: float = 60.0) -> None:
        """Return at once: `MLflowUploader.finish` waits for all members."""


def _waiting_limit(states: Iterable[Mapping[str, Any]], patience: float) -> float:
    """Seconds without progress after which an upload is given up."""
    failed = [state for state in states if state["error"]]
    if any(state.get("locked") for state in failed):
        return 3 * patience
    return min(patience, 5.0) if failed else patience


def replay(
    directory: StudyDirectory, uri: str, names: Mapping[str, str | None] = MappingProxyType({})
) -> dict[str, Any]:
    """Upload a study or a comparison that has ended."""
    if directory.members.exists():
        upload_comparison(directory, [member.path.name for member in started_members(directory)], None, uri, names)
    else:
        follow(directory, None, uri, names=names)
    return tracking_status(directory)


def started_members(directory: StudyDirectory) -> list[StudyDirectory]:
    """Return the directories of the members of a comparison that have started; a study has none."""
    if not directory.members.exists():
        return []
    members = [directory.member(entry.folder) for entry in ComparisonRecord.read(directory).members]
    return [member for member in members if member.journal.exists()]


def upload_comparison(
    directory: StudyDirectory,
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
        record = ComparisonRecord.read(directory)
        record = replace(record, experiment=names.get("experiment", record.experiment) or record.name)
        store = uri or record.uri
        target, variables = connection(store)
        stack.enter_context(changed_variables(variables))
        file = LockedFile(directory.tracking, lock)

        def show(**changes: Any) -> None:
            status.update(changes)
            file.write(json.dumps(status))

        def retried(action: Callable[[], Any]) -> Any:
            """What an action returns, which is tried again after an error as long as the driver runs; else None."""
            while True:
                try:
                    return action()
                except Exception as error:  # servers and databases raise many kinds of errors  # noqa: BLE001
                    show(error=failure_sentence(error, target), locked=is_locked(error))
                    if driver is None or not is_alive(driver):
                        return None
                    time.sleep(_RETRY_SECONDS)

        show()
        parent = retried(lambda: ComparisonRun(record, target))
        if parent is None:
            return False
        show(error="", locked=False, notice=parent.notice, experiment_id=parent.experiment_id, run_id=parent.id)
        # Not those of the members' journals, which are not compared with those that the user has used.
        configs = load_comparison(directory.config).members
        given = {
            entry.folder: {
                "experiment": record.experiment,
                "register": configs[entry.label].tracking.register if entry.label in configs else None,
                **names,
            }
            for entry in record.members
        }
        for folder in folders:
            lock.check()
            with suppress(RayselError, OSError):  # a damaged journal; the others are uploaded
                done = follow(directory.member(folder), driver, store, parent.id, given[folder])
                show(logged=status["logged"] + done)
        view = comparison_view(directory)
        if retried(lambda: parent.end(view) or True) is None:
            return False
        failed = [m.path.name for m in started_members(directory) if not tracking_status(m)["complete"]]
        error = f"not complete: {', '.join(failed)}" if failed else ""
        show(error=error, complete=not failed, logged=status["logged"] + 1)
    return not failed


def comparison_view(directory: StudyDirectory) -> RunView:
    """Return the content of the run of a comparison."""
    record, config = ComparisonRecord.read(directory), load_comparison(directory.config)
    ended = record.started
    metrics: dict[str, float | None] = {}
    for entry in record.members:
        journal = directory.member(entry.folder).journal
        end = last_end(journal) if journal.exists() else None
        if end is not None and "test_mean" in end.result:
            metrics[f"test_{last_study(journal).metric}_{entry.label}"] = end.result["test_mean"]
        ended = max(ended, end.ended if end else ended)
    status = "FINISHED" if len(metrics) == len(record.members) else "KILLED"
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
        status="FAILED" if any(entry.error for entry in record.members) else status,
        params=dict(flat(config.common)),
        metrics=metrics,
        tags=tags,
        artifacts=[path for path in (directory.config, directory.plan) if path.exists()] + results,
    )


def main() -> int:
    """Upload a study, or the members whose folders are read from the standard input, while the driver runs."""
    parser = argparse.ArgumentParser(prog="python -m raysel.tracking.upload_process", description=main.__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("driver", type=int)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(10)  # leave the CPUs to the solvers
    arguments = parser.parse_args()
    from_pipe(sys.stdin.readline())
    directory = StudyDirectory(arguments.directory)
    if not directory.members.exists():
        return 0 if follow(directory, arguments.driver) else 1
    folders = (line.rstrip("\n") for line in sys.stdin)
    return 0 if upload_comparison(directory, folders, arguments.driver) else 1


if __name__ == "__main__":
    sys.exit(main())
