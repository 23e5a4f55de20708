"""When it pays that SMR takes samples of order 3 as they are: on planted blocks, and on two real
sets.

Run: RAYSEL_DATA=<folder> python -m experiments.claims.tensors.run [--fast] [--output DIR]

What an earlier run finished in the same output is not computed again. Without ``--fast`` results,
table, figure and README are written beside this file; with it, few draws and configurations, into
the output.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from experiments.claims.tensors import planted, real, texts
from experiments.experiment import HERE, Experiment
from raysel.core.errors import RayselError


@contextmanager
def timed(experiment: Experiment, part: str) -> Iterator[None]:
    """Add the minutes of a part, over all runs that computed some of it, to cost.csv of the
    output.
    """
    path, started = experiment.output / "cost.csv", time.monotonic()
    try:
        yield
    finally:  # also of a run that is interrupted
        seconds = time.monotonic() - started
        spent = pd.read_csv(path, index_col=0)["minutes"].to_dict() if path.exists() else {}
        spent[part] = spent.get(part, 0.0) + seconds / 60.0
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.Series(spent, name="minutes").rename_axis("part").round(2).to_csv(path)
        print(f"{part}: {seconds:.0f} s", flush=True)


def run(experiment: Experiment) -> Path:
    """Compute what is missing, and write the tables, the figure and README; return their folder."""
    names = list(real.DATA)[: 1 if experiment.fast else None]
    for name in names:
        experiment.path(real.DATA[name].source)
    folder = experiment.output if experiment.fast else experiment.folder
    tables = []
    for part in ("planted blocks", *names):
        with timed(experiment, part):
            tables.append(
                planted.measure(experiment)
                if part == "planted blocks"
                else real.measure(experiment, part)
            )
    first, *others = tables
    for table, name in ((first, "planted"), (pd.concat(others, ignore_index=True), "real")):
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g", lineterminator="\n")
    cost = pd.read_csv(experiment.output / "cost.csv")
    cost.assign(machine=texts.machine()).to_csv(
        folder / "cost.csv", index=False, lineterminator="\n"
    )
    texts.write(folder)
    return folder


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--fast", action="store_true", help="few draws and configurations, for a look"
    )
    parser.add_argument(
        "--output", type=Path, help="folder of studies and units (default: experiments/output)"
    )
    given = parser.parse_args(arguments)
    output = given.output or (Path(tempfile.mkdtemp()) if given.fast else HERE / "output")
    try:
        folder = run(
            Experiment("tensors", output.absolute() / "tensors", given.fast, kind="claims")
        )
    except (RayselError, OSError) as error:
        sys.exit(f"tensors: {error}")
    print(folder / "README.md")


if __name__ == "__main__":
    main()
