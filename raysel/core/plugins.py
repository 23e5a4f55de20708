"""Objects of other packages: entry points, and dotted names.

A package is imported only when one of its names is used.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Collection
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from itertools import chain
from types import ModuleType
from typing import Any, TypeAlias

from raysel.core.errors import ConfigError, suggestion

#: Entry points of a group by name.
_ByName: TypeAlias = dict[str, tuple[EntryPoint, ...]]
#: Most names of a module that an error lists.
_MOST_SHOWN = 30


def plugin_names(group: str) -> list[str]:
    """List the names that other packages register in an entry point group."""
    return sorted(_entry_points(group, tuple(sys.path)))


def is_imported(name: str, group: str = "") -> bool:
    """Whether a name is a dotted one of code outside raysel, scikit-learn and a group's packages.

    Such a name is imported only if the user gives it, not if it is read from a study's directory.
    """
    is_outside = "." in name and not name.startswith(("raysel.", "sklearn."))
    return is_outside and not (group and name in plugin_names(group))


def plugin_targets(group: str) -> list[str]:
    """List the objects that other packages register in a group, without their import."""
    registered = chain.from_iterable(_entry_points(group, tuple(sys.path)).values())
    return sorted({point.value.replace(":", ".") for point in registered})


def load_plugin(group: str, name: str) -> Any:
    """Import the object that another package registers under a name."""
    points = _entry_points(group, tuple(sys.path))[name]
    if len({point.value for point in points}) > 1:
        packages = " and ".join(f"{_package(point)} ({point.value})" for point in points)
        raise ConfigError(f"{group}: {packages} register the name {name!r}; uninstall one of them.")
    try:
        return points[0].load()
    except Exception as error:  # importing a third-party module may raise any exception
        raise ConfigError(
            f"{group}: {name} of {_package(points[0])} ({points[0].value}) cannot be imported: "
            f"{type(error).__name__}: {error}"
        ) from error


def warn_of_clash(group: str, name: str, names: Collection[str]) -> None:
    """Warn if another package registers one of raysel's own names; raysel's object is used."""
    if name in names and (points := _entry_points(group, tuple(sys.path)).get(name)):
        warnings.warn(
            f"{group}: {_package(points[0])} registers {name!r} ({points[0].value}), a name that"
            " raysel already uses; raysel's own object is used. Register the package's object"
            " under another name.",
            UserWarning,
            stacklevel=3,
        )


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> _ByName:  # noqa: ARG001
    """Return the entry points of a group by name; ``path`` is part of the cache's key."""
    points = entry_points(group=group)
    return {name: tuple(points.select(name=name)) for name in points.names}


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "a package"


def import_dotted(
    name: str,
    key: str,
    example: str,
    registered: Collection[str],
    is_wanted: Callable[[Any], bool] = callable,
) -> Any:
    """Import the object of a dotted name, e.g. a class of a module or a class nested in another.

    ``key`` of the configuration gives the name. Errors say what to write: ``example``, the
    ``registered`` names, or those of the objects in the module that are of the wanted kind.
    """
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        raise ConfigError(f"{key}: {name!r} is not a dotted name; {example}")
    module, path = _import_module(name, key, registered)
    target: Any = module
    for position in range(path.count(".") + 1, len(parts)):
        if not hasattr(target, parts[position]):
            holder = ".".join(parts[:position])
            public = [
                word
                for word, value in vars(target).items()
                if is_wanted(value) and not word.startswith("_")
            ]
            shown = f"known: {', '.join(public)}." if 0 < len(public) <= _MOST_SHOWN else example
            hint = suggestion(parts[position], public, shown)
            raise ConfigError(f"{key}: {holder} has no {parts[position]!r}; {hint}")
        target = getattr(target, parts[position])
    return target


def _import_module(name: str, key: str, registered: Collection[str]) -> tuple[ModuleType, str]:
    """Import the module of a dotted name: its longest prefix that is one."""
    path = name.rpartition(".")[0]
    first: Exception | None = None
    prefix = path
    while prefix:
        try:
            module = importlib.import_module(prefix)
        except (
            Exception,
            SystemExit,
        ) as error:  # importing a third-party module may raise any exception
            if not (
                isinstance(error, ModuleNotFoundError) and f"{prefix}.".startswith(f"{error.name}.")
            ):
                raise _not_importable(
                    prefix, name, key=key, registered=registered, error=error
                ) from error
            first = first or error
            prefix = prefix.rpartition(".")[0]
        else:
            if first is None or hasattr(module, name[len(prefix) + 1 :].partition(".")[0]):
                return module, prefix
            break
    raise _not_importable(path, name, key=key, registered=registered, error=first) from first


def _not_importable(
    path: str, name: str, key: str, registered: Collection[str], error: BaseException | None
) -> ConfigError:
    return ConfigError(
        f"{key}: {path}, the module of {name}, cannot be imported ({type(error).__name__}:"
        f" {error}); install it, correct the name, or use one of {', '.join(registered)}."
    )
