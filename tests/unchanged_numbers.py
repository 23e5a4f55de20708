"""Whether a change of the code changed a number of any study: run them before and after it, and
compare.

    python tests/unchanged_numbers.py store before        # in the old checkout; --fast takes a
    minute instead of many python tests/unchanged_numbers.py store after         # in the new one
    python tests/unchanged_numbers.py compare before after

All studies of conf/ are run, by the commands that a user types, those of real data from
$RAYSEL_DATA. What is kept of each are its tables, fold plan, journal, figures and the arrays of its
models, without times, versions and paths. Fields and files that only the new code writes are noted;
all that is missing or differs makes the exit status 1.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
ALWAYS = ["search.executor=serial", "pictures=[]"]
TWO = ["cv.outer=2", "cv.inner=2"]

# Keys that make long studies short; those that are not named here run as they stand.
SHORTER = {
    "faces-mtda": ["cv.repeats=2", "cv.inner=2"],
    "mfeat-smml": [*TWO, "solver.space.gamma1=[0, 0.1]", "solver.space.gamma2=[0.03, 0.1]"],
    "msrcv1-fusion": [
        *TWO,
        "compare.SMML.solver.space.gamma1=[0, 0.1]",
        "compare.LPBoost (shared).solver.space.nu=[0.5]",
    ],
    "msrcv1-smml": [*TWO, "solver.space.gamma1=[1e-5, 0.1]"],
    "msrcv2-labels": [*TWO, "compare.SMML.solver.space.gamma1=[0.1]"],
    "msrcv2-smml": [*TWO, "solver.space.gamma1=[0, 0.03]"],
    "orl-selectors": ["cv.repeats=2", "cv.inner=2"],
    "orl-smr": TWO,
    "scene-smml": [*TWO, "solver.space.gamma1=[0, 0.03]"],
    "umist-smr": TWO,
    "usps-smr": TWO,
}
# The studies of --fast: a matrix, modalities, tasks, several labels, a table, and a comparison.
FAST = {
    "digits-smr": ["cv.inner=2", "solver.space.alpha=[0.03, 0.3]", "solver.space.rank=[2, 8]"],
    "msrcv1-smml-fractions": [*TWO, "solver.space.gamma1=[0, 0.1]", "solver.space.gamma2=[0.1]"],
    "faces-mtda": [
        "cv.repeats=2",
        "cv.inner=2",
        "solver.space.shrinkage=[0.0, 0.1]",
        "dataset.tasks=[{name: orl, path: ORL.npz}, {name: umist, path: UMIST.npz}]",
    ],
    "msrcv2-smml": [
        *TWO,
        "dataset.only=[CM, HOG]",
        "solver.space.gamma1=[0.03]",
        "solver.space.gamma2=[0.03, 0.1]",
    ],
    "wine": [*TWO, "solver.space.alpha=[0.03, 0.3]"],
    "digits-compare": TWO,
}
# Commands on finished studies; STUDY is the directory.
FURTHER = {
    "digits-compare": ["raysel compare STUDY"],
    "umist-smr": [
        "raysel permute STUDY --permutations 5",
        "raysel stability STUDY --subsamples 10",
    ],
    "wine": [
        "raysel stability STUDY --subsamples 10",
        "raysel permute STUDY --permutations 3 --retune",
    ],
}

VOLATILE = {"started", "ended", "cpu_seconds", "versions", "command", "uri"}
NOT_NUMBERS = {"progress.json", "tracking.json", "preview.json"}
IDENTITY = ("kind", "fold", "id", "number")  # of a journal's record
SHOWN = 5  # differences, and notes, of one file


def run(command: str, *arguments: str, folder: Path) -> None:
    """Run `python -m` of a command of this checkout, from a folder."""
    call = [sys.executable, "-m", *command.split(), *arguments]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db",
    }
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        call, check=False, cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(call)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


def content(path: Path, names: dict[str, str]) -> Any:
    """What must not change of a file: rows of a table, records of a journal, hashes of a model's
    arrays, or all.
    """
    if path.suffix == ".skops":  # the arrays' names in the file are drawn anew each time
        with zipfile.ZipFile(path) as file:
            arrays = [
                np.load(BytesIO(file.read(name)))
                for name in file.namelist()
                if name.endswith(".npy")
            ]
        return Counter(
            f"{array.dtype} {sha256(repr(array.tolist()).encode()).hexdigest()}" for array in arrays
        )
    text = path.read_text(encoding="utf-8")
    for name, short in names.items():
        text = text.replace(name, short)
    if path.suffix == ".csv":
        return [stable(row) for row in csv.DictReader(text.splitlines())]
    if path.suffix == ".json":
        return stable(json.loads(text))
    records = defaultdict(list)
    for line in text.splitlines():
        record = stable(json.loads(line))
        records[" ".join(str(record[key]) for key in IDENTITY if key in record)].append(record)
    return records


def stable(value: Any) -> Any:
    """A JSON value without the fields that may differ between two runs of the same code."""
    if isinstance(value, list):
        return [stable(element) for element in value]
    if not isinstance(value, dict):
        return value
    volatile = VOLATILE | (
        {"id"} if "schema" in value else set()
    )  # of a study, which is drawn; not of a trial
    return {key: stable(element) for key, element in value.items() if key not in volatile}


def store(target: Path, only: list[str], fast: bool) -> None:
    """Run the studies and write what must not change of each."""
    studies = list(FAST) if fast else sorted(path.stem for path in (ROOT / "conf").glob("*.yaml"))
    for name in only or studies:
        if name not in studies or (target / name).exists():
            raise SystemExit(
                f"{target / name} exists already, or there is no such study{' in --fast' * fast}."
            )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        for name in only or studies:
            begun = time.monotonic()
            study = folder / name
            names = {
                str(study): "STUDY",
                str(ROOT): "CHECKOUT",
                os.environ.get("RAYSEL_DATA") or "DATA": "DATA",
            }
            settings = ALWAYS + (FAST[name] if fast else SHORTER.get(name, []))
            config = str(ROOT / "conf" / f"{name}.yaml")
            sets = [word for setting in settings for word in ("--set", setting)]
            run("raysel.tune", config, *sets, "--output", str(study), folder=folder)
            for command in FURTHER.get(name, []):
                run(command.replace("STUDY", str(study)), folder=folder)
            for path in study.rglob("*"):
                if (
                    path.suffix in {".csv", ".json", ".jsonl", ".skops"}
                    and path.name not in NOT_NUMBERS
                ):
                    file = (
                        target
                        / name
                        / path.relative_to(study).with_name(
                            path.name.removesuffix(".json") + ".json"
                        )
                    )
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(
                        json.dumps(content(path, names), indent=1) + "\n", encoding="utf-8"
                    )
            shutil.rmtree(study)
            print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)


def differences(old: Any, new: Any, at: str = "") -> Iterator[tuple[bool, str]]:
    """Yield each difference, and whether it is only a field that the new value has in addition."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old:
            if key in new:
                yield from differences(old[key], new[key], f"{at} / {key}")
            else:
                yield False, f"{at} / {key}: missing"
        yield from ((True, f"{at} / {key}: new") for key in new if key not in old)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (first, second) in enumerate(zip(old, new, strict=True)):
            yield from differences(first, second, f"{at} / {number}")
    elif repr(old) != repr(new):
        yield False, f"{at}: {str(old)[:200]} -> {str(new)[:200]}"


