"""Entry points by which other packages register estimators, metrics and file readers.

A package is imported only when one of its names is used.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from raysel.core.errors import ConfigError


def plugin_names(group: str) -> list[str]:
    """List the names that other packages register in an entry point group."""
    return sorted(_entry_points(group, tuple(sys.path)))


def plugin_targets(group: str) -> list[str]:
    """List the objects that other packages register in an entry point group, without importing them."""
    registered = _entry_points(group, tuple(sys.path)).values()
    return sorted({point.value.replace(":", ".") for points in registered for point in points})


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
            f"{group}: {_package(points[0])} registers {name!r} ({points[0].value}), a name that raysel already uses; "
            "raysel's own object is used. Register the package's object under another name.",
            UserWarning,
            stacklevel=3,
        )


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> dict[str, tuple[EntryPoint, ...]]:  # noqa: ARG001
    """Entry points of a group by name; ``path`` is only part of the cache's key, as ``sys.path`` may change."""
    points = entry_points(group=group)
    return {name: tuple(points.select(name=name)) for name in points.names}


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "a package"
