"""What other packages register for raysel by entry points: estimators, metrics and readers of files.

Nothing of a package is imported before its name is asked for.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from raysel.errors import ConfigError


def plugin_names(group: str) -> list[str]:
    """The names that other packages register in a group.

    Parameters
    ----------
    group : str
        E.g. ``"raysel.estimators"``.

    Returns
    -------
    list of str
        Sorted.
    """
    return sorted(_found(group, tuple(sys.path)))


def plugin_targets(group: str) -> list[str]:
    """The dotted names that other packages register in a group, e.g. ``package.module.Class``; nothing is imported.

    Parameters
    ----------
    group : str

    Returns
    -------
    list of str
    """
    registered = _found(group, tuple(sys.path)).values()
    return sorted({point.value.replace(":", ".") for points in registered for point in points})


def load_plugin(group: str, name: str) -> Any:
    """Import what a package registers under a name.

    Parameters
    ----------
    group : str
    name : str
        One of `plugin_names`.

    Returns
    -------
    object

    Raises
    ------
    ConfigError
        If two packages register the name, or what is registered cannot be imported.
    """
    points = _found(group, tuple(sys.path))[name]
    if len({point.value for point in points}) > 1:
        both = " and ".join(f"{_package(point)} ({point.value})" for point in points)
        raise ConfigError(f"{group}: {both} register the name {name!r}; uninstall one of them.")
    try:
        return points[0].load()
    except Exception as error:  # a foreign module may raise anything as it is imported
        raise ConfigError(
            f"{group}: {name} of {_package(points[0])} ({points[0].value}) cannot be imported: "
            f"{type(error).__name__}: {error}"
        ) from error


def warn_of_clash(group: str, name: str, own: Collection[str]) -> None:
    """Warn where another package registers a name that raysel itself has; raysel's is used.

    Parameters
    ----------
    group : str
    name : str
    own : collection of str
        raysel's names.

    Warns
    -----
    UserWarning
        Naming the package.
    """
    if name in own and (points := _found(group, tuple(sys.path)).get(name)):
        warnings.warn(
            f"{group}: {_package(points[0])} registers {name!r} ({points[0].value}), which is raysel's own name: "
            "raysel's is used; the package must register another name.",
            UserWarning,
            stacklevel=3,
        )


@cache
def _found(group: str, path: tuple[str, ...]) -> dict[str, tuple[EntryPoint, ...]]:  # noqa: ARG001 - part of the key
    """The group's entry points by name; read anew where ``sys.path`` has changed."""
    points = entry_points(group=group)
    return {name: tuple(points.select(name=name)) for name in points.names}


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "a package"
