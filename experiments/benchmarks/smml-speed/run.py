"""CPU time of SMML against Algorithm 1, over a whole grid, on a working set of features, and on a
large training set.

RAYSEL_DATA=<folder> OPENBLAS_NUM_THREADS=1 python run.py solvers|path|sets|growth|large [--limit
SECONDS] [--fold N]

Times are CPU seconds of the solving thread, so a busy machine stretches them little; ratios come
from one run.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path

import numpy as np
from peers import OverLiblinear, over_libsvm
from sklearn.model_selection import StratifiedKFold

from raysel.data.scaling import ModalityScaler
from raysel.solvers.smml import walk
from raysel.solvers.smml.admm import ConsensusADMM
from raysel.solvers.smml.problem import Certificate, MultimodalProblem
from raysel.solvers.smml.smml import SMML, smml_path
from raysel.solvers.smml.working_set import WorkingSetADMM, saves_time

GAPS = (1e-2, 1e-3, 1e-4)
GRID = [10.0**k for k in range(-5, 6)]


def load(name: str, method: str, fold: int = 0):
    """One training set of five and the samples held out of it, scaled by what the training set
    tells.
    """
    with np.load(Path(os.environ["RAYSEL_DATA"]) / name, allow_pickle=False) as file:
        names = [str(view) for view in file["view_names"]]
        views = [file[f"view_{k}"].astype(float) for k in range(len(names))]
        y = file["y"]
    widths = {view: block.shape[1] for view, block in zip(names, views, strict=True)}
    X = np.hstack(views)
    train, test = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))[fold]
    scaler = ModalityScaler(widths, method).fit(X[train])
    return widths, scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def time_to(gap: float, path) -> float:
    """The first time at which a gap is reached."""
    return next((at for at, reached in path if reached <= gap), np.inf)


def solvers(limit: float) -> None:
    """ADMM to its own certificate against Algorithm 1 to the same true gap (which a rival cannot
    know).
    """
    cases = [("MSRCv1_6v.npz", 1, 1), ("MSRCv1_6v.npz", 10, 1), ("Handwritten_mfeat.npz", 1, 1)]
    for name, gamma1, gamma2 in cases:
        widths, X, y, _, _ = load(name, "zscore")
        start = time.thread_time()
        prepared = SMML(widths).prepare(X, y)
        preparation = time.thread_time() - start
        problem = MultimodalProblem(prepared, gamma1, gamma2)
        start, own = time.thread_time(), []
        for certificate in ConsensusADMM(problem).rounds():
            own.append((time.thread_time() - start, certificate.gap))
            if certificate.gap <= 1e-6 or own[-1][0] > limit:
                break
        optimum = certificate.objective
        print(
            f"{name} {X.shape} ({gamma1}, {gamma2}): prepared in {preparation:.2f} s, P* ="
            f" {optimum:.4f}"
        )
        print(
            "  ADMM, its own certificate  ",
            *(f"{gap:.0e}: {time_to(gap, own):.2f} s" for gap in GAPS),
            flush=True,
        )
        for label, rival in (
            ("LIBSVM", over_libsvm(problem)),
            ("liblinear", OverLiblinear(problem)),
        ):
            start, reached = time.thread_time(), []
            for best in rival.rounds():
                reached.append((time.thread_time() - start, best.objective / optimum - 1))
                if reached[-1][1] <= GAPS[-1] or reached[-1][0] > limit:
                    break
            shown = []
            for gap in dict.fromkeys(
                (*GAPS, max(reached[-1][1], GAPS[-1]))
            ):  # the last: the smallest both reach
                at = time_to(gap, reached)
                more, at = ("", at) if np.isfinite(at) else ("> ", reached[-1][0])
                shown.append(f"{gap:.1e}: {more}{at:.2f} s = {more}{at / time_to(gap, own):.1f}x")
            print(f"  Algorithm 1 over {label:9}", *shown, f"({len(reached)} rounds)", flush=True)


def seconds_of(action):
    """CPU seconds of one call, and what it returned."""
    start = time.thread_time()
    result = action()
    return time.thread_time() - start, result


def path(tol: float, fold: int) -> None:
    """The paper's 11 x 11 grid on one training set: as a path, and point by point from nothing."""
    widths, X, y, X_test, y_test = load("MSRCv1_6v.npz", "zscore_sqrt_width", fold)
    prepared = SMML(widths).prepare(X, y)

    def walked():
        return smml_path(
            X, y, GRID, GRID, modalities=widths, gamma_scale="absolute", tol=tol, prepared=prepared
        )

    by_path, whole = seconds_of(walked)
    with every_feature():
        before, former = seconds_of(walked)
        each, _ = seconds_of(
            lambda: [fitted(widths, *gammas, tol, X, y, prepared) for gammas in product(GRID, GRID)]
        )
    print(
        f"on all features {former.n_solves} solves, {former.n_rounds} iterations, {before:.2f} s;"
        f" 121 cold {each:.2f} s"
    )
    print(
        f"this path: {each / by_path:.1f} times less than those cold solves, the former"
        f" {each / before:.1f}"
    )
    points = [point for row in whole.points for point in row]
    print(
        f"path at gap {tol:.0e}: {whole.n_solves} solves, {whole.n_rounds} iterations,"
        f" {by_path:.2f} s;",
        end=" ",
    )
    for source in ("solved", "diagonal", "negligible", "zero"):
        print(f"{sum(point.source == source for point in points)} {source}", end=", ")
    print(f"largest gap {max(point.dual_gap for point in points):.1e}", flush=True)
    scores, cold_scores, cold_time, unsolved = {}, {}, 0.0, 0
    for i, gamma1 in enumerate(GRID):
        for j, gamma2 in enumerate(GRID):
            seconds, cold = seconds_of(
                lambda at=(gamma1, gamma2): fitted(widths, *at, tol, X, y, prepared)
            )
            cold_time += seconds
            unsolved += not cold.converged_
            point = whole.points[i][j]
            predicted = (X_test @ point.coef.T + point.intercept).argmax(axis=1)
            scores[i, j] = (
                float((predicted == y_test).mean()),
                *(-s for s in cold.complexity_key()),
            )
            cold_scores[i, j] = (cold.score(X_test, y_test), *(-s for s in cold.complexity_key()))
    winner, cold_winner = max(scores, key=scores.get), max(cold_scores, key=cold_scores.get)
    print(
        f"121 cold solves: {cold_time:.2f} s = {cold_time / by_path:.1f}x, {unsolved} of them not"
        " within 4000 updates"
    )
    print(
        f"winner of the path (gamma1, gamma2) = {GRID[winner[0]]:g}, {GRID[winner[1]]:g} at"
        f" {scores[winner][0]:.4f}; of the cold solves {GRID[cold_winner[0]]:g},"
        f" {GRID[cold_winner[1]]:g} at {cold_scores[cold_winner][0]:.4f};"
        f" {sum(scores[k][0] != cold_scores[k][0] for k in scores)} points differ in accuracy",
        flush=True,
    )  # fmt: skip


