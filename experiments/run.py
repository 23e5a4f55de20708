"""Run the experiments of the papers: ``python -m experiments.run NAME|all|--list [--fast] [--output
DIR]``.

What an earlier run finished in the same output is not computed again. Without ``--fast`` the tables
are written into ``experiments/papers/NAME``; with it nothing committed is written, only the output.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments.experiment import HERE, Experiment
from experiments.page import write_page
from experiments.report import read_results, write_report, write_results
from raysel.core.errors import RayselError

#: In the order in which they run: those that use others' studies after them.
NAMES = (
    "smr-toy",
    "smr-accuracy",
    "smr-redundancy",
    "smr-time",
    "smr-convergence",
    "smr-parameters",
    "smr-scenes",
    "mtda-errors",
    "mtda-convergence",
    "mtda-width",
    "smml-single",
    "smml-labels",
)


def module_of(name: str) -> Any:
    """Return the module of an experiment, with its ``measure`` and ``report``."""
    return import_module(f"experiments.papers.{name}.run")


def run(experiment: Experiment) -> None:
    """Compute what is missing of an experiment, and write its tables, figure and README."""
    started = time.monotonic()
    module = module_of(experiment.name)
    folder = experiment.output if experiment.fast or experiment.data else experiment.folder
    write_results(folder, module.measure(experiment))
    report = module.report(read_results(folder), experiment.published)
    write_report(folder, report)
    print(
        f"{experiment.name}: {report.verdict}; {time.monotonic() - started:.0f} s;"
        f" {folder / 'README.md'}",
        flush=True,
    )


def write_all() -> None:
    """Write the page of the experiments whose results are committed."""
    results = {
        name: read_results(folder)
        for name in NAMES
        if (folder := HERE / "papers" / name).joinpath("results.csv").exists()
    }
    reports = {
        name: module_of(name).report(table, Experiment(name, HERE).published)
        for name, table in results.items()
    }
    write_page(HERE, reports, results)


def main(arguments: list[str] | None = None) -> None:
    """Run one experiment, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", choices=("all", *NAMES), help="the experiment")
    parser.add_argument(
        "--list", action="store_true", help="print the names, with what each measures"
    )
    parser.add_argument(
        "--fast", action="store_true", help="few draws and configurations, for a look"
    )
    parser.add_argument(
        "--output", type=Path, help="folder of studies and units (default: experiments/output)"
    )
    parser.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="data set in place of the paper's",
    )
    given = parser.parse_args(arguments)
    if given.list or not given.name:
        for name in NAMES:
            print(f"{name:18} {(module_of(name).__doc__ or '').splitlines()[0]}")
        return
    if wrong := [text for text in given.data if "=" not in text]:
        sys.exit(f"--data {wrong[0]} is not NAME=FILE.")
    data = {
        name: Path(file).absolute()
        for name, _, file in (text.partition("=") for text in given.data)
    }
    output = given.output or (Path(tempfile.mkdtemp()) if given.fast else HERE / "output")
    try:
        for name in NAMES if given.name == "all" else (given.name,):
            run(Experiment(name, output.absolute() / name, given.fast, data))
    except (RayselError, OSError) as error:
        sys.exit(f"{name}: {error}")
    if not given.fast and not data:
        write_all()


if __name__ == "__main__":
    main()
