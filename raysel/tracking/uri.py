"""MLflow's address: made absolute, and refused where MLflow would not know its kind."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

from raysel.errors import ConfigError

# MLflow's own; it is not asked, for importing it takes seconds.
_SCHEMES = ("sqlite", "http", "https", "postgresql", "mysql", "mssql", "file", "databricks", "databricks-uc", "uc")


def absolute_uri(uri: str) -> str:
    """The same address, wherever the process is that opens it.

    Parameters
    ----------
    uri : str

    Returns
    -------
    str

    Raises
    ------
    ConfigError
        If neither MLflow nor a plugin of it knows the address's kind.

    Examples
    --------
    >>> absolute_uri("http://localhost:5000")
    'http://localhost:5000'
    >>> absolute_uri("ftp://localhost")
    Traceback (most recent call last):
        ...
    raysel.errors.ConfigError: tracking.uri: MLflow knows no address of kind 'ftp' (ftp://localhost); give one of ...
    """
    scheme = uri.lower().partition("://")[0].partition("+")[0] if "://" in uri else ""  # of postgresql+psycopg2://
    known = (*_SCHEMES, *(plugin.name for plugin in entry_points(group="mlflow.tracking_store")))
    if scheme and scheme not in known:
        raise ConfigError(
            f"tracking.uri: MLflow knows no address of kind '{scheme}' ({uri}); give one of kind "
            f"{', '.join(known)}, e.g. sqlite:///mlflow.db"
        )
    if uri.startswith("sqlite:///") and uri != "sqlite:///:memory:":
        return f"sqlite:///{Path(uri.removeprefix('sqlite:///')).absolute()}"
    return uri