def fitted(widths, gamma1, gamma2, tol, X, y, prepared):
    """One fit from nothing."""
    cold = SMML(widths, gamma1, gamma2, "absolute", tol=tol, max_iter=400)
    for _ in cold.iterate(X, y, prepared):
        pass
    return cold


@contextmanager
def every_feature():
    """Solve as before there were working sets."""
    walk.saves_time = lambda _: False
    try:
        yield
    finally:
        walk.saves_time = saves_time


def solve(solver, tol: float, most: int) -> Certificate:
    """The certificate after as many rounds as the gap takes, or the most."""
    for certificate in islice(solver.rounds(), most):
        if certificate.gap <= tol:
            break
    return certificate


def sets(tol: float) -> None:
    """Working sets against all features on data they suit and others, where the rule says yes
    and where it says no.
    """
    for name, prepared in training_sets():
        ratios: dict[bool, list[float]] = {True: [], False: []}
        sparse, spent = [], np.zeros(3)
        for first, second in product(
            (0.0, 0.001, 0.003, 0.01, 0.03, 0.1), (0.01, 0.03, 0.1, 0.2, 0.4)
        ):
            problem = MultimodalProblem(
                prepared, first * prepared.gamma1_max, second * prepared.gamma2_max
            )
            before, plain = seconds_of(lambda p=problem: solve(ConsensusADMM(p), tol, 400))
            after, found = seconds_of(lambda p=problem: solve(WorkingSetADMM(p), tol, 400))
            assert max(plain.gap, found.gap) <= tol, (name, first, second, plain.gap, found.gap)
            yes = saves_time(problem)
            ratios[yes].append(before / after)
            sparse += [before / after] * (yes and second >= 0.1)
            spent += before, after if yes else before, min(before, after)
        listed = [
            f"{len(r)}: " + " / ".join(f"{q:.2f}" for q in np.quantile(r or [np.nan], (0, 0.5, 1)))
            for r in (ratios[True], sparse, ratios[False])
        ]  # fmt: skip
        n, d = prepared.X.shape
        print(f"| {name}, {n} x {d} x {len(prepared.signs)} | {' | '.join(listed)} |", end=" ")
        print(" / ".join(f"{seconds:.1f}" for seconds in spent), "|", flush=True)


