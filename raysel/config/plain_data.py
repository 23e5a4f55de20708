"""Configurations as plain data: YAML text, dotted keys, and overrides."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from raysel.config.schema import NIFTI
from raysel.config.values import FORMER_ESTIMATOR_KEY, with_estimator_key
from raysel.core.errors import ConfigError

#: Characters of a configuration, which take up to 10 s; the longest of conf/ has 2000.
MOST_CHARACTERS = 2**20
#: Levels of a configuration; those of a study have 5.
MOST_LEVELS = 32

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
#: Name of the file in a study's directory that samples given in memory are written to, and
#: ``dataset.path`` until then.
OWN_DATA = "data.arrow"
#: Keys that say where the samples come from, of which a configuration has one.
_ORIGINS = ("path", "source", "tasks")
_DOTTED_ORIGINS = tuple(f"dataset.{key}" for key in _ORIGINS)
#: Keys whose names have changed.
_NEW_NAMES = {"evaluation.classifier": "evaluation.estimator"}


class _Loader(yaml.SafeLoader):
    """Safe YAML loader that reads 1e-3 as a number and a date as a string."""

    _level = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if self._level >= MOST_LEVELS:
            raise ConfigError(
                f"line {line}: nested too deeply; at most {MOST_LEVELS} levels are read."
            )
        if isinstance(event, yaml.AliasEvent):  # nested aliases can expand to more than the memory
            raise ConfigError(f"line {line}: aliases are not allowed; write out the value.")
        if getattr(event, "tag", None):
            raise ConfigError(f"line {line}: tags are not allowed; leave out {event.tag}.")
        self._level += 1
        node = super().compose_node(parent, index)
        self._level -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        if isinstance(node, yaml.ScalarNode) and (fault := _surprise(node)):
            raise ConfigError(f"line {node.start_mark.line + 1}: {fault}")
        try:
            value = super().construct_object(node, deep)
        except ConfigError:
            raise
        except ValueError as error:
            shown = str(node.value)[:50]
            raise ConfigError(
                f"line {node.start_mark.line + 1}: `{shown}` cannot be read as a value."
            ) from error
        if isinstance(value, float) and math.isinf(value) and "inf" not in str(node.value).lower():
            raise ConfigError(
                f"line {node.start_mark.line + 1}: `{node.value[:50]}` is too large for a number."
            )
        if isinstance(value, int) and abs(value) >= 2**63:
            raise ConfigError(
                f"line {node.start_mark.line + 1}: whole numbers must lie between -2^63 and 2^63."
            )
        if isinstance(value, str) and _UNPRINTABLE.search(value):
            raise ConfigError(
                f"line {node.start_mark.line + 1}: {value[:50]!r} has a control character or line"
                " break."
            )
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise ConfigError(
                    f"line {key_node.start_mark.line + 1}: the key {key!r} is not a word; put it in"
                    " quotes."
                )
            if key in seen:
                raise ConfigError(
                    f"line {key_node.start_mark.line + 1}: the key `{key}` is written twice; keep"
                    " one."
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _surprise(node: yaml.ScalarNode) -> str:
    """Return why YAML reads a value differently from what was probably meant; or empty."""
    kind, shown = node.tag.rpartition(":")[2], node.value[:50]
    if kind == "merge":
        return "merge keys (<<) are not allowed; write out the keys."
    if kind == "value":
        return "YAML gives `=` a meaning of its own; put it in quotes."
    if kind in ("int", "float") and ":" in node.value:
        return f"YAML takes `{shown}` for a number to the base 60; put it in quotes."
    if kind == "int" and re.match(r"[-+]?0[0-9_]", node.value):
        return (
            f"YAML takes `{shown}` for a number to the base 8; write it without the leading 0, or"
            " in quotes."
        )
    return ""


class _Dumper(yaml.SafeDumper):
    """Safe YAML dumper that quotes strings which `_Loader` would read as numbers, e.g. "1e5"."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _class in (_Loader, _Dumper):
    _class.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
        list("-+.0123456789"),
    )


def parse_yaml(text: str, origin: str) -> Any:
    """Return the data of a YAML text."""
    if len(text) > MOST_CHARACTERS:
        raise ConfigError(
            f"{origin} has more than {MOST_CHARACTERS} characters, the most that is read."
        )
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise ConfigError(
            f"{origin}{line}: this is not valid YAML: {what}."
        ) from None  # it repeats the line
    except ConfigError as error:
        raise ConfigError(f"{origin}, {error}") from None


def dump_yaml(data: Mapping[str, Any]) -> str:
    """Return plain data as YAML that `parse_yaml` reads back."""
    return yaml.dump(
        data,
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=None,
        allow_unicode=True,
        width=120,
    )


def dump_key(name: str, value: Any) -> list[str]:
    """Return one key with its value as lines of YAML, its lists in brackets."""
    text = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=True,
        allow_unicode=True,
        width=100,
    )
    first, *rest = text.removesuffix("\n").removesuffix("\n...").splitlines()
    return [f"{name}: {first}", *(f"    {line.strip()}" for line in rest)]


