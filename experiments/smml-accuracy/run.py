"""SMML against its variants with one norm and against the concatenated linear SVM, all in the same nested folds.

RAYSEL_DATA=<folder> OPENBLAS_NUM_THREADS=1 python run.py [--output DIR]

Each method is one study. The first draws the folds, the others take its plan.json.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np

from raysel import run_study
from raysel.results.result import StudyResult

HERE = Path(__file__).parent
ALONE = [0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8]
PAPERS = {
    "full": {},
    "G1 only": {"solver.space.gamma2": [0]},
    "L21 only": {"solver.space.gamma1": [0]},
}
FRACTIONS = {
    "full": {},
    "G1 only": {"solver.space.gamma2": [0], "solver.space.gamma1": ALONE},
    "L21 only": {"solver.space.gamma1": [0], "solver.space.gamma2": ALONE},
}
MACHINES = {
    f"linear SVM, {penalty}": {
        "solver": {"name": "linear_svm", "params": {"penalty": penalty}, "space": {"C": {"logspace": [1e-3, 1e3, 7]}}},
        "search.method": "grid",
    }
    for penalty in ("l2", "l1")
}
#: By setting: a built-in study, the changes of all of the setting's methods, and those of each method.
SETTINGS = {
    "paper's grid": ("msrcv1-smml", {}, PAPERS | MACHINES),
    "fractions": ("msrcv1-smml-fractions", {}, FRACTIONS),
    "fractions, z-score": ("msrcv1-smml-fractions", {"dataset.scaling": "zscore"}, FRACTIONS | MACHINES),
}


def run_all(output: Path, common: dict[str, object]) -> dict[tuple[str, str], StudyResult]:
    """Run every study; give the results by setting and method."""
    found: dict[tuple[str, str], StudyResult] = {}
    common = common | {"tracking.uri": f"sqlite:///{output.absolute()}/mlflow.db", "pictures": []}
    for setting, (config, of_setting, methods) in SETTINGS.items():
        for method, of_method in methods.items():
            study = run_study(config, common | of_setting | of_method, output=output / f"study{len(found)}")
            found[setting, method] = study
            common.setdefault("cv.plan", str(study.directory.plan))
    return found


def spread(values: np.ndarray) -> str:
    """Mean and sample standard deviation."""
    return f"{values.mean():.3f} ± {values.std(ddof=1):.3f}"


def main(output: Path, table: Path, common: dict[str, object]) -> None:
    """Print the table; write every fold's figures as a table of their own."""
    found = run_all(output, common)
    with table.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("setting", "method", "fold", "winner", "inner", "test"))
        for key, study in found.items():
            for i, (refit, test) in enumerate(zip(study.outer, study.test_scores, strict=True)):
                won = refit.params
                shown = " ".join(f"{k}={won[k]:g}" for k in ("gamma1", "gamma2", "C") if k in won)
                writer.writerow((*key, i, shown, f"{refit.inner_score:.6f}", f"{test:.6f}"))
    print("| setting | method | inner accuracy | test accuracy | test less that of full | features | stability |")
    print("|---|---|---|---|---|---|---|")
    for (setting, method), study in found.items():
        inner, test = np.array(study.inner_scores), np.array(study.test_scores)
        less = "" if method == "full" else spread(test - np.array(found[setting, "full"].test_scores))
        scored, stability = study.ranking().fold_n_scored, study.ranking().stability.value
        features = f"{scored.min()} to {scored.max()}"
        print(f"| {setting} | {method} | {spread(inner)} | {spread(test)} | {less} | {features} | {stability:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="where the studies stay; by default nowhere")
    parser.add_argument("--table", type=Path, default=HERE / "msrcv1.csv", help="where every fold's figures go")
    parser.add_argument("--configurations", type=int, help="try only so many of each grid, for a quick look")
    given = parser.parse_args()
    few = {"search.num_samples": given.configurations, "cv.outer": 2, "cv.inner": 2, "search.executor": "serial"}
    few = few if given.configurations else {}
    if given.output:
        main(given.output, given.table, few)
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder), given.table, few)
