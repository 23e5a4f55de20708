"""Tracking URIs of MLflow, and the places outside a study's directory that only it names.

A directory may be untrusted: a server that it names would get the results of a resumed study, or be
asked for data with this user's credentials. So a place that the user does not name again is used
only if this user has used it before: every study that is started or resumed notes its places in a
file of the user's own.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Container, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from raysel.config import StudyConfig
from raysel.core.credentials import (
    bare_uri,
    changed_variables,
    keep_credentials,
    lacks_credentials,
    split_user,
    with_credentials,
)
from raysel.core.errors import ConfigError
from raysel.core.files import result_path
from raysel.core.plugins import plugin_names
from raysel.tracking.mlflow_store import other_version, store_file, with_store_file
from raysel.tracking.server_address import check_address, uri_scheme

# MLflow's own schemes, listed here because importing MLflow takes seconds.
_SCHEMES = (
    "sqlite",
    "http",
    "https",
    "postgresql",
    "mysql",
    "mssql",
    "file",
    "databricks",
    "databricks-uc",
    "uc",
)
#: Tracking URIs of MLflow that are a scheme alone.
_PLAIN = ("databricks", "databricks-uc", "uc")
#: Where MLflow and PostgreSQL's library find credentials by themselves: variables of which one or
#: more must be set, files below the home directory, and the variables to recommend.
_ELSEWHERE: dict[str, tuple[tuple[str, ...], str, str]] = {
    "http": (
        ("MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"),
        ".mlflow/credentials",
        "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN",
    ),
    "postgresql": (
        ("PGPASSWORD", "PGPASSFILE", "PGSERVICE"),
        ".pgpass",
        "MLFLOW_TRACKING_URI, or PGUSER and PGPASSWORD",
    ),
}
_ELSEWHERE["https"] = _ELSEWHERE["http"]
#: Keys of a data set and of a task that name files.
_OF_FILES = ("path", "labels", "mask", "background")
#: Folders above a study in which its store is looked for, after both were moved.
_MOST_ABOVE = 3
#: Most places that are noted; the oldest are forgotten.
_MOST = 1000
#: Parameters of a URI that decide which server is asked; others may be credentials.
_OF_SERVER = ("endpoint_override", "scheme")


def absolute_uri(uri: str) -> str:
    """Return a tracking URI that does not depend on the working directory."""
    scheme = uri_scheme(uri)
    known = (*_SCHEMES, *plugin_names("mlflow.tracking_store"))
    if scheme and scheme not in known:
        raise ConfigError(
            f"tracking.uri: MLflow does not support the scheme '{scheme}' of {uri}; use one of "
            f"{', '.join(known)}, e.g. sqlite:///mlflow.db"
        )
    store = store_file(uri)
    if not store:
        return uri
    return with_store_file(uri, result_path(store).absolute())


def check_store(uri: str) -> None:
    """Check that a store that is a file can be written and is of the installed MLflow.

    Of a server the address is checked; it is asked by the upload only. A folder of files, in which
    MLflow kept runs in earlier times, is refused as MLflow refuses it.
    """
    _refuse_folder(uri)
    check_address(uri)
    path = store_file(uri)
    if path is None:
        return
    # The upload makes missing folders below this one; unlike Path's, this `exists` is False where a
    # folder is closed.
    folder = next(above for above in path.absolute().parents if os.path.exists(above))  # noqa: PTH110
    try:
        with tempfile.TemporaryFile(dir=folder):  # sqlite writes its own journal beside the file
            pass
        if path.exists():
            path.open("r+b").close()
    except OSError as error:
        store = f"MLflow's store {path} cannot be written"
        if folder != path.absolute().parent:
            store += f" below {folder}"
        raise ConfigError(
            f"{store}: {error.strerror}; set tracking.uri or MLFLOW_TRACKING_URI to a place that"
            " can, or start the command in another directory."
        ) from error
    if problem := other_version(path):
        raise ConfigError(
            f"MLflow's store {path} {problem}. Or use another store, e.g. --set"
            " tracking.uri=sqlite:///new.db"
        )


def _refuse_folder(uri: str) -> None:
    lower = uri.lower()
    is_folder = "://" not in lower or lower.startswith("file:")
    allowed = os.environ.get("MLFLOW_ALLOW_FILE_STORE", "").lower() in ("true", "1")
    if uri and is_folder and lower not in _PLAIN and not allowed:
        database = "sqlite:///mlflow.db"
        raise ConfigError(
            f"tracking.uri (or MLFLOW_TRACKING_URI): {uri} is a folder or no URI. MLflow keeps runs"
            f" in a database or on a server: give e.g. {database}. To move the runs of a folder:"
            f" mlflow migrate-filestore --source FOLDER --target {database}."
            " MLFLOW_ALLOW_FILE_STORE=true lets MLflow still use a folder."
        )
    if lower.startswith("sqlite:") and not lower.startswith("sqlite:///"):
        raise ConfigError(
            f"tracking.uri: {uri} has too few slashes; give sqlite:///mlflow.db, or"
            " sqlite:////folder/mlflow.db for an absolute path."
        )


def connection(uri: str) -> tuple[str, dict[str, str | None]]:
    """Return the URI that MLflow connects to, and the variables that hold its credentials.

    Credentials of a server are handed over in MLflow's own variables, because MLflow's errors
    repeat its URI.
    """
    full = with_credentials(keep_credentials(uri))
    given = os.environ.get("MLFLOW_TRACKING_URI", "")
    if full == bare_uri(uri) == bare_uri(given):
        full = given
    if not full.lower().startswith(("http://", "https://")) or (user := split_user(full)) is None:
        return full, {}
    name, password = user
    if name and password:
        values: tuple[str | None, ...] = (name, password, None)
    else:
        values = (None, None, name or password)
    names = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")
    return bare_uri(full), dict(zip(names, values, strict=True))


def missing_credentials(uri: str) -> str:
    """Say how to give the credentials that a stored URI had and that cannot be found."""
    if not lacks_credentials(uri) or connection(uri)[0] != bare_uri(uri) or connection(uri)[1]:
        return ""
    scheme = uri_scheme(uri)
    names, file, variables = _ELSEWHERE.get(scheme, ((), "", "MLFLOW_TRACKING_URI"))
    if any(os.environ.get(name) for name in names) or (file and (Path.home() / file).exists()):
        return ""
    return (
        f"the credentials of {bare_uri(uri)} are not stored with a study, and none are given."
        f" Set {variables}, or give a configuration whose tracking.uri holds them. Else the study"
        " runs, and its runs are uploaded later"
    )


def own_store() -> str:
    """Return the URI of the MLflow store that is used where nothing names one."""
    named = keep_credentials(os.environ.get("MLFLOW_TRACKING_URI", ""))
    return absolute_uri(named or "sqlite:///mlflow.db")


def check_place(key: str, uri: str, directory: Path) -> None:
    """Check that this user has used a place before that a study's directory names."""
    if uri and _place(uri) not in (_place(own_store()), *_noted()):
        raise ConfigError(
            f"{key}: {uri} is named by the directory {directory} only, and this account has not"
            " used it before. Nothing is sent there or read from there, as the directory may be a"
            f" stranger's. If it is to be used, give {key} again."
        )


