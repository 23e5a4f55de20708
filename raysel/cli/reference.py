"""References that the command prints: tables generated from what raysel knows of itself."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raysel.config.describe import config_reference


def print_config_reference(out: Console) -> None:
    """Print all keys of a configuration with their values, defaults and descriptions.

    Parameters
    ----------
    out : Console
        Where to print; the columns wrap at its width.
    """
    entries = config_reference()
    _print_entries("key", [(e.key, f"{e.type} ({_default_in_words(e.default)})", e.description) for e in entries], out)


def _default_in_words(default: str) -> str:
    return default if default in ("required", "not set") else f"default {default}"


def _print_entries(title: str, entries: Iterable[tuple[str, str, str]], out: Console) -> None:
    """Print a table of entries: a name; facts and, below them, a description."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(title, no_wrap=True)
    table.add_column("values and description", overflow="fold")
    for name, facts, description in entries:
        table.add_row(Text(name, style="bold"), Text.assemble((facts, "dim"), "\n", description))
    out.print(table)
