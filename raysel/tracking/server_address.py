"""Addresses of MLflow's servers and databases: whether one is named, and is reached."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from raysel.core.credentials import bare_uri
from raysel.core.errors import ConfigError

#: Ports of servers whose URI names none, by scheme.
_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}
#: Those whose driver SQLAlchemy loads.
_DATABASES = ("postgresql", "mysql", "mssql")
#: Seconds for a connection.
_PATIENCE = 3.0


def check_address(uri: str) -> None:
    """Raise a ConfigError if a URI names no server, or a database whose driver is not installed."""
    scheme = uri_scheme(uri)
    if scheme not in _PORTS:
        return
    key, example = "tracking.uri (or MLFLOW_TRACKING_URI)", "http://localhost:5000"
    if scheme in _DATABASES:
        example = f"{scheme}://localhost/mlflow"
    try:
        host, _ = _address(uri)
    except ValueError as error:
        raise ConfigError(f"{key}: {uri} is no address: {error}; give e.g. {example}.") from error
    if scheme in _DATABASES:
        _check_driver(uri, key)
    elif not host:
        raise ConfigError(f"{key}: {uri} names no host; give e.g. {example}.")


def _check_driver(uri: str, key: str) -> None:
    # Takes a second.
    from sqlalchemy.engine import make_url  # noqa: PLC0415
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

    try:
        make_url(uri).get_dialect().import_dbapi()
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{key}: {uri} needs the module {error.name}, which is not installed: install it, or"
            " name another driver, e.g. postgresql+psycopg2://HOST/NAME."
        ) from error
    except (ArgumentError, ValueError) as error:
        raise ConfigError(f"{key}: {uri} names no database: {error}.") from error


def unreachable(uri: str) -> str:
    """Say why a server or a database cannot be reached now; empty if it can be."""
    scheme, (host, port) = uri_scheme(uri), _address(uri)
    through_proxy = scheme in getproxies() and not proxy_bypass(host)
    # Without a host a database is asked by a socket of this machine; a list of hosts has commas.
    if scheme not in _PORTS or not host or "," in host or through_proxy:
        return ""
    try:
        socket.create_connection((host, port), timeout=_PATIENCE).close()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        return (
            f"MLflow at {bare_uri(uri)} cannot be reached now ({why}): check tracking.uri; until it"
            " can be, a study computes, and nothing is uploaded"
        )
    return ""


def uri_scheme(uri: str) -> str:
    """Return the scheme of a URI without its driver, as of postgresql+psycopg2://; else empty."""
    scheme, separator, _ = uri.lower().partition("://")
    if not separator:
        return ""
    return scheme.partition("+")[0]


def _address(uri: str) -> tuple[str, int]:
    """Return host and port; of a URI that has none a ValueError is raised."""
    parts = urlsplit(uri)
    return parts.hostname or "", parts.port or _PORTS.get(uri_scheme(uri), 0)