def place_now(uri: str, directory: Path) -> str:
    """Return the URI of a study's store as it is now, if both were moved together.

    A store whose folder is no longer there is looked for in the folders above the study, and is not
    made anew.
    """
    store = store_file(uri)
    if store is None or store.parent.exists():
        return uri
    above = list(directory.absolute().parents)[:_MOST_ABOVE]
    there = (folder / store.name for folder in above)
    if found := next((path for path in there if path.is_file()), None):
        return with_store_file(uri, found)
    check_place("tracking.uri", uri, directory)
    raise ConfigError(
        f"tracking.uri: the folder {store.parent} of MLflow's store {store.name}, which {directory}"
        " names, is no longer there, and it is not made anew. Give the store again, e.g. --set"
        " tracking.uri=sqlite:///mlflow.db"
    )


def check_names(
    names: Mapping[str, Any], study_id: str, directory: Path, given: Container[str] = ()
) -> None:
    """Check that this user has used the names in MLflow with a study, or gives them again."""
    for key, name in names.items():
        if key not in given and _name(key, name, study_id) not in _noted():
            raise ConfigError(
                f"tracking.{key}: {name} is named by the directory {directory} only, and this"
                " account has not used it with this study before. Nothing is written there, as the"
                " directory may be a stranger's. If it is to be used, give it again by --set"
                f" tracking.{key}=NAME; tracking.{key}=null leaves it out."
            )


