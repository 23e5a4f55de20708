"""Texts of others shortened to one line."""

from __future__ import annotations


def short(name: str, longest: int) -> str:
    """Shorten a text to one line of at most ``longest`` characters."""
    line = _one_line(name)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def short_middle(name: str, longest: int) -> str:
    """Shorten a text to one line of at most ``longest`` characters, keeping its start and its end."""
    line = _one_line(name)
    end = (longest - 1) // 2
    return line if len(line) <= longest else f"{line[: longest - 1 - end]}…{line[-end:]}"


def _one_line(name: str) -> str:
    """Join the words of a text by single spaces, and replace what cannot be printed: SVG must not contain it."""
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(name.split()))
