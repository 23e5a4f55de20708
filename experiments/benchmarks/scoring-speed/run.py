"""Share of the trials' CPU time in scores by nearest neighbours, beside scikit-learn's."""

from __future__ import annotations

import argparse
import csv
import sys
import warnings

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from experiments.timing import cpu_seconds
from raysel.evaluation.scoring import Evaluation
from raysel.execution.serial import MEMORY_SHARE, PreparedFolds
from raysel.execution.trials import ConfigurationTrial
from raysel.numerics.rankings import descending_order
from raysel.run.api import prepare_study

STUDIES = ("digits-smr", "usps-smr", "orl-smr")


class Scoring:
    """Patch of `Evaluation.scorer` that times every score, and the peer once for each set of
    features of a fold.
    """

    def __init__(self) -> None:
        self.ours = self.peer = 0.0
        self.n_pairs, self._scored = 0, set()
        self._scorer = Evaluation.scorer

    def scorer(self, evaluation, split, settings):
        """Stand in for `Evaluation.scorer`."""
        seconds, score = cpu_seconds(lambda: self._scorer(evaluation, split, settings))
        self.ours += seconds

        def timed(selector, failures=None):
            seconds, values = cpu_seconds(lambda: score(selector, failures))
            self.ours += seconds
            order = descending_order(np.where(split.constant, 0.0, selector.scores_))[
                : (selector.scores_ > 0).sum()
            ]
            for n, value in zip(evaluation.n_features, values, strict=True):
                best = np.sort(order[:n])
                self.n_pairs += 1
                if len(best) and (key := (split.random_state, best.tobytes())) not in self._scored:
                    self._scored.add(key)
                    seconds, accuracy = cpu_seconds(lambda b=best: peer(split, b))
                    self.peer += seconds
                    # scikit-learn takes one of several nearest samples.
                    if abs(accuracy - value) > 0.2:
                        raise SystemExit(f"the peer scores {accuracy}, not {value}")
            return values

        return timed

    @property
    def n_sets(self) -> int:
        """Number of different pairs of a fold and a set of features."""
        return len(self._scored)


def peer(split, best) -> float:
    """Accuracy of scikit-learn's nearest neighbour in the best features."""
    nearest = KNeighborsClassifier(1).fit(split.X_train[:, best], split.y_train)
    return float((nearest.predict(split.X_test[:, best]) == split.y_test).mean())


def main() -> None:
    """Print a line of CSV a study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", nargs="*", default=STUDIES)
    parser.add_argument(
        "--configurations", type=int, default=8, help="so many, spread over the grid"
    )
    arguments = parser.parse_args()
    table = csv.writer(sys.stdout)
    table.writerow(
        ["study", "configurations", "fits", "scoring", "share", "scores", "sets", "scikit-learn"]
    )
    for name in arguments.studies:
        study = prepare_study(name)
        plain = Evaluation.scorer
        folds, scoring = PreparedFolds(study, MEMORY_SHARE), Scoring()
        Evaluation.scorer = lambda *a, s=scoring: s.scorer(*a)
        numbers = np.unique(
            np.linspace(0, len(study.configurations) - 1, arguments.configurations).astype(int)
        )
        trials = [
            ConfigurationTrial(study, {"configuration": int(number)}, folds) for number in numbers
        ]
        seconds, _ = cpu_seconds(lambda t=trials: [list(trial.steps()) for trial in t])
        if any(trial.record.failed_folds for trial in trials):
            raise SystemExit("a trial failed")
        Evaluation.scorer = plain
        fits = seconds - scoring.ours - scoring.peer
        figures = fits, scoring.ours, scoring.ours / (fits + scoring.ours)
        row = [
            name,
            len(trials),
            *(f"{figure:.3f}" for figure in figures),
            scoring.n_pairs,
            scoring.n_sets,
        ]
        table.writerow([*row, f"{scoring.peer:.3f}"])
        sys.stdout.flush()


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
        main()
