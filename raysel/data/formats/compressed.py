"""Content of text files, plain or compressed by gzip, bzip2, xz, Zstandard, zip or tar."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

import pyarrow as pa

from raysel.core.errors import DataError
from raysel.core.machine import check_data_bytes

#: Suffixes of the text files that may be compressed; one without a suffix is a table.
_TEXT, _TABLE = (".csv", ".tsv", ".txt", ".data", ".dat"), ".csv"
#: Bytes that are unpacked at once.
_PIECE = 2**22

_STREAMS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": lambda path: pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"),
}
_ARCHIVES = (".zip", ".tar")
#: All suffixes of compressed files.
COMPRESSED = (*_STREAMS, *_ARCHIVES)


def data_suffix(path: str | PurePath) -> str:
    """Return the suffix of a data file in lower case, e.g. .csv of x.CSV and of x.csv.gz."""
    given, inner = PurePath(path), _unpacked(path)
    suffix = inner.suffix.lower()
    if inner == given or suffix in _TEXT:
        return suffix
    if suffix:
        return given.suffix.lower()
    return _TABLE


def data_stem(path: str | PurePath) -> str:
    """Return the name of a data file without folder and suffix, e.g. x of x.csv.gz."""
    given, inner = PurePath(path), _unpacked(path)
    if data_suffix(path) in _TEXT:
        return inner.stem
    return given.stem


def _unpacked(path: str | PurePath) -> PurePath:
    """Name of a file without the suffixes of its compression."""
    name = PurePath(path)
    for suffixes in (_STREAMS, _ARCHIVES):
        if name.suffix.lower() in suffixes:
            name = name.with_suffix("")
    return name


def text_content(path: Path) -> bytes:
    """Read a text file, unpacked if it is compressed, after a check of the memory that it takes."""
    check_data_bytes(path, path.stat().st_size)
    if _unpacked(path) == path:
        return path.read_bytes()
    content, size = io.BytesIO(), 0
    with _opened(path) as stream:
        while piece := stream.read(_PIECE):
            size += len(piece)
            check_data_bytes(path, size, "its unpacked content")
            content.write(piece)
    return content.getvalue()


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open the text in a compressed file, or the one file of an archive."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes[-1] == ".zip":
        with zipfile.ZipFile(path) as archive:
            names = [member.filename for member in archive.infolist() if not member.is_dir()]
            with archive.open(_only(names, path)) as stream:
                yield stream
    elif ".tar" in suffixes:
        with tarfile.open(path) as packed:
            yield packed.extractfile(_only(_files(packed, path), path))
    else:
        with _STREAMS[suffixes[-1]](path) as stream:
            yield stream


def _files(archive: tarfile.TarFile, path: Path) -> list[str]:
    """Names of the first two files of a tar archive that are not of macOS."""
    names: list[str] = []
    for member in archive:
        check_data_bytes(path, member.size, f"its file {member.name}")
        names += [member.name] * (member.isreg() and not _is_of_macos(member.name))
        if len(names) > 1:
            break
    return names


def _only(names: list[str], path: Path) -> str:
    """Return the name of the one file of an archive."""
    files = [name for name in names if not _is_of_macos(name)]
    if len(files) == 1:
        return files[0]
    held = f"several files, e.g. {files[0]} and {files[1]}" if files else "no file"
    raise DataError(f"{path} holds {held}; an archive with one text table is read: unpack it.")


def _is_of_macos(name: str) -> bool:
    """Return whether a file holds what macOS adds to an archive."""
    return name.startswith("__MACOSX/") or PurePath(name).name.startswith("._")
