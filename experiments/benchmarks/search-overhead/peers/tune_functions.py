"""Ray Tune's function API: a trial of each training set and C, as its documentation shows."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import ray
from ray import tune
from task import VALUES, inner_score, refit, tell, training_sets


def trial(config, trains):
    """Report the inner score of one C on one training set."""
    tune.report({"score": inner_score(trains[config["set"]], config["C"])})


if __name__ == "__main__":
    sets = training_sets()
    here = str(Path(__file__).parent)
    path = os.pathsep.join([here, *sys.path])
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )
    with tempfile.TemporaryDirectory() as folder:
        found = tune.Tuner(
            tune.with_parameters(trial, trains=[train for train, _ in sets]),
            param_space={
                "set": tune.grid_search(list(range(len(sets)))),
                "C": tune.grid_search(VALUES),
            },
            run_config=tune.RunConfig(storage_path=folder, verbose=0),
        ).fit()
    scores = {(one.config["set"], one.config["C"]): one.metrics["score"] for one in found}
    *tested, _ = [refit(*pair, [scores[i, C] for C in VALUES]) for i, pair in enumerate(sets)]
    ray.shutdown()
    tell(tested)
