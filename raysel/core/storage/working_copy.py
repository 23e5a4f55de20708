"""Folders at URIs as local folders: the one way to open, write and run studies there."""

from __future__ import annotations

import atexit
import shlex
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from raysel.core.errors import ConfigError, DirectoryError, RayselError, StudyError
from raysel.core.printing import listed
from raysel.core.storage.location import FileSystem, Location, as_uri, parse_location
from raysel.core.storage.mirror import Claim, Mirror, states
from raysel.core.storage.transfer import check_room, download, entries, failing_as, upload

#: Location of each working copy of this process.
_PLACES: dict[Path, Location] = {}


def shown_place(path: str | Path) -> str:
    """Return the URI of what is in a working copy; else the path itself."""
    if uri := as_uri(path):
        return str(parse_location(uri))
    for local, location in _PLACES.items():
        if Path(path).is_relative_to(local):
            name = Path(path).relative_to(local).as_posix()
            return str(location if name == "." else location.child(name))
    return str(path)


@contextmanager
def opened_at(place: str | Path, *, write: bool = False) -> Iterator[Path]:
    """Provide a finished or interrupted study as a local folder."""
    uri = as_uri(place)
    if uri is None:
        yield Path(place)
        return
    location = _location(uri)
    local = _new_folder(location)
    try:
        store = _fetch(location, local)
        before = states(local)
        with _naming(local, location):
            yield local
        if not write:
            return
        changed = [name for name, state in states(local).items() if before.get(name) != state]
        for name in changed:
            with failing_as(DirectoryError, location.child(name), "written"):
                upload(store, local / name, location, name)
    finally:
        _PLACES.pop(local, None)
        shutil.rmtree(local.parent, ignore_errors=True)


def fetched(place: str | Path) -> Path:
    """Return a study as a local folder that is there until this process ends."""
    uri = as_uri(place)
    if uri is None:
        return Path(place)
    location = _location(uri)
    local = _new_folder(location)
    atexit.register(shutil.rmtree, local.parent, ignore_errors=True)
    _fetch(location, local)
    return local


@contextmanager
def running_at(
    place: str | Path,
    *,
    refused: Collection[str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Path]:
    """Provide a folder for a study that runs, and copy it to a URI meanwhile."""
    uri = as_uri(place)
    if uri is None:
        yield Path(place)
        return
    location = _location(uri)
    local = _new_folder(location)
    done = False
    try:
        with _claimed(location, refused) as claim:
            if refused is None:
                _fetch(location, local)
            mirror = Mirror(local, claim, say)
            error: BaseException | None = None
            try:
                with _naming(local, location):
                    yield local
            except BaseException as caught:
                error = caught
                raise
            finally:
                failure = mirror.finish()
                # After an interruption a process of its own may go on to upload the journal to
                # MLflow.
                done = failure is None and (error is None or isinstance(error, Exception))
                if failure is not None:
                    text = _what_is_missing(mirror.missing, failure, local, location)
                    if error is None:
                        raise StudyError(text)
                    say(text)
    finally:
        if done or not any(local.iterdir()):
            atexit.register(shutil.rmtree, local.parent, ignore_errors=True)


def copy_folder(local: Path, uri: str) -> list[str]:
    """Copy all files of a folder to a URI."""
    if not local.is_dir():
        raise DirectoryError(f"there is no folder {local}; give the directory of a study.")
    if as_uri(uri) is None:
        raise DirectoryError(
            f"{uri} is not a URI; give s3://BUCKET/KEY, gs://BUCKET/KEY or file:///PATH."
        )
    location = _location(uri)
    names = sorted(states(local), key=lambda name: (name.endswith(".jsonl"), name))
    with failing_as(DirectoryError, location, "written"):
        store = location.open()
        with Claim(store, location):
            for name in names:
                upload(store, local / name, location, name)
    return names


def _location(uri: str) -> Location:
    try:
        location = parse_location(uri)
    except ConfigError as error:
        raise DirectoryError(str(error)) from error
    if location.scheme != "file" and "/" not in location.path:
        raise DirectoryError(
            f"{location} is a whole bucket; name a folder in it, e.g. {location}/studies/first."
        )
    return location


def _new_folder(location: Location) -> Path:
    # Its last part is the study's name in messages.
    local = Path(tempfile.mkdtemp(prefix="raysel-")) / location.name
    local.mkdir()
    _PLACES[local] = location
    return local


def _fetch(location: Location, local: Path) -> FileSystem:
    """Copy the files at a URI to a folder, and return the connection."""
    with failing_as(DirectoryError, location, "read"):
        store = location.open()
        files = entries(store, location)
        check_room(DirectoryError, location, files=files, folder=local.parent, remedy="TMPDIR")
        for entry in files:
            download(store, location.child(entry.name), local / entry.name, entry.size)
    _check_found(files, location)
    return store


def _check_found(files: Collection[object], location: Location) -> None:
    if not files:
        raise DirectoryError(f"{location} holds no study: there are no files; check the URI.")


def _claimed(location: Location, refused: Collection[str] | None) -> Claim:
    """Connect to the store and mark the folder as in use, after a check of what it holds."""
    with failing_as(DirectoryError, location, "written"):
        store = location.open()
        names = {entry.name for entry in entries(store, location)}
        if refused is None:
            _check_found(names, location)
        if names & set(refused or ()):
            raise DirectoryError(
                f"{location} already holds a study, or files of the same names; nothing was"
                " overwritten. Resume that study, or choose another output."
            )
        return Claim(store, location)


@contextmanager
def _naming(local: Path, location: Location) -> Iterator[None]:
    """Name the URI in place of the working copy in errors."""
    try:
        yield
    except RayselError as error:
        error.args = tuple(
            arg.replace(str(local), str(location)) if isinstance(arg, str) else arg
            for arg in error.args
        )
        raise


def _what_is_missing(missing: list[str], failure: str, local: Path, location: Location) -> str:
    """Say what is not in the store, and how to copy it."""
    command = f"raysel upload {shlex.quote(str(local))} {shlex.quote(str(location))}"
    return (
        f"not everything is in {location} ({failure}): {listed(missing, most=5)} missing or not up"
        f" to date. All files are in {local}; to copy them: {command}"
    )
