"""A process of its own that tells MLflow what the journal says, so that no trial ever waits for a server."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raysel.files import write_json_atomically
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import read_journal

_POLL_SECONDS = 0.2
_RETRY_SECONDS = (1, 2, 4)


class MLflowUploader:
    """The driver's handle on the process that logs to MLflow.

    Parameters
    ----------
    directory : StudyDirectory
        Its journal may not exist yet.
    """

    def __init__(self, directory: StudyDirectory) -> None:
        self._directory = directory
        directory.tracking.unlink(missing_ok=True)  # what an earlier run was told
        self._process = subprocess.Popen(
            [sys.executable, "-m", "raysel.tracking.uploader", str(directory.path), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the study, which ends it in its own time
        )

    def finish(self, patience: float = 20.0) -> dict[str, Any]:
        """Wait until everything is logged, or until nothing has moved for a while; Ctrl-C ends the wait.

        Parameters
        ----------
        patience : float, default=20.0
            Seconds without a newly logged record before it is given up; at most 5 where MLflow last
            answered with an error.

        Returns
        -------
        dict
            ``complete``, ``error``, ``logged``, ``experiment_id`` and ``study_run_id``, as far as known.
        """
        moved, last = time.monotonic(), -1
        try:
            while self._process.poll() is None:
                status = self.status()
                if status["logged"] != last:
                    moved, last = time.monotonic(), status["logged"]
                if time.monotonic() - moved > (min(patience, 5.0) if status["error"] else patience):
                    break
                time.sleep(0.05)
        except KeyboardInterrupt:
            pass  # who asks twice waits for nobody
        self.stop()
        return self.status()

    def status(self) -> dict[str, Any]:
        """What the process last said of itself."""
        try:
            status: dict[str, Any] = json.loads(self._directory.tracking.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {"complete": False, "logged": 0, "error": ""}
        return status

    def stop(self) -> None:
        """End the process, whatever it is doing; the journal keeps what it has not logged."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def follow(directory: StudyDirectory, driver: int | None, uri: str | None = None) -> bool:
    """Log a journal to MLflow, trying again as long as the study runs.

    Parameters
    ----------
    directory : StudyDirectory
    driver : int or None
        Process id of the study's driver; when it is gone, what the journal holds is logged and no more
        is waited for. None logs a journal that nobody writes any more.
    uri : str, optional
        MLflow's; the study's own if not given.

    Returns
    -------
    bool
        Whether everything was logged.
    """
    from raysel.tracking.mlflow_runs import MLflowRuns  # noqa: PLC0415 - takes seconds to import

    status: dict[str, Any] = {"complete": False, "logged": 0, "error": ""}
    with directory.tracking_lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # the follower of a driver that was killed may still be at it
        write_json_atomically(directory.tracking, status)
        runs: MLflowRuns | None = None
        for record in _tail(directory.journal, driver):
            attempt = 0
            while True:
                try:
                    if runs is None:
                        study = last_study(directory.journal)
                        runs = MLflowRuns(directory.path, study | {"uri": uri or study["uri"]})
                        status |= {"experiment_id": runs.experiment_id, "study_run_id": runs.study_run_id}
                    elif attempt:
                        runs.refresh()
                    runs.log(record)
                    break
                except Exception as error:  # whatever a server or a database can answer  # noqa: BLE001
                    status["error"] = f"{type(error).__name__}: {error}"[:500]
                    write_json_atomically(directory.tracking, status)
                    if driver is None or not _is_alive(driver):
                        return False
                    time.sleep(_RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)])
                    attempt += 1
            status |= {"logged": status["logged"] + 1, "error": "", "complete": record["kind"] == "end"}
            write_json_atomically(directory.tracking, status)
    return bool(status["logged"])


def replay(directory: StudyDirectory, uri: str) -> dict[str, Any]:
    """Tell MLflow all that the journal of a study says that has ended.

    Parameters
    ----------
    directory : StudyDirectory
    uri : str
        MLflow's; another one than the study's gets all of its runs too.

    Returns
    -------
    dict
        As `MLflowUploader.finish`.
    """
    follow(directory, None, uri)
    status: dict[str, Any] = json.loads(directory.tracking.read_text(encoding="utf-8"))
    return status


def last_study(journal: Path) -> dict[str, Any]:
    """What the study was when it last began.

    Parameters
    ----------
    journal : Path

    Returns
    -------
    dict
    """
    return [record for record in read_journal(journal) if record["kind"] == "study"][-1]


def _tail(journal: Path, driver: int | None) -> Iterator[dict[str, Any]]:
    """Records as they come, until the study's last end or its driver's."""
    offset = 0
    while True:
        watched = driver is not None and _is_alive(driver)
        if journal.exists():
            with journal.open("rb") as file:
                file.seek(offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # still being written
                    offset += len(line)
                    record = json.loads(line)
                    yield record
                    if record["kind"] == "end" and offset == journal.stat().st_size:
                        return  # nothing follows: it was not resumed
        if not watched:
            return
        time.sleep(_POLL_SECONDS)


def _is_alive(driver: int) -> bool:
    return os.getppid() == driver


def main() -> int:
    """Follow a study directory for as long as the driver, the parent process, lives."""
    parser = argparse.ArgumentParser(prog="python -m raysel.tracking.uploader", description=main.__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("driver", type=int)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(10)  # solvers first
    arguments = parser.parse_args()
    return 0 if follow(StudyDirectory(arguments.directory), arguments.driver) else 1


if __name__ == "__main__":
    sys.exit(main())
