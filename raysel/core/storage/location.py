"""Locations of files and folders at URIs: s3://bucket/key, gs://bucket/key and file:///path."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from raysel.core.credentials import keep_credentials, with_credentials
from raysel.core.errors import ConfigError

#: A file system of PyArrow, which has no types.
FileSystem: TypeAlias = Any

#: Options in the query of a URI, by scheme.
_OPTIONS = {
    "s3": ("region", "endpoint_override", "scheme", "anonymous"),
    "gs": ("endpoint_override", "scheme", "anonymous"),
    "file": (),
}
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
#: What `pathlib.Path` makes of a URI: it removes repeated slashes.
_COLLAPSED = re.compile(r"(s3|gs|file):/+")
#: Seconds for a connection, for an answer, and for all attempts at a request of Google Cloud
#: Storage.
_CONNECT, _ANSWER, _ALL_ATTEMPTS = 5.0, 15.0, 20.0
_ATTEMPTS = 2
#: Credentials that stood in URIs, by scheme and bucket; they are kept nowhere else.
_CREDENTIALS: dict[tuple[str, str], tuple[str, str]] = {}


@dataclass(frozen=True)
class Location:
    """Location of a file or folder, without credentials."""

    scheme: str
    path: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        query = f"?{urlencode(self.options, safe=':/')}" if self.options else ""
        return f"{self.scheme}://{quote(self.path)}{query}"

    @property
    def name(self) -> str:
        """Last part of the path."""
        return PurePosixPath(self.path).name

    @property
    def bucket(self) -> str:
        """Name of the bucket; empty for ``file``."""
        if self.scheme == "file":
            return ""
        return self.path.partition("/")[0]

    @property
    def secrets(self) -> tuple[str, ...]:
        """Credentials that stood in the URI, which no message may contain."""
        return tuple(
            text
            for text in _CREDENTIALS.get((self.scheme, self.bucket), ())
            if text not in ("", "anonymous")
        )

    def child(self, name: str) -> Location:
        """Return the location of a file below a folder."""
        return Location(self.scheme, f"{self.path}/{name}", self.options)

    def open(self) -> FileSystem:
        """Connect to the store; attempts at a request end within 35 seconds."""
        from pyarrow import fs  # noqa: PLC0415 - loads the clients of all stores

        options = dict(self.options)
        user, secret = _CREDENTIALS.get((self.scheme, self.bucket), ("", ""))
        anonymous = user == "anonymous" or options.pop("anonymous", "") == "true"
        if self.scheme == "s3":
            options = _with_endpoint(options)
            keys = {}
            if user and not anonymous:
                keys = {"access_key": user, "secret_key": secret}
            return fs.S3FileSystem(
                **options | {"region": self._region(options)},
                **keys,
                anonymous=anonymous,
                connect_timeout=_CONNECT,
                request_timeout=_ANSWER,
                retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
            )
        if self.scheme == "gs":
            return fs.GcsFileSystem(
                **options, anonymous=anonymous, retry_time_limit=timedelta(seconds=_ALL_ATTEMPTS)
            )
        return fs.LocalFileSystem()

    def _region(self, options: dict[str, str]) -> str | None:
        """Return the region of the bucket: named, of the environment, or asked for; else None."""
        from pyarrow import fs  # noqa: PLC0415

        named = (
            options.get("region")
            or os.environ.get("AWS_REGION")
            or os.environ.get("AWS_DEFAULT_REGION")
        )
        if named or "endpoint_override" in options:
            return named
        try:
            region: str = fs.resolve_s3_region(self.bucket)
        except OSError:  # the first request tells why
            return None
        return region


def _with_endpoint(options: dict[str, str]) -> dict[str, str]:
    """Add the server that the environment names, and take an endpoint apart that has a scheme."""
    server = (
        options.get("endpoint_override")
        or os.environ.get("AWS_ENDPOINT_URL_S3")
        or os.environ.get("AWS_ENDPOINT_URL")
    )
    if not server:
        return options
    scheme, separator, host = server.partition("://")
    named = {"endpoint_override": server}
    if separator:
        named = {"endpoint_override": host.rstrip("/"), "scheme": scheme}
    return named | options | {"endpoint_override": named["endpoint_override"]}


def as_uri(place: str | Path | None) -> str | None:
    """Return the text of a URI; None for a path of this machine."""
    if place is None:
        return None
    text = str(place)
    if isinstance(place, Path) and (match := _COLLAPSED.match(text)):
        root = "/" if match[1] == "file" else ""
        return f"{match[1]}://{root}{text[match.end() :]}"
    if _URI.match(text):
        return text
    return None


def parse_location(uri: str) -> Location:
    """Read a URI and set its credentials aside.

    Credentials (``s3://KEY:SECRET@bucket/key``) are remembered by this process for the bucket and
    are no part of the location. Without any, the store's own environment variables and files are
    used: ``AWS_ACCESS_KEY_ID``, ``AWS_PROFILE``, ``AWS_ENDPOINT_URL``, ...;
    ``GOOGLE_APPLICATION_CREDENTIALS``.
    """
    scheme = uri.partition("://")[0].lower()
    if scheme not in _OPTIONS:
        raise ConfigError(
            f"{scheme}://...: there is no reader for the scheme {scheme}; give s3://BUCKET/KEY,"
            " gs://BUCKET/KEY, file:///PATH, or a path of this machine."
        )
    try:
        parts = urlsplit(with_credentials(keep_credentials(uri)))
    except ValueError as error:  # half a pair of brackets
        raise ConfigError(
            f"{scheme}://...: this is no URI ({error}); write a [ or ] in a name as %5B or %5D."
        ) from error
    user, _, host = parts.netloc.rpartition("@")
    name, _, secret = user.partition(":")
    if ":" in host:  # a / in the secret ends the part before the @
        raise ConfigError(
            f"{scheme}://...: the credentials are not percent-encoded; write / as %2F and @ as %40"
            " in them, or give them by the environment, e.g. AWS_ACCESS_KEY_ID and"
            " AWS_SECRET_ACCESS_KEY."
        )
    path = parts.path
    if scheme != "file":
        path = f"{host}{path}"
    path = unquote(path).rstrip("/")
    options = tuple(sorted(parse_qsl(parts.query, keep_blank_values=True)))
    location = Location(scheme, path, options)
    if scheme == "file" and (parts.netloc not in ("", "localhost") or not path):
        raise ConfigError(
            "file://...: a file:// URI has three slashes and an absolute path, e.g."
            " file:///data/faces.npz."
        )
    if scheme != "file" and not host:
        raise ConfigError(f"{scheme}://...: the bucket is missing; give {scheme}://BUCKET/KEY.")
    if (
        any(part in ("", ".", "..") for part in path.strip("/").split("/"))
        or not path.isprintable()
    ):
        raise ConfigError(
            f"{location}: the path has an empty part, '.', '..' or a control character; write it"
            " without."
        )
    unknown = [option for option, _ in options if option not in _OPTIONS[scheme]]
    if unknown or parts.fragment:
        known = ", ".join(_OPTIONS[scheme]) or "none"
        what = f"option {unknown[0]}" if unknown else "part behind #"
        raise ConfigError(
            f"{Location(scheme, path)}: the {what} is unknown; options are {known}. A ? or # in a"
            " name is written as %3F or %23."
        )
    if "@" in parts.query:
        raise ConfigError(
            f"{Location(scheme, path)}: the query holds an @; give credentials by the environment."
        )
    if user:
        _CREDENTIALS[scheme, location.bucket] = (unquote(name), unquote(secret))
    return location


def set_credentials_aside(place: str) -> str:
    """Return a path as it is, and a URI without credentials, which this process remembers."""
    uri = as_uri(place)
    if uri is None:
        return place
    return str(parse_location(uri))
