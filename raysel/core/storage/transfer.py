"""Files of a store: listed, copied, removed; copies of data that are kept until they change."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raysel.core.errors import ConfigError, DataError, RayselError
from raysel.core.files import atomic_write
from raysel.core.storage.location import FileSystem, Location, parse_location

#: Bytes that are copied at once, and of the largest file that is held in memory.
_CHUNK, _HELD = 2**22, 2**26
#: A fetch of so many bytes takes long enough to be announced on stderr.
_LARGE = 2**26
_LOG = logging.getLogger("raysel")
_CREDENTIALS = {
    "s3": (
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or add ?anonymous=true"
        " for a public bucket"
    ),
    "gs": (
        "set GOOGLE_APPLICATION_CREDENTIALS to a key file, or add ?anonymous=true for a public"
        " bucket"
    ),
    "file": "check the permissions",
}
#: Parts of the messages of PyArrow's clients, and what they mean.
_NO_BUCKET = re.compile("NO_SUCH_BUCKET|specified bucket does not exist")
_DENIED = re.compile(
    "ACCESS_DENIED|INVALID_ACCESS_KEY_ID|INVALID_CLIENT_TOKEN|SIGNATURE_DOES_NOT_MATCH"
    "|UNRECOGNIZED_CLIENT|EXPIRED_TOKEN|HTTP status code: 40[13]|HTTP response code: 40[13]"
    "|PERMISSION_DENIED|UNAUTHENTICATED"
)
_NO_CREDENTIALS = re.compile("OAuth2 access token|default credentials")
_NO_NETWORK = re.compile(
    "NETWORK_CONNECTION|UNAVAILABLE|curlCode: (6|7|28)|CURL error|REQUEST_TIMEOUT"
)
_OTHER_REGION = re.compile(
    "PERMANENT_REDIRECT|HTTP response code: 301|AuthorizationHeaderMalformed"
)


def reason(error: Exception, location: Location) -> str:
    """Return why a file or folder could not be read or written, and what to do."""
    text = str(error)
    if _NO_CREDENTIALS.search(text):
        return f"no credentials were found; {_CREDENTIALS[location.scheme]}"
    if _NO_BUCKET.search(text) or (
        location.scheme == "gs" and isinstance(error, FileNotFoundError)
    ):
        return f"there is no bucket {location.bucket}; create it, or check the name"
    if _DENIED.search(text) or isinstance(error, PermissionError):
        return f"access is denied; {_CREDENTIALS[location.scheme]}"
    if _OTHER_REGION.search(text):
        return "the bucket is in another region; add ?region=REGION"
    if _NO_NETWORK.search(text):
        return (
            "the store does not answer; check the network, and endpoint_override if it is a server"
            " of your own"
        )
    for secret in location.secrets:
        text = text.replace(secret, "***")
    return " ".join(text.split())[:300] or type(error).__name__


@contextmanager
def failing_as(kind: type[RayselError], location: Location, done: str) -> Iterator[None]:
    """Raise an error of raysel in place of one of a store."""
    try:
        yield
    except RayselError:
        raise
    except (OSError, ValueError) as error:
        raise kind(f"{location} cannot be {done}: {reason(error, location)}.") from error


def check_room(
    kind: type[RayselError],
    location: Location,
    files: Iterable[StoredFile],
    folder: Path,
    remedy: str,
) -> None:
    """Check that files of a location fit on the disk of a folder."""
    size, free = sum(entry.size for entry in files), shutil.disk_usage(folder).free
    if size > free:
        raise kind(
            f"{location} has {size / 2**20:.0f} MiB, and the disk of {folder} has room for"
            f" {free / 2**20:.0f} MiB; make room, or set {remedy} to a folder on another disk."
        )


@dataclass(frozen=True)
class StoredFile:
    """A file of a folder in a store."""

    name: str
    #: Number of bytes.
    size: int
    #: Time of the last change by the clock of the store, in seconds since the epoch.
    changed: float


def find_kind(store: FileSystem, location: Location) -> str:
    """Return whether a location is a "file", a "folder", or "nothing"."""
    from pyarrow import fs  # noqa: PLC0415

    kind = store.get_file_info(location.path).type
    return {fs.FileType.File: "file", fs.FileType.Directory: "folder"}.get(kind, "nothing")


def read_entry(store: FileSystem, location: Location) -> StoredFile:
    """Return name, size and time of a file."""
    return _entry(store.get_file_info(location.path), location.name)


def entries(store: FileSystem, folder: Location) -> list[StoredFile]:
    """List the files of a folder and its subfolders, sorted by name."""
    shown = [entry for entry in _listed(store, folder) if not is_hidden(entry.name)]
    for entry in shown:
        _refuse_outside(folder, entry.name)
    return sorted(shown, key=lambda entry: entry.name)


def hidden_entries(store: FileSystem, folder: Location) -> list[StoredFile]:
    """List the files directly in a hidden folder, e.g. one of markers."""
    return [entry for entry in _listed(store, folder) if "/" not in entry.name]


def is_hidden(name: str) -> bool:
    """Return whether a part of a relative path starts with a dot."""
    return any(part.startswith(".") for part in name.split("/") if part != "..")


def read_version(store: FileSystem, location: Location, files: list[StoredFile]) -> str:
    """Return a text that changes whenever a file or folder changes."""
    digest = hashlib.sha256()
    for entry in files:
        digest.update(f"{entry.name!r} {entry.size} {entry.changed!r}\n".encode())
    if len(files) == 1 and location.scheme != "file" and files[0].name == location.name:
        with store.open_input_stream(location.path) as stream:
            metadata = stream.metadata() or {}
        digest.update(repr([metadata.get(key) for key in ("ETag", "generation")]).encode())
    return digest.hexdigest()[:16]


def download(store: FileSystem, source: Location, target: Path, size: int) -> None:
    """Copy a file from a store, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    n_bytes = 0
    with (
        atomic_write(target) as temporary,
        temporary.open("wb") as file,
        store.open_input_stream(source.path) as stream,
    ):
        while chunk := stream.read(_CHUNK):
            n_bytes += len(chunk)
            if n_bytes > size:
                break
            file.write(chunk)
        file.flush()
        if n_bytes != size:
            raise OSError(
                f"it has {'more' if n_bytes > size else 'fewer'} than the {size} bytes that were"
                " announced"
            )


