"""From a search space to the list of configurations that a study tries."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import qmc
from sklearn.model_selection import ParameterGrid

from raysel.config.space import MOST_CONFIGURATIONS, Choices, Domain, LogSpace, RandInt, Uniform
from raysel.errors import ConfigError


@dataclass(frozen=True)
class Configuration:
    """One set of solver parameters.

    Parameters
    ----------
    params : mapping
        All parameters that the study sets, fixed and searched.
    searched : tuple of str
        Which of them vary.

    Examples
    --------
    >>> Configuration({"alpha": 0.1, "max_iter": 20}, ("alpha",)).name
    'alpha=0.1'
    """

    params: Mapping[str, Any]
    searched: tuple[str, ...]

    @property
    def id(self) -> str:
        """Hash of the parameters, whatever their order."""
        described = json.dumps(dict(self.params), sort_keys=True)
        return hashlib.sha256(described.encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """The searched parameters, readable."""
        shown = {key: self.params[key] for key in self.searched} or self.params
        return " ".join(f"{k}={f'{v:.4g}' if isinstance(v, float) else v}" for k, v in shown.items()) or "default"


def configurations(
    params: Mapping[str, Any],
    space: Mapping[str, Domain],
    *,
    method: str,
    num_samples: int | None,
    seed: int,
) -> list[Configuration]:
    """The configurations of a study, each once, in an order that the seed decides.

    Parameters
    ----------
    params : mapping
        Fixed parameters.
    space : mapping of str to Domain
    method : {"grid", "path", "random", "sobol", "tpe"}
        A path tries the grid. TPE finds its configurations as it goes: the list is empty.
    num_samples : int or None
        The most that are tried; of a larger grid, a seeded sample. Needed by random and Sobol search.
    seed : int

    Returns
    -------
    list of Configuration

    Raises
    ------
    ConfigError
        If a grid is asked of a continuous domain, or a sample without a size.

    Examples
    --------
    >>> found = configurations({}, {"rank": Choices((1, 2))}, method="grid", num_samples=None, seed=0)
    >>> [configuration.name for configuration in found]
    ['rank=1', 'rank=2']
    """
    searched = tuple(space)
    if method == "tpe":
        if not space:
            raise _no_space(method)
        return []
    points = (
        _grid(space, num_samples, seed) if method in ("grid", "path") else _sample(space, method, num_samples, seed)
    )
    return [Configuration({**params, **point}, searched) for point in points]


def restrict_to(found: Sequence[Configuration], ids: Collection[str]) -> list[Configuration]:
    """Those configurations that have one of the ids.

    Parameters
    ----------
    found : sequence of Configuration
    ids : collection of str

    Returns
    -------
    list of Configuration
        In the order of ``found``.

    Raises
    ------
    ConfigError
        If an id is none of theirs.
    """
    missing = set(ids) - {configuration.id for configuration in found}
    if missing:
        raise ConfigError(
            f"search.configurations: {len(missing)} of its {len(ids)} configurations are not in solver.space; "
            "use it with the config.yaml of the study that it is of."
        )
    return [configuration for configuration in found if configuration.id in ids]


def corners(params: Mapping[str, Any], space: Mapping[str, Domain]) -> list[Configuration]:
    """A configuration of all the first, or lowest, values of the domains, and one of all the last.

    Parameters
    ----------
    params : mapping
        Fixed parameters.
    space : mapping of str to Domain

    Returns
    -------
    list of Configuration
    """
    ends = [{key: _quantile(domain, u) for key, domain in space.items()} for u in (0.0, 1.0)]
    return [Configuration({**params, **end}, tuple(space)) for end in ends]


def _no_space(method: str) -> ConfigError:
    return ConfigError(f"search.method {method} needs solver.space, e.g. space: {{alpha: {{loguniform: [0.01, 1]}}}}")


def _grid(space: Mapping[str, Domain], num_samples: int | None, seed: int) -> list[dict[str, Any]]:
    values: dict[str, Sequence[Any]] = {}
    for key, domain in space.items():
        if isinstance(domain, RandInt):
            values[key] = range(domain.low, domain.high + 1)
        elif isinstance(domain, Uniform):
            raise ConfigError(
                f"solver.space.{key}: {domain.to_yaml()} has no grid; give a list or {{logspace: [low, high, n]}}, "
                "or set search.method to random or sobol."
            )
        else:
            values[key] = domain.values
    size = math.prod(map(len, values.values()))
    if min(num_samples or size, size) > MOST_CONFIGURATIONS or size >= 2**63:
        raise ConfigError(
            f"solver.space: its grid has {size} points; give shorter lists, or set search.method to random or sobol "
            f"and search.num_samples to at most {MOST_CONFIGURATIONS}."
        )
    grid = ParameterGrid(values)
    if num_samples is None or num_samples >= size:
        return list(grid)
    generator = np.random.default_rng(seed)
    drawn: set[int] = set()  # one after the other: a larger sample holds every smaller one
    while len(drawn) < num_samples:
        drawn.add(int(generator.integers(size)))
    return [grid[i] for i in sorted(drawn)]


def _sample(space: Mapping[str, Domain], method: str, num_samples: int | None, seed: int) -> list[dict[str, Any]]:
    if num_samples is None:
        raise ConfigError(f"search.num_samples is needed by search.method {method}, e.g. num_samples: 32")
    if not space:
        raise _no_space(method)
    if method == "sobol":
        engine = qmc.Sobol(len(space), rng=np.random.default_rng(seed))
        # A power of two at a time keeps the sequence balanced.
        rows = (row for _ in range(64) for row in engine.random(1 << max(0, num_samples - 1).bit_length()))
    else:
        generator = np.random.default_rng(seed)
        rows = (generator.random(len(space)) for _ in range(64 * num_samples))
    # A space with few points repeats itself: each is tried once.
    wanted = min(num_samples, math.prod(_n_values(domain) for domain in space.values()))
    distinct: dict[str, dict[str, Any]] = {}
    for row in rows:
        # Sorted, for the same space written in another order is the same search.
        point = {key: _quantile(space[key], u) for key, u in zip(sorted(space), row, strict=True)}
        distinct.setdefault(json.dumps(point), point)
        if len(distinct) == wanted:
            break
    return list(distinct.values())


def _n_values(domain: Domain) -> float:
    if isinstance(domain, RandInt):
        return domain.high - domain.low + 1
    return math.inf if isinstance(domain, Uniform) else len(domain.values)


def _quantile(domain: Domain, u: float) -> Any:
    """The value below which a share ``u`` of the domain lies."""
    if isinstance(domain, Choices | LogSpace):
        return domain.values[min(int(u * len(domain.values)), len(domain.values) - 1)]
    if isinstance(domain, RandInt):
        return min(domain.low + int(u * (domain.high - domain.low + 1)), domain.high)
    low, high = (np.log(domain.low), np.log(domain.high)) if domain.log else (domain.low, domain.high)
    value = low + u * (high - low)
    return min(max(float(np.exp(value) if domain.log else value), domain.low), domain.high)  # rounding may leave it
