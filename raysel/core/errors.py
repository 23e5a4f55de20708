"""Exceptions of raysel; each message names the invalid value and how to fix it."""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from raysel.core.credentials import without_credentials
from raysel.core.printing import listed, printable

#: Line of a traceback that names the place of a call.
_FRAME = re.compile(r'\s*File ".*", line \d+')
#: Errors of the system that no configuration causes: of disks, file servers, and tables of open
#: files.
_OF_STORAGE = frozenset(
    {
        *(errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ESTALE, errno.ENODEV),
        *(errno.ENXIO, errno.EREMOTEIO, errno.ETIMEDOUT, errno.EMFILE, errno.ENFILE),
    }
)


def suggestion(word: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """Return a question that names the known words nearest to an unknown one, else another text."""
    names = list(known)
    holding = [name for name in names if len(word) > 2 and word.lower() in name.lower()][:3]
    if near := holding or difflib.get_close_matches(word, names, 1):
        return f"did you mean {' or '.join(f'`{name}`' for name in near)}?"
    if otherwise is None:
        return f"it has {listed(names)}."
    return otherwise


class RayselError(Exception):
    """Base class of raysel's exceptions, whose messages hold no credentials."""

    def __init__(self, *args: Any) -> None:
        super().__init__(
            *(without_credentials(arg) if isinstance(arg, str) else arg for arg in args)
        )

    def __str__(self) -> str:
        return printable(super().__str__())


class ConfigError(RayselError, ValueError):
    """A parameter is unknown, of the wrong type, out of range, or does not fit the data."""


class DataError(RayselError, ValueError):
    """A data set or file cannot be read, or its content is invalid."""


class StudyError(RayselError):
    """A study cannot be started, resumed or read."""


class RayStartError(StudyError):
    """Ray did not start on this machine, as when other programs keep its processors busy."""


class StorageError(StudyError, DataError):
    """Data, a disk or a store failed while a study ran, which can be resumed."""


class HeadLostError(StudyError):
    """The head node of the Ray cluster is lost; what has ended is kept."""


class DirectoryError(StudyError):
    """A study's directory is in use by another study, damaged, or not writable."""


class UnfinishedStudyError(StudyError):
    """A result was requested from a study that has not finished."""

    def __init__(self, path: Path, n_done: int, n_trials: int) -> None:
        self.n_done, self.n_trials = n_done, n_trials
        super().__init__(
            f"the study in {path} has not finished: {n_done} of {n_trials} trials are done. Resume"
            " it, or open another study."
        )


def storage_error(error: BaseException | None) -> StorageError | None:
    """Return the error of data, disk or store that is, or caused, an error; else None."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, StorageError):
            return error
        if isinstance(error, OSError) and error.errno in _OF_STORAGE:
            place = "" if error.filename is None else f"{error.filename}: "
            return StorageError(
                f"{place}{error.strerror}. No trial is to blame; mend it, and resume the study."
            )
        error = error.__cause__ or error.__context__
    return None


def raise_storage_error(error: Exception) -> None:
    """Raise the error of data, disk or store that is, or caused, an error, if any."""
    found = storage_error(error)
    if found is error:
        raise found
    if found is not None:
        raise found from error


def headline(text: str) -> str:
    r"""Return the line of an error's text that says what happened."""
    lines = [line.rstrip() for line in text.strip().splitlines() if line.strip()]
    frames = [i for i, line in enumerate(lines) if _FRAME.match(line)]
    if not frames:
        return "".join(lines[-1:]).strip()
    below = lines[frames[-1] + 1 :]
    while below and below[0][0].isspace():  # the frame's source line, and carets
        del below[0]
    message = below[:2] if below and below[0].endswith(":") else below[:1]
    return " ".join(line.strip() for line in message)
