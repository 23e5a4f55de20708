"""Files read by a process of its own, because damaged ones crash a library, or have it take any
memory or time.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from raysel.core.arrays import LabelArray
from raysel.core.errors import DataError
from raysel.core.machine import MAX_DATA_BYTES, check_data_bytes, format_bytes, max_data_bytes
from raysel.data.formats.files import ArrayFile

_SCRIPT = Path(__file__).with_name("isolated_child.py")
_MAPPED = Path(__file__).with_name("mapped_child.py")
#: Processor time for a file in seconds, and seconds more for each byte: 20 to 200 times what valid
#: files take.
_SECONDS, _SECONDS_PER_BYTE = 20, 2e-7
#: Of a table that is too large for the memory.
_REMEDY = " Its samples may stay in the file: dataset.in_memory: false."


def check_columnar(path: Path) -> None:
    """Have a Parquet or Arrow file decoded under a limit of memory, and check what its table
    takes.
    """
    _request("table", path)


def check_batches(path: Path) -> int:
    """Have a Parquet or Arrow file decoded batch by batch under a limit of memory, and check what a
    batch takes.

    Return the bytes of its largest batch.
    """
    return int(_request("batches", path)[0]["largest"])


def mapped_batches(path: Path, rows: int) -> Iterator[Any]:
    """Have an Arrow file mapped to memory, and read its rows in batches of so many; an error if
    it is cut meanwhile.
    """
    command = [sys.executable, "-P", str(_MAPPED), str(path), str(rows)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        yield from pa.ipc.open_stream(child.stdout)
        if (
            status := child.wait()
        ):  # the stream of a process that ends early may end between two batches
            raise ValueError(f"the process that read it ended early, with status {status}")


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
    answer, _ = _request(kind, path)
    return ArrayFile(tuple(answer["names"]), lambda name: _request(kind, path, name)[1])


def _request(
    kind: str, path: Path, name: str | None = None
) -> tuple[dict[str, Any], LabelArray | None]:
    """Have a file read, or one of its arrays; errors are raised."""
    limit = max_data_bytes()
    # A small file of a table may unpack to as much as is allowed.
    size = path.stat().st_size + (limit if kind in ("table", "batches") else 0)
    seconds = round(_SECONDS + _SECONDS_PER_BYTE * size)
    answer, array = _READER.ask(
        {
            "kind": kind,
            "path": str(path.absolute()),
            "name": name,
            "seconds": seconds,
            "limit": limit,
        }
    )
    if "memory" in answer:
        raise DataError(
            f"{path} takes more memory to read than the limit of {format_bytes(limit)} for its"
            " content allows: it is too large, damaged or an attack. If you trust it, set the"
            f" environment variable {MAX_DATA_BYTES} to more."
        )
    if "claimed" in answer:
        remedy = _REMEDY if kind == "table" else ""
        check_data_bytes(path, answer["claimed"], answer["what"], remedy)
    if "refused" in answer:
        raise DataError(f"{path}: {answer['refused']}.")
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer, array


class _Reader:
    """The process that reads; started when it is asked, because it ends after some seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        os.register_at_fork(after_in_child=self._forget)  # a fork shares the pipes
        atexit.register(self._end)

    def ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], LabelArray | None]:
        """Return the answer to a request, with its array; raise ValueError if the process
        crashed or took too long.
        """
        with self._lock:
            while True:
                child = self._child = self._child or _started()
                assert child.stdin is not None and child.stdout is not None  # noqa: PT018, S101 - both are pipes
                with suppress(BrokenPipeError):
                    child.stdin.write(json.dumps(request).encode() + b"\n")
                    child.stdin.flush()
                    if line := child.stdout.readline():
                        answer: dict[str, Any] = json.loads(line)
                        if "dtype" not in answer:
                            return answer, None
                        array = np.empty(answer["shape"], answer["dtype"])
                        buffer = array.reshape(-1).view(np.uint8).data
                        n_read = child.stdout.readinto(buffer)  # type: ignore[attr-defined]
                        if n_read == array.nbytes:
                            return answer, array
                self._forget()
                if status := child.wait():
                    raise ValueError(f"the process that read it ended early, with status {status}")

    def _forget(self) -> None:
        """Close this process's ends of the pipes."""
        child, self._child = self._child, None
        for pipe in (child.stdin, child.stdout) if child else ():
            with suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]

    def _end(self) -> None:
        if self._child is not None:
            self._child.communicate()


def _started() -> subprocess.Popen[bytes]:
    # -P: the script's own folder is not searched for modules.
    # Other pools of memory reserve address space, which counts as used.
    return subprocess.Popen(
        [sys.executable, "-P", str(_SCRIPT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"},
    )


_READER = _Reader()
