"""False claims and power of hidimstat, with its defaults, on the studies of `run`.

python -m experiments.claims.discoveries.rivals --studies 20
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import process_time

import hidimstat
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LassoCV, LogisticRegressionCV

from experiments.claims.discoveries.run import DESIGNS, FDR, draw_study, figures
from raysel.core.arrays import BoolArray, FloatArray, LabelArray
from raysel.numerics.correlations import correlated_groups

FOLDER = Path(__file__).parent
FIGURES = ("fdp", "power", "studies_with_no_claim", "seconds")


def distilled(X: FloatArray, y: LabelArray) -> BoolArray:
    """Distilled conditional randomisation of hidimstat, with Benjamini and Hochberg."""
    test = hidimstat.D0CRT(LassoCV(alphas=10), random_state=0)
    if y.dtype.kind != "f":
        settings = {"solver": "liblinear", "Cs": 10, "cv": 5, "use_legacy_attributes": False}
        model = LogisticRegressionCV(l1_ratios=(1.0,), **settings)
        test = hidimstat.D0CRT(
            model, method="predict_proba", lasso_screening=clone(model), random_state=0
        )
    test.fit_importance(X, y)
    return np.asarray(test.fdr_selection(FDR)) != 0


def desparsified(X: FloatArray, y: LabelArray) -> BoolArray:
    """Desparsified lasso of hidimstat; classes count as the numbers 0 and 1."""
    test = hidimstat.DesparsifiedLasso(random_state=0)
    test.fit_importance(X, y.astype(float))
    return np.asarray(test.fdr_selection(FDR)) != 0


RIVALS: Mapping[str, Callable[[FloatArray, LabelArray], BoolArray]] = {
    "D0CRT": distilled,
    "desparsified lasso": desparsified,
}


def study(rival: str, *, design: str, target: str, d: int, seed: int) -> list[float]:
    """Figures of a rival on the generated study that `run.study` has at this seed."""
    X, y, telling = draw_study(design, target, d, seed)
    group = correlated_groups(X, 0.5)
    numbers = np.arange(group.max() + 1)
    begun = process_time()
    chosen = RIVALS[rival](X, y)
    seconds = process_time() - begun
    claimed = np.isin(numbers, group[chosen])
    fdp, power, _ = figures(claimed, np.isin(numbers, group[telling]))
    return [fdp, power, not claimed.any(), seconds]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and write a row for each rival, target and design."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=20)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rivals", nargs="+", default=list(RIVALS), choices=RIVALS)
    parser.add_argument("--designs", nargs="+", default=list(DESIGNS), choices=DESIGNS)
    parser.add_argument("--targets", nargs="+", default=["quantity", "two classes"])
    parser.add_argument("--output", type=Path, default=FOLDER / "rivals.csv")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    rows = []
    for rival in chosen.rivals:
        for target in chosen.targets:
            for design in chosen.designs:
                case = {"design": design, "target": target, "d": chosen.columns}
                found = [study(rival, **case, seed=seed) for seed in range(chosen.studies)]
                means, spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
                row = {"rival": rival, **case, "studies": chosen.studies}
                row |= {"fdp_error": round(spread[0] / np.sqrt(chosen.studies), 3)}
                row |= dict(zip(FIGURES, np.round(means, 3).tolist(), strict=True))
                rows.append(row)
                print(" | ".join(map(str, row.values())), flush=True)
    with chosen.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
