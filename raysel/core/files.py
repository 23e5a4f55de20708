"""Files written as a whole, and reading of those that others may have made."""

from __future__ import annotations

import errno
import glob
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from raysel.core.errors import DirectoryError, StudyError

if TYPE_CHECKING:
    from pydantic import TypeAdapter


#: Largest size of a JSON file of a study's directory, in bytes; the folds of a million samples take
#: a tenth of it.
_MOST_BYTES = 2**31
#: What a file is called that is neither a regular file nor a folder.
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

Value = TypeVar("Value")
#: Suffixes of the files of a study's directory; no folder of it has one.
_FILES = (".json", ".jsonl", ".yaml", ".csv", ".parquet", ".npy", ".npz", ".skops", ".html", ".png")


@contextmanager
def atomic_write(path: Path, durable: bool = False) -> Iterator[Path]:
    """Provide a temporary path beside a file, which replaces the file once it is written.

    Readers see the old file or the new one, never a part; if an error occurs, the old one is kept.
    """
    if not path.name:  # "." or "/"
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    # A name that nobody can guess, and exclusive creation: no link to another file can lie there.
    temporary = path.with_name(f"{_temporary_prefix(path)}{secrets.token_hex(8)}")
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
    try:
        yield temporary
        if durable:
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
        _replace(temporary, path)
        if durable:
            flush_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def remove_temporary_files(path: Path) -> None:
    """Remove the temporary files that processes which were killed left beside a file.

    A process that goes on then cannot move its own to the path: `atomic_write` raises a
    FileNotFoundError there.
    """
    for other in path.parent.glob(f"{glob.escape(_temporary_prefix(path))}{'[0-9a-f]' * 16}"):
        other.unlink(missing_ok=True)


def _temporary_prefix(path: Path) -> str:
    return f".{path.name[:200]}."


def _replace(temporary: Path, path: Path) -> None:
    """Move a file to a path; NFS may call it missing where its answer was lost."""
    number = temporary.stat().st_ino
    try:
        temporary.replace(path)
    except FileNotFoundError:
        if not path.exists() or path.stat().st_ino != number:
            raise


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, so that a new file survives a power cut."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_again(read: Callable[[], Value]) -> Value:
    """Read a file, and once more if the file server replaced it meanwhile."""
    try:
        return read()
    except OSError as error:
        if error.errno != errno.ESTALE:
            raise
        return read()


def result_path(path: str | Path) -> Path:
    """Return the path of a result, which outlives the process.

    The working directory of a job that was submitted to a Ray cluster with one is a copy on the
    head node, which Ray removes after the job: there, relative paths of results start at the home
    directory.
    """
    in_job = "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ and "working_dir_files" in Path.cwd().parts
    if in_job:
        return Path.home() / path
    return Path(path)


def write_text_atomically(path: Path, text: str, durable: bool = True) -> None:
    """Write or replace a text file."""
    with atomic_write(path, durable) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_result(path: str | Path, content: bytes) -> Path:
    """Write or replace a file of a study's result, flushed to disk."""
    path = Path(path)
    try:
        with atomic_write(path, durable=True) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        kept = "; the previous file is kept" if os.path.lexists(path) else ""
        raise StudyError(f"{path} cannot be written: {error.strerror}{kept}.") from error
    return path


def remove_results(paths: Iterable[Path]) -> None:
    """Remove files of an earlier result that the present one does not have."""
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StudyError(
                f"{path} is of an earlier result and cannot be removed: {error.strerror}."
            ) from error


def open_regular(path: Path, flags: int) -> int:
    """Open a file, but no symbolic link, pipe or device."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return descriptor


def read_regular(path: Path, most: int = -1) -> bytes:
    """Read a regular file, or its first bytes."""
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        return file.read(most)


def read_json(path: Path) -> Any:
    """Read a JSON file of a study's directory."""
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        if os.fstat(file.fileno()).st_size > _MOST_BYTES:
            raise ValueError(f"{path.name} is larger than {_MOST_BYTES // 2**30} GiB")
        return parse_json(file.read())


def parse_json(content: bytes | str) -> Any:
    """Parse JSON."""
    try:
        return json.loads(content, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def check_entries(folder: Path, names: Iterable[str]) -> None:
    """Check that entries of a folder, and all that lies in them, are regular files or folders.

    A symbolic link could lead a reader or a writer to any other file; a pipe or a device would not
    let it end. A folder in place of a file would be found when others are written or sent already.
    """
    left = [folder / name for name in names]
    while left:
        entry = left.pop()
        try:
            kind = stat.S_IFMT(entry.lstat().st_mode)
            if kind == stat.S_IFDIR:
                left += [Path(inside) for inside in os.scandir(entry)]
                if entry.suffix in _FILES:
                    raise DirectoryError(
                        f"{entry} is a folder in place of a file; restore it from a copy."
                    )
        except FileNotFoundError:  # also a temporary file that another process has just removed
            continue
        except NotADirectoryError as error:
            raise DirectoryError(
                f"{folder} is not a directory; give the directory of a study."
            ) from error
        except OSError as error:
            raise DirectoryError(f"{entry} cannot be examined: {error.strerror}.") from error
        if kind not in (stat.S_IFREG, stat.S_IFDIR):
            raise DirectoryError(
                f"{entry} is {_KINDS.get(kind, 'a special file')}, which is not followed, as"
                " it may lead anywhere; replace it by the file or folder itself, or remove it."
            )


Instance = TypeVar("Instance")


def make_instance(cls: type[Instance], raw: Any) -> Instance:
    """Make an instance of a dataclass from plain data, whose unknown keys are ignored.

    A ValueError names the first field that is missing or of another type, or a number that is not
    finite.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - takes a tenth of a second

    try:
        made: list[Instance] = _adapter(cls).validate_python([raw])  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"][1:]))
        raise ValueError(f"'{place}': {first['msg']}" if place else first["msg"]) from error
    return made[0]


@cache
def _adapter(cls: type) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter  # noqa: PLC0415

    # In a list, because pydantic takes no configuration beside a dataclass itself.
    finite = ConfigDict(allow_inf_nan=False)
    return TypeAdapter(list[cls], config=finite)  # type: ignore[valid-type]
