"""Command ``trust``, which shows a stranger's study and signs its models by this account."""

from __future__ import annotations

import hashlib
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from raysel.base.models import find_damage
from raysel.core.errors import StudyError
from raysel.core.files import read_regular
from raysel.core.printing import Terminal
from raysel.core.storage.working_copy import opened_at
from raysel.core.trust import NoKeyError, is_trusted, sign
from raysel.results.progress import counted
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory, started_members


def run(arguments: Namespace) -> int:
    """Show what a study is, sign its models that are not trusted, and return the status."""
    out = Terminal()
    with opened_at(arguments.study, write=True) as path:
        for label, text in _described(path):
            out.print(f"{label:<12}{text}")
        files = [path.resolve()] if path.is_file() else sorted(path.rglob("*.skops"))
        digests = {file: _digest(file) for file in files if not is_trusted(file)}
        for file, digest in digests.items():
            name = file.name if path.is_file() else file.relative_to(path)
            out.print(f"{'not trusted':<12}{name}, {file.stat().st_size} bytes, SHA-256 {digest}")
        if not digests:
            out.print(f"all of its {counted(len(files), 'model file')} are trusted already")
            return 0
        asked = sys.stdin.isatty() and out.is_terminal
        if asked and not out.confirms("Trust them?", default=False):
            out.print("nothing was signed")
            return 1
        _check_whole(digests)
        for file, digest in digests.items():
            _sign(file, digest)
    out.print(f"{counted(len(digests), 'model file')} signed with the key of this account")
    return 0


def _described(path: Path) -> Iterator[tuple[str, str]]:
    """Yield what the journals say of a study, or of each member; no model is opened."""
    if path.is_file():
        return
    directory = StudyDirectory(path)
    for study in started_members(directory) or [directory]:
        stored = StoredStudy.read(study)
        record = stored.study
        day = datetime.fromtimestamp(record.started).astimezone().date()
        solver, version = record.config["solver"]["name"], record.versions.get("raysel", "?")
        yield "study", f"{record.name}: {solver}, {stored.status}, by raysel {version} on {day}"
        shape = f"{record.n_samples} samples, {len(record.feature_names)} features"
        yield "data", f"{shape}, content hash {record.data_hash}"


def _read(file: Path) -> bytes:
    try:
        return read_regular(file)
    except OSError as error:
        raise StudyError(f"the model {file} cannot be read: {error.strerror}.") from error


def _digest(file: Path) -> str:
    return hashlib.sha256(_read(file)).hexdigest()


def _unchanged(file: Path, digest: str) -> bytes:
    """Return the content of a model file if it is still that which was shown."""
    content = _read(file)
    if hashlib.sha256(content).hexdigest() != digest:
        raise StudyError(f"{file} was changed meanwhile, and is not signed; run the command again.")
    return content


def _check_whole(digests: Mapping[Path, str]) -> None:
    """Read files through before any is signed; a StudyError names those that are damaged."""
    damage = {file: find_damage(_unchanged(file, digest)) for file, digest in digests.items()}
    if told := "; ".join(f"{file}: {what}" for file, what in damage.items() if what):
        raise StudyError(f"nothing was signed, as a model is damaged: {told}. Get it anew.")


def _sign(file: Path, digest: str) -> None:
    """Sign a model file if it is still that which was shown."""
    try:
        sign(file, _unchanged(file, digest))
    except NoKeyError as error:
        raise StudyError(f"the models cannot be signed: {error}.") from error
