"""File of the token by which Ray's processes know each other: nobody else may read it."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from raysel.errors import ConfigError


def protect_token(*, make: bool) -> None:
    """Check that only its owner can read the file of Ray's token; mend the mode of the one that Ray makes.

    Ray 2.60 turns token authentication on for a Ray that it starts on this machine, and makes ``~/.ray/auth_token``
    with a mode by which every user of the machine can read it, and so run code as this one. The file in this place
    gets mode 0600; one that ``RAY_AUTH_TOKEN_PATH`` names is only checked.
    """
    if os.environ.get("RAY_AUTH_MODE", "token").lower() != "token" or os.environ.get("RAY_AUTH_TOKEN"):
        return
    named = os.environ.get("RAY_AUTH_TOKEN_PATH")
    path = Path(named) if named else Path.home() / ".ray" / "auth_token"
    try:
        state = path.stat()
    except OSError:
        if make and not named:
            with suppress(OSError):  # Ray says so itself where it needs the file
                _make(path)
        return
    is_own, others = state.st_uid == os.geteuid(), stat.S_IMODE(state.st_mode) & 0o077
    if named:
        if is_own and others:  # one of a secret that a cluster mounts is another's, and not ours to change
            raise ConfigError(
                f"RAY_AUTH_TOKEN_PATH: other users can read {path} (mode {stat.S_IMODE(state.st_mode):04o}), and with "
                f"it run code on the cluster as you; run: chmod 600 {path}"
            )
        return
    if not is_own:
        raise ConfigError(
            f"{path}, which holds the token of your Ray, belongs to the user {state.st_uid} and not to you "
            f"({os.geteuid()}); remove it, or name your own file in RAY_AUTH_TOKEN_PATH."
        )
    if others:
        path.chmod(0o600)


def _make(path: Path) -> None:
    """Write a new token as Ray does: 64 hexadecimal digits; a file that another process just made is kept."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
        with suppress(FileExistsError):
            path.hardlink_to(part)
    finally:
        part.unlink(missing_ok=True)
