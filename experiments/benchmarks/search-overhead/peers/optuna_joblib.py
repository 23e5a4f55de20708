"""Optuna and joblib: a study of each training set, in two processes."""

from __future__ import annotations

import optuna
from joblib import Parallel, delayed
from task import VALUES, inner_score, refit, tell, training_sets


def nested(train, test):
    """Search one training set, and score what was chosen."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.GridSampler({"C": VALUES}, seed=0)
    )
    study.optimize(
        lambda trial: inner_score(train, trial.suggest_float("C", min(VALUES), max(VALUES)))
    )
    found = {trial.params["C"]: trial.value for trial in study.trials}
    return refit(train, test, [found[C] for C in VALUES])


if __name__ == "__main__":
    *scores, _ = Parallel(2)(delayed(nested)(*pair) for pair in training_sets())
    tell(scores)
