"""Study of a generated data set that stays in its Parquet file: memory, processor time, and the
numbers beside it.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import raysel
from raysel.core.machine import machine_memory

N_CLASSES, ROWS = 4, 4096
GIB = 2**30


class Peak(threading.Thread):
    """The most anonymous memory of this process, which no file can give back."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.n_bytes = 0

    def run(self) -> None:
        """Look ten times a second."""
        while True:
            lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
            sizes = {line.split()[0]: 1024 * int(line.split()[1]) for line in lines}
            self.n_bytes = max(self.n_bytes, sizes["Anonymous:"])
            time.sleep(0.1)


def write_images(path: Path, n_samples: int, side: int) -> None:
    """Write images of 256 greys, of classes that differ in a block of cells, in row groups."""
    rng = np.random.default_rng(0)
    centres = np.full((N_CLASSES, side, side), 110.0)
    block = slice(side // 4, side // 2)
    centres[:, block, block] += rng.normal(0.0, 6.0, (N_CLASSES, side // 4, side // 4))
    writer = None
    for start in range(0, n_samples, ROWS):
        y = rng.integers(0, N_CLASSES, min(ROWS, n_samples - start))
        X = centres[y] + 30.0 * rng.standard_normal((len(y), side, side), dtype=np.float32)
        images = np.clip(np.rint(X), 0, 255).astype(np.uint8)
        table = pa.table(
            {"X": pa.FixedShapeTensorArray.from_numpy_ndarray(images), "y": pa.array(y)}
        )
        writer = writer or pa.parquet.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    if writer is not None:
        writer.close()


def study(path: Path, folder: Path, *, in_memory: bool) -> raysel.StudyResult:
    """Run a study of two outer and two inner folds in this process."""
    config = {
        "name": "stored",
        "dataset": {"path": str(path), "in_memory": in_memory},
        "solver": {
            "name": "smr",
            "params": {"max_iter": 20},
            "space": {"alpha": [0.01, 0.1], "rank": [2]},
        },
        "cv": {"outer": 2, "inner": 2},
        "search": {"executor": "serial"},
        "tracking": {"uri": f"sqlite:///{folder}/mlflow.db"},
    }
    return raysel.run_study(config, output=folder / f"study-{in_memory}", progress=False)


def main() -> None:
    """Print the figures of a study of so many samples; of few ones also those of the same study
    in memory.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_500_000)
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument(
        "--compare", action="store_true", help="run the study in memory too, after it"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name).absolute()
        path = folder / "images.parquet"
        write_images(path, arguments.samples, arguments.side)
        size = 8 * arguments.samples * arguments.side**2
        memory = machine_memory()
        print(
            f"machine: {memory / GIB:.1f} GiB; data in memory: {size / GIB:.1f} GiB,"
            f" {size / memory:.1f} times as much"
        )
        peak = Peak()
        peak.start()
        results = []
        for in_memory in (False, True)[: 1 + arguments.compare]:
            wall, cpu = time.perf_counter(), time.process_time()
            results.append(study(path, folder, in_memory=in_memory))
            print(
                f"in memory: {in_memory}; test accuracy {np.mean(results[-1].test_scores):.4f};"
                f" {time.process_time() - cpu:.0f} s of CPU, {time.perf_counter() - wall:.0f} s of"
                f" wall; memory of its own so far at most {peak.n_bytes / GIB:.2f} GiB"
            )
        if arguments.compare:
            stored, held = (result.ranking().scores for result in results)
            difference = np.abs(stored - held).max() / held.max()
            print(f"largest difference of a score, relative to the largest score: {difference:.1e}")


if __name__ == "__main__":
    main()
