"""Uploads to MLflow by processes that are forked from one which has imported MLflow, because
that takes seconds.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["imported_for_uploads"])


class ForkedProcess:
    """What an uploader uses of `subprocess.Popen`, for the command of an upload."""

    def __init__(self, command: Sequence[str], **_: Any) -> None:
        start_server()
        receiver, self._sender = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(
            target=upload, args=(command[3:], dict(os.environ), receiver), daemon=True
        )
        self._process.start()
        receiver.close()
        self.stdin: IO[str] = os.fdopen(os.dup(self._sender.fileno()), "w", encoding="utf-8")
        self._sender.close()
        self.terminate, self.kill = self._process.terminate, self._process.kill

    @property
    def pid(self) -> int | None:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        self._process.join(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("upload", timeout or 0)
        return self.returncode


@cache
def start_server() -> None:
    """Start the process that others are forked from, which finds the tests' modules by this
    variable only.
    """
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        forkserver.ensure_running()


def upload(arguments: Sequence[str], environment: Mapping[str, str], receiver: Connection) -> None:
    """Upload as `MLflowUploader` does, with an environment."""
    from raysel.tracking import journal_upload  # noqa: PLC0415 - in the process that is forked
    from raysel.tracking.upload_process import main  # noqa: PLC0415

    journal_upload.is_alive = lambda driver: Path(
        f"/proc/{driver}"
    ).exists()  # not the parent of this process
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments
    sys.stdin = os.fdopen(receiver.fileno(), encoding="utf-8", closefd=False)
    with Path(os.devnull).open("r+b", buffering=0) as nothing:
        for number in (1, 2):
            os.dup2(nothing.fileno(), number)
    sys.exit(main())


#: In place of the module in `raysel.tracking.upload_process`.
forking = SimpleNamespace(**{**vars(subprocess), "Popen": ForkedProcess})
