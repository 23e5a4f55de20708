"""Optimistic and honest scores of studies, and the verdict on a claim.

For runs r, configurations c and numbers of features s, with test scores T and mean inner scores I:

    optimistic(s) = max_c mean_r T(r, c, s)
    honest(s)     = mean_r T(r, argmax_c I(r, c, s), s)

The optimistic score is that of "the parameters corresponding to the best performance". The honest
one chooses by the inner scores: at each s (a curve), and once over c and s as a study does with
``choose_n: best`` (a table).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd

from experiments.experiment import Experiment, Row
from raysel import open_study
from raysel.run.api import prepare_study

#: Row of the guesses that read no feature.
CHANCE = "chance"
#: Level of the verdicts.
LEVEL = 0.05
#: What `verdict` and `joined_verdict` decide by, for the pages.
RULE = (
    "Holds on a data set if the method's honest score is above every rival's, and its difference to"
    " the rival with the best inner score has P < .05 by Holm; holds if it does on every set."
)


@dataclass(frozen=True)
class Scores:
    """Scores of a method for each run, configuration and number of features (or task)."""

    #: Test and mean inner scores, shape (n_runs, n_configurations, n_sizes).
    test: np.ndarray
    inner: np.ndarray

    @property
    def optimistic(self) -> np.ndarray:
        """Test score of the configuration whose mean test score is the best, at each size;
        (n_runs, n_sizes).
        """
        best = self.test.mean(axis=0).argmax(axis=0)
        return self.test[:, best, np.arange(self.test.shape[2])]

    @property
    def best(self) -> np.ndarray:
        """Test score of each run at the configuration and size whose mean test score is the
        best.
        """
        return self.test[:, *np.unravel_index(self.test.mean(axis=0).argmax(), self.test.shape[1:])]

    @property
    def mean(self) -> Scores:
        """Mean scores over the sizes, as those of one."""
        return Scores(*(values.mean(axis=2, keepdims=True) for values in (self.test, self.inner)))

    @property
    def honest(self) -> np.ndarray:
        """Test score of the configuration whose inner score is the best, of each run at each
        size.
        """
        best = self.inner.argmax(axis=1)
        return np.take_along_axis(self.test, best[:, None, :], axis=1)[:, 0, :]


@lru_cache(maxsize=2)
def _prepared(directory: str) -> Any:
    stored = open_study(directory)
    return prepare_study(
        dict(stored.config), {"cv.plan": str(stored.directory.plan)}, tracked=False
    )


@lru_cache(maxsize=1)
class OuterFold:
    """Outer fold of a finished study: its samples are scaled once a process, for all
    configurations.
    """

    def __init__(self, directory: str, name: str) -> None:
        study = _prepared(directory)
        fold = study.plan.fold(name)
        split = study.split(fold).with_test()
        self.rows = fold.test
        self.X_train, self.y_train = split.X_train, split.y_train
        self.X_test, self.y_test = split.X_test, split.y_test
        self._solver = partial(study.solver, random_state=split.random_state)
        #: Scores of a fitted solver on the test samples, as the study computes them.
        self.score = study.evaluation.scorer(replace(split, random_state=0, known={}))

    def fitted(self, params: Row) -> Any:
        """Fit a configuration on the training samples."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ends by max_iter, as printed
            return self._solver(params).fit(self.X_train, self.y_train)


def fitted_scores(*, fold: str, params: Row, directory: str, **_: str) -> Iterator[Row]:
    """Fit a configuration on an outer training set of a finished study, and score it on the test
    set as the study does.

    Other values of the unit tell the study from others: see `of_study`.
    """
    outer = OuterFold(directory, fold)
    yield {"scores": outer.score(outer.fitted(params)).tolist()}


def of_study(label: str, study: Any) -> Row:
    """What tells a study from others in a unit: its name, the hashes of its data and
    configuration.
    """
    stored = study.stored.study
    return {"study": label, "data": stored.data_hash, "config": stored.config_hash}


def scores_of(experiment: Experiment, label: str, study: Any) -> tuple[Scores, list[Row]]:
    """Return the scores of all configurations of a finished study, and the configurations.

    The inner scores are those that the study recorded, the test scores of its winners too; others
    are fitted here. A configuration that failed has the score -inf.
    """
    winners = {(refit.fold, refit.trial): refit.test_scores for refit in study.outer}
    folds, worst = (
        [refit.fold for refit in study.outer],
        [-np.inf] * len(study.outer[0].test_scores),
    )
    listed = [record for record in study.records if all(fold in record.folds for fold in folds)]
    last = {
        (fold, record.id): record.folds[fold].last_scores for fold in folds for record in listed
    }
    inner = {key: worst if scores is None else scores.mean(axis=0) for key, scores in last.items()}
    same, params = of_study(label, study), {record.id: record.params for record in listed}
    rest = [key for key, scores in last.items() if scores is not None and key not in winners]
    units = [same | {"fold": fold, "params": params[trial]} for fold, trial in rest]
    table = experiment.measure(fitted_scores, units, directory=str(study.path))
    fitted = dict(zip(rest, table["scores"] if rest else (), strict=True))
    test = dict.fromkeys(last, worst) | fitted | winners
    shape = len(folds), len(listed), len(worst)
    return Scores(
        *(np.array([of[key] for key in last]).reshape(shape) for of in (test, inner))
    ), list(params.values())


