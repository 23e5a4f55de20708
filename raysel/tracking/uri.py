"""Tracking URI of MLflow: made absolute, checked for a scheme that MLflow supports, and given its credentials."""

from __future__ import annotations

import os
import tempfile
from importlib.metadata import entry_points
from pathlib import Path

from raysel.core.credentials import bare_uri, keep_credentials, lacks_credentials, user_of, with_credentials
from raysel.core.errors import ConfigError
from raysel.core.files import result_path

# MLflow's own schemes, listed here because importing MLflow takes seconds.
_SCHEMES = ("sqlite", "http", "https", "postgresql", "mysql", "mssql", "file", "databricks", "databricks-uc", "uc")
#: Where MLflow and PostgreSQL's library find credentials by themselves: variables of which one or more must be set, and
#: files below the home directory.
_ELSEWHERE: dict[str, tuple[tuple[str, ...], str]] = {
    "http": (("MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"), ".mlflow/credentials"),
    "postgresql": (("PGPASSWORD", "PGPASSFILE", "PGSERVICE"), ".pgpass"),
}


def absolute_uri(uri: str) -> str:
    """Return a tracking URI that does not depend on the working directory."""
    scheme = uri.lower().partition("://")[0].partition("+")[0] if "://" in uri else ""  # of postgresql+psycopg2://
    known = (*_SCHEMES, *(plugin.name for plugin in entry_points(group="mlflow.tracking_store")))
    if scheme and scheme not in known:
        raise ConfigError(
            f"tracking.uri: MLflow does not support the scheme '{scheme}' of {uri}; use one of "
            f"{', '.join(known)}, e.g. sqlite:///mlflow.db"
        )
    if uri.startswith("sqlite:///") and uri != "sqlite:///:memory:":
        return f"sqlite:///{result_path(uri.removeprefix('sqlite:///')).absolute()}"
    return uri


def check_store(uri: str) -> None:
    """Check that MLflow's store, if it is a sqlite file, can be written; a server is asked by the upload only."""
    path = Path(uri.removeprefix("sqlite:///"))
    if not uri.startswith("sqlite:///") or uri == "sqlite:///:memory:" or not path.parent.is_dir():
        return
    try:
        with tempfile.TemporaryFile(dir=path.parent):  # sqlite writes its own journal beside the file
            pass
        if path.exists():
            path.open("r+b").close()
    except OSError as error:
        raise ConfigError(
            f"MLflow's store {path} cannot be written: {error.strerror}; set tracking.uri or MLFLOW_TRACKING_URI to a "
            "place that can, or start the command in another directory."
        ) from error


def connection(uri: str) -> tuple[str, dict[str, str | None]]:
    """Return what MLflow is connected to with: the URI, and the environment variables that hold its credentials.

    Credentials of a server are handed over in MLflow's own variables, because MLflow's errors repeat its URI.
    """
    full = with_credentials(keep_credentials(uri))
    given = os.environ.get("MLFLOW_TRACKING_URI", "")
    if full == bare_uri(uri) == bare_uri(given):
        full = given
    if not full.lower().startswith(("http://", "https://")) or (user := user_of(full)) is None:
        return full, {}
    name, password = user
    if name and password:
        own = {"MLFLOW_TRACKING_USERNAME": name, "MLFLOW_TRACKING_PASSWORD": password, "MLFLOW_TRACKING_TOKEN": None}
    else:
        own = {
            "MLFLOW_TRACKING_USERNAME": None,
            "MLFLOW_TRACKING_PASSWORD": None,
            "MLFLOW_TRACKING_TOKEN": name or password,
        }
    return bare_uri(full), own


def missing_credentials(uri: str) -> str:
    """Say how to give the credentials that a stored URI had and that cannot be found."""
    if not lacks_credentials(uri) or connection(uri)[0] != bare_uri(uri) or connection(uri)[1]:
        return ""
    scheme = uri.lower().partition("://")[0].partition("+")[0]
    names, file = _ELSEWHERE.get("http" if scheme == "https" else scheme, ((), ""))
    if any(os.environ.get(name) for name in names) or (file and (Path.home() / file).exists()):
        return ""
    variables = {
        "postgresql": "MLFLOW_TRACKING_URI, or PGUSER and PGPASSWORD",
        "http": "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN",
    }.get("http" if scheme == "https" else scheme, "MLFLOW_TRACKING_URI")
    return (
        f"the credentials of {bare_uri(uri)} are not stored with a study, and none are given: set {variables}, or give "
        "tracking.uri again; else the study runs, and its runs are uploaded later"
    )
