"""Samplers beyond their suite: batches, what is known already, and the proposals of Ray's
wrapper of Optuna.
"""

from __future__ import annotations

import random

import optuna
import pytest
from ray.tune.search.optuna import OptunaSearch

from raysel.config.space import Choices, LogSpace, RandInt, Uniform
from raysel.evaluation.configurations import Configuration
from raysel.evaluation.samplers import BatchedProposals, ListSampler, TPESampler

SPACE = {
    "alpha": Uniform(1e-3, 1.0, log=True),
    "beta": LogSpace(1e-3, 1.0, 7),
    "init": Choices(("a", "b")),
    "rank": RandInt(1, 6),
}


def score(params) -> float:
    """Best at the lowest alpha and the highest rank."""
    return params["rank"] / 6 - params["alpha"] - 0.1 * (params["init"] == "b")


def explore(
    seed: int,
    *,
    size: int | None,
    total: int = 24,
    known=(),
    shuffle: int | None = None,
    source=None,
):
    """Run a fold's proposals to their end; those of a batch are settled in any order."""
    proposals = BatchedProposals(
        source or TPESampler({"max_iter": 5}, SPACE, seed), total, tuple(SPACE), dict(known), size
    )
    order, tried, running = random.Random(shuffle), [], []
    while True:
        actual = proposals.next()
        if actual is not None:
            tried.append(actual)
            running.append(actual)
            if size is not None or len(running) < 3:
                continue
        if not running:
            assert proposals.exhausted
            return tried
        done = running.pop(order.randrange(len(running)) if shuffle is not None else 0)
        proposals.tell(done.id, score(done.params))


def test_what_was_learnt_is_asked_for_again_but_not_tried_again():
    calm = explore(0, size=4)
    for cut in (1, 5, 8, len(calm)):
        known = {c.id: score(c.params) for c in random.Random(cut).sample(calm[:cut], cut)}
        again = explore(0, size=4, known=known)
        assert [c.params for c in again] == [c.params for c in calm[cut:]]


def test_a_batch_waits_for_the_one_before():
    listed = [Configuration({"rank": r}, ("rank",)) for r in range(7)]
    proposals = BatchedProposals(ListSampler(listed), 7, ("rank",), {}, 3)
    first = [proposals.next() for _ in range(3)]
    assert first == listed[:3]
    assert proposals.next() is None
    for configuration in first[1:]:
        proposals.tell(configuration.id, 0.5)
        assert proposals.next() is None
    proposals.tell(first[0].id, 0.5)
    assert proposals.next() == listed[3]
    assert not proposals.exhausted


WRAPPED = {
    "alpha": Uniform(1e-3, 1.0, log=True),
    "rank": RandInt(1, 6),
    "shift": Uniform(-2.0, 2.0),
}


def peer_score(params) -> float:
    return params["rank"] / 6 - params["alpha"] - abs(params["shift"])


@pytest.mark.parametrize("seed", [0, 7])
def test_it_proposes_what_rays_wrapper_of_optuna_proposes(seed):
    space = {
        "alpha": optuna.distributions.FloatDistribution(1e-3, 1.0, log=True),
        "rank": optuna.distributions.IntDistribution(1, 6),
        "shift": optuna.distributions.FloatDistribution(-2.0, 2.0),
    }
    peer = OptunaSearch(
        space, metric="score", mode="max", sampler=optuna.samplers.TPESampler(seed=seed)
    )
    sampler = TPESampler({}, WRAPPED, seed)
    for number in range(30):
        expected = peer.suggest(str(number))
        assert sampler.ask(number) == expected
        sampler.tell(number, peer_score(expected))
        peer.on_trial_complete(str(number), {"score": peer_score(expected)})


def test_points_of_an_earlier_run_are_learnt_from():
    taught, untaught = (TPESampler({}, {"alpha": Uniform(0.0, 1.0)}, 0) for _ in range(2))
    for i in range(60):
        taught.observe({"alpha": i / 60}, -abs(i / 60 - 0.3))
    near = [abs(taught.ask(n)["alpha"] - 0.3) for n in range(20)]
    far = [abs(untaught.ask(n)["alpha"] - 0.3) for n in range(20)]
    assert sum(near) < sum(far) / 2
