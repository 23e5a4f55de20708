"""Commands of Python that are forked from the process which starts them, and has imported what
they import.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest


class Command(subprocess.Popen):
    """Start of a process, which for ``python script arguments`` and ``python -m module
    arguments`` is forked only.
    """

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        if command[0] == sys.executable and (command[1] == "-m" or command[1].endswith(".py")):
            sys.stdout.flush()
            sys.stderr.flush()
            options["preexec_fn"] = partial(
                _run, command[1:], dict(os.environ if env is None else env)
            )
        super().__init__(command, env=env, **options)


def fork_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the commands and the processes of pools that this process starts."""
    monkeypatch.setattr(subprocess, "Popen", Command)
    context = multiprocessing.get_context
    monkeypatch.setattr(
        multiprocessing,
        "get_context",
        lambda kind=None: context("fork" if kind == "spawn" else kind),
    )


def _run(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a command in this process, whose files and folder are the command's already, and end
    it.
    """
    os.closerange(3, 256)  # by which the parent learns that the command has started
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    gc.enable()
    os.environ.clear()
    os.environ.update(environment)
    status = 1
    try:
        is_module = arguments[0] == "-m"
        sys.argv = list(arguments[is_module:])
        sys.path[0] = str(Path.cwd() if is_module else Path(sys.argv[0]).parent)
        sys.path[1:1] = [
            part
            for part in environment.get("PYTHONPATH", "").split(os.pathsep)
            if part not in sys.path
        ]
        if is_module:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - as Python ends a command
        traceback.print_exc()
    finally:
        threading._shutdown()  # ends the processes of pools
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
