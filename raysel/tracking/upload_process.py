"""Background process that uploads journals to MLflow while a study or comparison runs."""

from __future__ import annotations

import argparse
import atexit
import gc
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from raysel.core.credentials import from_pipe, to_pipe
from raysel.core.files import write_text_atomically
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal_upload import (
    LOCKED_SECONDS,
    TOLD_SECONDS,
    named_place,
    tracking_status,
    upload_comparison,
    upload_study,
    waiting_words,
)

#: Leaves the CPUs to the solvers, also while it imports. Linux may share them among sessions first,
#: whatever the nice values within each: see "The autogroup feature" in sched(7).
_PROGRAM = """
import gc
import os
gc.set_threshold(10_000)  # as in the study's command
os.nice(10)
try:
    with open("/proc/self/autogroup", "w") as session:
        session.write("10")
except OSError:
    pass
from raysel.tracking.upload_process import main
raise SystemExit(main())
"""


#: Seconds without progress after which an upload is given up, where MLflow reports no error.
PATIENCE = 60.0

#: Function that shows a sentence to the user.
Say: TypeAlias = Callable[[str], object]


def quiet(_: str) -> None:
    """Say nothing."""


class Upload(Protocol):
    """Upload of a study's journal that goes on while the study runs."""

    def finish(self, patience: float = PATIENCE, say: Say = quiet) -> object:
        """Wait until everything is uploaded or nothing moves, and say what is waited for."""


class MLflowUploader:
    """Handle of the background process, one for all members: each imports MLflow.

    The journal of a study is uploaded at once, those of members after `follow`.
    """

    def __init__(self, directory: StudyDirectory) -> None:
        self._directory = directory
        self._members: list[StudyDirectory] = []
        directory.tracking.unlink(missing_ok=True)  # state of an earlier run
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(directory.path), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches the study only, which then stops this process
            text=True,
        )
        # Neither files nor arguments show the credentials.
        self._send(to_pipe(), last=not directory.members.exists())

    def follow(self, member: StudyDirectory) -> MemberUpload:
        """Upload a member's journal, which has been opened, until its end is recorded."""
        member.tracking.unlink(missing_ok=True)
        self._members.append(member)
        self._send(f"{member.path.name}\n")
        return MemberUpload()

    def finish(self, patience: float = PATIENCE, say: Say = quiet) -> dict[str, Any]:
        """Wait until everything is uploaded or the upload makes no progress; Ctrl-C ends the wait.

        It also makes progress where it computes: on a busy machine the imports or a new database
        take minutes.
        """
        moved, last = time.monotonic(), (-1, 0)
        told, limit = moved, patience
        share_processors(self._process.pid)
        try:
            self._send("", last=True)
            while self._process.poll() is None:
                states = [
                    tracking_status(directory) for directory in (*self._members, self._directory)
                ]
                done = (
                    sum(state["logged"] for state in states),
                    _processor_seconds(self._process.pid),
                )
                now = time.monotonic()
                if done != last:
                    moved, last = now, done
                limit = _waiting_limit(states, patience)
                if now - moved > limit:
                    break
                if now - told > TOLD_SECONDS:
                    told = now
                    say(waiting_words(states))
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

    def _send(self, text: str, *, last: bool = False) -> None:
        pipe = self._process.stdin
        if pipe and not pipe.closed:
            with suppress(
                OSError
            ):  # the process has ended, which its status says; a replay uploads what is missing
                pipe.write(text)
                pipe.flush()
            if last:
                with suppress(OSError):
                    pipe.close()

    def _explain_silence(self, seconds: float) -> dict[str, Any]:
        """Record that MLflow did not answer, where the upload was given up without an error."""
        status = tracking_status(self._directory)
        if not status["complete"] and not status["error"] and seconds != math.inf:
            status["error"] = f"{named_place([status])} gave no answer for {seconds:g} s"
            with suppress(OSError):
                write_text_atomically(self._directory.tracking, json.dumps(status), durable=False)
        return status


class MemberUpload:
    """Handle of a member's upload, which goes on while the next members run."""

    def finish(self, patience: float = PATIENCE, say: Say = quiet) -> None:
        """Return at once: `MLflowUploader.finish` waits for all members."""


def share_processors(pid: int) -> None:
    """Let a session of low priority have its share of the processors again."""
    with suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text("0", encoding="utf-8")


def _processor_seconds(pid: int) -> int:
    """Whole seconds of the processor that a process has taken; 0 once it has ended."""
    try:
        fields = (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="utf-8", errors="replace")
            .rpartition(")")[2]
            .split()
        )
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) // os.sysconf("SC_CLK_TCK")


def _waiting_limit(states: Iterable[Mapping[str, Any]], patience: float) -> float:
    """Seconds without progress after which an upload is given up."""
    failed = [state for state in states if state["error"]]
    if any(state.get("locked") for state in failed):
        return LOCKED_SECONDS
    if failed:
        return min(patience, 5.0)
    return patience


def main() -> int:
    """Upload a study, or members named on the standard input, while the driver runs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("driver", type=int)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit.register(
        gc.freeze
    )  # ends sooner: Python does not look for cycles among the objects of all libraries
    arguments = parser.parse_args()
    from_pipe(sys.stdin.readline())
    directory = StudyDirectory(arguments.directory)
    if directory.members.exists():
        folders = (line.rstrip("\n") for line in sys.stdin)
        complete = upload_comparison(directory, folders, arguments.driver)
    else:
        complete = upload_study(directory, arguments.driver)
    return int(not complete)
