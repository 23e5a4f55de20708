"""Credentials in URIs: in the memory of this process, and nowhere that is written or shown."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, unquote_plus

#: Text in place of removed credentials.
HIDDEN = "***"

#: Environment variables that give MLflow or a database credentials; MLFLOW_TRACKING_URI may hold
#: some.
SECRET_VARIABLES = (
    "MLFLOW_TRACKING_URI",
    "MLFLOW_TRACKING_USERNAME",
    "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_TRACKING_TOKEN",
    "PGPASSWORD",
    "MYSQL_PWD",
)

#: Of bounded length, as all that is searched for at each letter of a text, whose length is not.
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{0,40}://"
#: A URI within a text: up to a space, or to the next URI of a list. A path object makes one slash
#: of two.
_URI = re.compile(rf"({_SCHEME}?)((?:(?![,;|'\"()\[\]{{}}<>]{{1,10}}{_SCHEME}?)\S)*)")
_WHOLE_URI = re.compile(rf"\s*({_SCHEME})(.*)", re.DOTALL)
#: Schemes whose user information ends at the first slash; in a database's URI a password may hold
#: one.
_OF_WEB = re.compile(r"https?|s3a?|gs|gcs|abfss?|az|wasbs?|hdfs|s?ftp|ssh")
_PARAMETER = re.compile(r"(^|[\s?&;,'\"({\[])([\w.%+-]+)=([^&\s]+)")
_WHOLE_PARAMETER = re.compile(r"\A()([^=]+)=(.+)\Z", re.DOTALL)
_SECRET_NAME = re.compile(
    r"pass(word|wd|phrase|code)|^pass$|^pwd$|secret|token|access_?key|account_?key|api_?key"
    r"|credential|signature|^(sas|sig|auth|authorization|odbc_connect)$|^x-(amz|goog)-",
    re.IGNORECASE,
)
_HEADER = re.compile(r"(authorization['\"]?\s*[:=]\s*['\"]?)(?:\w+\s+)?\S+", re.IGNORECASE)

_kept: dict[str, str] = {}  # URIs as they were given, by what `keep_credentials` returned


def without_credentials(text: str) -> str:
    """Replace the credentials of all URIs in a text by ``***``."""
    for stored, given in _kept.items():  # exactly, whatever characters a password has
        text = text.replace(given, stored)
    text = _URI.sub(lambda match: match[1] + _hide_user(match[1], match[2]), text)
    text = _PARAMETER.sub(_hide_value, text)
    return _HEADER.sub(rf"\1{HIDDEN}", text)


def keep_credentials(uri: str) -> str:
    """Return a URI without its credentials, which are kept in memory for `with_credentials`."""
    stored = _hide(uri)
    if stored != uri:
        _kept[stored] = uri
    return stored


def has_credentials(argument: str) -> bool:
    """Return whether an argument of a command, e.g. ``--set=KEY=URI``, holds credentials."""
    if "://" not in argument:
        return False
    words = argument.split("=")
    ends = ["=".join(words[start:]) for start in range(len(words))]
    return without_credentials(argument) != argument or any(_hide(end) != end for end in ends)


def keep_all_credentials(value: Any) -> Any:
    """Return plain data with `keep_credentials` applied to every text in it."""
    if isinstance(value, str):
        return keep_credentials(value)
    if isinstance(value, Mapping):
        return {key: keep_all_credentials(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(keep_all_credentials(item) for item in value)
    return value


def with_credentials(uri: str) -> str:
    """Return a URI with the credentials that it was last given with in this process."""
    return _kept.get(uri) or bare_uri(uri)


def bare_uri(uri: str) -> str:
    """Return a URI without credentials and without what stands in their place."""
    match = _WHOLE_URI.fullmatch(uri)
    if match is None:
        return uri
    rest = _hide_user(match[1], match[2]).removeprefix(f"{HIDDEN}@")
    place, _, query = rest.partition("?")
    open_ = [
        part
        for part in query.split("&")
        if not _SECRET_NAME.search(unquote_plus(part.partition("=")[0]))
    ]
    if not any(open_):
        return f"{match[1]}{place}"
    return f"{match[1]}{place}?{'&'.join(open_)}"


def split_user(uri: str) -> tuple[str, str] | None:
    """Return the user name and the password of a URI, percent-decoded; either may be empty."""
    match = _WHOLE_URI.fullmatch(uri)
    if match is None:
        return None
    end = _find_user_end(match[1].partition(":")[0].lower(), match[2])
    if end < 0:
        return None
    name, _, password = match[2][:end].partition(":")
    return unquote(name), unquote(password)


def lacks_credentials(uri: str) -> bool:
    """Return whether a URI had credentials that this process does not know."""
    return uri not in _kept and bare_uri(uri) != uri


def to_pipe() -> str:
    """Return all credentials of this process as one line for a child's standard input."""
    return json.dumps(_kept) + "\n"


def from_pipe(line: str) -> None:
    """Keep the credentials that the parent process has sent."""
    if line.strip():
        _kept.update(json.loads(line))


@contextmanager
def hidden_variables(names: tuple[str, ...] = SECRET_VARIABLES) -> Iterator[None]:
    """Remove environment variables while processes are started that need none of them."""
    with changed_variables(dict.fromkeys(names)):
        yield


@contextmanager
def changed_variables(values: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables of this process for a while."""
    before = {name: os.environ.get(name) for name in values}
    try:
        _set_variables(values)
        yield
    finally:
        _set_variables(before)


def _set_variables(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _hide(uri: str) -> str:
    """Return a URI with its credentials replaced."""
    match = _WHOLE_URI.fullmatch(uri)
    if match is None:
        return uri
    hidden = match[1] + _hide_user(match[1], match[2])
    place, mark, query = hidden.partition("?")
    if not mark:
        return hidden
    shown = [_WHOLE_PARAMETER.sub(_hide_value, part) for part in query.split("&")]
    return f"{place}?{'&'.join(shown)}"


def _hide_value(parameter: re.Match[str]) -> str:
    """Return a parameter, its value replaced if its name says that it is secret."""
    before, name, _ = parameter.groups()
    if _SECRET_NAME.search(unquote_plus(name)):
        return f"{before}{name}={HIDDEN}"
    return parameter[0]


def _hide_user(scheme: str, rest: str) -> str:
    """Return what follows the scheme of a URI, its user information replaced."""
    end = _find_user_end(scheme.partition(":")[0].lower(), rest)
    if end < 0:
        return rest
    return f"{HIDDEN}{rest[end:]}"


def _find_user_end(scheme: str, rest: str) -> int:
    """Return the index of the ``@`` that ends the user information; -1 if there is none."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    database = _OF_WEB.fullmatch(scheme) is None
    if "@" in authority:
        # SQLAlchemy reads a database's password up to an @, whatever else is in it.
        return rest.rfind("@") if database else authority.rfind("@")
    before, colon, after = authority.rpartition(":")
    if not authority or authority.startswith("[") or not colon or "@" not in rest:
        return -1
    port = after.isdigit() and before != ""
    if port and not database:
        return -1
    return rest.rfind("@")
