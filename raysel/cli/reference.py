"""References that the command prints: tables generated from what raysel knows of itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from inspect import signature
from itertools import takewhile
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raysel.base.capabilities import RECONSTRUCTED, TRANSDUCTIVE
from raysel.base.registry import solver_capabilities, solver_class, solver_names
from raysel.config import builtin_configs
from raysel.config.describe import comparison_reference, config_reference
from raysel.config.loading import read_raw
from raysel.data.formats.files import find_data_file
from raysel.errors import ConfigError, DataError


def print_config_reference(out: Console) -> None:
    """Print all keys of a study's or a comparison's configuration with their values, defaults and descriptions.

    Parameters
    ----------
    out : Console
        Where to print; the columns wrap at its width.
    """
    entries = [*config_reference(), *comparison_reference()]
    rows = [(e.key, f"{e.type} ({_default_in_words(e.default)})", e.description) for e in entries]
    _print_entries("key", "values and description", rows, out)


def print_solver_reference(out: Console) -> None:
    """Print all registered methods with what they can do, what they are, and their parameters.

    Parameters
    ----------
    out : Console
        Where to print; the columns wrap at its width.
    """
    _print_entries(
        "solver.name", "abilities, description and parameters", [_solver_entry(name) for name in solver_names()], out
    )
    text = (
        "\ndata: tensor is a table, or samples of two or more axes; modalities, several descriptors of a sample; "
        "tasks, several data sets with features of their own; volume, the voxels of a mask.\n"
        "Any classifier or selector in scikit-learn's style by its dotted name, e.g. sklearn.svm.LinearSVC."
    )
    out.print(text, markup=False)


def print_builtin_reference(out: Console) -> None:
    """Print the built-in studies and comparisons: what each is for, and whether its data are found.

    Parameters
    ----------
    out : Console
        Where to print; the columns wrap at its width.
    """
    rows = [_builtin_entry(name, path) for name, path in builtin_configs().items()]
    _print_entries("name", "data and description", rows, out)
    text = (
        "\nRun one by its name, e.g. python -m raysel.tune wine; a data file is looked up from the working directory,"
    )
    out.print(f"{text} then from $RAYSEL_DATA.", markup=False)


def _builtin_entry(name: str, path: Path) -> tuple[str, str, str]:
    raw, _ = read_raw(path)
    kind = "comparison" if raw.get("compare") is not None else "study"
    section = raw["dataset"]
    parts = section.get("tasks") or [section]
    data = [_found(part["path"]) if part.get("path") else f"{part['source']} (built in)" for part in parts]
    lines = takewhile(lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines())
    comment = " ".join(line.removeprefix("#").strip() for line in lines)
    return name, f"{kind}; data: {', '.join(data)}", re.split(r"(?<=[.?!])\s", comment, maxsplit=1)[0]


def _found(path: str) -> str:
    try:
        find_data_file(path)
    except DataError:
        return f"{path} (not found)"
    return f"{path} (found)"


def _solver_entry(name: str) -> tuple[str, str, str]:
    try:
        cls, can = solver_class(name), solver_capabilities(name)
    except ConfigError as error:  # of another package
        return name, "cannot be used", str(error)
    abilities = [
        {True: "ranks features", False: "", None: "may rank features"}[can.ranks],
        "predicts" if can.predicts else "",
        "iterates" if can.iterates else "one step",
        "several labels a sample" if can.multilabel else "",
        TRANSDUCTIVE if can.transductive else "",
        "search.method path" if can.path else "",
        RECONSTRUCTED if can.reconstructed else "",
        f"data: {', '.join(sorted(can.layouts))}{f' of at most {can.max_axes} axes' if can.max_axes else ''}",
    ]
    supplied = {"random_state", *getattr(cls, "layout_parameters", ())}
    parameters = [p for p in signature(cls).parameters.values() if p.name not in supplied]
    settable = ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters)
    summary = (cls.__doc__ or "").strip().partition("\n")[0].replace("``", "")
    return name, "; ".join(ability for ability in abilities if ability), f"{summary}\n{settable}"


def _default_in_words(default: str) -> str:
    return default if default in ("required", "not set") else f"default {default}"


def _print_entries(title: str, heading: str, entries: Iterable[tuple[str, str, str]], out: Console) -> None:
    """Print a table of entries: a name; facts and, below them, a description."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(title, no_wrap=True)
    table.add_column(heading, overflow="fold")
    for name, facts, description in entries:
        table.add_row(Text(name, style="bold"), Text.assemble((facts, "dim"), "\n", description))
    out.print(table)
