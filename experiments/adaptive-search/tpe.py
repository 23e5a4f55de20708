"""TPE against random search at equal budgets: SMR on digits, each outer fold by itself, several seeds.

python experiments/adaptive-search/tpe.py
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from raysel.config import config_from_dict, load_config
from raysel.cv.lockstep import run_in_lockstep
from raysel.cv.records import FoldTrace
from raysel.cv.selection import select_winner
from raysel.execution.computing import refit
from raysel.search.nested import FoldSearch
from raysel.study.definition import Study

SPACE = {"alpha": {"loguniform": [1e-4, 1.0]}, "rank": {"randint": [1, 8]}}


def make(method: str, budget: int, seed: int) -> Study:
    """The digits study with a continuous space."""
    raw = load_config("digits-smr").to_dict()
    raw["seed"], raw["solver"]["space"] = seed, SPACE
    raw["solver"]["params"].pop("alpha", None)
    raw["search"] = {"method": method, "num_samples": budget, "synchronous": True, "batch_size": 4}
    return Study.prepare(config_from_dict(raw))


def search(study: Study) -> tuple[list[float], list[float]]:
    """Inner and test score of each outer fold's winner; as the trials do it, one after the other."""
    inner_scores, test_scores = [], []
    for fold in study.plan.outer:
        data = [study.fold_data(inner, study.examples[0].params) for inner in fold.inner]
        states = [fold.random_state(study.config.seed, i) for i in range(len(fold.inner))]
        proposals = FoldSearch(study.config, fold, study.configurations, study.halving())
        records = []
        batch = []
        while True:
            record = proposals.next()
            if record is not None:
                trace = record.folds[fold.name] = FoldTrace()
                solvers = [study.solver(record.params, state) for state in states]
                for _ in run_in_lockstep(solvers, data, study.evaluation, states, trace):
                    pass
                batch.append(record)
            elif batch:
                for done in batch:
                    proposals.tell(done)
                records, batch = records + batch, []
            else:
                break
        winner = select_winner(records, fold.name, study.complexity_key(records))
        record, _ = refit(study, fold, winner)
        inner_scores.append(record.inner_score)
        test_scores.append(float(np.mean(record.test_scores)))
    return inner_scores, test_scores


def main() -> None:
    """Write a row a seed, and print the paired differences with their SD over the seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=int, default=16, help="configurations an outer fold")
    parser.add_argument("--table", type=Path, default=Path(__file__).with_name("tpe.csv"))
    arguments = parser.parse_args()
    rows = []
    with threadpool_limits(1):
        for seed in range(arguments.seeds):
            row = {"seed": seed}
            for method in ("random", "tpe"):
                inner, test = search(make(method, arguments.budget, seed))
                row |= {f"{method}_inner": float(np.mean(inner)), f"{method}_test": float(np.mean(test))}
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
