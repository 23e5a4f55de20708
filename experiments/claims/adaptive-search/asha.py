"""Iterations that early stopping saves, and what it costs: the full search against ASHA on the same
folds.

python experiments/claims/adaptive-search/asha.py orl-smr --set "solver.space.rank=[2, 4, 8]"
python experiments/claims/adaptive-search/asha.py msrcv1-smml-fractions --set search.method=grid
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from raysel import run_study
from raysel.results.result import StudyResult

ASHA = ["search.early_stopping=asha", "search.synchronous=true", "search.batch_size=4"]


def n_iterations(study: StudyResult) -> int:
    """Number of solver iterations of all inner fits of a study."""
    return len(study.traces())


def main() -> None:
    """Print the share of iterations saved, and the difference of the test scores with its SD
    over the outer folds.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study")
    parser.add_argument(
        "--set", action="append", default=[], metavar="A.B=VALUE", help="override for both sides"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        common = ["pictures=[]", *arguments.set, f"tracking.uri=sqlite:///{name}/mlflow.db"]
        full = run_study(arguments.study, common, output=Path(name, "full"), progress=False)
        same_folds = [*common, f"cv.plan={full.directory.plan}"]
        early = run_study(
            arguments.study, [*same_folds, *ASHA], output=Path(name, "asha"), progress=False
        )
        before, after = n_iterations(full), n_iterations(early)
    a, b = np.array(full.test_scores), np.array(early.test_scores)
    d = b - a
    print(
        f"{arguments.study}: {before} solver iterations -> {after}, saved {1 - after / before:.1%};"
        f" {early.n_trials['stopped']} of {len(early.records)} trials stopped; test {a.mean():.4f}"
        f" -> {b.mean():.4f}, difference {d.mean():+.4f} ± {d.std(ddof=1):.4f} (SD) over {len(d)}"
        f" overlapping outer folds; {int((d == 0).sum())} of {len(d)} winners score the same"
    )


if __name__ == "__main__":
    main()