def flat(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the keys of nested mappings, joined by dots, with their values."""
    for key, value in section.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def apply_overrides(
    raw: dict[str, Any],
    overrides: Mapping[str, Any] | Iterable[str],
    origin: str,
    *,
    own_data: bool = False,
    builtin: bool = False,
) -> None:
    """Lay overrides over a configuration.

    An override of one of ``dataset.path``, ``dataset.source`` and ``dataset.tasks`` unsets the
    other two, unless they are overridden too; ``source: nifti`` and ``path`` belong together, and
    neither unsets the other.
    """
    changes = list(_changes(overrides))
    named = [key for key, value, _ in changes if value is not None and key in _DOTTED_ORIGINS]
    if own_data:
        if named:
            raise ConfigError(
                f"override {named[0]}: the samples are given in memory; leave one of the two out."
            )
        _name_own_data(raw, origin, builtin=builtin)
    for key, value, _ in changes:
        if key in named:
            _unset_origins(raw, key.removeprefix("dataset."), value)
    for key, value, where in changes:
        set_key(raw, key, value, where)


def set_key(raw: dict[str, Any], key: str, value: Any, origin: str) -> None:
    """Set a key of a configuration that is given as plain data."""
    parts = _parts(raw, str(key).strip())
    if tuple(parts[-2:]) == ("evaluation", FORMER_ESTIMATOR_KEY):
        parts[-1] = "estimator"
    if not all(parts):
        raise ConfigError(f"{origin}: {key!r} is not a key; write it with dots, e.g. cv.outer")
    if len(parts) > MOST_LEVELS:
        raise ConfigError(
            f"{origin[:80]}: the key has {len(parts)} parts; at most {MOST_LEVELS} levels are read."
        )
    section = raw
    for part in parts[:-1]:
        if section.get(part) is None:
            section[part] = {}
        section = section[part]
        if not isinstance(section, dict):
            raise ConfigError(f"{origin}: `{part}` is set to a value and has no keys below it.")
    section[parts[-1]] = value


def with_new_names(raw: Any) -> Any:
    """Return plain data of a study or a comparison with former names of keys replaced."""
    if not isinstance(raw, Mapping):
        return raw
    renamed = {_NEW_NAMES.get(key, key): value for key, value in raw.items()}
    if isinstance(section := renamed.get("evaluation"), Mapping) and not {
        "classifier",
        "estimator",
    } <= set(section):
        renamed["evaluation"] = with_estimator_key(section)
    if isinstance(members := renamed.get("compare"), Mapping):
        renamed["compare"] = {label: with_new_names(keys) for label, keys in members.items()}
    return renamed


def _parts(raw: Mapping[str, Any], key: str) -> list[str]:
    """Return the parts of a dotted key; a label of a member is one part."""
    first, _, rest = key.partition(".")
    members = raw.get("compare")
    if first == "compare" and isinstance(members, Mapping):
        for label in sorted(members, key=len, reverse=True):
            if rest == label:
                return [first, label]
            if rest.startswith(f"{label}."):
                return [first, label, *rest.removeprefix(f"{label}.").split(".")]
    return key.split(".")


def _changes(overrides: Mapping[str, Any] | Iterable[str]) -> Iterator[tuple[str, Any, str]]:
    """Yield the key of each override, its value and its origin for error messages."""
    if isinstance(overrides, Mapping):
        for key, value in overrides.items():
            yield str(key).strip(), plain(value), f"override {key}"
        return
    if isinstance(overrides, str):
        overrides = [overrides]
    for text in overrides or ():
        if not isinstance(text, str):
            raise ConfigError(
                f"override {text!r}: give strings such as 'cv.outer=5', or one mapping."
            )
        key, value = _parse_override(text)
        yield key.strip(), value, f"override {text}"


def _parse_override(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(
            f"override {text}: an override must have the form key=value, e.g. cv.outer=5"
        )
    shown = text if len(text) < 80 else f"{text[:77]}..."
    return key, parse_yaml(value, f"override {shown}")


def _unset_origins(raw: dict[str, Any], chosen: str, value: Any = None) -> None:
    """Unset other origins of the samples, which an override of one key replaces."""
    section = raw.get("dataset")
    if isinstance(section, dict):
        source = value if chosen == "source" else section.get("source")
        kept = {chosen}
        if source == NIFTI and chosen in ("path", "source"):  # a table of NIfTI files has both
            kept = {"path", "source"}
        for key in set(_ORIGINS) - kept:
            section.pop(key, None)


def _name_own_data(raw: dict[str, Any], origin: str, *, builtin: bool) -> None:
    """Set ``dataset.path`` to the file that samples given in memory will be written to."""
    section = raw.get("dataset")
    if section is None:
        section = {}
    if not isinstance(section, dict):
        return  # the validation says so
    named = [key for key in ("path", "tasks") if section.get(key) is not None]
    if section.get("source") == NIFTI:
        named.append("source")
    if named and not builtin:
        raise ConfigError(
            f"{origin}: dataset.{named[0]} names data, and the samples are given in memory; leave"
            " one of the two out."
        )
    _unset_origins(raw, "path")
    raw["dataset"] = {key: value for key, value in section.items() if key != "source"} | {
        "path": OWN_DATA
    }


def plain(value: Any) -> Any:
    """Return arrays, tuples, paths and numbers of NumPy as YAML has them."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return value


def without_null(raw: Any) -> Any:
    """Return plain data without the keys whose value is None."""
    if isinstance(raw, Mapping):
        return {key: without_null(value) for key, value in raw.items() if value is not None}
    return raw
