"""Tracking URI of MLflow: made absolute, and checked for a scheme that MLflow supports."""

from __future__ import annotations

from importlib.metadata import entry_points

from raysel.errors import ConfigError
from raysel.files import result_path

# MLflow's own schemes, listed here because importing MLflow takes seconds.
_SCHEMES = ("sqlite", "http", "https", "postgresql", "mysql", "mssql", "file", "databricks", "databricks-uc", "uc")


def absolute_uri(uri: str) -> str:
    """Return a tracking URI that does not depend on the working directory.

    Parameters
    ----------
    uri : str
        Tracking URI of MLflow.

    Returns
    -------
    str
        The URI, with an absolute path if it is a sqlite file.

    Raises
    ------
    ConfigError
        If neither MLflow nor one of its plugins supports the scheme.

    Examples
    --------
    >>> absolute_uri("http://localhost:5000")
    'http://localhost:5000'
    >>> absolute_uri("ftp://localhost")
    Traceback (most recent call last):
        ...
    raysel.errors.ConfigError: tracking.uri: MLflow does not support the scheme 'ftp' of ftp://localhost; use one of ...
    """
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
