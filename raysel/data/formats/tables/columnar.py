"""Parquet and Arrow IPC files as Arrow tables."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from raysel.core.errors import DataError
from raysel.core.files import is_local
from raysel.core.limits import MAX_DATA_BYTES, check_data_bytes, in_words, max_data_bytes
from raysel.data.formats.files import ReadOptions

_CHILD = Path(__file__).with_name("text_child.py")
#: Processor time for a file in seconds, and seconds more for each byte: 20 to 200 times what valid files take.
_SECONDS, _SECONDS_PER_BYTE = 20, 2e-7


def parquet_table(path: Path, options: ReadOptions | None = None) -> tuple[Any, tuple[str, ...]]:  # noqa: ARG001
    """Read a Parquet file, after a process of its own has read it under a limit of memory."""
    check_columnar(path)
    with pa.parquet.ParquetFile(path, memory_map=is_local(path), page_checksum_verification=True) as file:
        return file.read(), ()


def arrow_table(path: Path, options: ReadOptions) -> tuple[Any, tuple[str, ...]]:  # noqa: ARG001
    """Read an Arrow IPC file (Feather version 2), after a process of its own has validated it.

    It is memory-mapped if it is on this machine's own disk.
    """
    check_columnar(path)
    return pa.ipc.open_file(pa.memory_map(str(path)) if is_local(path) else pa.OSFile(str(path))).read_all(), ()


def check_columnar(path: Path) -> None:
    """Have a Parquet or Arrow file read by a process of its own, under a limit of memory, and check what it takes."""
    limit = max_data_bytes()
    seconds = round(_SECONDS + _SECONDS_PER_BYTE * (path.stat().st_size + limit))
    answer = _CHECKER.ask({"path": str(path), "seconds": seconds, "limit": limit})
    if "memory" in answer:
        raise DataError(
            f"{path} takes more memory to read than the limit of {in_words(limit)} for its content allows: it is "
            f"too large, damaged or an attack. If you trust it, set the environment variable {MAX_DATA_BYTES} to more."
        )
    if "error" in answer:
        raise ValueError(answer["error"])
    check_data_bytes(path, answer["claimed"], answer["what"])


class _Checker:
    """The process that reads files first; started when it is asked, because it ends after some seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._pid = 0
        atexit.register(self._end)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request; raise ValueError if the process crashed or took too long."""
        with self._lock:
            while True:
                child = self._running()
                assert child.stdin is not None and child.stdout is not None  # noqa: PT018, S101 - both are pipes
                with suppress(BrokenPipeError):
                    child.stdin.write(json.dumps(request).encode() + b"\n")
                    child.stdin.flush()
                    if line := child.stdout.readline():
                        answer: dict[str, Any] = json.loads(line)
                        return answer
                self._forget()
                if status := child.wait():
                    raise ValueError(f"the process that read it by PyArrow ended early, with status {status}")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._pid != os.getpid():  # a fork shares the pipes
            self._forget()
        if self._child is None:
            # -P: the script's own folder is not searched for modules.
            # Other pools of memory reserve address space, which counts as used.
            self._child = subprocess.Popen(
                [sys.executable, "-P", str(_CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env=os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"},
            )
            self._pid = os.getpid()
        return self._child

    def _forget(self) -> None:
        """Close this process's ends of the pipes."""
        if self._child is not None:
            for pipe in (self._child.stdin, self._child.stdout):
                assert pipe is not None  # noqa: S101 - both are pipes
                pipe.close()
        self._child = None

    def _end(self) -> None:
        """End the process when this one ends, unless it was started before a fork."""
        if self._child is not None and self._pid == os.getpid():
            self._child.communicate()


_CHECKER = _Checker()