def compare(old: Path, new: Path, only: list[str]) -> bool:
    """Print the first differences of each file, and say whether there are any."""
    files = [
        {path.relative_to(top) for path in top.rglob("*") if path.is_file()} for top in (old, new)
    ]
    before, after = (
        {file for file in found if not only or file.parts[0] in only} for found in files
    )
    different = not before
    for file in sorted(before | after):
        found = [(file not in before, ": missing" if file in before else ": new file")]
        if file in before and file in after:
            found = list(
                differences(
                    *(json.loads((top / file).read_text(encoding="utf-8")) for top in (old, new))
                )
            )
        for note in (False, True):
            texts = [text for is_note, text in found if is_note is note]
            more = [f": {len(texts) - SHOWN} more"] if len(texts) > SHOWN else []
            for text in texts[:SHOWN] + more:
                print(f"{'note' if note else 'DIFFERENT'} {file}{text}")
            different |= bool(texts) and not note
    print(
        f"{len(before)} files:"
        f" {'numbers differ, or there are none' if different else 'no number differs'}"
    )
    return different


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("task", choices=["store", "compare"])
    parser.add_argument(
        "directory", type=Path, nargs="+", help="one to write, or two to compare, the older first"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these studies")
    parser.add_argument("--fast", action="store_true", help="few and short studies")
    options = parser.parse_args()
    if len(options.directory) != 1 + (options.task == "compare"):
        parser.error("store takes one directory, compare two.")
    if options.task == "compare":
        sys.exit(compare(*options.directory, options.only))
    store(options.directory[0], options.only, options.fast)


if __name__ == "__main__":
    main()
