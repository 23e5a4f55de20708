"""References that the command prints: tables generated from what raysel knows of itself."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Iterable, Iterator
from inspect import Parameter, signature
from itertools import takewhile
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from raysel.base.estimator import RECONSTRUCTED, TRANSDUCTIVE
from raysel.base.registry import (
    papers,
    parameter_texts,
    solver_capabilities,
    solver_class,
    solver_names,
    summary,
)
from raysel.config import builtin_configs
from raysel.config.keys import comparison_reference, config_reference
from raysel.config.loading import read_raw
from raysel.core.errors import ConfigError, DataError, suggestion
from raysel.core.printing import Terminal, program
from raysel.data.formats.files import find_data_file
from raysel.data.targets import QUANTITIES
from raysel.results.description import format_domain


def print_references(arguments: argparse.Namespace) -> int:
    """Print the references that the arguments ask for."""
    out = Terminal(soft_wrap=False, highlight=True)
    if arguments.list is not None:
        print_builtin_reference(out)
    if arguments.help_config is not None:
        print_config_reference(out, arguments.help_config)
    if arguments.list_solvers is not None:
        print_solver_reference(out, arguments.list_solvers)
    return 0


def print_config_reference(out: Console, section: str = "") -> None:
    """Print the keys of a configuration, or of a section, with values and descriptions."""
    entries = [*config_reference(), *comparison_reference()]
    if section:
        sections = dict.fromkeys(entry.key.partition(".")[0] for entry in entries)
        entries = [
            entry
            for entry in entries
            if f"{entry.key}.".startswith((f"{section}.", f"{section}[]."))
        ]
        if not entries:
            known = suggestion(section, sections, f"give one of {', '.join(sections)}.")
            raise ConfigError(f"--help-config: there is no section {section!r}; {known}")
    rows = [(e.key, f"{e.type} ({_default_in_words(e.default)})", e.description) for e in entries]
    _print_entries("key", "values and description", rows, out)


def print_solver_reference(out: Console, name: str = "") -> None:
    """Print all methods with abilities, descriptions and parameters; or one of them."""
    if name:
        _print_solver(name, out)
        return
    _print_entries(
        "solver.name",
        "abilities, description and parameters",
        [_solver_entry(name) for name in solver_names()],
        out,
    )
    text = (
        "\ndata: tensor is a table, or samples of two or more axes.\nmodalities are several"
        " descriptors of a sample.\ntasks are several data sets with features of their own.\n"
        "volume is the voxels of a mask.\nAny classifier or selector in scikit-learn's style by its"
        " dotted name, e.g. sklearn.svm.LinearSVC."
    )
    out.print(text)


def print_builtin_reference(out: Console) -> None:
    """Print the built-in studies and comparisons, and whether their data are found."""
    rows = [_builtin_entry(name, path) for name, path in builtin_configs().items()]
    _print_entries("name", "data and description", rows, out)
    text = (
        f"\nRun one by its name, e.g. {program()} tune wine; a data file is looked up from"
        " the working directory,"
    )
    out.print(f"{text} then from $RAYSEL_DATA.")


def _builtin_entry(name: str, path: Path) -> tuple[str, str, str]:
    raw, _ = read_raw(path)
    kind = "comparison" if raw.get("compare") is not None else "study"
    section = raw["dataset"]
    parts = section.get("tasks") or [section]
    data = [
        _found(part["path"]) if part.get("path") else f"{part['source']} (built in)"
        for part in parts
    ]
    lines = takewhile(
        lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines()
    )
    comment = " ".join(line.removeprefix("#").strip() for line in lines)
    return (
        name,
        f"{kind}; data: {', '.join(data)}",
        re.split(r"(?<=[.?!])\s", comment, maxsplit=1)[0],
    )


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
        "predicts" * can.predicts,
        "iterates" if can.iterates else "one step",
        "several labels a sample" * can.multilabel,
        _quantities(can.targets),
        TRANSDUCTIVE * can.transductive,
        "search.method path" * can.path,
        RECONSTRUCTED * can.reconstructed,
        f"data: {', '.join(sorted(can.layouts))}",
    ]
    settable = ", ".join(
        p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in _settable(cls)
    )
    return (
        name,
        "; ".join(ability for ability in abilities if ability),
        f"{summary(cls)}\n{settable}",
    )


def _quantities(targets: Collection[str]) -> str:
    """Say whether a method takes quantities, and nothing else."""
    if QUANTITIES not in targets:
        return ""
    return "quantities only" if len(targets) == 1 else "quantities too"


def _settable(cls: type) -> list[Parameter]:
    supplied = {"random_state", *getattr(cls, "layout_parameters", ())}
    return [p for p in signature(cls).parameters.values() if p.name not in supplied]


def _print_solver(name: str, out: Console) -> None:
    """Print what a method is, can do and takes, what is searched of it, and its papers."""
    cls = solver_class(name)
    texts = parameter_texts(cls)
    out.print(f"{name}: {summary(cls)}\n{_solver_entry(name)[1]}\n")
    rows = [
        (p.name, *texts.get(p.name, (str(p).partition("=")[2], "not described")))
        for p in _settable(cls)
    ]
    _print_entries("solver.params", "values and description", rows, out)
    if spaces := list(_builtin_spaces(name)):
        out.print("\nsearched by the built-in studies:")
    for study, space in spaces:
        out.print(f"  {study}: {space}")
    if cited := papers(cls):
        out.print(f"\n{cited}")


def _builtin_spaces(name: str) -> Iterator[tuple[str, str]]:
    """Yield the built-in studies that search parameters of a method, and their values."""
    for study, path in builtin_configs().items():
        raw, _ = read_raw(path)
        for member in (raw, *(raw.get("compare") or {}).values()):
            solver = member.get("solver") or {}
            if solver.get("name") == name and solver.get("space"):
                yield (
                    study,
                    ", ".join(
                        f"{key} ({format_domain(own)})" for key, own in solver["space"].items()
                    ),
                )


def _default_in_words(default: str) -> str:
    return default if default in ("required", "not set") else f"default {default}"


def _print_entries(
    title: str, heading: str, entries: Iterable[tuple[str, str, str]], out: Console
) -> None:
    """Print a table of entries: a name; facts and, below them, a description."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(title, no_wrap=True)
    table.add_column(heading, overflow="fold")
    for name, facts, description in entries:
        table.add_row(Text(name, style="bold"), Text.assemble((facts, "dim"), "\n", description))
    out.print(table)
