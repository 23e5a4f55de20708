"""Atomic writing of files, and where relative paths of results lead."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from raysel.errors import StudyError


@contextmanager
def atomic_write(path: Path, durable: bool = False) -> Iterator[Path]:
    """Provide a temporary path beside a file, and move it to the path of the file once it is written.

    Readers see the old file or the new one, never a part; if an error occurs, the old one is kept.

    Parameters
    ----------
    path : Path
        The file to write or replace.
    durable : bool, default=False
        Whether the file is flushed to disk first, so that it survives a power cut.

    Yields
    ------
    Path
        Temporary path to write to.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "plan.json")) as temporary:
    ...         _ = temporary.write_text("{}")
    ...     os.listdir(folder)
    ['plan.json']
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        if durable:
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def result_path(path: str | Path) -> Path:
    """Return the path of a result, which outlives the process.

    The working directory of a job that was submitted to a Ray cluster with one is a copy on the head node, which Ray
    removes after the job: there, relative paths of results start at the home directory.

    Parameters
    ----------
    path : str or Path
        Path of a file or folder to write or to read again.

    Returns
    -------
    Path
        The path as it is, or below the home directory if it is relative and this process is such a job.

    Examples
    --------
    >>> result_path("raysel-studies").as_posix()
    'raysel-studies'
    """
    in_job = "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ and "working_dir_files" in Path.cwd().parts
    return Path.home() / path if in_job else Path(path)


def write_text_atomically(path: Path, text: str, durable: bool = True) -> None:
    """Write or replace a text file.

    Parameters
    ----------
    path : Path
        Path of the file.
    text : str
        Content of the file, which is encoded as UTF-8.
    durable : bool, default=True
        Whether the file is flushed to disk first, so that it survives a power cut.
    """
    with atomic_write(path, durable) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json_atomically(path: Path, value: Any) -> None:
    """Write or replace a JSON file that changes often; it is not flushed to disk.

    Parameters
    ----------
    path : Path
        Path of the file.
    value : object
        Plain data without NaN or infinity.
    """
    write_text_atomically(path, json.dumps(value, allow_nan=False), durable=False)


def write_result(path: str | Path, content: bytes) -> Path:
    """Write or replace a file of a study's result, flushed to disk.

    Parameters
    ----------
    path : str or Path
        Path of the file.
    content : bytes
        Content of the file.

    Returns
    -------
    Path
        Path of the file.

    Raises
    ------
    StudyError
        If the file cannot be written, e.g. because the folder does not exist or the disk is full.
    """
    path = Path(path)
    try:
        with atomic_write(path, durable=True) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise StudyError(f"{path} cannot be written: {error.strerror}; the previous file is kept.") from error
    return path
