"""TPE against random search at equal budgets: SMR on digits, each outer fold by itself, several seeds.

python experiments/adaptive-search/tpe.py
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np

from raysel import run_study
from raysel.results.result import StudyResult


def search(method: str, budget: int, seed: int, folder: Path) -> StudyResult:
    """Run the digits study with a continuous space."""
    changes = {
        "seed": seed,
        "solver.space": {"alpha": {"loguniform": [1e-4, 1.0]}, "rank": {"randint": [1, 8]}},
        "search": {"method": method, "num_samples": budget, "synchronous": True, "batch_size": 4, "executor": "serial"},
        "tracking.uri": f"sqlite:///{folder}/mlflow.db",
    }
    return run_study("digits-smr", changes, output=folder / f"{method}{seed}", progress=False)


def main() -> None:
    """Write a row a seed, and print the paired differences with their SD over the seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=int, default=16, help="configurations an outer fold")
    parser.add_argument("--table", type=Path, default=Path(__file__).with_name("tpe.csv"))
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(arguments.seeds):
            row: dict[str, float] = {"seed": seed}
            for method in ("random", "tpe"):
                study = search(method, arguments.budget, seed, Path(folder))
                row |= {f"{method}_inner": float(np.mean(study.inner_scores)), f"{method}_test": study.test_mean}
            rows.append(row)
            print({key: round(value, 4) for key, value in row.items()}, flush=True)
    with arguments.table.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    for score in ("inner", "test"):
        d = np.array([row[f"tpe_{score}"] - row[f"random_{score}"] for row in rows])
        print(
            f"{score}: tpe - random {d.mean():+.4f} ± {d.std(ddof=1):.4f} (SD), "
            f"better in {int((d > 0).sum())} of {len(d)}"
        )


if __name__ == "__main__":
    main()
