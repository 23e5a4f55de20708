"""Files read by a process of its own: damaged ones crash a library, or take any memory or time."""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from raysel.core.errors import DataError
from raysel.core.machine import MAX_DATA_BYTES, check_data_bytes, format_bytes, max_data_bytes
from raysel.data.formats.files import ArrayFile

_SCRIPT = Path(__file__).with_name("isolated_child.py")
#: Processor time for a file in seconds, and seconds more for each byte: 20 to 200 times what valid
#: files take.
_SECONDS, _SECONDS_PER_BYTE = 20, 2e-7
#: Of a table that is too large for the memory.
_REMEDY = " Its samples may stay in the file: dataset.in_memory: false."

#: What is raised where the process ends within an answer.
_CUT = (EOFError, OSError, pa.ArrowException)
#: What the process answers, and the array or table that it read.
_Answer = tuple[dict[str, Any], Any]


def isolated_table(path: Path) -> Any:
    """Read a Parquet or Arrow file whole, under a limit of memory."""
    answer, table = _READER.ask(_request(path, "table"))
    _check(answer, path, _REMEDY)
    return table


class IsolatedBatches:
    """Batches of a Parquet or Arrow file, read one after the other under a limit of memory.

    They are cut to as many bytes of numbers as is stated. An Arrow file is mapped to memory by the
    process that reads it: if the file is cut short meanwhile, that process ends, which is an error
    here.
    """

    #: Bytes of the largest batch of the file, after all were read.
    largest: int = 0

    def __init__(self, path: Path, n_bytes: int) -> None:
        self.path, self.n_bytes = path, n_bytes

    def __iter__(self) -> Iterator[Any]:
        with _READER.asked(_request(self.path, "batches", n_bytes=self.n_bytes)) as (pipe, first):
            answer = first
            if "stream" in first:
                yield from pa.ipc.open_stream(pipe)
                answer = _read_line(pipe)
        _check(answer, self.path)
        self.largest = answer["largest"]


def isolated_arrays(path: Path, kind: str) -> ArrayFile:
    """Open an HDF5 file (``kind`` "hdf5") or a MATLAB file of version 7 or older ("mat").

    The arrays of MATLAB 7.3, which are HDF5, stored with their axes reversed and text as codes, are
    returned as `scipy.io.loadmat` returns those of version 7. Links, external and virtual data sets
    are refused, because they would read other files.
    """
    if kind == "hdf5" and importlib.util.find_spec("h5py") is None:
        raise DataError(
            f"{path} is an HDF5 file (as MATLAB 7.3 files are), which needs h5py: pip install"
            " 'raysel[hdf5]'."
        )

    def read(name: str | None) -> _Answer:
        answer, array = _READER.ask(_request(path, kind, name=name))
        _check(answer, path)
        return answer, array

    return ArrayFile(tuple(read(None)[0]["names"]), lambda name: read(name)[1])


def _request(path: Path, kind: str, **options: Any) -> dict[str, Any]:
    """Make the request to read a file, with the limits of its processor time and memory."""
    limit = max_data_bytes()
    size = path.stat().st_size
    if kind in ("table", "batches"):  # a small file may unpack to as much as is allowed
        size += limit
    return {
        "kind": kind,
        "path": str(path.absolute()),
        "seconds": round(_SECONDS + _SECONDS_PER_BYTE * size),
        "limit": limit,
        **options,
    }


def _check(answer: dict[str, Any], path: Path, remedy: str = "") -> None:
    """Raise the error that an answer tells."""
    if "memory" in answer:
        raise DataError(
            f"{path} takes more memory to read than the limit of"
            f" {format_bytes(max_data_bytes())} for its content allows: it is too large, damaged or"
            " an attack. If you trust it, set the environment variable"
            f" {MAX_DATA_BYTES} to more."
        )
    if "claimed" in answer:
        check_data_bytes(path, answer["claimed"], answer["what"], remedy)
    if "refused" in answer:
        raise DataError(f"{path}: {answer['refused']}.")
    if "error" in answer:
        raise ValueError(answer["error"])


class _EndedEarlyError(ValueError):
    """The process that read a file ended before it had answered."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the process that read it ended early, with status {status}")
        self.status = status


class _Child(subprocess.Popen[bytes]):
    """A process that reads files, and the pipes to it."""

    stdin: IO[bytes]
    stdout: IO[bytes]

    def __init__(self) -> None:
        # -P: the script's own folder is not searched for modules.
        # Other pools of memory reserve address space, which counts as used.
        super().__init__(
            [sys.executable, "-P", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"},
        )

    def send(self, request: dict[str, Any]) -> None:
        self.stdin.write(json.dumps(request).encode() + b"\n")
        self.stdin.flush()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """End the process whose answer is cut, or is not read: it would be taken for the next."""
        try:
            yield
        except _CUT as error:
            raise _EndedEarlyError(self.end()) from error
        except BaseException:
            self.kill()
            self.end()
            raise

    def end(self) -> int:
        """Let the process end; return its status."""
        self.close()
        return self.wait()

    def close(self) -> None:
        """Close this process's ends of the pipes."""
        for pipe in (self.stdin, self.stdout):
            with suppress(BrokenPipeError):
                pipe.close()


class _Reader:
    """The processes that read: one waits some seconds for the next request, and ends then."""

    def __init__(self) -> None:
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._idle: _Child | None = None
        os.register_at_fork(after_in_child=self._forget)  # a fork shares the pipes
        atexit.register(self._end)

    def ask(self, request: dict[str, Any]) -> _Answer:
        """Return the answer to a request; ValueError if the process crashed or took too long.

        Threads ask in turn: each whole file may take all the memory that is allowed.
        """
        with self._turn, self.asked(request) as (pipe, answer):
            return _receive(pipe, answer)

    @contextmanager
    def asked(self, request: dict[str, Any]) -> Iterator[tuple[IO[bytes], dict[str, Any]]]:
        """Give the first line of the answer to a request, and the pipe with all that follows."""
        child, answer = self._begin(request)
        with child.answering():
            yield child.stdout, answer
        with self._lock:
            if self._idle is None:
                self._idle = child
                return
        child.end()

    def _begin(self, request: dict[str, Any]) -> tuple[_Child, dict[str, Any]]:
        while True:
            with self._lock:
                child, self._idle = self._idle or _Child(), None
            try:
                with child.answering():
                    child.send(request)
                    return child, _read_line(child.stdout)
            except _EndedEarlyError as error:
                if error.status:  # else it had waited for too long
                    raise

    def _forget(self) -> None:
        child, self._idle = self._idle, None
        if child is not None:
            child.close()

    def _end(self) -> None:
        if self._idle is not None:
            self._idle.end()


def _receive(pipe: Any, answer: dict[str, Any]) -> _Answer:
    """Receive the array or the table that the first line of an answer announces."""
    if "stream" in answer:
        table = pa.ipc.open_stream(pipe).read_all()
        return _read_line(pipe), table
    if "dtype" not in answer:
        return answer, None
    array = np.empty(answer["shape"], answer["dtype"])
    if pipe.readinto(array.reshape(-1).view(np.uint8).data) < array.nbytes:
        raise EOFError
    return answer, array


def _read_line(pipe: Any) -> dict[str, Any]:
    line = pipe.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    answer: dict[str, Any] = json.loads(line)
    return answer


_READER = _Reader()
