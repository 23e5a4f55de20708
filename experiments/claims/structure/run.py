"""When does structure pay? The cells that methods find of planted shapes, and their accuracy.

python experiments/claims/structure/run.py                   # all methods; writes planted.csv
python experiments/claims/structure/run.py --methods F-test  # replaces the rows of this one
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import pandas as pd
from shapes import CELLS, SHAPES, SIDE, Images, draw_images
from sklearn.cluster import FeatureAgglomeration
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline

from raysel import SMR, NestedSearch
from raysel.baselines.linear_svm import LinearSVM
from raysel.baselines.smoothed_filters import SmoothedFTest
from raysel.solvers.spatial.graph_net import GraphNet
from raysel.solvers.spatial.tv_l1 import TVL1

SIDES = (SIDE, SIDE)
NOISES = ("white", "smooth")
SAMPLES = (50, 200)
DRAWS = 3
N_FEATURES = [3, 8, 20, CELLS, 200, SIDE * SIDE]
#: Means of connected cells that vary alike, and their F values.
PARCELS = make_pipeline(
    FeatureAgglomeration(connectivity=grid_to_graph(*SIDES)), SelectKBest(k="all")
)


class Method(NamedTuple):
    """A method and what is searched of it."""

    estimator: Any
    space: Mapping[str, Sequence[Any]]


METHODS: Mapping[str, Method] = {
    "F-test": Method(SmoothedFTest(SIDES), {"width": [0]}),
    "smoothed F-test": Method(SmoothedFTest(SIDES), {"width": [0, 1, 2, 4]}),
    "F-test of parcels": Method(PARCELS, {"featureagglomeration__n_clusters": [20, 60, 200]}),
    "SMR": Method(SMR(SIDES, max_iter=30), {"rank": [1, 2, 24], "alpha": [0.03, 0.1, 0.3]}),
    "graph net": Method(GraphNet(SIDES), {"l1_ratio": [0.1, 0.5], "alpha": [0.03, 0.1, 0.3]}),
    "TV-l1": Method(TVL1(SIDES), {"l1_ratio": [0.2, 0.5], "alpha": [0.03, 0.1, 0.3]}),
    "l1 SVM": Method(LinearSVM(penalty="l1"), {"C": [0.01, 0.03, 0.1, 0.3]}),
    "l2 SVM": Method(LinearSVM(penalty="l2"), {"C": [0.001, 0.01, 0.1]}),
}


def judge(method: Method, images: Images, seed: int) -> dict[str, float]:
    """Search a method; return the share of its best cells inside, the test accuracy, the cost."""
    began = process_time()
    search = NestedSearch(
        method.estimator,
        dict(method.space),
        n_features=N_FEATURES,
        choose_n="best",
        scoring_estimator={"name": "sklearn.svm.LinearSVC", "params": {"C": 0.01}},
        outer=3,
        random_state=seed,
    )
    search.fit(images.X, images.y)
    best = search.ranking_ <= images.telling.sum()
    return {
        "inside": float(images.telling[best].mean()),
        "accuracy": search.score_,
        "CPU s": process_time() - began,
    }


def rows(methods: Sequence[str], samples: Sequence[int], draws: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each set of images and each method."""
    for shape, noise, n_samples in product(SHAPES, NOISES, samples):
        for seed in range(draws):
            images = draw_images(shape, noise, n_samples, seed)
            where = {"shape": shape, "noise": noise, "n": n_samples, "seed": seed}
            for name in methods:
                yield where | {"method": name} | judge(METHODS[name], images, seed)


def summarise(table: pd.DataFrame, figure: str) -> pd.DataFrame:
    """Return the mean of a figure by shape, noise and n, a column a method."""
    cells = table.pivot_table(figure, ["shape", "noise", "n"], "method", sort=False)
    return cells[[name for name in METHODS if name in cells]]


def main() -> None:
    """Write the rows and print the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--samples", type=int, nargs="+", default=list(SAMPLES))
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "planted.csv")
    arguments = parser.parse_args()
    table = pd.DataFrame(rows(arguments.methods, arguments.samples, arguments.draws))
    if arguments.output.exists():
        kept = pd.read_csv(arguments.output)
        table = pd.concat([kept[~kept["method"].isin(arguments.methods)], table])
    table.to_csv(arguments.output, index=False, float_format="%.4g")
    for figure in ("inside", "accuracy", "CPU s"):
        print(f"\n{figure}, mean of {arguments.draws} draws")
        print(summarise(table, figure).round(2).to_string())


if __name__ == "__main__":
    main()
