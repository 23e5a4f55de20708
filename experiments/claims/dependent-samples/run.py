"""Scores of dependent samples over shuffled, blocked and forward folds, beside those of new
recordings, subjects or maps.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from raysel.core.arrays import FloatArray, LabelArray
from raysel.core.errors import DataError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Tensor
from raysel.evaluation.plan import NestedPlan, OuterFold
from raysel.evaluation.splitters import Blocks, split
from raysel.numerics.permutation import LabelPermutations
from raysel.study.inspection.dependence import order_remark
from raysel.study.inspection.parts import parts
from raysel.study.inspection.places import place_remark

N, D, TOP, PERMUTATIONS = 240, 20, 5, 19
Data = tuple[FloatArray, LabelArray]


def recording(rng: np.random.Generator, signal: float) -> Data:
    """A random walk with labels in blocks of 30 rows, which shift the first features by a share
    of a step's size.
    """
    y = np.repeat(rng.permutation([0, 1] * (N // 60)), 30)
    X = np.cumsum(rng.standard_normal((N, D)), axis=0)
    return X + np.outer(y, 12 * signal * (np.arange(D) < TOP)), y


def subjects(rng: np.random.Generator, signal: float) -> Data:
    """40 subjects of six adjacent rows, each subject with one label."""
    y = np.repeat(rng.permutation([0, 1] * (N // 12)), 6)
    X = np.repeat(rng.standard_normal((N // 6, D)), 6, axis=0) + rng.standard_normal((N, D))
    return X + np.outer(y, 2 * signal * (np.arange(D) < TOP)), y


def independent(rng: np.random.Generator, signal: float) -> Data:
    """Independent samples in a file sorted by class."""
    y = np.repeat([0, 1], N // 2)
    return rng.standard_normal((N, D)) + np.outer(y, signal * (np.arange(D) < TOP)), y


KINDS: dict[str, tuple[Callable[[np.random.Generator, float], Data], dict[str, Blocks | None]]] = {
    "a recording": (
        recording,
        {
            "shuffled": None,
            "size 30": Blocks(30),
            "size 30, gap 10": Blocks(30, 10),
            "forward, gap 10": Blocks(30, 10, True),
        },
    ),
    "40 subjects of 6 rows": (
        subjects,
        {"shuffled": None, "size 6": Blocks(6), "size 24": Blocks(24)},
    ),
    "sorted by class, independent": (independent, {"shuffled": None, "size 6": Blocks(6)}),
}


def fitted(X: FloatArray, y: LabelArray):
    """The five best features by F-test and a linear discriminant."""
    return make_pipeline(
        StandardScaler(), SelectKBest(f_classif, k=TOP), LinearDiscriminantAnalysis()
    ).fit(X, y)


def score(
    X: FloatArray, y: LabelArray, plan: NestedPlan, source: np.ndarray | None = None
) -> float:
    """Mean score over the outer folds; with labels, and places in the folds, permuted as a
    permutation test does.
    """
    place = np.arange(N) if source is None else np.argsort(source)
    y = y if source is None else y[source]
    folds = [(place[fold.train], place[fold.test]) for fold in plan.outer]
    return float(
        np.mean([fitted(X[train], y[train]).score(X[test], y[test]) for train, test in folds])
    )


def folds_of(y: LabelArray, blocks: Blocks | None, seed: int) -> NestedPlan:
    """Four outer folds, two forward ones, without inner folds: nothing is searched."""
    rows = np.arange(N)
    if blocks is None:
        pairs = split(y, 4, groups=None, random_state=seed, where="cv.outer")
    else:
        pairs = blocks.split(
            rows, y, 2 if blocks.forward else 4, random_state=seed, where="cv.outer"
        )
    return NestedPlan(
        N, tuple(OuterFold(f"outer{i}", 0, i, *pair, ()) for i, pair in enumerate(pairs))
    )


def row(kind: str, how: str, signal: float, draws: int) -> str:
    """One line of the table."""
    make, found = KINDS[kind][0], []
    blocks = KINDS[kind][1][how]
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        X, y = make(rng, signal)
        while True:  # a forward fold can lack a class: other labels are drawn
            try:
                plan = folds_of(y, blocks, draw)
                break
            except DataError:
                X, y = make(rng, signal)
        new = np.mean([fitted(X, y).score(*make(rng, signal)) for _ in range(5)])
        permutations = LabelPermutations(y, blocks=None if blocks is None else blocks.numbers(N))
        here = score(X, y, plan)
        permuted = [score(X, y, plan, permutations.draw(rng)) for _ in range(PERMUTATIONS)]
        p = (1 + sum(other >= here for other in permuted)) / (1 + PERMUTATIONS)
        (part,) = parts(Dataset(X, y, Tensor((D,))))
        found.append((here, new, p <= 0.05, order_remark(part, plan) is not None))
    here, new, small, said = np.mean(found, axis=0)
    return f"| {kind} | {how} | {here:.3f} | {new:.3f} | {small:.0%} | {said:.0%} |"


#: Side of a map and of the strip between two, and standard deviation of the Gaussian that smooths
#: them, in pixels.
SIDE, STRIP, WIDTH = 60, 40, 4
NAMES = ("row", "col", *(f"band{i}" for i in range(10)))


def maps(rng: np.random.Generator) -> tuple[Data, Data, np.ndarray]:
    """600 pixels of a map, in any order, all of another one far away, and the places of the former
    ones.

    Ten smooth bands tell nothing of a class that is as smooth.
    """
    shape = (SIDE, 2 * SIDE + STRIP)
    fields = [gaussian_filter(rng.standard_normal(shape), WIDTH) for _ in range(11)]
    X = np.stack([field / field.std() for field in fields[:-1]], axis=-1)
    X += 0.3 * rng.standard_normal(X.shape)
    y = (fields[-1] > np.median(fields[-1])).astype(int)
    rows, cols = np.unravel_index(rng.permutation(SIDE * SIDE)[:600], (SIDE, SIDE))
    far = X[:, SIDE + STRIP :].reshape(-1, 10), y[:, SIDE + STRIP :].ravel()
    return (X[rows, cols], y[rows, cols]), far, np.stack([rows, cols], axis=1)


def of_classes(rng: np.random.Generator, kind: str) -> tuple[FloatArray, LabelArray, np.ndarray]:
    """600 pixels whose bands tell of a place no more than its class, or the mixture of classes
    there, and noise.
    """
    field = gaussian_filter(rng.standard_normal((SIDE, SIDE)), WIDTH)
    shown = field / field.std() if kind == "mixed pixels" else np.sign(field)
    X = shown[..., None] * rng.standard_normal(10) + 0.5 * rng.standard_normal((SIDE, SIDE, 10))
    rows, cols = np.unravel_index(rng.permutation(SIDE * SIDE)[:600], (SIDE, SIDE))
    places = rng.random((600, 2)) if kind == "independent" else np.stack([rows, cols], axis=1)
    return X[rows, cols], (field[rows, cols] > 0).astype(int), places


def alarm_row(kind: str, draws: int) -> str:
    """One line of the table of maps whose near pixels say nothing that far ones do not, in
    random folds.
    """
    model = make_pipeline(StandardScaler(), KNeighborsClassifier(5))
    found = []
    for draw in range(draws):
        X, y, places = of_classes(np.random.default_rng(draw), kind)
        blocks = places[:, 0].astype(int) // 15 * SIDE + places[:, 1].astype(int) // 15
        blocks = np.arange(600) if kind == "independent" else blocks
        by_groups = [
            split(y, 4, groups=groups, random_state=draw, where="cv.outer")
            for groups in (None, blocks)
        ]
        scores = [
            np.mean([model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in pairs])
            for pairs in by_groups
        ]
        folds = (OuterFold(f"outer{i}", 0, i, *pair, ()) for i, pair in enumerate(by_groups[0]))
        (part,) = parts(Dataset(np.hstack([places, X]), y, Tensor((12,)), feature_names=NAMES))
        said = place_remark(part, NestedPlan(len(y), tuple(folds))) is not None
        found.append((*scores, said))
    random, blocked, said = np.mean(found, axis=0)
    return f"| {kind} | {random:.3f} | {blocked:.3f} | {said:.0%} |"


def map_row(width: int, draws: int) -> str:
    """One line of the table of maps, whose blocks of a width are groups; 0: none."""
    found = []
    for draw in range(draws):
        (X, y), far, places = maps(np.random.default_rng(draw))
        row, col = places.T // max(width, 1)
        groups = row * SIDE + col if width else None
        pairs = split(y, 4, groups=groups, random_state=draw, where="cv.outer")
        plan = NestedPlan(
            len(y), tuple(OuterFold(f"outer{i}", 0, i, *pair, ()) for i, pair in enumerate(pairs))
        )
        model = make_pipeline(StandardScaler(), KNeighborsClassifier(5))
        here = np.mean([model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in pairs])
        (part,) = parts(Dataset(np.hstack([places, X]), y, Tensor((12,)), feature_names=NAMES))
        found.append((here, model.fit(X, y).score(*far), place_remark(part, plan) is not None))
    here, new, said = np.mean(found, axis=0)
    blocks = f"blocks of {width} x {width}" if width else "none"
    return f"| {blocks} | {here:.3f} | {new:.3f} | {said:.0%} |"


def main() -> None:
    """Print one table without and one with a signal, and one of maps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=6)
    draws = parser.parse_args().draws
    for signal in (0.0, 0.5):
        print(
            f"\nsignal {signal}\n\n| data | folds | score | on new data | p <= .05 | remark"
            f" |\n{'|---' * 6}|"
        )
        for kind, (_, ways) in KINDS.items():
            for how in ways:
                print(row(kind, how, signal, draws), flush=True)
    print(f"\nmaps\n\n| cv.groups | score | on a far map | remark |\n{'|---' * 4}|")
    for width in (0, 5, 15, 30):
        print(map_row(width, draws), flush=True)
    print(f"\nno dependence\n\n| places | random folds | blocks | remark |\n{'|---' * 4}|")
    for kind in ("independent", "patches", "mixed pixels"):
        print(alarm_row(kind, 10 * draws), flush=True)


if __name__ == "__main__":
    main()
