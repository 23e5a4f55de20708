"""Conversion of nested mappings to dotted keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from raysel.config.schema import NIFTI
from raysel.config.yaml_text import MOST_LEVELS, parse_yaml
from raysel.core.errors import ConfigError


def flat(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the keys of nested mappings, joined by dots, with their values."""
    for key, value in section.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


#: Name of the file in a study's directory that samples given in memory are written to, and ``dataset.path`` until then.
OWN_DATA = "data.arrow"
#: Keys that say where the samples come from, of which a configuration has one.
_ORIGINS = ("path", "source", "tasks")
_DOTTED_ORIGINS = tuple(f"dataset.{key}" for key in _ORIGINS)


def apply_overrides(
    raw: dict[str, Any],
    overrides: Mapping[str, Any] | Iterable[str],
    origin: str,
    *,
    own_data: bool = False,
    builtin: bool = False,
) -> None:
    """Lay overrides over a configuration.

    An override of one of ``dataset.path``, ``dataset.source`` and ``dataset.tasks`` unsets the other two, unless they
    are overridden too; ``source: nifti`` and ``path`` belong together, and neither unsets the other.
    """
    changes = list(_changes(overrides))
    named = [key for key, value, _ in changes if value is not None and key in _DOTTED_ORIGINS]
    if own_data:
        if named:
            raise ConfigError(f"override {named[0]}: the samples are given in memory; leave one of the two out.")
        _name_own_data(raw, origin, builtin=builtin)
    for key, value, _ in changes:
        if key in named:
            _unset_origins(raw, key.removeprefix("dataset."), value)
    for key, value, where in changes:
        set_key(raw, key, value, where)


def set_key(raw: dict[str, Any], key: str, value: Any, origin: str) -> None:
    """Set a key of a configuration that is given as plain data."""
    parts = _parts(raw, str(key).strip())
    if not all(parts):
        raise ConfigError(f"{origin}: {key!r} is not a key; write it with dots, e.g. cv.outer")
    if len(parts) > MOST_LEVELS:
        raise ConfigError(f"{origin[:80]}: the key has {len(parts)} parts; at most {MOST_LEVELS} levels are read.")
    section = raw
    for part in parts[:-1]:
        if section.get(part) is None:
            section[part] = {}
        section = section[part]
        if not isinstance(section, dict):
            raise ConfigError(f"{origin}: `{part}` is set to a value and has no keys below it.")
    section[parts[-1]] = value


def _parts(raw: Mapping[str, Any], key: str) -> list[str]:
    """Return the parts of a dotted key; a label of a member is one part."""
    first, _, rest = key.partition(".")
    members = raw.get("compare") if first == "compare" else None
    if isinstance(members, Mapping):
        for label in sorted(members, key=len, reverse=True):
            if rest == label or rest.startswith(f"{label}."):
                return [first, label, *(rest.removeprefix(label)[1:].split(".") if rest != label else ())]
    return key.split(".")


def _changes(overrides: Mapping[str, Any] | Iterable[str]) -> Iterator[tuple[str, Any, str]]:
    """Yield the key of each override, its value and its origin for error messages."""
    if isinstance(overrides, Mapping):
        for key, value in overrides.items():
            yield str(key).strip(), plain(value), f"override {key}"
        return
    for text in [overrides] if isinstance(overrides, str) else overrides or ():
        if not isinstance(text, str):
            raise ConfigError(f"override {text!r}: give strings such as 'cv.outer=5', or one mapping.")
        key, value = _parse_override(text)
        yield key.strip(), value, f"override {text}"


def _parse_override(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"override {text}: an override must have the form key=value, e.g. cv.outer=5")
    return key, parse_yaml(value, f"override {text if len(text) < 80 else f'{text[:77]}...'}")


def _unset_origins(raw: dict[str, Any], chosen: str, value: Any = None) -> None:
    """Unset what the configuration says on the origin of the samples, which an override of one key replaces."""
    section = raw.get("dataset")
    if isinstance(section, dict):
        # A table of NIfTI files has both keys.
        nifti = value == NIFTI if chosen == "source" else chosen == "path" and section.get("source") == NIFTI
        for key in _ORIGINS:
            if key != chosen and not (nifti and key in ("path", "source")):
                section.pop(key, None)


def _name_own_data(raw: dict[str, Any], origin: str, *, builtin: bool) -> None:
    """Set ``dataset.path`` to the file that samples given in memory will be written to."""
    section = raw.get("dataset")
    section = {} if section is None else section
    if not isinstance(section, dict):
        return  # the validation says so
    named = [key for key in ("path", "tasks") if section.get(key) is not None]
    if section.get("source") == NIFTI:
        named.append("source")
    if named and not builtin:
        raise ConfigError(
            f"{origin}: dataset.{named[0]} names data, and the samples are given in memory; leave one of the two out."
        )
    _unset_origins(raw, "path")
    raw["dataset"] = {key: value for key, value in section.items() if key != "source"} | {"path": OWN_DATA}


def plain(value: Any) -> Any:
    """Return arrays, tuples, ranges, numbers of NumPy and paths as the lists, numbers and strings of YAML."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