def check_experiment(uri: str, name: str, study_id: str, directory: Path) -> None:
    """Check that a stranger's study is not added to an experiment of other studies.

    The store is asked only for a study that is not noted; one that cannot be asked now is asked
    again by the upload.
    """
    from raysel.tracking.mlflow_client import holds_only_others  # noqa: PLC0415 - takes seconds to import

    if _name("experiment", name, study_id) in _noted():
        return
    target, variables = connection(uri)
    with changed_variables(variables):
        if holds_only_others(target, name, study_id):
            raise ConfigError(
                f"tracking.experiment: {name} has runs of other studies or a description, and"
                f" {directory} may be a stranger's: give another name by --set"
                " tracking.experiment=NAME."
            )


def names_in_mlflow(tracking: Mapping[str, Any], default: str) -> dict[str, Any]:
    """Return the experiment and the registered model that a section ``tracking`` names."""
    named = {key: tracking.get(key) for key in ("experiment", "register")}
    return {
        key: name for key, name in named.items() if name and (key, name) != ("experiment", default)
    }


def note_names(names: Mapping[str, Any], study_id: str) -> None:
    """Note names in MLflow that the user has chosen for a study."""
    for key, name in names.items():
        _note(_name(key, name, study_id))


def note_place(uri: str) -> None:
    """Note a place that the user has chosen, without credentials, if the file can be written."""
    _note(_place(uri))


def _note(place: str) -> None:
    noted = _noted()
    if place in noted:
        return
    with suppress(OSError):
        _file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(_file(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in [*noted, place][-_MOST:])


def data_on_servers(config: StudyConfig) -> dict[str, str]:
    """Return the URIs of the data files that a configuration names, by key."""
    data = config.dataset
    sections = [
        ("dataset", data),
        *((f"dataset.tasks.{task.name}", task) for task in data.tasks or ()),
    ]
    named: dict[str, str] = {}
    for prefix, section in sections:
        named |= {f"{prefix}.{key}": getattr(section, key, None) or "" for key in _OF_FILES}
    return {key: value for key, value in named.items() if "://" in value}


def note_store(config: StudyConfig, uri: str, study_id: str) -> None:
    """Note the MLflow store of a study that starts or is resumed, and its names there."""
    names = names_in_mlflow(vars(config.tracking), config.name)
    note_names({"experiment": config.name, **names}, study_id)
    note_place(uri)


def note_data(config: StudyConfig) -> None:
    """Note the servers of the data of a study that starts or is resumed."""
    for place in data_on_servers(config).values():
        note_place(place)


def is_same_place(one: str, other: str) -> bool:
    """Return whether two URIs differ in their credentials at most."""
    return _place(one) == _place(other)


def _file() -> Path:
    """File of the noted places: XDG's folder for the state of programs."""
    folder = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    return Path(folder, "raysel", "places")


def _noted() -> list[str]:
    try:
        return _file().read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []


def _name(key: str, name: Any, study_id: str) -> str:
    return json.dumps([f"tracking.{key}", name, study_id])


def _place(uri: str) -> str:
    """Return scheme, host, port and path of a URI, and what decides which server is asked."""
    parts = urlsplit(uri)
    query = urlencode(
        [(name, value) for name, value in parse_qsl(parts.query) if name in _OF_SERVER]
    )
    host = parts.netloc.rpartition("@")[2].lower()
    place = f"{parts.scheme}://{host}{parts.path.rstrip('/')}"
    if query:
        place += f"?{query}"
    return "".join(place.split())
