"""Study of one's own arrays: python experiments/examples/own_data.py

Writes own-data/ with the data file, the study and ranking-map.png into the working directory, and
MLflow's files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from raysel import run_study

FOLDER = Path("own-data")


def main() -> None:
    """Save the arrays, run a study of them, and show the best features."""
    FOLDER.mkdir()
    # Any arrays will do: X of shape (n, height, width) or (n, d), y of shape (n,).
    images, digits = load_digits(return_X_y=True)
    np.savez(FOLDER / "digits.npz", X=images[:400].reshape(-1, 8, 8), y=digits[:400])

    study = run_study(
        {
            "name": "own-data",
            "dataset": {"path": str(FOLDER / "digits.npz")},
            "solver": {
                "name": "smr",
                "params": {"max_iter": 5},
                "space": {"alpha": [0.01, 0.1], "rank": [1, 2]},
            },
            "evaluation": {"classifier": "knn", "n_features": [8, 16]},
            "cv": {"outer": 3, "inner": 2},
            "search": {"executor": "serial"},  # leave it out to compute on all cores, with Ray
        },
        output=FOLDER / "study",
        progress=False,
    )
    print(study)
    print(study.ranking(top=16).to_frame().head(16).to_string(index=False))
    study.plot_ranking(top=16).figure.savefig(FOLDER / "ranking-map.png")


if __name__ == "__main__":
    main()