def upload(store: FileSystem, content: bytes | Path, folder: Location, name: str) -> None:
    """Write a file of a folder in a store; readers see the old or the new one."""
    _refuse_outside(folder, name)
    target = folder.child(name)
    if isinstance(content, Path) and content.stat().st_size <= _HELD:
        content = (
            content.read_bytes()
        )  # a file that cannot be read must leave no part of it in the store
    if folder.scheme == "file":
        path = Path(target.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as temporary:
            _write(temporary.open("wb"), content)
    else:
        _write(store.open_output_stream(target.path), content)


def remove(store: FileSystem, location: Location) -> None:
    """Remove a file; nothing is done if there is none."""
    if find_kind(store, location) == "file":
        store.delete_file(location.path)


def _write(stream: Any, content: bytes | Path) -> None:
    with stream:
        if isinstance(content, bytes):
            stream.write(content)
        else:
            with content.open("rb") as file:
                shutil.copyfileobj(file, stream, _CHUNK)


def _listed(store: FileSystem, folder: Location) -> list[StoredFile]:
    from pyarrow import fs  # noqa: PLC0415

    selector = fs.FileSelector(folder.path, recursive=True, allow_not_found=True)
    infos = store.get_file_info(selector)
    return [
        _entry(it, it.path.removeprefix(f"{folder.path}/"))
        for it in infos
        if it.type == fs.FileType.File
    ]


def _entry(info: Any, name: str) -> StoredFile:
    return StoredFile(name, int(info.size), (info.mtime_ns or 0) / 1e9)


def _refuse_outside(folder: Location, name: str) -> None:
    """Refuse a name that leads out of its folder, by itself or by a symbolic link."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise OSError(f"the name {name!r} would lead out of the folder")
    if folder.scheme == "file":
        path = Path(folder.path)
        for part in parts:
            path /= part
            if path.is_symlink():
                raise OSError(f"{name} is, or lies behind, a symbolic link, which is not followed")


def cache_folder() -> Path:
    """Return the folder of fetched data: ``$RAYSEL_CACHE``, or one in the user's cache."""
    if folder := os.environ.get("RAYSEL_CACHE"):
        return Path(folder).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "raysel"


def fetch_data(uri: str, *, folder: bool = False) -> Path:
    """Copy data at a URI to this machine, unless an earlier copy is still current.

    The copy lies below `cache_folder`, readable for its owner only. Its name has the object's size,
    time and ETag in it; one that is no longer current is removed when the new one is whole.
    """
    try:
        location = parse_location(uri)
    except ConfigError as error:
        raise DataError(str(error)) from error
    with failing_as(DataError, location, "read"):
        store = location.open()
        files, is_folder = _files(store, location, folder)
        versions = cache_folder() / "data" / hashlib.sha256(str(location).encode()).hexdigest()[:16]
        copy = versions / read_version(store, location, files) / location.name
        if not copy.exists():
            _fetch(store, location, files=files, copy=copy, is_folder=is_folder)
            for other in versions.iterdir():
                if other != copy.parent and not other.name.startswith("."):
                    shutil.rmtree(other, ignore_errors=True)
    return copy


def _files(store: FileSystem, location: Location, folder: bool) -> tuple[list[StoredFile], bool]:
    """Files at a location, and whether it is a folder."""
    kind = find_kind(store, location)
    if kind == "file":
        return [read_entry(store, location)], False
    if kind == "folder" and folder:
        return entries(store, location), True
    if kind == "folder":
        raise DataError(
            f"{location} is a folder, where a file is needed; give the URI of one file."
        )
    if (
        location.scheme != "file"
        and find_kind(store, Location(location.scheme, location.bucket)) == "nothing"
    ):
        raise DataError(
            f"{location} cannot be read: there is no bucket {location.bucket}; check the name."
        )
    raise DataError(f"there is no data file {location}; check its name, which is case-sensitive.")


def _fetch(
    store: FileSystem, location: Location, files: list[StoredFile], copy: Path, is_folder: bool
) -> None:
    """Copy the files to a temporary folder beside the copy, and move it there."""
    above = copy.parent.parent
    above.mkdir(parents=True, exist_ok=True, mode=0o700)
    cache_folder().chmod(0o700)
    check_room(DataError, location, files=files, folder=cache_folder(), remedy="RAYSEL_CACHE")
    size = sum(entry.size for entry in files)
    level = logging.WARNING if size >= _LARGE else logging.INFO
    _LOG.log(level, "fetching %s: %.1f MiB to %s", location, size / 2**20, copy)
    with tempfile.TemporaryDirectory(dir=above, prefix=".part-") as temporary:
        part = Path(temporary, "part")
        if is_folder:
            (part / location.name).mkdir(parents=True)
        for entry in files:
            source, target = location, part / location.name
            if is_folder:
                source, target = location.child(entry.name), target / entry.name
            download(store, source, target, entry.size)
        try:
            part.rename(copy.parent)
        except OSError:
            if not copy.exists():  # else another process has fetched it meanwhile
                raise
