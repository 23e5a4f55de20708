"""Nulls: noise, dependent samples, units, and a random ranking."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from trap import Data, StudyTrap, says, verdict

from raysel.results import texts
from raysel.results.result import StudyResult


def noise(rng: np.random.Generator) -> Data:
    """Balanced labels that no feature tells."""
    return rng.standard_normal((200, 40)), rng.permutation(np.arange(200) % 2), {}


def imbalance(rng: np.random.Generator) -> Data:
    """170 samples of one class and 30 of the other, that no feature tells."""
    return rng.standard_normal((200, 40)), rng.permutation(np.repeat([0, 1], [170, 30])), {}


def time_series(rng: np.random.Generator) -> Data:
    """Rows of a random walk, with labels in blocks of 30 rows."""
    return rng.standard_normal((240, 20)).cumsum(axis=0), np.repeat(np.arange(8) % 2, 30), {}


def subjects(rng: np.random.Generator) -> Data:
    """40 subjects of 6 adjacent rows each, without a column that names them, and a random label
    for each subject.
    """
    X = np.repeat(rng.standard_normal((40, 20)), 6, axis=0) + 0.3 * rng.standard_normal((240, 20))
    return X, np.repeat(rng.permutation(np.arange(40) % 2), 6), {}


def twins(rng: np.random.Generator) -> Data:
    """Every subject measured twice, far apart in the file, and a random label for each subject."""
    X, y = rng.standard_normal((100, 20)), rng.permutation(np.arange(100) % 2)
    order = rng.permutation(200)
    return (
        (np.vstack([X, X]) + 0.05 * rng.standard_normal((200, 20)))[order],
        np.tile(y, 2)[order],
        {},
    )


def draws(_: np.random.Generator) -> Data:
    """Digits, ten draws of 4 training samples a class: far above chance."""
    X, y = load_digits(return_X_y=True)
    return (
        X[:600],
        y[:600],
        {"cv": {"train_per_class": 4, "repeats": 10, "inner": 2, "final": False}},
    )


def units(_: np.random.Generator) -> Data:
    """Breast cancer, whose columns differ in unit."""
    X, y = load_breast_cancer(return_X_y=True)
    return (
        X,
        y,
        {"solver": {"name": "smr", "params": {"max_iter": 20}, "space": {"alpha": [0.01, 0.1]}}},
    )


def one_range(rng: np.random.Generator) -> Data:
    """Breast cancer with one range for all columns, as the user asks."""
    X, y, keys = units(rng)
    return X, y, {**keys, "dataset": {"scaling": "unit"}}


def random_ranking(rng: np.random.Generator) -> Data:
    """Four of 200 features tell the class, and the features are ranked at random."""
    X, y = rng.standard_normal((200, 200)), np.arange(200) % 2
    X[:, :4] += y[:, None]
    return X, y, {"solver": {"name": "random_ranking"}}


def time_in_blocks(rng: np.random.Generator) -> Data:
    """The random walk, whose blocks of 30 rows are kept together."""
    X, y, _ = time_series(rng)
    return X, y, {"cv": {"outer": 4, "inner": 2, "blocks": {"size": 30}}}


def _beaten(result: StudyResult) -> bool:
    return result.references["f_test"].verdict == "worse"


def _within_bounds(result: StudyResult) -> bool:
    lower, upper = result.interval.lower, result.interval.upper
    return (
        verdict(result) == "better"
        and lower is not None
        and upper is not None
        and 0.2 < lower < upper <= 1.0
    )


TRAPS = {
    "noise": StudyTrap(noise, "not better than chance", lambda r: verdict(r) != "better"),
    "imbalance": StudyTrap(
        imbalance, "not better than the most frequent class", lambda r: verdict(r) != "better"
    ),
    "noise, stability": StudyTrap(
        noise,
        "agreement at the level of permuted labels",
        lambda r: "is not above that" in texts.noise_level(r.facts),
    ),
    "time": StudyTrap(time_series, "a remark on rows like their neighbours", says("row")),
    "time, in blocks": StudyTrap(
        time_in_blocks, "not better than chance", lambda r: verdict(r) != "better"
    ),
    "subjects": StudyTrap(subjects, "a remark on rows like their neighbours", says("row")),
    "twins": StudyTrap(twins, "a remark on nearly equal samples", says("equal")),
    "draws": StudyTrap(draws, "better than chance, by an interval within 0 to 1", _within_bounds),
    "units": StudyTrap(
        units, "zscore by default", lambda r: r.config["dataset"]["scaling"] == "zscore"
    ),
    "one range": StudyTrap(
        one_range, "a remark on columns of different scales", says("standard deviations differ")
    ),
    "random ranking": StudyTrap(random_ranking, "worse than the F-test", _beaten),
}