def training_sets():
    """Name and prepared training set: where few features matter, and where the rule has to say
    no.
    """
    for name, method in (
        ("MSRCv1_6v", "zscore_sqrt_width"),
        ("MSRCv1_6v", "row_unit"),
        ("MSRCv1_6v", "minmax"),
        ("MSRCv1_6v", "zscore"),
        ("Handwritten_mfeat", "zscore_sqrt_width"),
        ("Handwritten_mfeat", "zscore"),
    ):  # fmt: skip
        widths, X, y, _, _ = load(f"{name}.npz", method)
        chosen = np.random.default_rng(0).permutation(len(y))[:400]
        yield f"{name}, {method}", SMML(widths).prepare(X[chosen], y[chosen])
    for n, d, k in ((200, 2000, 10), (800, 600, 20)):
        widths, X, y = directed(n, d, k)
        yield f"generated, {k} directions", SMML(widths).prepare(X, y)
    for size in ((300, 2000, 5), (1000, 600, 4)):
        widths, X, Y = generated(*size)
        yield "generated, independent features", SMML(widths).prepare(X, Y)


def directed(n: int, d: int, k: int):
    """Features that follow k directions, in three modalities that weigh alike, and five classes
    that these tell.
    """
    rng = np.random.default_rng(2)
    Z = rng.standard_normal((n, k))
    X = Z @ rng.standard_normal((k, d)) + 0.5 * rng.standard_normal((n, d))
    widths = [d // 20, d // 4, d - d // 20 - d // 4]
    X /= X.std(axis=0) * np.sqrt(np.repeat(widths, widths))
    scores = Z @ rng.standard_normal((k, 5)) + 0.5 * rng.standard_normal((n, 5))
    return dict(zip("abc", widths, strict=True)), X, scores.argmax(axis=1)


def generated(n: int, d: int, labels: int):
    """Six modalities of which three matter, some features in each, labels with about a tenth of
    positives.
    """
    rng = np.random.default_rng(0)
    widths = dict(zip("abcdef", np.diff(np.linspace(0, d, 7).astype(int)).tolist(), strict=True))
    X = rng.standard_normal((n, d))
    truth = (
        rng.standard_normal((d, labels))
        * (rng.random((d, 1)) < 0.1)
        * (np.arange(d)[:, None] < d / 2)
    )
    scores = X @ truth + 0.5 * np.sqrt((truth**2).sum(axis=0)) * rng.standard_normal((n, labels))
    return widths, X, (scores > np.quantile(scores, 0.9, axis=0)).astype(int)


def solve_generated(n: int, d: int, labels: int) -> tuple[float, SMML]:
    """CPU seconds of one fit to 1e-3, preparation included."""
    widths, X, Y = generated(n, d, labels)
    smml = SMML(widths, 0.05, 0.05, tol=1e-3)
    start = time.thread_time()
    smml.fit(X, Y)
    return time.thread_time() - start, smml


def growth() -> None:
    """Time against n and against d, four sizes each, and the slopes in log-log."""
    for name, sizes in (
        ("n", [(n, 300, 8) for n in (1000, 2000, 4000, 8000)]),
        ("d", [(2000, d, 8) for d in (150, 300, 600, 1200)]),
    ):  # fmt: skip
        rows = [(size, *solve_generated(*size)) for size in sizes]
        for size, seconds, smml in rows:
            print(
                f"  {size}: {seconds:.2f} s, {10 * smml.n_iter_} updates, gap {smml.dual_gap_:.1e}"
            )
        grown = np.log([size[0] if name == "n" else size[1] for size, _, _ in rows])
        whole = np.polyfit(grown, np.log([seconds for _, seconds, _ in rows]), 1)[0]
        each = np.polyfit(grown, np.log([seconds / smml.n_iter_ for _, seconds, smml in rows]), 1)[
            0
        ]
        print(
            f"time grows as {name}^{whole:.2f}, that of one update as {name}^{each:.2f}", flush=True
        )


def large() -> None:
    """One training set of 24000 x 1164 and 31 labels."""
    seconds, smml = solve_generated(24_000, 1164, 31)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"24000 x 1164 x 31: {seconds:.1f} s, {10 * smml.n_iter_} updates, gap"
        f" {smml.dual_gap_:.1e};",
        end=" ",
    )
    kept = (smml.scores_ > 0).sum()
    print(
        f"{kept} features kept; peak memory {peak:.2f} GiB, X itself"
        f" {24_000 * 1164 * 8 / 2**30:.2f} GiB"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["solvers", "path", "sets", "growth", "large"])
    parser.add_argument("--limit", type=float, default=120.0, help="CPU seconds a solver may take")
    parser.add_argument("--tol", type=float, default=1e-3, help="the gap of path and sets")
    parser.add_argument("--fold", type=int, default=0, help="the path's training set, 0 to 4")
    given = parser.parse_args()
    match given.part:
        case "solvers":
            solvers(given.limit)
        case "path":
            path(given.tol, given.fold)
        case "sets":
            sets(given.tol)
        case "growth":
            growth()
        case "large":
            large()
