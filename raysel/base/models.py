"""Models in skops' format: signed when written, read without pickle once checked."""

from __future__ import annotations

import copy
import io
import json
import os
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from raysel.base.model_types import KINDS, imported_estimators, trusted_types
from raysel.core.errors import DataError
from raysel.core.machine import check_data_bytes
from raysel.core.trust import check_trust, write_signed

_SCHEMA = "schema.json"


def types_within(path: Path) -> set[str]:
    """Return the names of the classes and functions in a model file; imports nothing."""
    return {name for _, name in _nodes(path.read_bytes())}


def own_estimators(content: bytes) -> set[str]:
    """Return the estimators in a model file that are not in raysel's list, but imported."""
    return imported_estimators(classes_within(content))


def classes_within(content: bytes) -> set[str]:
    """Return the classes of the objects that a model file holds; imports nothing."""
    return {name for kind, name in _nodes(content) if kind == "ObjectNode"}


def other_classes(content: bytes) -> set[str]:
    """Return the classes in a model file that are not in raysel's list; none if damaged."""
    try:
        return classes_within(content) - trusted_types()
    except Exception:  # whoever opens it says what is damaged  # noqa: BLE001
        return set()


def foreign_nodes(content: bytes, classes: Collection[str]) -> set[str]:
    """Return the names of nodes in a model file of other kinds, or of other classes."""
    foreign = set()
    for kind, name in _nodes(content):
        allowed = classes if kind == "ObjectNode" else KINDS.get(kind, ())
        if allowed is not None and name not in allowed:
            foreign.add(name)
    return foreign


def _nodes(content: bytes) -> list[tuple[str, str]]:
    """Return kind and name of each node of a model file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        schema = json.loads(archive.read(_SCHEMA))
    return [
        (str(node["__loader__"]), f"{node.get('__module__')}.{node.get('__class__')}")
        for node in _mappings(schema)
        if "__loader__" in node
    ]


def _mappings(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield all mappings within plain data."""
    left = [schema]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            left.extend(node.values())
        elif isinstance(node, list):
            left.extend(node)


def with_present_names(content: bytes) -> bytes:
    """Replace the modules of raysel's classes in a model file by those of today."""
    present = (name.rpartition(".") for name in trusted_types() if name.startswith("raysel."))
    modules = {name: module for module, _, name in present}
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        schema = json.loads(file.read(_SCHEMA))
        moved = [
            node for node in _mappings(schema) if _module(node, modules) != node.get("__module__")
        ]
        if not moved:
            return content
        members = {item.filename: file.read(item) for item in file.infolist()}
    for node in moved:
        node["__module__"] = _module(node, modules)
    renamed = io.BytesIO()
    with zipfile.ZipFile(renamed, "w") as copy:
        for name, data in (members | {_SCHEMA: json.dumps(schema).encode()}).items():
            copy.writestr(name, data)
    return renamed.getvalue()


def _module(node: dict[str, Any], modules: Mapping[str, str]) -> Any:
    """Module that a node names, or the one that one of raysel's classes is in now."""
    module = node.get("__module__")
    ours = isinstance(module, str) and module.startswith("raysel.")
    if not ours:
        return module
    return modules.get(str(node.get("__class__")), module)


def untrusted_types(model: BaseEstimator) -> list[str]:
    """List the types in a model that `save_model` and `load_model` do not accept.

    Parameters
    ----------
    model : estimator
        Model to examine; it need not be fitted.

    Returns
    -------
    list of str
        Dotted names of the types, sorted; empty if the model can be saved.

    Examples
    --------
    >>> from raysel.data.scaling import UnitScaler
    >>> untrusted_types(UnitScaler())
    []
    """
    import skops.io  # noqa: PLC0415 - importing takes a second, and most commands do not need it

    return _untrusted(skops.io.dumps(_without_callbacks(model)))


def unlisted_estimators(model: BaseEstimator) -> list[str]:
    """List the estimators in a model whose modules who loads it has to import before."""
    import skops.io  # noqa: PLC0415

    return sorted(own_estimators(skops.io.dumps(_without_callbacks(model))))


def save_model(model: BaseEstimator, path: str | Path) -> Path:
    """Write a fitted model in skops' format, and beside it its hash by this account's key.

    Where the key can be neither read nor made there is no hash, and `load_model` needs
    ``trust=True``.

    Parameters
    ----------
    model : estimator
        One of raysel's estimators, or a scikit-learn pipeline of such. It is not modified.
    path : str or Path
        Path of the file, e.g. ``model.skops``.

    Returns
    -------
    Path
        Path of the written file.

    Raises
    ------
    DataError
        If the model contains types that `load_model` does not accept, or cannot be written.
    StudyError
        If the file cannot be written.
    """
    import skops.io  # noqa: PLC0415

    try:
        content = skops.io.dumps(_without_callbacks(model))
    except Exception as error:  # an attribute of another package's class may be anything
        raise DataError(f"the model cannot be written: {type(error).__name__}: {error}") from error
    _check_types(content, "the model")
    if own_estimators(content):
        _check_comes_back(content)
    return write_signed(Path(path), content)


