"""Feature selectors on faces and digits, with fixed parameters beside figures of other programs,
and tuned.

RAYSEL_DATA=<folder of ORL.npz and USPS.npz> OPENBLAS_NUM_THREADS=1 python run.py {fixed,tuned}
[--output DIR]

Each data set is one comparison; all studies are computed in this process. With the same --output
they go on where they stopped.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from raysel import resume_comparison, run_comparison
from raysel.config import load_comparison
from raysel.results.comparison.result import ComparisonResult, score_table

HERE = Path(__file__).parent

#: Solver of each method with its fixed parameters.
FIXED: dict[str, dict[str, Any]] = {
    "random": {"name": "random_ranking"},
    "variance": {"name": "variance"},
    "IG, 5 bins": {"name": "information_gain", "params": {"bins": 5}},
    "ReliefF, k 5": {"name": "relieff", "params": {"n_neighbors": 5}},
    "Fisher ratio": {"name": "fisher_score"},
    "Fisher set, gamma 1": {"name": "fisher_score", "params": {"criterion": "set", "gamma": 1.0}},
    "t-test, max": {"name": "t_test", "params": {"aggregate": "max"}},
    "mRMR MID": {"name": "mrmr", "params": {"criterion": "MID", "bins": 5}},
    "mRMR MIQ": {"name": "mrmr", "params": {"criterion": "MIQ", "bins": 5}},
    "RFS .1": {"name": "rfs", "params": {"alpha": 0.1, "alpha_scale": "absolute"}},
    "RFS 1": {"name": "rfs", "params": {"alpha": 1.0, "alpha_scale": "absolute"}},
    "GLSPFS .1, .001": {"name": "glspfs", "params": {"sparsity": 0.1, "local": 0.001}},
    "DFS .1": {"name": "dfs", "params": {"gamma": 0.1}},
    "DFS 1": {"name": "dfs", "params": {"gamma": 1.0}},
    "GBR .01": {"name": "gbr", "params": {"alpha": 0.01}},
}
#: Accuracy and, at the first number of pixels, RED that other programs for the same formulas gave
#: on other draws.
KNOWN: dict[str, dict[str, tuple[list[float], float | None]]] = {
    "ORL": {
        "random": ([0.798, 0.834, 0.859], 0.26),
        "IG, 5 bins": ([0.808, 0.851, 0.874], 0.36),
        "ReliefF, k 5": ([0.762, 0.841, 0.862], 0.44),
        "Fisher ratio": ([0.835, 0.861, 0.883], 0.64),
        "Fisher set, gamma 1": ([0.863, 0.877, 0.877], 0.20),
        "t-test, max": ([0.795, 0.819, 0.852], 0.35),
        "mRMR MID": ([0.837, 0.864, 0.870], 0.26),
        "mRMR MIQ": ([0.843, 0.863, 0.867], 0.17),
        "RFS .1": ([0.833, 0.859, 0.873], 0.28),
        "RFS 1": ([0.822, 0.859, 0.868], 0.26),
        "GLSPFS .1, .001": ([0.842, 0.879, 0.894], 0.21),
        "DFS .1": ([0.828, 0.858, 0.873], 0.28),
        "DFS 1": ([0.798, 0.841, 0.868], 0.19),
        "GBR .01": ([0.788, 0.825, 0.861], 0.49),
        "2DLDA": ([0.945, 0.954, 0.940], None),
        "all pixels": ([0.873], None),
    },
    "USPS": {
        "random": ([0.516, 0.600, 0.635], 0.15),
        "IG, 5 bins": ([0.547, 0.638, 0.675], 0.22),
        "ReliefF, k 5": ([0.545, 0.623, 0.670], 0.30),
        "Fisher ratio": ([0.516, 0.611, 0.658], 0.29),
        "Fisher set, gamma 1": ([0.608, 0.663, 0.678], 0.15),
        "t-test, max": ([0.514, 0.624, 0.669], 0.23),
        "mRMR MID": ([0.580, 0.641, 0.675], 0.20),
        "mRMR MIQ": ([0.587, 0.659, 0.679], 0.18),
        "RFS .1": ([0.570, 0.646, 0.675], 0.16),
        "RFS 1": ([0.583, 0.652, 0.674], 0.16),
        "GLSPFS .1, .001": ([0.594, 0.650, 0.672], 0.14),
        "DFS .1": ([0.574, 0.654, 0.675], 0.16),
        "DFS 1": ([0.599, 0.656, 0.677], 0.15),
        "GBR .01": ([0.428, 0.548, 0.607], 0.18),
        "2DLDA": ([0.537, 0.566], None),
        "all pixels": ([0.677], None),
    },
}
#: Training samples of each class, draws, numbers of pixels and sides of 2DLDA's projected images.
PROTOCOLS = {
    "ORL": (5, 5, [50, 100, 200], [7, 10, 14]),
    "USPS": (4, 10, [20, 50, 100], [7, 10]),
}
#: Draws for the tuned methods, which take minutes each on ORL.
TUNED_DRAWS = 5


def fixed(
    data: str, repeats: int | None = None, methods: Iterable[str] | None = None
) -> dict[str, Any]:
    """Configuration of a data set's comparison with fixed parameters, of some methods or all."""
    per_class, draws, sizes, sides = PROTOCOLS[data]
    members: dict[str, Any] = {label: {"solver": solver} for label, solver in FIXED.items()}
    native = {"evaluation": {"classifier": "native"}}
    for side in sides:
        params = {"n_components": [side, side], "shrinkage": 1e-8, "passes": 5}
        members[f"2DLDA {side} x {side}"] = {
            "solver": {"name": "two_dimensional_lda", "params": params}
        } | native
    members["all pixels"] = {"solver": {"name": "nearest_neighbor"}} | native
    return {
        "name": f"{data}-fixed",
        "dataset": {"path": f"{data}.npz", "scaling": "unit"},
        "evaluation": {
            "classifier": "knn",
            "n_features": sizes,
            "choose_n": "mean",
            "references": False,
        },
        "cv": {
            "train_per_class": per_class,
            "repeats": repeats or draws,
            "inner": 2,
            "final": False,
        },
        "compare": {
            label: member
            for label, member in members.items()
            if methods is None or label in methods
        },
    }


