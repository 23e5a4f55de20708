"""Errors of MLflow as one line of text that names the remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence

from raysel.core.credentials import bare_uri, without_credentials

_OF_SERVER = (
    "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, or give them in tracking.uri"
)
_OF_DATABASE = "set PGUSER and PGPASSWORD, or write them to ~/.pgpass, or give them in tracking.uri"
_LONGEST = 300
_STATUS = re.compile(r"failed with error code (\d{3})|too many (\d{3}) error responses")
_ANEW = "move it away and upload each study again (python -m raysel.tune --replay DIR)"
_UPGRADE = "run `mlflow db upgrade` on a copy and put that in its place"
_LOCKED = "database is locked"
#: Patterns in the text of an error and what they mean, with the remedy.
_MEANINGS: Sequence[tuple[str, str]] = (
    (
        "password authentication failed|no password supplied|Access denied for user|authentication failed for user",
        f"refused the user or the password; {_OF_DATABASE}",
    ),
    (_LOCKED, "is locked by another program that writes to it; wait until that has ended"),
    (
        r"(table|index) \S+ already exists|duplicate column|no such (table|column|index)|out-of-date|locate revision",
        f"has other tables than this version of MLflow, may hold runs and is left as it is; {_UPGRADE}, or {_ANEW}",
    ),
    (
        "file is not a database|disk image is malformed",
        f"is damaged, or no database; restore it from a copy, or {_ANEW}",
    ),
    ("No space left on device|disk is full", "has no room left on its disk; make room, and upload the study again"),
    (
        "not in a valid JSON format",
        "gave an answer that is not MLflow's; check that tracking.uri names an MLflow server",
    ),
    ("[Tt]imed out|TimeoutError", "did not answer in time"),
    ("Connection refused", "cannot be reached: Connection refused; check that it runs"),
    (
        "Failed to resolve|Name or service not known|could not translate host name|nodename nor servname",
        "cannot be reached: Connection failed, because the name of the host is not known",
    ),
    (
        "CERTIFICATE_VERIFY_FAILED|SSLError",
        "has no certificate that this machine trusts; set MLFLOW_TRACKING_SERVER_CERT_PATH",
    ),
    (
        "IncompleteRead|LineTooLong|HTTPException|got more than|InvalidChunkLength|BadStatusLine",
        "gave an answer that is damaged; check that tracking.uri names an MLflow server",
    ),
    (
        "Connection aborted|ConnectionReset|RemoteDisconnected|closed the connection",
        "closed the Connection without an answer",
    ),
    (
        "NewConnectionError|ConnectionError|could not connect|connection to server",
        "cannot be reached: Connection failed",
    ),
)


def failure_sentence(error: Exception, uri: str) -> str:
    """Return what MLflow answered and what to do about it, without credentials."""
    text, place = str(error), f"MLflow at {bare_uri(uri)}"
    status = next((group for found in _STATUS.finditer(text) for group in found.groups() if group), None)
    if status is not None:
        return f"{place} answered {_of_status(status, text)}"
    for pattern, meaning in _MEANINGS:
        if re.search(pattern, text):
            return f"{place} {meaning}"
    return f"{place} failed: {type(error).__name__}: {_one_line(without_credentials(text))}"


def is_locked(error: Exception) -> bool:
    """Return whether an error says that another program has locked the database, which passes by itself."""
    return _LOCKED in str(error)


def _of_status(status: str, text: str) -> str:
    if status == "401":
        return f"401: the user name and password, or the token, are missing or wrong; {_OF_SERVER}"
    if status == "403" and "Host header" in text:
        return "403: it does not accept the name of its host in tracking.uri; add that name to its --allowed-hosts"
    if status == "403":
        return f"403: it does not allow this user to write; {_OF_SERVER} of one who may"
    if status.startswith("5"):
        return f"{status}, an error of the server; its log says more"
    body = text.partition("Response body: ")[2]
    return f"{status}{': ' if body else ''}{_one_line(without_credentials(body))}"


def _one_line(text: str) -> str:
    """First printable characters of a text that may be anything."""
    return "".join(c if c.isprintable() else " " for c in text[:_LONGEST]).strip()
