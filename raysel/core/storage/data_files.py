"""Copies of data files and folders at URIs, kept until they change in the store."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
from pathlib import Path

from raysel.core.errors import ConfigError, DataError
from raysel.core.storage.location import FileSystem, Location, parse_location
from raysel.core.storage.transfer import (
    Entry,
    check_room,
    download,
    entries,
    entry_of,
    failing_as,
    kind_of,
    version_of,
)

_LOG = logging.getLogger("raysel")
#: A fetch of so many bytes takes long enough to be announced on stderr.
_LARGE = 2**26


def cache_folder() -> Path:
    """Return the folder of fetched data: ``$RAYSEL_CACHE``, else ``$XDG_CACHE_HOME/raysel``, else
    ``~/.cache/raysel``.
    """
    if folder := os.environ.get("RAYSEL_CACHE"):
        return Path(folder).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "raysel"


def fetch_data(uri: str, *, folder: bool = False) -> Path:
    """Copy a data file or folder at a URI to this machine, unless the copy of an earlier call is still current.

    The copy lies below `cache_folder`, readable for its owner only. Its name has the object's size, time and ETag in
    it; one that is no longer current is removed when the new one is whole.
    """
    try:
        location = parse_location(uri)
    except ConfigError as error:
        raise DataError(str(error)) from error
    with failing_as(DataError, location, "read"):
        store = location.open()
        files, is_folder = _files(store, location, folder)
        versions = cache_folder() / "data" / hashlib.sha256(str(location).encode()).hexdigest()[:16]
        copy = versions / version_of(store, location, files) / location.name
        if not copy.exists():
            _fetch(store, location, files, copy, is_folder)
            for other in versions.iterdir():
                if other != copy.parent and not other.name.startswith("."):
                    shutil.rmtree(other, ignore_errors=True)
    return copy


def _files(store: FileSystem, location: Location, folder: bool) -> tuple[list[Entry], bool]:
    """Files at a location, and whether it is a folder."""
    kind = kind_of(store, location)
    if kind == "file":
        return [entry_of(store, location)], False
    if kind == "folder" and folder:
        return entries(store, location), True
    if kind == "folder":
        raise DataError(f"{location} is a folder, where a file is needed; give the URI of one file.")
    if location.scheme != "file" and kind_of(store, Location(location.scheme, location.bucket)) == "nothing":
        raise DataError(f"{location} cannot be read: there is no bucket {location.bucket}; check the name.")
    raise DataError(f"there is no data file {location}; check its name, which is case-sensitive.")


def _fetch(store: FileSystem, location: Location, files: list[Entry], copy: Path, is_folder: bool) -> None:
    """Copy the files to a temporary folder beside the copy, and move it there."""
    above = copy.parent.parent
    above.mkdir(parents=True, exist_ok=True, mode=0o700)
    cache_folder().chmod(0o700)
    check_room(DataError, location, files, cache_folder(), "RAYSEL_CACHE")
    size = sum(entry.size for entry in files)
    level = logging.WARNING if size >= _LARGE else logging.INFO
    _LOG.log(level, "fetching %s: %.1f MiB to %s", location, size / 2**20, copy)
    with tempfile.TemporaryDirectory(dir=above, prefix=".part-") as temporary:
        part = Path(temporary, "part")
        if is_folder:
            (part / location.name).mkdir(parents=True)
        for entry in files:
            source = location.child(entry.name) if is_folder else location
            download(store, source, part / location.name / (entry.name if is_folder else ""), entry.size)
        try:
            part.rename(copy.parent)
        except OSError:
            if not copy.exists():  # else another process has fetched it meanwhile
                raise