def load_model(path: str | Path, *, trust: bool = False) -> Any:
    """Read a model that this account has written, without unpickling.

    A keyed hash beside the file (HMAC-SHA256, key in ``~/.config/raysel``) tells whether this
    account wrote it, and is checked before the file is opened. No code of a file runs, but the
    model of a stranger may crash or read the process that predicts with it. An estimator of your
    own is read where its class is imported: no other module is imported because a file names it.

    Parameters
    ----------
    path : str or Path
        Path of the file, or the directory of a finished study, whose ``model.skops`` is read.
    trust : bool, default=False
        Whether to read a model without the hash of this account; ``raysel trust DIR`` adds it to
        those of a study.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    DataError
        If there is no such file, it is not trusted, is damaged or does not hold a model, or
        contains anything but arrays, plain containers, the classes of `trusted_types` and
        estimators whose classes are imported.

    Examples
    --------
    >>> import tempfile
    >>> from raysel.data.scaling import UnitScaler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(UnitScaler().fit([[0], [4]]), Path(folder, "scaler.skops"))
    ...     load_model(path).range_
    4.0
    """
    file = Path(path)
    if os.path.isdir(path):  # noqa: PTH112 - Path's raises an error of a name that is too long
        file = _find_model(file)
    return read_model(file, path, trust=trust)


def read_model(file: Path, place: str | Path, *, trust: bool) -> Any:
    """Read a model file; if it is not trusted, an error says how ``place`` is."""
    try:
        check_data_bytes(file, file.stat().st_size)
        content = file.read_bytes()
    except OSError as error:
        raise DataError(f"the model {file} cannot be read: {error.strerror}.") from error
    if not trust:
        check_trust(file, content, place)
    try:
        content = with_present_names(content)
        _check_types(content, str(file))
        return _loaded(content, str(file))
    except DataError:
        raise
    except (
        Exception
        # a damaged file may raise any exception, as a part that is missing or of another kind
    ) as error:
        raise DataError(
            f"{file} is not a skops file, truncated or damaged ({type(error).__name__}); export the"
            " model again."
        ) from error


def find_damage(content: bytes) -> str:
    """Return what of a model file's bytes is missing or damaged; empty if nothing is.

    No part of it is interpreted.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if damaged := archive.testzip():
                return f"its part {damaged} is damaged"
            members = set(archive.namelist())
            schema = json.loads(archive.read(_SCHEMA))
    except Exception as error:  # as of a file that is none, or is cut  # noqa: BLE001
        return f"it is no whole skops file ({type(error).__name__})"
    missing = {str(node["file"]) for node in _mappings(schema) if "file" in node} - members
    if missing:
        return f"it lacks its part {min(missing)}"
    return ""


def _find_model(folder: Path) -> Path:
    """Return the path of the final model in the directory of a study."""
    if not (folder / "model.skops").exists():
        raise DataError(
            f"{folder} has no model.skops; give the directory of a finished study with a final"
            " model, or a model's file."
        )
    return folder / "model.skops"


def _loaded(content: bytes, what: str) -> BaseEstimator:
    import skops.io  # noqa: PLC0415

    model = skops.io.loads(content, trusted=sorted(trusted_types() | own_estimators(content)))
    if not isinstance(model, BaseEstimator):
        raise DataError(f"{what} holds a {type(model).__name__}, not a model.")
    return model


def _check_comes_back(content: bytes) -> None:
    """Check that what another package's classes make of their attributes can be read again."""
    try:
        _loaded(content, "the model")
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise DataError(f"the model could not be read again from a file: {told}") from error


def _untrusted(content: bytes) -> list[str]:
    import skops.io  # noqa: PLC0415

    trusted = trusted_types() | own_estimators(content)
    return sorted(
        set(skops.io.get_untrusted_types(data=content)) - trusted | foreign_nodes(content, trusted)
    )


def _check_types(content: bytes, what: str) -> None:
    untrusted = _untrusted(content)
    if not untrusted:
        return
    modules = {
        name: name.rpartition(".")[0] for name in classes_within(content) if name in untrusted
    }
    if missing := {name: module for name, module in modules.items() if module not in sys.modules}:
        raise DataError(
            f"{what} names {', '.join(missing)}, and loading imports no module because a file names"
            f" it: import {', '.join(sorted(set(missing.values())))} first."
        )
    raise DataError(
        f"{what} holds {', '.join(untrusted)}, which model files cannot: they hold estimators of"
        " classes at the top of a module, arrays, numbers, text and containers of these."
    )


def _without_callbacks(model: BaseEstimator) -> BaseEstimator:
    """Copy a model and its nested estimators without scikit-learn's callbacks."""
    parts = [part for part in _parts_within(model) if isinstance(part, BaseEstimator)]
    attached = [vars(part)["_skl_callbacks"] for part in parts if "_skl_callbacks" in vars(part)]
    # Callbacks hold locks and handles that cannot be copied; deepcopy replaces objects by their
    # entry in the memo.
    copied = copy.deepcopy(model, {id(callbacks): None for callbacks in attached})
    for part in _parts_within(copied):
        if isinstance(part, BaseEstimator):
            vars(part).pop("_skl_callbacks", None)
    return copied


def _parts_within(value: Any) -> Iterator[Any]:
    """Yield a value and all distinct values within it."""
    seen: dict[int, Any] = {}  # holds the values, so that no id is used again
    left = [value]
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        yield value
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list | tuple | set | frozenset):
            left.extend(value)
        elif isinstance(value, np.ndarray) and value.dtype == object:
            left.extend(value.ravel())
        if hasattr(value, "__dict__") and not isinstance(value, type):
            left.extend(vars(value).values())
