"""Errors of MTDA and its rivals on face sets, its convergence, and d'. Run: python experiments/mtda-accuracy/run.py"""

from __future__ import annotations

import csv
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.metrics import pairwise_distances_argmin
from threadpoolctl import threadpool_limits

from raysel.baselines.aggregate import Aggregate
from raysel.baselines.linear_projections import LDA, PCA, TraceRatioLDA
from raysel.data.loading import load_dataset
from raysel.evaluation.splitters import draw_per_class
from raysel.solvers.mtda.mtda import MTDA

FACES = {"AR": "AR100_32x32.npz", "ORL": "ORL_28x23.npz", "PIE": "PIE_68x42_32x32.npz"}
REPEATS, COMMON = 10, 9
OWN, SHARED = "range, d = c - 1", f"PCA to n - c, d = {COMMON}"
HERE = Path(__file__).parent
SHADES = {"exact": "#08519c", "alternating": "#41ab5d", "printed": "#d95f02"}


def splits(faces, per_person, repeat):
    """Training and test sets of every task, in units of the pixels' range; the same for all methods."""
    for data in faces.values():
        train, test = draw_per_class(data.y, per_person, groups=None, random_state=repeat)
        yield data.X[train] / 255, data.y[train], data.X[test] / 255, data.y[test]


def to_within_rank(X, y, X_test):
    """PCA to n - c dimensions, in which the within-class scatter has full rank: the setting of Fisherfaces."""
    mean = X.mean(axis=0)
    centred = X - mean
    _, singular, axes = np.linalg.svd(centred, full_matrices=False)
    kept = min(len(X) - len(np.unique(y)), int((singular > 1e-10 * singular[0]).sum()))
    return centred @ axes[:kept].T, (X_test - mean) @ axes[:kept].T


def methods(setting, seed):
    """The fitted methods of a setting, by name."""
    if setting == OWN:
        return {
            "PCA": PCA(),
            "LDA, ratio trace": LDA(),
            "LDA, trace ratio": TraceRatioLDA(),
            "MTDA exact": MTDA(),
            "MTDA printed": MTDA(method="printed", tol=1e-6, random_state=seed),
            "Aggregate": Aggregate(),
            "LDA, trace ratio, shrinkage .1": TraceRatioLDA(shrinkage=0.1),
            "MTDA exact, shrinkage .1": MTDA(shrinkage=0.1),
        }
    return {
        "PCA": PCA(n_components=COMMON),
        "LDA, ratio trace": LDA(n_components=COMMON),
        "LDA, trace ratio": TraceRatioLDA(n_components=COMMON),
        "MTDA exact": MTDA(n_components=COMMON),
        "MTDA printed": MTDA(n_components=COMMON, method="printed", tol=1e-6, random_state=seed),
        "Aggregate": Aggregate(n_components=COMMON),
        "MTDA exact, weights 1": MTDA(n_components=COMMON, task_weights="uniform"),
    }


def errors(faces, repeats):
    """One row a setting, p, repeat, method and task."""
    for per_person in (2, 3, 4, 5):
        for repeat in range(repeats):
            raw = list(splits(faces, per_person, repeat))
            reduced = [(*to_within_rank(X, y, X_test), y, y_test) for X, y, X_test, y_test in raw]
            settings = {OWN: raw, SHARED: [(X, y, X_test, y_test) for X, X_test, y, y_test in reduced]}
            for name, (X, y, X_test, y_test) in zip(faces, raw, strict=True):
                wrong = np.mean(y[pairwise_distances_argmin(X_test, X)] != y_test)
                yield "pixels", per_person, repeat, "nearest neighbour", name, float(wrong)
            for setting, tasks in settings.items():
                for method, model in methods(setting, repeat).items():
                    model.fit_tasks([(X, y) for X, y, _, _ in tasks])
                    for i, (name, (_, _, X_test, y_test)) in enumerate(zip(faces, tasks, strict=True)):
                        wrong = np.mean(model.predict_task(i, X_test) != y_test)
                        yield setting, per_person, repeat, method, name, float(wrong)


def shrinkage(faces, repeats):
    """Error by shrinkage of the within-class scatter: p = 5, range, d = c - 1."""
    for repeat in range(repeats):
        tasks = list(splits(faces, 5, repeat))
        for amount in (0.01, 0.03, 0.1, 0.3):
            rivals = {"LDA, ratio trace": LDA, "LDA, trace ratio": TraceRatioLDA, "MTDA exact": MTDA}
            for method, kind in rivals.items():
                model = kind(shrinkage=amount).fit_tasks([(X, y) for X, y, _, _ in tasks])
                for i, (name, (_, _, X_test, y_test)) in enumerate(zip(faces, tasks, strict=True)):
                    yield amount, repeat, method, name, float(np.mean(model.predict_task(i, X_test) != y_test))


