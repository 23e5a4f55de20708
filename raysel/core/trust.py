"""Trust in model files: a hash beside each, by the key of the account that wrote it."""

from __future__ import annotations

import errno
import hmac
import os
import re
import secrets
import shlex
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from raysel.core.errors import ConfigError, DataError
from raysel.core.files import read_regular, write_result
from raysel.core.storage.working_copy import shown_place

#: Environment variable with the file of a further key that is trusted, as a lab's; the option
#: --trust-key sets it.
TRUST_KEY = "RAYSEL_TRUST_KEY"
#: Hexadecimal digits of a key, and of a hash: HMAC with SHA-256.
_DIGITS = 64


class NoKeyError(Exception):
    """There is no key to sign with; the text says why, and what to do."""


def hash_file(model: Path) -> Path:
    """Return the file that holds the hash of a model file."""
    return model.with_name(f"{model.name}.hmac")


def key_file() -> Path:
    """Return the file of this account's key, in XDG's folder for the configuration of programs."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if not folder.is_absolute():
        folder = Path("~/.config").expanduser()
    return folder / "raysel" / "model-key"


def is_trusted(model: Path) -> bool:
    """Return whether this account has signed a model file."""
    try:
        return _is_signed(model, read_regular(model))
    except OSError:
        return False


def _is_signed(model: Path, content: bytes) -> bool:
    """Return whether the hash beside a model file is by this account's key, or the further one."""
    try:
        stored = read_regular(hash_file(model.resolve()), 2 * _DIGITS).strip()
    except OSError:
        return False
    return any(hmac.compare_digest(stored, _hash(key, content)) for key in _trusted_keys())


def check_trust(model: Path, content: bytes, place: str | Path) -> None:
    """Raise a DataError if a model file is not trusted; ``place`` is what the user has to trust."""
    if not _is_signed(model, content):
        raise DataError(
            f"{model} is not trusted, as this account's key has not signed it: to use it, run"
            f" raysel trust {shlex.quote(shown_place(place))}, or give trust=True."
        )


def sign(model: Path, content: bytes) -> None:
    """Write the hash of a model file's bytes by this account's key beside it."""
    write_result(hash_file(model), _hash(_own_key(make=True), content) + b"\n")


def write_signed(model: Path, content: bytes) -> Path:
    """Write a model file and its hash; without a key only the file."""
    write_result(model, content)
    try:
        sign(model, content)
    except NoKeyError:
        hash_file(model).unlink(missing_ok=True)  # that of an earlier model
    return model


def copy_signed(model: Path, target: Path) -> list[Path]:
    """Copy a model file and its hash, and return the files that were written."""
    shutil.copyfile(model, target)
    if not hash_file(model).exists():
        hash_file(target).unlink(missing_ok=True)
        return [target]
    shutil.copyfile(hash_file(model), hash_file(target))
    return [target, hash_file(target)]


def key_problem() -> str:
    """Make this account's key if there is none; return why models cannot be signed."""
    try:
        _own_key(make=True)
    except NoKeyError as error:
        return str(error)
    return ""


def use_key(file: str) -> None:
    """Trust the models that a further key has signed, in this process and those that it starts."""
    os.environ[TRUST_KEY] = os.path.abspath(file)  # noqa: PTH100 - Path's follows links
    _further_key()


def _hash(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, "sha256").hex().encode()


def _trusted_keys() -> Iterator[bytes]:
    with suppress(NoKeyError):
        yield _own_key()
    if os.environ.get(TRUST_KEY):
        yield _further_key()


def _further_key() -> bytes:
    path = Path(os.environ[TRUST_KEY])
    try:
        return _read_key(path)
    except OSError as error:
        raise ConfigError(
            f"the key {path}, which --trust-key or {TRUST_KEY} names, cannot be used:"
            f" {error.strerror}."
        ) from error


def _own_key(*, make: bool = False) -> bytes:
    """Return this account's key, which no other may read or write."""
    try:
        path = key_file()
    except RuntimeError as error:
        raise NoKeyError("there is no home folder; set XDG_CONFIG_HOME to a folder") from error
    try:
        if make and not os.path.lexists(path):
            _make_key(path)
        if (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077:
            raise OSError(errno.EACCES, f"other accounts may use it, mode {mode:o}")
        return _read_key(path)
    except OSError as error:
        remedy = "remove it" if os.path.lexists(path) else "set XDG_CONFIG_HOME to another folder"
        raise NoKeyError(f"the key {path} cannot be used ({error.strerror}); {remedy}") from error


def _make_key(path: Path) -> None:
    """Make a key; of several processes that do so at once, one makes it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{secrets.token_hex(_DIGITS // 2)}\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(temporary)
    finally:
        temporary.unlink(missing_ok=True)


def _read_key(path: Path) -> bytes:
    text = read_regular(path.resolve(), 2 * _DIGITS).strip()  # a secret is mounted as a link
    if not re.fullmatch(rb"[0-9a-f]{%d}" % _DIGITS, text):
        raise OSError(errno.EINVAL, f"it does not hold a key, {_DIGITS} hexadecimal digits")
    return bytes.fromhex(text.decode())
