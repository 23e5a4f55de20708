"""Configurations of a search as figures show them, and the choice of the parameters to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_GROUPS = 5  # groups of the values of a parameter of many values


@dataclass(frozen=True)
class TriedConfiguration:
    """A configuration as the figure shows it."""

    params: Mapping[str, Any]
    score: float | None
    n_winners: int = 0
    is_model: bool = False
    stopped: bool = False
    fold: str = ""


def shown_parameters(tried: Sequence[TriedConfiguration]) -> list[str]:
    """Choose at most two of the parameters that vary: those whose values explain most of the variance of the score.

    The share of a pair is the variance of the mean scores of the pair's cells; the values of a number with many of
    them are divided into five groups of equal size first. The order is that of the parameters.
    """
    varying = varying_parameters(tried)
    scored = [one for one in tried if one.score is not None]
    if len(varying) <= 2 or not scored:
        return varying[:2]
    scores = np.array([one.score for one in scored], dtype=float)
    groups = {name: _groups([one.params.get(name) for one in scored]) for name in varying}

    def explained(pair: tuple[str, str]) -> float:
        cells: dict[tuple[int, int], list[float]] = {}
        for a, b, score in zip(groups[pair[0]], groups[pair[1]], scores, strict=True):
            cells.setdefault((a, b), []).append(score)
        return round(sum(len(own) * (np.mean(own) - scores.mean()) ** 2 for own in cells.values()), 12)

    pairs = [(a, b) for i, a in enumerate(varying) for b in varying[i + 1 :]]
    best = max(pairs, key=explained)
    return [*best]


def varying_parameters(tried: Sequence[TriedConfiguration]) -> list[str]:
    """Return the names of the parameters that have several values."""
    names = dict.fromkeys(name for one in tried for name in one.params)
    return [name for name in names if len({repr(one.params.get(name)) for one in tried}) > 1]


def is_number(value: Any) -> bool:
    """Return whether the value of a parameter is a number; True and False are none."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))


def distinct_values(tried: Sequence[TriedConfiguration], name: str) -> list[Any]:
    """Return the distinct values of a parameter: numbers increasing, then the others in their order."""
    found = {repr(one.params.get(name)): one.params.get(name) for one in tried}
    numbers: list[Any] = [value for value in found.values() if is_number(value)]
    return [*sorted(numbers), *(value for value in found.values() if not is_number(value))]


def _groups(values: Sequence[Any]) -> list[int]:
    keys = [repr(value) for value in values]
    distinct = list(dict.fromkeys(keys))
    if len(distinct) > _GROUPS and all(is_number(value) for value in values):
        numbers = np.array(values, dtype=float)
        return np.searchsorted(np.quantile(numbers, np.linspace(0, 1, _GROUPS + 1)[1:-1]), numbers).tolist()
    return [distinct.index(key) for key in keys]


def is_grid(tried: Sequence[TriedConfiguration], names: Sequence[str]) -> bool:
    """Return whether the configurations fill most cells of the grid of the two parameters' values."""
    pairs = {tuple(repr(one.params.get(name)) for name in names) for one in tried}
    n_cells = np.prod([len(distinct_values(tried, name)) for name in names])
    return bool(len(pairs) >= 0.6 * n_cells)
