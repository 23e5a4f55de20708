"""Registry of samplers by name.

A name is one of raysel's own, one that another package registers under the entry point
``raysel.samplers``, or the dotted name of an importable subclass of `Sampler`.
"""

from __future__ import annotations

from inspect import isclass

from raysel.config.searches import LISTED
from raysel.core.errors import ConfigError, suggestion
from raysel.core.plugins import import_dotted, load_plugin, plugin_names, warn_of_clash
from raysel.evaluation.samplers import Sampler, TPESampler

#: Entry point group in which other packages register subclasses of `Sampler`.
GROUP = "raysel.samplers"

#: raysel's own samplers.
OWN: dict[str, type[Sampler]] = {"tpe": TPESampler}

_EXAMPLE = "write the dotted name of a subclass of raysel.evaluation.samplers.Sampler."


def search_names() -> list[str]:
    """List the names that ``search.method`` may have, besides dotted ones."""
    own = [*LISTED, *OWN]
    return [*own, *(name for name in plugin_names(GROUP) if name not in own)]


def sampler_class(name: str) -> type[Sampler]:
    """Import the class of a sampler."""
    if name in OWN:
        warn_of_clash(GROUP, name, OWN)
        return OWN[name]
    if name in plugin_names(GROUP):
        cls = load_plugin(GROUP, name)
    elif "." in name:
        cls = import_dotted(name, "search.method", _EXAMPLE, search_names(), isclass)
    else:
        known = search_names()
        hint = suggestion(name, known, f"known: {', '.join(known)}.")
        raise ConfigError(f"search.method: unknown search {name!r}; {hint}")
    if not isclass(cls) or not issubclass(cls, Sampler):
        raise ConfigError(f"search.method: {name} is no sampler; {_EXAMPLE}")
    if lacking := sorted(cls.__abstractmethods__):
        raise ConfigError(f"search.method: {name} lacks {', '.join(lacking)}; implement them.")
    return cls
