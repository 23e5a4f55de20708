"""Every sampler meets the suite of samplers."""

from __future__ import annotations

from raysel.config.space import Choices
from raysel.evaluation.configurations import configurations
from raysel.evaluation.samplers import ListSampler, TPESampler
from raysel.testing import parametrize, sampler_checks


def listed(method):
    """A sampler of the list that a search of the space by this method draws."""

    def make(params, space, seed):
        number = 24 if method != "grid" else None
        return ListSampler(
            configurations(params, space, method=method, num_samples=number, seed=seed)
        )

    return make


SMALL = {"a": Choices(tuple(range(8))), "b": Choices((1, 2, 3, "x"))}


@parametrize(
    [
        *sampler_checks("tpe", TPESampler),
        *sampler_checks("random list", listed("random"), endless=False),
        *sampler_checks("sobol list", listed("sobol"), endless=False),
        *sampler_checks("grid list", listed("grid"), SMALL, endless=False),
    ]
)
def test_conformance(check):
    check()
