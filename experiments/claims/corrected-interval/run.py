"""Coverage of the 95 % interval of a score and of a difference, by simulation, for every kind of
metric.

Run: python experiments/claims/corrected-interval/run.py; it writes coverage.csv beside itself (7
minutes of CPU time).
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from populations import Population, classes, guess, known, labels, quantity
from sklearn.model_selection import StratifiedShuffleSplit

from raysel.evaluation.splitters import split
from raysel.numerics.inference import (
    MeanInterval,
    TTestResult,
    draws_interval,
    paired_comparison,
    sample_interval,
    sample_test,
)
from raysel.numerics.jackknife import pseudo_values

#: Data sets of each population, and new test sets of a fold's size that give the truth of its
#: model.
N_SETS, N_NEW = 100, 10
#: Number of folds, and whether they are stratified.
FIVE, PLAIN, REPEATED = "5 folds", "5 plain folds", "5 x 5 folds"
#: As many columns as have 100 parts of the 120 samples of a fold, 25 and 20.
MANY_COLUMNS = {1: "5 folds, 100 parts", 20: "5 folds, 25 parts", 25: "5 folds, 20 parts"}
#: Metrics of which the guess has nearly the same score whatever the samples: the interval is the
#: score's, moved by it.
FIXED_CHANCE = ("R2", "Pearson", "AUC", "average precision", "mean average precision")
#: Ten draws of the training set from the data set, as by ``cv.train_per_class``.
DRAWS = "10 draws, half for training"


class Case(NamedTuple):
    """A population, a number of samples and a plan."""

    name: str
    population: Population
    n: int
    plan: str = FIVE
    #: Columns that a score is said to be computed of, which decide on the number of parts of the
    #: jackknife.
    n_columns: int = 1


def cases() -> Iterator[Case]:
    """Yield what is measured."""
    for kind in ("normal", "lognormal", "t, 3 df", "2 % outliers"):
        alone, told = quantity(kind, 0.0), quantity(kind, 0.6)
        for n in (60, 200):
            yield Case(f"{kind}, no signal", alone, n)
            yield Case(f"{kind}, signal", told, n)
        yield Case(f"{kind}, no signal", alone, 200, PLAIN)
    for share in (0.5, 0.3, 0.1):
        for told, shift in (("no signal", 0.0), ("weak", 0.3), ("strong", 1.0)):
            if shift == 0.3 and share != 0.3:
                continue
            for n in (150 if share == 0.1 else 60, 200):
                name = f"classes {1 - share:.1f} / {share:.1f}, {told}"
                yield Case(name, classes(share, shift), n)
    for n, size in ((100, 5), (200, 5)):
        yield Case("normal, groups of 5", quantity("normal", 0.6, size), n)
        yield Case("lognormal, groups of 5", quantity("lognormal", 0.6, size), n)
    yield Case("classes, groups of 5", classes(0.5, 1.0, size=5), 200)
    for told, shift in (("no signal", 0.0), ("signal", 1.0)):
        yield Case(f"four labels, {told}", labels(shift), 150)
    nearest = classes(0.5, 0.9, nearest=True)
    yield Case("classes, nearest neighbour on 5 of 30", nearest, 60)
    yield Case("classes, nearest neighbour on 5 of 30", nearest, 60, REPEATED)
    yield Case("classes 0.7 / 0.3, no signal", classes(0.3, 0.0), 60, REPEATED)
    for kind in ("normal", "lognormal"):
        yield Case(f"{kind}, no signal", quantity(kind, 0.0), 60, REPEATED)
    for n_columns, plan in MANY_COLUMNS.items():
        for kind in ("normal", "lognormal", "2 % outliers"):
            yield Case(f"{kind}, signal", quantity(kind, 0.6), 600, plan, n_columns)
        for share in (0.5, 0.3, 0.1):
            name = f"classes {1 - share:.1f} / {share:.1f}, strong"
            yield Case(name, classes(share, 1.0), 600, plan, n_columns)
    yield Case("classes, nearest neighbour on 5 of 30", nearest, 60, DRAWS)
    yield Case("classes 0.5 / 0.5, strong", classes(0.5, 1.0), 200, DRAWS)


def folds(y: np.ndarray, groups: np.ndarray | None, plan: str, seed: int) -> list[tuple]:
    """Training and test samples of each fold."""
    if plan == PLAIN:
        parts = np.array_split(np.random.default_rng(seed).permutation(len(y)), 5)
        return [(np.setdiff1d(np.arange(len(y)), part), np.sort(part)) for part in parts]
    if plan == DRAWS:
        drawn = StratifiedShuffleSplit(10, test_size=0.5, random_state=seed)
        return list(drawn.split(y, y))
    states = range(5 * seed, 5 * seed + (5 if plan == REPEATED else 1))
    return [
        fold
        for state in states
        for fold in split(y, 5, groups=groups, random_state=state, where="cv.outer")
    ]


class Scores(NamedTuple):
    """Of a metric on each fold: score, that of the guess, their truths, pseudo-values, and hits
    of each class.
    """

    score: list[float]
    guess: list[float]
    truth: list[float]
    guess_truth: list[float]
    values: list[np.ndarray]
    hits: list[np.ndarray]


def scores(case: Case, seed: int) -> dict[str, Scores]:
    """Score a model and the guess in each fold of one data set, and on new samples."""
    population = case.population
    X, y, groups = population.draw(np.random.default_rng([seed, case.n]), case.n)
    found = {name: Scores([], [], [], [], [], []) for name in population.metrics}
    for number, (train, test) in enumerate(folds(y, groups, case.plan, seed)):
        new = np.random.default_rng([seed, case.n, number])
        X_new, y_new, _ = population.draw(new, N_NEW * len(test))
        parts = np.arange(len(y_new)).reshape(N_NEW, -1)
        output = population.model(X[train], y[train], np.vstack([X[test], X_new]))
        guessed, told = guess(y[train], len(test)), known(y[train])
        for name, score in population.metrics.items():
            own = output[: len(test)]
            new_ones = [score(y_new[p], output[len(test) :][p], told) for p in parts]
            new_guesses = [score(y_new[p], guessed, told) for p in parts]
            one = found[name]
            one.score.append(score(y[test], own, told))
            one.guess.append(score(y[test], guessed, told))
            one.truth.append(float(np.nanmean(new_ones)))
            one.guess_truth.append(float(np.nanmean(new_guesses)))
            of_rows = partial(_of_rows, score, y[test], own, told)
            members = test if groups is None else groups[test]
            one.values.append(pseudo_values(of_rows, members, case.n_columns))
            right = (own > 0) == (y[test] > 0)
            one.hits.append(np.array([right[y[test] > 0].sum(), right[y[test] <= 0].sum()]))
    return found


def _of_rows(score, y, output, told, rows) -> float:
    return score(y[rows], output[rows], told)


def interval(case: Case, metric: str, found: Scores) -> MeanInterval | None:
    """Interval of the score as a study shows it; None if it shows none."""
    if metric == "balanced accuracy" and not np.sum(found.hits, axis=0).all():
        return None
    if case.plan == DRAWS:
        return draws_interval(found.score, 1.0)
    n_repeats = 5 if case.plan == REPEATED else 1
    return sample_interval(found.score, 0.25, found.values, n_repeats=n_repeats)


def difference(case: Case, metric: str, found: Scores) -> TTestResult | None:
    """Test of the difference to the guess as a study shows it."""
    if metric not in FIXED_CHANCE or case.plan == DRAWS:
        return paired_comparison(found.score, found.guess, ratio_of(case)).corrected
    n_repeats = 5 if case.plan == REPEATED else 1
    differences = np.subtract(found.score, found.guess)
    return sample_test(differences, ratio_of(case), found.values, n_repeats=n_repeats)


def ratio_of(case: Case) -> float:
    """Number of test samples by that of training samples."""
    return 1.0 if case.plan == DRAWS else 0.25


def coverage(case: Case) -> Iterator[dict[str, object]]:
    """Yield a row of figures for each metric."""
    sets = [scores(case, seed) for seed in range(N_SETS)]
    for name in case.population.metrics:
        drawn = [one[name] for one in sets]
        own = [interval(case, name, one) for one in drawn]
        ends = [(one.lower, one.upper) if one else (None, None) for one in own]
        truths = [float(np.mean(s.truth)) for s in drawn]
        guesses = [float(np.mean(s.guess_truth)) for s in drawn]
        pairs = [difference(case, name, s) for s in drawn]
        zero = [0.0] * len(drawn[0].score)
        alone = [paired_comparison(s.score, zero, ratio_of(case)).corrected for s in drawn]
        of_method = [float(np.mean(truths))] * N_SETS
        of_difference = [of_method[0] - float(np.mean(guesses))] * N_SETS
        widths = [high - low for low, high in ends if low is not None]
        row: dict[str, object] = {"population": case.name, "n": case.n, "plan": case.plan}
        row |= {"metric": name, "data_sets": N_SETS}
        row["mean_score"] = f"{of_method[0]:.3f}"
        row["sd_of_score"] = f"{np.std([np.mean(one.score) for one in drawn]):.4f}"
        row["with_interval"] = f"{len(widths) / N_SETS:.3f}"
        row["width"] = f"{np.mean(widths):.3f}" if widths else ""
        row["models"] = covered(ends, truths)
        row["method"] = covered(ends, of_method)
        row["between_folds"] = covered(ends_of(alone), of_method)
        # The F1 of the guess hangs on which class is the more frequent one.
        row["difference"] = "" if "F1" in name else covered(ends_of(pairs), of_difference)
        yield row


def ends_of(tests) -> list[tuple[float | None, float | None]]:
    """Ends of the intervals of tests, None where there is none."""
    return [(test.lower, test.upper) if test else (None, None) for test in tests]


def covered(ends, truths: list[float]) -> str:
    """Share of the intervals that hold the true value, of the data sets with an interval."""
    held = [
        low <= t <= high for (low, high), t in zip(ends, truths, strict=True) if low is not None
    ]
    return f"{np.mean(held):.3f}" if held else ""


def main() -> None:
    """Measure all cases, print and write the rows."""
    rows = []
    for case in cases():
        for row in coverage(case):
            rows.append(row)
            print(*row.values(), sep=" | ", file=sys.stderr, flush=True)
    with Path(__file__).with_name("coverage.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