def tuned(data: str, repeats: int) -> dict[str, Any]:
    """Configuration of the members of conf/orl-selectors.yaml on a data set."""
    # The committed figures are of these ranks; conf/ has the full one too since.
    space = {"alpha": {"logspace": [0.003, 0.3, 5]}, "rank": [2, 4, 8]}
    changes: dict[str, Any] = {"cv.repeats": repeats, "compare.SMR.solver.space": space}
    if data == "USPS":
        shrinkage = [0.001, 0.01, 0.1, 0.3]
        changes |= {
            "name": "usps-selectors",
            "dataset.path": "USPS.npz",
            "cv.train_per_class": 4,
            "evaluation.n_features": [20, 50, 100, 150],
            "compare.2DLDA.solver.space": {
                "n_components": [[4, 4], [7, 7], [10, 10]],
                "shrinkage": shrinkage,
            },
        }
    return load_comparison("orl-selectors", changes).model_dump(mode="json", exclude_unset=True)


def run(config: Mapping[str, Any], output: Path) -> tuple[ComparisonResult, float]:
    """Run a comparison in this process, or resume it; give its result and the CPU seconds that
    it took.
    """
    own = {
        "search.executor": "serial",
        "pictures": [],
        "tracking.uri": f"sqlite:///{output.absolute()}/mlflow.db",
    }
    start, path = time.process_time(), output / str(config["name"])
    if path.exists():
        found = resume_comparison(path, config, own, progress=False)
    else:
        found = run_comparison(config, own, output=path, progress=False)
    return found, time.process_time() - start


def beside_known(data: str, found: ComparisonResult) -> list[dict[str, Any]]:
    """Mean and SD of each score over the draws, the known figure, and their difference.

    The difference ``z`` is in units of the standard deviation of a difference of two means over as
    many draws, where the known figure is taken to vary from draw to draw as ours does. The SD of a
    few draws is a poor estimate; that of the selectors' accuracies is therefore taken over all
    selectors at the same number of pixels (root mean square).
    """
    _, draws, sizes, sides = PROTOCOLS[data]
    scores = score_table(found).astype({"n_features": "float64"})
    scores = scores[
        scores["metric"].eq("accuracy")
        | (scores["member"].isin(FIXED) & scores["n_features"].eq(sizes[0]))
    ]
    spread = scores.groupby(["member", "metric", "n_features"], sort=False, dropna=False)["score"]
    table = spread.agg(["size", "mean", "std"]).reset_index()
    rows = []
    for label, metric, n, size, mean, sd in table.itertuples(index=False):
        method, position = label, sizes.index(n) if n in sizes else 0
        if label.startswith("2DLDA"):
            method, position = "2DLDA", sides.index(int(label.split()[-1]))
        accuracies, red = KNOWN[data].get(method, (None, None))
        known = red if metric == "redundancy" else accuracies and accuracies[position]
        beside = table[(table["metric"] == "accuracy") & (table["n_features"] == n)]["std"]
        own = sd if metric == "redundancy" or beside.empty else float((beside**2).mean() ** 0.5)
        row = {
            "data": data,
            "method": label,
            "metric": metric,
            "pixels": "" if pd.isna(n) else int(n),
        }
        row |= {
            "draws": size,
            "mean": round(mean, 4),
            "sd": round(sd, 4),
            "known": "" if known is None else known,
        }
        row["z"] = (
            ""
            if known is None
            else round((mean - known) / (own * (1 / size + 1 / draws) ** 0.5), 2)
        )
        rows.append(row)
    return rows


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """Write a table beside this file."""
    with (HERE / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Run one part, write its table and print the CPU time."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("fixed", "tuned"))
    parser.add_argument(
        "--output", type=Path, help="folder of the studies (default: a temporary one)"
    )
    parser.add_argument("--repeats", type=int, help="number of draws (default: those in this file)")
    arguments = parser.parse_args()
    output = arguments.output or Path(tempfile.mkdtemp())
    rows: list[dict[str, Any]] = []
    for data in PROTOCOLS:
        if arguments.part == "fixed":
            found, seconds = run(fixed(data, arguments.repeats), output)
            rows += beside_known(data, found)
        else:
            found, seconds = run(tuned(data, arguments.repeats or TUNED_DRAWS), output)
            rows += [{"data": data} | row for row in found.table().to_dict("records")]
        write(f"{arguments.part}.csv", rows)
        print(f"{data}: {seconds:.0f} CPU seconds", flush=True)


if __name__ == "__main__":
    main()
