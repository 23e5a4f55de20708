"""SMML against its variants with one norm and against the concatenated linear SVM, all in the same nested folds.

RAYSEL_DATA=<folder> OPENBLAS_NUM_THREADS=1 python run.py [--output DIR]

Each method is one study, run as a user runs it. The first draws the folds, the others take its plan.json.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ALONE = "[0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8]"
PAPERS = {
    "full": {},
    "G1 only": {"solver.space.gamma2": "[0]"},
    "L21 only": {"solver.space.gamma1": "[0]"},
}
FRACTIONS = {
    "full": {},
    "G1 only": {"solver.space.gamma2": "[0]", "solver.space.gamma1": ALONE},
    "L21 only": {"solver.space.gamma1": "[0]", "solver.space.gamma2": ALONE},
}
MACHINES = {
    f"linear SVM, {penalty}": {
        "solver": f"{{name: linear_svm, params: {{penalty: {penalty}}}, space: {{C: {{logspace: [1e-3, 1e+3, 7]}}}}}}",
        "search.method": "grid",
    }
    for penalty in ("l2", "l1")
}
#: Setting: a study of raysel's own, what all of the setting's methods change in it, and what each does.
SETTINGS = {
    "paper's grid": ("msrcv1-smml", {}, PAPERS | MACHINES),
    "fractions": ("msrcv1-smml-fractions", {}, FRACTIONS),
    "fractions, z-score": ("msrcv1-smml-fractions", {"dataset.scaling": "zscore"}, FRACTIONS | MACHINES),
}


def run_study(config: str, changes: dict[str, str], folder: Path) -> dict:
    """Run one study in a folder of its own; its manifest."""
    sets = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "raysel.tune", config, "--output", str(folder), *sets]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return json.loads((folder / "ranking" / "manifest.json").read_text())


def run_all(output: Path) -> dict[tuple[str, str], dict]:
    """Every study's manifest by setting and method."""
    found = {}
    common = {"tracking.uri": f"sqlite:///{output.absolute()}/mlflow.db"}
    for setting, (config, of_setting, methods) in SETTINGS.items():
        for method, of_method in methods.items():
            folder = output / f"study{len(found)}"
            found[setting, method] = run_study(config, common | of_setting | of_method, folder)
            common.setdefault("cv.plan", str(folder / "plan.json"))
    return found


def spread(values: np.ndarray) -> str:
    """Mean and sample standard deviation."""
    return f"{values.mean():.3f} ± {values.std(ddof=1):.3f}"


def main(output: Path) -> None:
    """Print the table; write every fold's figures as msrcv1.csv beside this file."""
    found = run_all(output)
    with (HERE / "msrcv1.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("setting", "method", "fold", "winner", "inner", "test"))
        for key, manifest in found.items():
            scores = zip(manifest["scores"]["inner"], manifest["scores"]["test"], strict=True)
            for i, (inner, test) in enumerate(scores):
                won = manifest["winners"][f"outer{i}"]
                shown = " ".join(f"{k}={won[k]:g}" for k in ("gamma1", "gamma2", "C") if k in won)
                writer.writerow((*key, i, shown, f"{inner:.6f}", f"{test:.6f}"))
    print("| setting | method | inner accuracy | test accuracy | test less that of full | features | stability |")
    print("|---|---|---|---|---|---|---|")
    for (setting, method), manifest in found.items():
        inner, test = (np.array(manifest["scores"][key]) for key in ("inner", "test"))
        less = "" if method == "full" else spread(test - np.array(found[setting, "full"]["scores"]["test"]))
        scored = [n for fold, n in manifest["features_with_score"].items() if fold != "final"]
        features, stability = f"{min(scored)} to {max(scored)}", manifest["stability"]["value"]
        print(f"| {setting} | {method} | {spread(inner)} | {spread(test)} | {less} | {features} | {stability:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="where the studies stay; by default nowhere")
    given = parser.parse_args()
    if given.output:
        main(given.output)
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
