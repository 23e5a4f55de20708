"""Files that are written, or replaced, whole or not at all."""

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
    """Give a temporary path beside a file, and move it to the file's own path once it is written.

    A reader sees the old file or the new one, never a part; if anything fails the old one stays.

    Parameters
    ----------
    path : Path
        The file to write or replace.
    durable : bool, default=False
        Whether the file is flushed to disk first, so that it survives a power cut.

    Yields
    ------
    Path
        Where to write.

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


def write_text_atomically(path: Path, text: str, durable: bool = True) -> None:
    """Write or replace a text file.

    Parameters
    ----------
    path : Path
    text : str
        Written as UTF-8.
    durable : bool, default=True
        Whether the file is flushed to disk first, so that it survives a power cut.
    """
    with atomic_write(path, durable) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json_atomically(path: Path, value: Any) -> None:
    """Write or replace a JSON file that is renewed often; it is not flushed to disk.

    Parameters
    ----------
    path : Path
    value : object
        Ready for JSON, without NaN.
    """
    write_text_atomically(path, json.dumps(value, allow_nan=False), durable=False)


def write_result(path: str | Path, content: bytes) -> Path:
    """Write or replace a file of a study's result, flushed to disk.

    Parameters
    ----------
    path : str or Path
    content : bytes

    Returns
    -------
    Path

    Raises
    ------
    StudyError
        If the file cannot be written: no folder, no permission, no space left.
    """
    path = Path(path)
    try:
        with atomic_write(path, durable=True) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise StudyError(f"{path} cannot be written: {error.strerror}; the previous file is kept.") from error
    return path
