"""TPE against random search at equal budgets: SMR on digits, each outer fold by itself, several
seeds.

python experiments/claims/adaptive-search/tpe.py
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np

from raysel.evaluation.records import RefitRecord
from raysel.execution.serial import SerialExecutor
from raysel.run.api import prepare_study
from raysel.testing.checks import run_by


def search(method: str, budget: int, seed: int, folder: Path) -> list[RefitRecord]:
    """Run the digits study with a continuous space, without MLflow; give the refits of the outer
    folds.
    """
    changes = {
        "seed": seed,
        "solver.space": {"alpha": {"loguniform": [1e-4, 1.0]}, "rank": {"randint": [1, 8]}},
        "search": {"method": method, "num_samples": budget, "synchronous": True, "batch_size": 4},
    }
    study = prepare_study("digits-smr", changes)
    finished = run_by(SerialExecutor(study), study, folder / f"{method}{seed}")
    return [refit.record for refit in finished.refits[: len(study.plan.outer)]]


def main() -> None:
    """Write a row a seed, and print the paired differences with their SD over the seeds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=int, default=16, help="configurations an outer fold")
    parser.add_argument("--table", type=Path, default=Path(__file__).with_name("tpe.csv"))
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(arguments.seeds):
            row: dict[str, float] = {"seed": seed}
            for method in ("random", "tpe"):
                refits = search(method, arguments.budget, seed, Path(folder))
                for score in ("inner", "test"):
                    row[f"{method}_{score}"] = float(
                        np.mean([getattr(refit, f"{score}_score") for refit in refits])
                    )
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
