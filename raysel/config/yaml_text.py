"""YAML text as plain data and back, without what a configuration does not need."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import yaml

from raysel.core.errors import ConfigError

#: Characters of a configuration, which take up to 10 s; the longest of conf/ has 2000.
MOST_CHARACTERS = 2**20
#: Levels of a configuration; those of a study have 5.
MOST_LEVELS = 32

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class _Loader(yaml.SafeLoader):
    """Safe YAML loader that reads 1e-3 as a number and a date as a string; its errors give the line."""

    _level = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if self._level >= MOST_LEVELS:
            raise ConfigError(f"line {line}: nested too deeply; at most {MOST_LEVELS} levels are read.")
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
            raise ConfigError(f"line {node.start_mark.line + 1}: `{shown}` cannot be read as a value.") from error
        if isinstance(value, float) and math.isinf(value) and "inf" not in str(node.value).lower():
            raise ConfigError(f"line {node.start_mark.line + 1}: `{node.value[:50]}` is too large for a number.")
        if isinstance(value, int) and abs(value) >= 2**63:
            raise ConfigError(f"line {node.start_mark.line + 1}: whole numbers must lie between -2^63 and 2^63.")
        if isinstance(value, str) and _UNPRINTABLE.search(value):
            raise ConfigError(f"line {node.start_mark.line + 1}: {value[:50]!r} has a control character or line break.")
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise ConfigError(
                    f"line {key_node.start_mark.line + 1}: the key {key!r} is not a word; put it in quotes."
                )
            if key in seen:
                raise ConfigError(f"line {key_node.start_mark.line + 1}: the key `{key}` is written twice; keep one.")
            seen.add(key)
        return super().construct_mapping(node, deep)


def _surprise(node: yaml.ScalarNode) -> str:
    """Return why YAML reads a value differently from what was probably meant; empty if it does not."""
    kind, shown = node.tag.rpartition(":")[2], node.value[:50]
    if kind == "merge":
        return "merge keys (<<) are not allowed; write out the keys."
    if kind == "value":
        return "YAML gives `=` a meaning of its own; put it in quotes."
    if kind in ("int", "float") and ":" in node.value:
        return f"YAML takes `{shown}` for a number to the base 60; put it in quotes."
    if kind == "int" and re.match(r"[-+]?0[0-9_]", node.value):
        return f"YAML takes `{shown}` for a number to the base 8; write it without the leading 0, or in quotes."
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
        raise ConfigError(f"{origin} has more than {MOST_CHARACTERS} characters, the most that is read.")
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise ConfigError(f"{origin}{line}: this is not valid YAML: {what}.") from None  # it repeats the line
    except ConfigError as error:
        raise ConfigError(f"{origin}, {error}") from None


def dump_yaml(data: Mapping[str, Any]) -> str:
    """Return plain data as YAML that `parse_yaml` reads back."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=120)


def dump_key(name: str, value: Any) -> list[str]:
    """Return one key with its value as lines of YAML, in brackets where the value is a list or a mapping."""
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=True, allow_unicode=True, width=100)
    first, *rest = text.removesuffix("\n").removesuffix("\n...").splitlines()
    return [f"{name}: {first}", *(f"    {line.strip()}" for line in rest)]
