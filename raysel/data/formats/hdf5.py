"""Arrays of HDF5 files and of MATLAB files of version 7.3, read by h5py in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from raysel.core.errors import DataError
from raysel.core.limits import check_data_bytes, max_data_bytes
from raysel.data.formats.files import ArrayFile

#: First bytes of an HDF5 file, which MATLAB precedes by 512 bytes of its own.
SIGNATURE = b"\x89HDF\r\n\x1a\n"

_CHILD = Path(__file__).with_name("hdf5_child.py")
#: Processor time for a file in seconds, and seconds more for each byte: a damaged file may be read forever.
_SECONDS, _SECONDS_PER_BYTE = 20, 2e-7


def is_hdf5(path: Path) -> bool:
    """Return whether a file has HDF5's signature at its start or, as MATLAB's files have, after 512 bytes."""
    with path.open("rb") as file:
        start = file.read(520)
    return start.startswith((SIGNATURE, b"MATLAB 7.3")) or start[512:] == SIGNATURE


@contextmanager
def open_hdf5(path: Path) -> Iterator[ArrayFile]:
    """Open an HDF5 file, or a MATLAB file of version 7.3, for reading.

    MATLAB's arrays, stored with their axes reversed and text as codes, are returned as `scipy.io.loadmat` returns
    those of version 7. Links, external and virtual data sets are refused, because they would read other files.
    """
    if importlib.util.find_spec("h5py") is None:
        raise DataError(
            f"{path} is an HDF5 file (as MATLAB 7.3 files are), which needs h5py: pip install 'raysel[hdf5]'."
        )
    seconds = round(_SECONDS + _SECONDS_PER_BYTE * path.stat().st_size)
    # -P: the script's own folder is not searched for modules.
    command = [sys.executable, "-P", str(_CHILD), str(path), str(seconds), str(max_data_bytes())]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=-1
    ) as child:
        try:
            names = _answer(child, path)["names"]

            def get(name: str) -> Any:
                assert child.stdin is not None and child.stdout is not None  # noqa: PT018, S101 - both are pipes
                try:
                    child.stdin.write(json.dumps(name).encode() + b"\n")
                    child.stdin.flush()
                except BrokenPipeError:
                    raise _ended(child) from None
                answer = _answer(child, path)
                values = np.empty(answer["shape"], answer["dtype"])
                if child.stdout.readinto(values.reshape(-1).view(np.uint8).data) < values.nbytes:  # type: ignore[attr-defined]
                    raise _ended(child)
                return values

            yield ArrayFile(tuple(names), get)
        finally:
            child.kill()


def _answer(child: subprocess.Popen[bytes], path: Path) -> dict[str, Any]:
    assert child.stdout is not None  # noqa: S101 - a pipe
    line = child.stdout.readline()
    if not line.endswith(b"\n"):
        raise _ended(child)
    answer: dict[str, Any] = json.loads(line)
    if "claimed" in answer:
        check_data_bytes(path, answer["claimed"], answer["what"])
    if answer.get("refused"):
        raise DataError(f"{path}: {answer['error']}.")
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer


def _ended(child: subprocess.Popen[bytes]) -> ValueError:
    child.kill()
    return ValueError(f"the process that read it by the HDF5 library ended early, with status {child.wait()}")
