"""References that the command prints: tables generated from what raysel knows of itself."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raysel.base.registry import solver_capabilities, solver_class, solver_names
from raysel.config.describe import comparison_reference, config_reference


def print_config_reference(out: Console) -> None:
    """Print all keys of a study's or a comparison's configuration with their values, defaults and descriptions.

    Parameters
    ----------
    out : Console
        Where to print; the columns wrap at its width.
    """
    entries = [*config_reference(), *comparison_reference()]
    _print_entries("key", [(e.key, f"{e.type} ({_default_in_words(e.default)})", e.description) for e in entries], out)


def print_solver_reference(out: Console) -> None:
    """Print all registered methods with what they can do, what they are, and their parameters.

    Parameters
    ----------
    out : Console
        Where to print; the columns wrap at its width.
    """
    _print_entries("solver.name", [_solver_entry(name) for name in solver_names()], out)
    text = "\nAny classifier or selector in scikit-learn's style by its dotted name, e.g. sklearn.svm.LinearSVC."
    out.print(text, markup=False)


def _solver_entry(name: str) -> tuple[str, str, str]:
    cls, can = solver_class(name), solver_capabilities(name)
    abilities = [
        "ranks features" if can.ranks else "",
        "predicts" if can.predicts else "",
        "iterates" if can.iterates else "one step",
        "several labels a sample" if can.multilabel else "",
        "search.method path" if can.path else "",
        f"data: {', '.join(sorted(can.layouts))}",
    ]
    supplied = {"random_state", *getattr(cls, "layout_parameters", ())}
    parameters = [p for p in signature(cls).parameters.values() if p.name not in supplied]
    settable = ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters)
    summary = (cls.__doc__ or "").strip().partition("\n")[0]
    return name, "; ".join(ability for ability in abilities if ability), f"{summary}\n{settable}"


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