def convergence(faces):
    """The objective by iteration: p = 5, PCA to n - c, d = 9, d' halfway, ten random starts."""
    tasks = [(to_within_rank(X, y, X)[0], y) for X, y, _, _ in splits(faces, 5, 0)]
    for method in SHADES:
        for seed in range(1 if method == "exact" else 10):
            model = MTDA(n_components=COMMON, method=method, tol=0.0, max_iter=25, random_state=seed)
            for iteration, objective in enumerate(model.fit_tasks(tasks).objective_path_, 1):
                yield method, seed, iteration, float(objective)


def sensitivity(faces, repeats):
    """Error and objective of the printed method by d': p = 5, PCA to n - c, d = 9; exact needs no d'."""
    for repeat in range(repeats):
        tasks = [(*to_within_rank(X, y, X_test), y, y_test) for X, y, X_test, y_test in splits(faces, 5, repeat)]
        for width in (9, 20, 40, 80, 120, 160, None):
            method = "printed" if width else "exact"
            tol = 1e-6 if width else 1e-12
            model = MTDA(
                n_components=COMMON, method=method, intermediate_dim=width, tol=tol, random_state=repeat
            ).fit_tasks([(X, y) for X, _, y, _ in tasks])
            wrong = [np.mean(model.predict_task(i, t[1]) != t[3]) for i, t in enumerate(tasks)]
            yield width or "exact", repeat, float(np.mean(wrong)), float(model.objective_path_[-1])


