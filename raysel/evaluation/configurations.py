"""Configurations of a study, listed from its search space."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import qmc
from sklearn.model_selection import ParameterGrid

from raysel.config.searches import GRID, LISTED, PATH, SOBOL
from raysel.config.space import MOST_CONFIGURATIONS, Choices, Domain, LogSpace, RandInt, Uniform
from raysel.core.arrays import FloatArray
from raysel.core.errors import ConfigError


@dataclass(frozen=True)
class Configuration:
    """One set of solver parameters."""

    params: Mapping[str, Any]
    searched: tuple[str, ...]

    @property
    def id(self) -> str:
        """Hash of the parameters, which does not depend on their order."""
        described = json.dumps(dict(self.params), sort_keys=True)
        return hashlib.sha256(described.encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """Searched parameters as text."""
        shown = {key: self.params[key] for key in self.searched} or self.params
        return " ".join(f"{key}={_shown(value)}" for key, value in shown.items()) or "default"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def configurations(
    params: Mapping[str, Any],
    space: Mapping[str, Domain],
    *,
    method: str,
    num_samples: int | None,
    seed: int,
) -> list[Configuration]:
    """List the distinct configurations of a study, in an order that depends on the seed only.

    None are listed where a sampler proposes them.
    """
    searched = tuple(space)
    if method in (GRID, PATH):
        points = _grid(space, num_samples, seed)
    else:
        if num_samples is None:
            raise ConfigError(
                f"search.num_samples is needed by search.method {method}, e.g. num_samples: 32"
            )
        if not space:
            raise ConfigError(
                f"search.method {method} needs solver.space, e.g. space: {{alpha: {{loguniform:"
                " [0.01, 1]}}"
            )
        if method not in LISTED:  # a sampler proposes them
            return []
        points = _sample(space, method, num_samples, seed)
    return [Configuration({**params, **point}, searched) for point in points]


def restrict_to(listed: Sequence[Configuration], ids: Collection[str]) -> list[Configuration]:
    """Select the configurations with the given ids."""
    missing = set(ids) - {configuration.id for configuration in listed}
    if missing:
        raise ConfigError(
            f"search.configurations: {len(missing)} of its {len(ids)} configurations are not in"
            " solver.space; use the list with the config.yaml of the study that it was written by."
        )
    return [configuration for configuration in listed if configuration.id in ids]


def corners(params: Mapping[str, Any], space: Mapping[str, Domain]) -> list[Configuration]:
    """Return the configurations of the first, or lowest, and of the last values of all domains."""
    ends = [{key: _quantile(domain, u) for key, domain in space.items()} for u in (0.0, 1.0)]
    return [Configuration({**params, **end}, tuple(space)) for end in ends]


def _grid(space: Mapping[str, Domain], num_samples: int | None, seed: int) -> list[dict[str, Any]]:
    values: dict[str, Sequence[Any]] = {}
    for key, domain in space.items():
        if isinstance(domain, RandInt):
            values[key] = range(domain.low, domain.high + 1)
        elif isinstance(domain, Uniform):
            raise ConfigError(
                f"solver.space.{key}: {domain.to_yaml()} has no grid; give a list or {{logspace:"
                " [low, high, n]}, or set search.method to random or sobol."
            )
        else:
            values[key] = domain.values
    size = math.prod(map(len, values.values()))
    if min(num_samples or size, size) > MOST_CONFIGURATIONS or size >= 2**63:
        raise ConfigError(
            f"solver.space: its grid has {size} points; give shorter lists, or set search.method to"
            f" random or sobol and search.num_samples to at most {MOST_CONFIGURATIONS}."
        )
    grid = ParameterGrid(values)
    if num_samples is None or num_samples >= size:
        return list(grid)
    generator = np.random.default_rng(seed)
    drawn: set[int] = set()
    # One at a time, so that a larger sample contains every smaller one.
    while len(drawn) < num_samples:
        drawn.add(int(generator.integers(size)))
    return [grid[i] for i in sorted(drawn)]


def _sample(
    space: Mapping[str, Domain], method: str, num_samples: int, seed: int
) -> list[dict[str, Any]]:
    draw = _sobol_rows if method == SOBOL else _random_rows
    # Draws from a space of few points repeat; each point is tried once.
    wanted = min(num_samples, math.prod(_n_values(domain) for domain in space.values()))
    distinct: dict[str, dict[str, Any]] = {}
    for row in draw(len(space), num_samples, seed):
        # Sorted, so that the order of the parameters in the configuration does not matter.
        point = {key: _quantile(space[key], u) for key, u in zip(sorted(space), row, strict=True)}
        distinct.setdefault(json.dumps(point), point)
        if len(distinct) == wanted:
            break
    return list(distinct.values())


def _sobol_rows(n_columns: int, num_samples: int, seed: int) -> Iterator[FloatArray]:
    engine = qmc.Sobol(n_columns, rng=np.random.default_rng(seed))
    for _ in range(64):  # a power of two at a time keeps the sequence balanced
        yield from engine.random(1 << max(0, num_samples - 1).bit_length())


def _random_rows(n_columns: int, num_samples: int, seed: int) -> Iterator[FloatArray]:
    generator = np.random.default_rng(seed)
    for _ in range(64 * num_samples):
        yield generator.random(n_columns)


def _n_values(domain: Domain) -> float:
    if isinstance(domain, RandInt):
        return domain.high - domain.low + 1
    if isinstance(domain, Uniform):
        return math.inf
    return len(domain.values)


def _quantile(domain: Domain, u: float) -> Any:
    """Quantile ``u`` of the domain, with ``u`` in [0, 1]."""
    if isinstance(domain, Choices | LogSpace):
        return domain.values[min(int(u * len(domain.values)), len(domain.values) - 1)]
    if isinstance(domain, RandInt):
        return min(domain.low + int(u * (domain.high - domain.low + 1)), domain.high)
    if domain.log:
        low, high = np.log(domain.low), np.log(domain.high)
        value = float(np.exp(low + u * (high - low)))
    else:
        value = float(domain.low + u * (domain.high - domain.low))
    return min(max(value, domain.low), domain.high)  # rounding may exceed the bounds
