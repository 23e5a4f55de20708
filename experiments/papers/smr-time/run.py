"""SMR, Table III: CPU seconds of a fit, as ratios to information gain in the same run."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

from experiments.experiment import Experiment, Row, read, unit_scaled
from experiments.papers.rivals import PER_CLASS, fitted, selector
from experiments.protocol import joined_verdict
from experiments.report import Report, markdown
from raysel import SMR
from raysel.evaluation.splitters import draw_per_class
from raysel.numerics.least_squares import least_squares_data

#: Parameters of the rivals; SMR has k = 10 and a tenth of alpha_max.
PARAMS: dict[str, Row] = {
    "IG": {"bins": 5},
    "ReliefF": {"n_neighbors": 5},
    "Fisher": {},
    "RFS": {"alpha": 0.1},
    "GLSPFS": {"sparsity": 0.1, "local": 0.001},
    "DFS": {"gamma": 0.1},
    "2DLDA": {"n_components": [10, 10]},
}
OURS, LITERAL = "SMR", "SMR, literal"
#: Data on which the literal form ends within minutes.
LITERAL_SETS = ("ORL", "UMIST", "USPS")
SHARE, RANK, ITERATIONS = 0.1, 10, 30


def seconds(*, path: str, per_class: int, run: int, method: str) -> Iterator[Row]:
    """CPU seconds of one fit, on one thread."""
    data = read(path)
    train, _ = draw_per_class(data.y, per_class, groups=None, random_state=run)
    X, y = unit_scaled(data)[train], np.unique(data.y[train], return_inverse=True)[1]
    alpha = SHARE * least_squares_data(X, y).alpha_max
    started = time.process_time()
    if method == LITERAL:
        literal_smr(X, y, data.layout.shape, alpha)
    elif method == OURS:
        model = SMR(
            data.layout.shape,
            alpha,
            RANK,
            alpha_scale="absolute",
            init="identity",
            max_iter=ITERATIONS,
            tol=0,
        )
        fitted(model, X, y)
    else:
        fitted(selector(method, PARAMS[method], data), X, y)
    yield {"cpu_seconds": time.process_time() - started}


def literal_smr(X: np.ndarray, y: np.ndarray, shape: tuple[int, int], alpha: float) -> None:
    """The algorithm as printed: Kronecker products, a dense diagonal D, one linear system a
    class.
    """
    m, n = shape
    by_columns = X.reshape(-1, m, n).transpose(0, 2, 1).reshape(len(X), -1).T.copy()
    by_rows, Y = X.T.copy(), np.eye(y.max() + 1)[y]
    centring = np.eye(len(X)) - 1 / len(X)
    V, D = [np.eye(n, RANK)] * Y.shape[1], np.eye(m * n)
    for _ in range(ITERATIONS):
        U = _half_step(by_columns, Y, centring, V, D, alpha)
        P = np.array([u @ v.T for u, v in zip(U, V, strict=True)])
        V = _half_step(by_rows, Y, centring, U, _weights(P, "C"), alpha)
        P = np.array([u @ v.T for u, v in zip(U, V, strict=True)])
        D = _weights(P, "F")


def _weights(P: np.ndarray, order: str) -> np.ndarray:
    return np.diag(0.5 * ((P**2).sum(axis=0) + 1e-10).ravel(order=order) ** -0.5)  # type: ignore[arg-type]


def _half_step(
    images: np.ndarray,
    Y: np.ndarray,
    centring: np.ndarray,
    known: list[np.ndarray],
    D: np.ndarray,
    alpha: float,
) -> list[np.ndarray]:
    m = len(images) // known[0].shape[0]
    factors = []
    for r, V in enumerate(known):
        lift = np.kron(V.T, np.eye(m))
        F = lift @ images
        FL = F @ centring
        factors.append(
            np.linalg.solve(FL @ F.T + alpha * (lift @ D @ lift.T), FL @ Y[:, r]).reshape(-1, m).T
        )
    return factors


def measure(experiment: Experiment) -> pd.DataFrame:
    """Median CPU seconds of each method on each data set."""
    units = [
        {
            "path": str(experiment.path(data)),
            "per_class": PER_CLASS.get(data, 4),
            "run": run,
            "method": method,
        }
        for data in experiment.sets(*PER_CLASS)
        for method in (*PARAMS, OURS, LITERAL)
        if method != LITERAL or (data in LITERAL_SETS and not experiment.fast)
        for run in range(1 if method == LITERAL else 2 if experiment.fast else 10)
    ]
    names = {str(experiment.path(data)): data for data in experiment.sets(*PER_CLASS)}
    rows = experiment.measure(seconds, units)
    rows["data"] = rows["path"].map(names)
    groups = rows.groupby(["data", "method"], sort=False)["cpu_seconds"]
    return groups.agg(runs="size", cpu_seconds="median").reset_index()


def report(results: pd.DataFrame, published: pd.DataFrame) -> Report:
    """Table of ratios to information gain, published and measured."""
    now = results.pivot_table(index="method", columns="data", values="cpu_seconds", sort=False)
    paper = published.pivot_table(index="method", columns="data", values="value", sort=False)
    lines = []
    for method in now.index:
        line = {"method": method}
        for data in now.columns:
            value = now.loc[method, data]
            line[data] = (
                "" if np.isnan(value) else f"{value:.3g} s, {value / now.loc['IG', data]:.3g}"
            )
            if data in paper and method in paper.index:
                line[data] += f" (paper {paper.loc[method, data] / paper.loc['IG', data]:.3g})"
        lines.append(line)
    ratios = now.loc[OURS] / now.loc["IG"]
    span = f"{float(f'{ratios.min():.2g}'):.0f} to {float(f'{ratios.max():.2g}'):.0f}"
    literal = (
        (now.loc[LITERAL] / now.loc[OURS]).dropna()
        if LITERAL in now.index
        else pd.Series(dtype=float)
    )
    two = [set(now[data].drop(LITERAL, errors="ignore").nlargest(2).index) for data in now.columns]
    slower = [int((now.loc[OURS] > now.loc[method]).sum()) for method in PARAMS]
    text = (
        f"SMR takes {span} times the CPU time of information gain; it is slower than"
        f" {sum(n == len(now.columns) for n in slower)} of {len(PARAMS)} rivals on all"
        f" {len(now.columns)} data sets. "
        + (
            f"The literal form, with Kronecker products, takes {literal.min():.0f} to"
            f" {literal.max():.0f} times SMR's. "
            if len(literal)
            else ""
        )
        + f"Medians of {int(results['runs'].max())} training sets (the literal form: 1), one"
        f" thread; k = {RANK}, alpha = {SHARE:g} alpha_max, {ITERATIONS} iterations. Seconds are"
        " of this machine and are not compared with those of 2017."
    )
    return Report(
        title="CPU time of a fit",
        claim="SMR and DFS take the most CPU time of the selectors (Table III).",
        published=(
            f"SMR {paper.loc[OURS].div(paper.loc['IG']).min():.0f} to "
            f"{paper.loc[OURS].div(paper.loc['IG']).max():.0f} times IG"
        ),
        optimistic="",
        honest=f"SMR {span} times IG",
        other_data="PIE in five poses",
        rule=(
            "Holds on a data set if the two slowest selectors are SMR and DFS, the literal form"
            " left out; holds if it does on every set."
        ),
        verdict=joined_verdict([heaviest <= {OURS, "DFS"} for heaviest in two]),
        text=text,
        table="CPU seconds, the ratio to information gain, and that ratio in the paper.\n\n"
        + markdown(pd.DataFrame(lines)),
    )
