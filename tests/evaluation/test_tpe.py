"""The TPE sampler: the proposals of Ray's wrapper of Optuna, and points of an earlier run."""

from __future__ import annotations

import optuna
import pytest
from ray.tune.search.optuna import OptunaSearch

from raysel.config.space import RandInt, Uniform
from raysel.evaluation.tpe import TPESampler

SPACE = {
    "alpha": Uniform(1e-3, 1.0, log=True),
    "rank": RandInt(1, 6),
    "shift": Uniform(-2.0, 2.0),
}


def score(params) -> float:
    return params["rank"] / 6 - params["alpha"] - abs(params["shift"])


@pytest.mark.parametrize("seed", [0, 7])
def test_it_proposes_what_rays_wrapper_of_optuna_proposes(seed):
    space = {
        "alpha": optuna.distributions.FloatDistribution(1e-3, 1.0, log=True),
        "rank": optuna.distributions.IntDistribution(1, 6),
        "shift": optuna.distributions.FloatDistribution(-2.0, 2.0),
    }
    peer = OptunaSearch(space, metric="score", mode="max", sampler=optuna.samplers.TPESampler(seed=seed))
    own = TPESampler({}, SPACE, seed)
    for number in range(30):
        expected = peer.suggest(str(number))
        assert own.ask(number) == expected
        own.tell(number, score(expected))
        peer.on_trial_complete(str(number), {"score": score(expected)})


def test_points_of_an_earlier_run_are_learnt_from():
    taught, untaught = (TPESampler({}, {"alpha": Uniform(0.0, 1.0)}, 0) for _ in range(2))
    for i in range(60):
        taught.observe({"alpha": i / 60}, -abs(i / 60 - 0.3))
    near = [abs(taught.ask(n)["alpha"] - 0.3) for n in range(20)]
    far = [abs(untaught.ask(n)["alpha"] - 0.3) for n in range(20)]
    assert sum(near) < sum(far) / 2
