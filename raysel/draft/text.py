"""Commented YAML of a drafted study."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from raysel.config.yaml_text import dump_key

_WIDTH = 120
#: Characters that would end a comment or could not be read back.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True)
class Entry:
    """One key of a drafted configuration."""

    key: str
    value: Any
    comment: str

    @property
    def section(self) -> str:
        """First part of a dotted key; empty for a key without a section."""
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        """Last part of the key."""
        return self.key.rpartition(".")[2]


def study_text(headline: Sequence[str], doubts: Sequence[str], entries: Iterable[Entry]) -> str:
    """Return a configuration as YAML in which each key has its explanation."""
    lines = [line for text in headline for line in _commented(text, "", "")]
    if doubts:
        lines.append("# To check:")
        lines += [line for text in doubts for line in _commented(text, "", "- ")]
    section: list[str] = []
    for entry in entries:
        parts = entry.section.split(".") if entry.section else []
        shared = 0
        while shared < min(len(parts), len(section)) and parts[shared] == section[shared]:
            shared += 1
        lines += [f"{'  ' * depth}{parts[depth]}:" for depth in range(shared, len(parts))]
        section = parts
        lines += _entry_lines(entry, "  " * len(parts))
    return "\n".join(lines) + "\n"


def _entry_lines(entry: Entry, indent: str) -> list[str]:
    """Key and value, with the explanation behind them if it fits the line, else above them."""
    written = dump_key(entry.name, entry.value)
    comment = _UNPRINTABLE.sub(" ", entry.comment)
    line = f"{indent}{written[0]}   # {comment}"
    if len(written) == 1 and len(line) <= _WIDTH:
        return [line]
    return [*_commented(comment, indent, ""), *(f"{indent}{part}" for part in written)]


def _commented(text: str, indent: str, bullet: str) -> list[str]:
    return textwrap.wrap(
        _UNPRINTABLE.sub(" ", text),
        _WIDTH,
        initial_indent=f"{indent}# {bullet}",
        subsequent_indent=f"{indent}# {' ' * len(bullet)}",
        break_long_words=False,
        break_on_hyphens=False,
    )