def write(name, header, rows):
    """Keep the rows as CSV beside this file and give them back."""
    rows = list(rows)
    with (HERE / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([[f"{v:.15g}" if isinstance(v, float) else v for v in row] for row in rows])
    return rows


def table(rows):
    """Mean error over tasks by method and p, with the standard deviation over repeats, in Markdown."""
    lines = ["| setting | method | p = 2 | p = 3 | p = 4 | p = 5 |", "|---|---|---|---|---|---|"]
    for setting, method in dict.fromkeys((row[0], row[3]) for row in rows):
        cells = []
        for p in (2, 3, 4, 5):
            chosen = [(row[2], row[5]) for row in rows if (row[0], row[3], row[1]) == (setting, method, p)]
            means = [np.mean([e for r, e in chosen if r == repeat]) for repeat in sorted({r for r, _ in chosen})]
            cells.append(f"{np.mean(means):.3f} ± {np.std(means, ddof=1):.3f}".replace("0.", "."))
        lines.append(f"| {setting} | {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def gains(rows):
    """MTDA's error less that of LDA on the same draws, mean over p, by task; below 0 MTDA gains. In Markdown."""
    pairs = (
        (OWN, "MTDA exact", "LDA, trace ratio"),
        (OWN, "MTDA exact", "LDA, ratio trace"),
        (OWN, "MTDA exact, shrinkage .1", "LDA, trace ratio, shrinkage .1"),
        (SHARED, "MTDA exact", "LDA, trace ratio"),
        (SHARED, "MTDA exact", "LDA, ratio trace"),
    )
    lines = ["| setting | MTDA | less LDA | AR | ORL | PIE |", "|---|---|---|---|---|---|"]
    for setting, ours, theirs in pairs:
        cells = []
        for task in FACES:
            mine, other = (
                np.array([row[5] for row in rows if (row[0], row[3], row[4]) == (setting, method, task)])
                for method in (ours, theirs)
            )
            means = (mine - other).reshape(4, -1).mean(axis=0)  # over p, draw by draw
            cells.append(f"{means.mean():+.3f} ± {means.std(ddof=1):.3f}".replace("0.", "."))
        lines.append(f"| {setting} | {ours} | {theirs} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def shrinkage_table(rows):
    """Mean error over tasks by shrinkage, p = 5, in Markdown."""
    amounts = sorted({row[0] for row in rows})
    lines = ["| method | " + " | ".join(f"{a:g}".lstrip("0") for a in amounts) + " |", "|---|" + "---|" * len(amounts)]
    for method in dict.fromkeys(row[2] for row in rows):
        means = [np.mean([row[4] for row in rows if row[0] == a and row[2] == method]) for a in amounts]
        lines.append(f"| {method} | " + " | ".join(f"{m:.3f}".lstrip("0") for m in means) + " |")
    return "\n".join(lines)


def draw(error_rows, paths, widths):
    """Errors by p in both settings, convergence, and sensitivity to d'."""
    figure = Figure(figsize=(11, 8.4), layout="constrained")
    (left, right), (below, beside) = figure.subplots(2, 2)
    tones = dict(zip(
        ["nearest neighbour", "PCA", "Aggregate", "LDA, ratio trace", "LDA, trace ratio", "MTDA exact", "MTDA printed"],
        ["0.6", "0.35", "#cc79a7", "#e6ab02", "#41ab5d", SHADES["exact"], SHADES["printed"]],
        strict=True,
    ))  # fmt: skip
    titles = {OWN: "each task its own d = c - 1", SHARED: f"one d = {COMMON} for all tasks, after PCA to n - c"}
    for axes, (setting, title) in zip((left, right), titles.items(), strict=True):
        for method, colour in tones.items():
            at = [(r[1], r[2], r[5]) for r in error_rows if r[3] == method and r[0] in (setting, "pixels")]
            draws = [[[e for p, r, e in at if (p, r) == (wanted, repeat)] for repeat in sorted({r for _, r, _ in at})]
                     for wanted in (2, 3, 4, 5)]  # fmt: skip
            means = np.mean(draws, axis=2)
            style, width = {"LDA, trace ratio": ("--", 3.4), "MTDA exact": ("-", 1.7)}.get(method, ("-", 1.5))
            axes.errorbar((2, 3, 4, 5), means.mean(axis=1), means.std(axis=1, ddof=1), linestyle=style, linewidth=width,
                          elinewidth=1, color=colour, marker="o", ms=4, label=method)  # fmt: skip
        axes.set(
            title=title, xlabel="training images a person, p", ylabel="error, mean over three tasks", ylim=(0, 0.72)
        )
        axes.set_xticks([2, 3, 4, 5])
    right.legend(*left.get_legend_handles_labels(), fontsize=8, frameon=False, ncols=2, loc="lower left")
    best = max(row[3] for row in paths)
    for method, colour in SHADES.items():
        for seed in sorted({row[1] for row in paths if row[0] == method}):
            curve = [(row[2], max(best - row[3], 1e-16)) for row in paths if row[:2] == (method, seed)]
            axes_label = method if seed == 0 else None
            width = 2.4 if method == "exact" else 0.9
            below.plot(*zip(*curve, strict=True), color=colour, linewidth=width, alpha=0.8, label=axes_label)
    below.set(title=f"convergence from ten random starts (p = 5, d = {COMMON})", xlabel="iteration")
    below.set(ylabel="objective below its optimum", yscale="log")
    below.legend(fontsize=8, frameon=False)
    finite = sorted({row[0] for row in widths if row[0] != "exact"})
    for index, (colour, what, axes) in enumerate(
        ((SHADES["printed"], "error", beside), ("0.35", "objective", beside.twinx())), 2
    ):
        spread = [[row[index] for row in widths if row[0] == width] for width in finite]
        axes.errorbar(
            finite, np.mean(spread, axis=1), np.std(spread, axis=1, ddof=1), color=colour, marker="o", ms=4, capsize=3
        )
        exact = np.mean([row[index] for row in widths if row[0] == "exact"])
        axes.axhline(exact, color=colour, linestyle="--", linewidth=1)
        below_or_above = "top" if what == "error" else "bottom"
        axes.annotate(f"exact, {what}", (0.98, exact), xycoords=("axes fraction", "data"), ha="right", color=colour,
                      va=below_or_above, fontsize=8)  # fmt: skip
        axes.set_ylabel(f"{what} of the printed method", color=colour)
    beside.set(title=f"sensitivity to d' (p = 5, d = {COMMON})", xlabel="d'")
    for axes in (left, right, below, beside):
        axes.grid(color="0.92")
        axes.set_axisbelow(True)
        axes.spines[["top"]].set_visible(False)
    figure.savefig(HERE / "figures.png", dpi=100, metadata={"Software": "raysel"})


def main() -> None:
    """Print the table; write the tables as .csv, and figures.png, beside this file."""
    folder = os.environ.get("RAYSEL_DATA")
    if not folder:
        sys.exit(f"set RAYSEL_DATA to the folder of {', '.join(FACES.values())}")
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS
    faces = {name: load_dataset(Path(folder, file)) for name, file in FACES.items()}
    warnings.filterwarnings("ignore", message="method='printed'")
    start = time.process_time()
    rows = write("errors", ("setting", "p", "repeat", "method", "task", "error"), errors(faces, repeats))
    print(table(rows), gains(rows), sep="\n\n")
    shrunk = write("shrinkage", ("shrinkage", "repeat", "method", "task", "error"), shrinkage(faces, repeats))
    print(f"\n{shrinkage_table(shrunk)}\n")
    paths = write("convergence", ("method", "start", "iteration", "objective"), convergence(faces))
    widths = write("sensitivity", ("d'", "repeat", "error", "objective"), sensitivity(faces, repeats))
    draw(rows, paths, widths)
    print(f"{time.process_time() - start:.0f} CPU seconds")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
