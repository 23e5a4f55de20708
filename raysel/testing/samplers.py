"""The conformance suite of samplers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from raysel.config.space import Choices, Domain, LogSpace, RandInt, Uniform
from raysel.evaluation.configurations import Configuration
from raysel.evaluation.samplers import BatchedProposals, Sampler
from raysel.testing.checks import Check, global_seeds, require

#: Makes a sampler from fixed parameters, a space and a seed.
MakeSampler: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Domain], int], Sampler]

#: A domain of each kind.
SPACE: dict[str, Domain] = {
    "uniform": Uniform(-2.0, 2.0),
    "loguniform": Uniform(1e-3, 1.0, log=True),
    "logspace": LogSpace(1e-3, 1.0, 7),
    "choices": Choices(("a", "b", 3)),
    "randint": RandInt(1, 6),
}
_FIXED = {"max_iter": 5}
_TOTAL, _BATCH = 24, 4


def sampler_checks(
    name: str, make: MakeSampler, space: Mapping[str, Domain] = SPACE, *, endless: bool = True
) -> Iterator[Check]:
    """Generate the checks of the conformance suite of a sampler.

    Parameters
    ----------
    name : str
        Name of the sampler, the first part of the checks' names.
    make : callable
        Function that takes fixed parameters, a space and a seed, and returns a new sampler.
    space : mapping of str to Domain, default=SPACE
        Search space with at least 24 configurations that the sampler supports.
    endless : bool, default=True
        Whether the sampler may be asked again after it has proposed all configurations of a small
        space.

    Yields
    ------
    Check
        Checks of the kind "sampler".

    Examples
    --------
    >>> from raysel.evaluation.samplers import TPESampler
    >>> for check in sampler_checks("tpe", TPESampler):
    ...     check()
    """
    checks = [
        _proposals_are_in_the_space,
        _a_seed_decides,
        _order_within_a_batch,
        _earlier_points_are_understood,
    ]
    if endless:
        checks.append(_a_small_space_is_tried_once)
    for run in checks:
        yield Check(f"{name}: {run.__name__.strip('_')}", partial(run, make, space), "sampler")


def _score(params: Mapping[str, Any]) -> float:
    """A score that depends on every parameter."""
    return float(
        sum(np.cos(3 * v) if isinstance(v, int | float) else len(v) for v in params.values())
    )


def _contains(domain: Domain, value: Any) -> bool:
    if isinstance(domain, Choices | LogSpace):
        return value in domain.values
    whole = not isinstance(domain, RandInt) or isinstance(value, int)
    return whole and not isinstance(value, bool) and domain.low <= value <= domain.high


def _ask(sampler: Sampler, many: int) -> list[dict[str, Any]]:
    """Configurations in turn, each scored at once."""
    params = []
    for number in range(many):
        params.append(dict(sampler.ask(number)))
        sampler.tell(number, _score(params[-1]))
    return params


def _explore(
    sampler: Sampler, space: Mapping[str, Domain], total: int, shuffle: int
) -> list[dict[str, Any]]:
    """Configurations in batches, those of a batch told in a shuffled order."""
    proposals = BatchedProposals(sampler, total, tuple(space), {}, _BATCH)
    order = random.Random(shuffle)  # noqa: S311
    running: list[Configuration] = []
    tried: list[dict[str, Any]] = []
    while True:
        configuration = proposals.next()
        if configuration is not None:
            running.append(configuration)
            tried.append(dict(configuration.params))
        elif not running:
            require(
                proposals.exhausted,
                f"after {len(tried)} configurations none may be asked for, nor does one run.",
            )
            return tried
        else:
            done = running.pop(order.randrange(len(running)))
            proposals.tell(done.id, _score(done.params))


def _proposals_are_in_the_space(make: MakeSampler, space: Mapping[str, Domain]) -> None:
    for seed in (0, 1):
        for params in _ask(make(_FIXED, space, seed), _TOTAL):
            require(set(params) == {*_FIXED, *space}, f"a configuration sets {sorted(params)}.")
            require(
                {key: params[key] for key in _FIXED} == _FIXED,
                f"the fixed parameters became {params}.",
            )
            outside = {
                key: params[key]
                for key, domain in space.items()
                if not _contains(domain, params[key])
            }
            require(not outside, f"{outside} is not in the space.")


def _a_seed_decides(make: MakeSampler, space: Mapping[str, Domain]) -> None:
    asked = []
    with global_seeds() as seed_globally:
        for seed in (1, 2):
            seed_globally(seed)
            asked.append(_ask(make(_FIXED, space, 0), _TOTAL))
    require(
        asked[0] == asked[1],
        "two samplers of one seed, told the same scores, propose different configurations.",
    )


def _order_within_a_batch(make: MakeSampler, space: Mapping[str, Domain]) -> None:
    explored = [_explore(make(_FIXED, space, 0), space, _TOTAL, shuffle) for shuffle in (0, 1)]
    require(
        explored[0] == explored[1],
        "the order in which the trials of a batch end changes what is proposed.",
    )


def _earlier_points_are_understood(make: MakeSampler, space: Mapping[str, Domain]) -> None:
    sampler = make(_FIXED, space, 0)
    for params in _ask(make(_FIXED, space, 1), 10):
        sampler.observe(params, _score(params))
    for params in _ask(sampler, 10):
        require(
            set(params) == {*_FIXED, *space},
            f"after earlier points a configuration sets {sorted(params)}.",
        )


def _a_small_space_is_tried_once(make: MakeSampler, space: Mapping[str, Domain]) -> None:
    choices = {key: domain for key, domain in space.items() if isinstance(domain, Choices)}
    if not choices:
        return
    tried = _explore(make(_FIXED, choices, 0), choices, 5 * _TOTAL, 0)
    points = [repr(sorted(params.items())) for params in tried]
    most = int(np.prod([len(domain.values) for domain in choices.values()]))
    require(len(points) == len(set(points)), "a configuration is tried twice.")
    require(0 < len(points) <= most, f"{len(points)} of {most} configurations were tried.")