def is_native(study: Any) -> bool:
    """Whether the method of a study classifies itself, so that there is no number of features."""
    return bool(study.facts.is_native)


def places_of(study: Any) -> list[str]:
    """What the scores of a study are at: its numbers of features, or its tasks."""
    tasks = list(study.stored.study.labels) or [""]
    return tasks if is_native(study) else [str(n) for n in study.config["evaluation"]["n_features"]]


def triple(experiment: Experiment, data: str, comparison: Any) -> pd.DataFrame:
    """Return the optimistic and honest scores of each member of a comparison: a row for each number
    of features.

    ``at`` is the number of features, or the task; ``mean`` over them; or ``chosen``, the score that
    a user gets. The differences are those of the members to the reference, with the 95 % interval
    and the P value, by Holm over the comparison, of the test that speaks of these draws (the plain
    one), or for folds the corrected one.
    """
    rows = [
        row
        for member in comparison.members
        for row in _rows_of(experiment, data, member, comparison)
    ]
    return pd.DataFrame([*rows, *_chance(comparison)]).assign(data=data)


def _chance(comparison: Any) -> Iterator[Row]:
    """Score of the better of the two guesses that read no feature, by the member that has
    references.
    """
    study = next(study for study in comparison.studies.values() if study.outer[0].references)
    guess = study.facts.references["chance"].recorded
    values = np.array([refit.references[guess] for refit in study.outer])
    yield from at_each(CHANCE, places_of(study), 1, values, values)
    yield summary(CHANCE, "chosen", 1, values.mean(axis=1), values.mean(axis=1))


def _rows_of(experiment: Experiment, data: str, member: Any, comparison: Any) -> Iterator[Row]:
    if member.result is None:
        yield {"method": member.label, "at": "chosen", "note": member.failure}
        return
    study, row = member.result, comparison.rows[member.label]
    scores, params = scores_of(experiment, f"{data}: {member.label}", study)
    yield from at_each(
        member.label, places_of(study), len(params), scores.optimistic, scores.honest
    )
    pooled = (
        scores.mean if is_native(study) else scores
    )  # one configuration for all tasks, but one number of features
    chosen = summary(member.label, "chosen", len(study.records), pooled.best, row.scores)
    chosen |= {"inner": float(np.mean(study.inner_scores)), "cpu_seconds": row.cpu_seconds}
    for name, values in row.facts.report.items():
        chosen |= {name: values.mean, f"{name}_sd": values.sd}
    if pair := comparison.pairs.get(member.label):
        chosen |= {"difference": pair.compared.mean, "p": pair.p[pair.main], "test": pair.main}
        if pair.test:
            chosen |= {"lower": pair.test.lower, "upper": pair.test.upper}
    yield chosen


def at_each(
    method: str,
    places: Sequence[str],
    configurations: int,
    optimistic: np.ndarray,
    honest: np.ndarray,
) -> Iterator[Row]:
    """Yield a row for each place of scores of shape (n_runs, n_places) and one for their mean;
    none for one place.
    """
    if len(places) > 1:
        for place, of_optimistic, of_honest in zip(places, optimistic.T, honest.T, strict=True):
            yield summary(method, place, configurations, of_optimistic, of_honest)
        yield summary(method, "mean", configurations, optimistic.mean(axis=1), honest.mean(axis=1))


def summary(
    method: str, at: str, configurations: int, optimistic: np.ndarray, honest: np.ndarray
) -> Row:
    """Mean and standard deviation over the runs."""
    row: Row = {"method": method, "at": at, "runs": len(honest), "configurations": configurations}
    for name, values in (("optimistic", optimistic), ("honest", honest)):
        row |= {
            name: values.mean(),
            f"{name}_sd": values.std(ddof=1) if len(values) > 1 else np.nan,
        }
    return row


@dataclass(frozen=True)
class Verdict:
    """What survives of "the method is the best" on one data set."""

    #: Rival with the best mean inner score, its honest score, that of the method, and the P value
    #: of their difference.
    best_other: str
    other: float
    method: float
    p: float
    holds: bool
    #: Rival with the best honest score, and that score.
    highest: str
    highest_score: float


def verdict(results: pd.DataFrame, method: str, rivals: Sequence[str]) -> Verdict:
    """Judge by rule: the method is above every rival, and its difference to the best other has p <
    .05.

    The best other is the rival with the best inner score, so that no test score chooses it.
    """
    chosen = results[results["at"] == "chosen"].set_index("method")
    others = chosen.loc[[rival for rival in rivals if rival in chosen.index]].dropna(
        subset=["honest"]
    )
    best, own = str(others["inner"].idxmax()), float(chosen.loc[method, "honest"])
    p = float(others.loc[best, "p"])
    highest = str(others["honest"].idxmax())
    top = float(others.loc[highest, "honest"])
    return Verdict(
        best, float(others.loc[best, "honest"]), own, p, bool(own > top and p < LEVEL), highest, top
    )


def joined_verdict(held: Sequence[bool]) -> str:
    """Return the verdict over several data sets, from whether it holds on each."""
    if not held:
        return "cannot be tested here"
    return "holds" if all(held) else "holds on some sets" if any(held) else "does not hold"
