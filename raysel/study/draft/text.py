"""Commented YAML of a drafted study."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from raysel.config.yaml_text import dump_key

_WIDTH = 120
#: Characters that would end a comment or could not be read back.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Entry(NamedTuple):
    """One key of a drafted configuration, with dots between its sections and its name."""

    key: str
    value: Any
    comment: str


def study_text(headline: Sequence[str], doubts: Sequence[str], entries: Iterable[Entry]) -> str:
    """Return a configuration as YAML in which each key has its explanation, behind it if that fits the line."""
    lines = [line for text in headline for line in _comment(text)]
    if doubts:
        lines += ["# To check:", *(line for text in doubts for line in _comment(text, bullet="- "))]
    section: list[str] = []
    for entry in entries:
        *parts, name = entry.key.split(".")
        shared = 0
        while shared < min(len(parts), len(section)) and parts[shared] == section[shared]:
            shared += 1
        lines += [f"{'  ' * depth}{parts[depth]}:" for depth in range(shared, len(parts))]
        section, indent = parts, "  " * len(parts)
        written = dump_key(name, entry.value)
        line = f"{indent}{written[0]}   # {_UNPRINTABLE.sub(' ', entry.comment)}"
        if len(written) == 1 and len(line) <= _WIDTH:
            lines.append(line)
        else:
            lines += [*_comment(entry.comment, indent), *(f"{indent}{part}" for part in written)]
    return "\n".join(lines) + "\n"


def _comment(text: str, indent: str = "", bullet: str = "") -> list[str]:
    return textwrap.wrap(
        _UNPRINTABLE.sub(" ", text),
        _WIDTH,
        initial_indent=f"{indent}# {bullet}",
        subsequent_indent=f"{indent}# {' ' * len(bullet)}",
        break_long_words=False,
        break_on_hyphens=False,
    )
