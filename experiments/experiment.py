"""One run of an experiment: its data, its studies, and units of work that survive a crash."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd
import yaml
from threadpoolctl import threadpool_limits

from raysel import Dataset, load_dataset, resume_comparison, run_comparison

HERE = Path(__file__).parent
#: Files in the folder RAYSEL_DATA.
FILES = {
    "ORL": "ORL.npz",
    "PIE": "PIE_68x42_32x32.npz",
    "UMIST": "UMIST.npz",
    "USPS": "USPS.npz",
    "scenes": "LSP_sift_128x85.npz",
    "AR (MTDA)": "AR100_32x32.npz",
    "ORL (MTDA)": "ORL_28x23.npz",
    "MSRC-v1": "MSRCv1_6v.npz",
    "mfeat": "Handwritten_mfeat.npz",
    "MSRC-v2": "MSRCv2_6v_multilabel.npz",
    "Scene": "Scene_multilabel.npz",
}
Row = dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """One run of an experiment: where its data lie, and where its studies, units and tables go."""

    name: str
    #: Folder of the studies and of the units that are no study.
    output: Path
    fast: bool = False
    #: Data sets in place of those of the experiment.
    data: Mapping[str, Path] = field(default_factory=dict)
    #: Folder of experiments, ``papers`` or ``claims``.
    kind: str = "papers"

    @property
    def folder(self) -> Path:
        """Committed folder of the experiment."""
        return HERE / self.kind / self.name

    @property
    def published(self) -> pd.DataFrame:
        """Figures as printed in the paper."""
        return pd.read_csv(self.folder / "published.csv", dtype={"at": "string"})

    def sets(self, *names: str) -> tuple[str, ...]:
        """Names of the data sets: those of the command line, else the experiment's; in the short
        form its last.
        """
        return tuple(self.data) or (names[-1:] if self.fast else names)

    def path(self, name: str) -> Path:
        """File of a data set."""
        if name in self.data:
            return self.data[name]
        folder = os.environ.get("RAYSEL_DATA")
        if not folder or not Path(folder, FILES[name]).is_file():
            other = ", or give --data NAME=FILE" if self.kind == "papers" else ""
            sys.exit(f"{self.name} needs {FILES[name]}: set RAYSEL_DATA to its folder{other}.")
        return Path(folder, FILES[name])

    def measure(
        self, function: Callable[..., Iterable[Row]], units: Iterable[Row], **constant: Any
    ) -> pd.DataFrame:
        """Compute the rows of every unit, in processes of one thread; those that are in the output
        are not run again.

        A unit is a mapping of plain values, the arguments of the function; ``constant`` are
        arguments that it takes besides. Each row has the values of its unit. The order is that of
        the units, whichever ends first.
        """
        named = {unit_key(unit, constant): unit for unit in units}
        file = self.output / f"{function.__name__}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a+", encoding="utf-8") as lines:
            done = _read_lines(lines)
            call = partial(_rows, partial(function, **constant))
            futures = {
                _pool().submit(call, unit): key for key, unit in named.items() if key not in done
            }
            for future in as_completed(futures):
                key = futures[future]
                done[key] = future.result()
                lines.write(json.dumps([key, done[key]]) + "\n")
                lines.flush()
        return pd.DataFrame([unit | row for key, unit in named.items() for row in done[key]])

    def config(self, study: str) -> Row:
        """Return a committed configuration of the experiment as plain data."""
        return dict(yaml.safe_load((self.folder / f"{study}.yaml").read_text(encoding="utf-8")))

    def compare(self, name: str, config: Row, changes: Mapping[str, Any]) -> Any:
        """Run a comparison, or resume it, and give its result."""
        path = self.output / name
        changes = {"name": f"{self.name}-{re.sub(r'[^A-Za-z0-9._-]', '-', name)}", **changes}
        changes["tracking.uri"] = f"sqlite:///{self.output.absolute()}/mlflow.db"
        if self.fast:
            changes |= {"search.executor": "serial", "pictures": []}
        if (path / "members.json").exists():
            return resume_comparison(path, config, changes, progress=not self.fast)
        return run_comparison(config, changes, output=path, progress=not self.fast)


@cache
def _pool() -> ProcessPoolExecutor:
    """Processes of one thread, one a processor, that all experiments share."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(
        len(os.sched_getaffinity(0)), context, initializer=threadpool_limits, initargs=(1,)
    )


@lru_cache(maxsize=2)
def read(path: str) -> Dataset:
    """Read a data set once a process."""
    return load_dataset(path)


@lru_cache(maxsize=16)
def fingerprint(path: str) -> str:
    """Return a short hash of a file's bytes."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]


def unit_scaled(data: Dataset) -> np.ndarray:
    """Return the pixels of all samples in [0, 1]: less the smallest, by the range; shape
    (n_samples, n_features).
    """
    X = np.asarray(data.X, dtype=np.float64)
    return (X - X.min()) / np.ptp(X)


def short_grids(members: Row, changes: Row) -> Row:
    """Changes that leave two points of each member's grid: two values of its first parameter,
    one of the others.
    """
    shorter = {}
    for label, member in members.items():
        for number, (name, values) in enumerate(member["solver"].get("space", {}).items()):
            key = f"compare.{label}.solver.space.{name}"
            listed = changes.get(key, values)
            if isinstance(
                listed, dict
            ):  # from a third on: the first values are the slowest, and the worst
                listed = np.geomspace(*listed["logspace"])[listed["logspace"][2] // 3 :].tolist()
            shorter[key] = listed[: 1 if number else 2]
    return shorter


def _rows(function: Callable[..., Iterable[Row]], unit: Row) -> list[Row]:
    return list(function(**unit))


def unit_key(unit: Row, constant: Row) -> str:
    """Unit as text; of data sets the bytes count, not the place."""
    files = [fingerprint(file) for file in constant.get("files", {}).values()]
    hashed = (
        {"path": fingerprint(unit["path"])} if "path" in unit else {"files": files} if files else {}
    )
    return json.dumps(unit | hashed, sort_keys=True)


def _read_lines(file: TextIO) -> dict[str, list[Row]]:
    """Read the units of a file, and remove a last line that was cut short."""
    file.seek(0)
    whole = file.read().rpartition("\n")[0]
    file.truncate(len(f"{whole}\n".encode()) if whole else 0)
    return dict(map(json.loads, whole.splitlines()))
