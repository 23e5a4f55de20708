"""Domains of the searched parameters, and their form in a configuration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from raysel.core.errors import suggestion

#: Value of a parameter; a list of numbers is a single value, e.g. one number for each task.
Scalar: TypeAlias = bool | int | float | str | Sequence[int | float] | None

#: Larger lists are most likely mistakes, and take minutes to list and check.
MOST_CONFIGURATIONS = 100_000
_LARGEST = 1e300  # so that the difference of two bounds is finite
_MOST_VALUES = 10_000
#: Forms of a domain, as errors name them.
_FORMS = (
    "a list, {uniform: [low, high]}, {loguniform: [low, high]}, {randint: [low, high]} or"
    " {logspace: [low, high, n]}"
)


@dataclass(frozen=True)
class Choices:
    """Domain of listed values."""

    values: tuple[Scalar, ...]

    def to_yaml(self) -> Any:
        """Return the domain in the form of a configuration."""
        return [list(value) if isinstance(value, tuple) else value for value in self.values]


@dataclass(frozen=True)
class Uniform:
    """Domain of real numbers with a uniform distribution."""

    low: float
    high: float
    log: bool = False

    def to_yaml(self) -> Any:
        """Return the domain in the form of a configuration."""
        return {"loguniform" if self.log else "uniform": [self.low, self.high]}


@dataclass(frozen=True)
class RandInt:
    """Domain of integers with a uniform distribution."""

    low: int
    high: int

    def to_yaml(self) -> Any:
        """Return the domain in the form of a configuration."""
        return {"randint": [self.low, self.high]}


@dataclass(frozen=True)
class LogSpace:
    """Domain of values that are evenly spaced on a logarithmic scale."""

    low: float
    high: float
    n: int

    @property
    def values(self) -> tuple[float, ...]:
        """Values from ``low`` to ``high``."""
        if self.n == 1:
            return (self.low,)
        start, step = (
            math.log10(self.low),
            (math.log10(self.high) - math.log10(self.low)) / (self.n - 1),
        )
        inside = (float(f"{10 ** (start + i * step):.10g}") for i in range(1, self.n - 1))
        return (self.low, *inside, self.high)

    def to_yaml(self) -> Any:
        """Return the domain in the form of a configuration."""
        return {"logspace": [self.low, self.high, self.n]}


Domain: TypeAlias = Choices | Uniform | RandInt | LogSpace


def _is_number(raw: Any) -> bool:
    return isinstance(raw, int | float) and not isinstance(raw, bool) and abs(raw) <= _LARGEST


def scalar_from_yaml(raw: Any) -> Scalar:
    """Validate one value of a parameter."""
    if raw is None or isinstance(raw, bool | str) or _is_number(raw):
        return raw
    if isinstance(raw, list | tuple) and raw and all(map(_is_number, raw)):
        return tuple(raw)
    hint = (
        " (infinity is the word inf, for a parameter that takes it)" if raw == float("inf") else ""
    )
    raise ValueError(
        f"{raw!r} is not a valid value: give a finite number, a word, true or false, or a list of"
        f" numbers{hint}"
    )


def _numbers(kind: str, raw: Any, count: int) -> list[float]:
    if not isinstance(raw, list) or len(raw) != count or not all(map(_is_number, raw)):
        raise ValueError(f"{kind} takes {count} finite numbers, not {raw!r}")
    return raw


def _choices(raw: list[Any]) -> Choices:
    if not raw:
        raise ValueError("the list is empty; give at least one value")
    values = tuple(scalar_from_yaml(v) for v in raw)
    if len({(isinstance(v, bool), v) for v in values}) < len(values):
        raise ValueError(f"{raw!r} has a value twice; remove one")
    return Choices(values)


def domain_from_yaml(raw: Any) -> Domain:
    """Create a domain from its form in a configuration."""
    if isinstance(raw, Choices | Uniform | RandInt | LogSpace):
        return raw
    if isinstance(raw, list):
        return _choices(raw)
    if not isinstance(raw, dict) or len(raw) != 1:
        raise ValueError(f"{raw!r} is not a valid domain; give {_FORMS}")
    kind, bounds = next(iter(raw.items()))
    if kind == "logspace":
        low, high, n = _numbers(kind, bounds, 3)
        if low <= 0 or high <= 0 or n != int(n) or not 1 <= n <= _MOST_VALUES:
            raise ValueError(
                f"logspace takes two positive bounds and a number of values up to {_MOST_VALUES},"
                f" not {bounds!r}"
            )
        domain = LogSpace(low, high, int(n))
        if len(set(domain.values)) < n:
            raise ValueError(
                f"logspace {bounds!r} has a value twice; move the bounds apart, or reduce n"
            )
        return domain
    if kind not in {"uniform", "loguniform", "randint"}:
        kinds = ("uniform", "loguniform", "randint", "logspace")
        raise ValueError(
            f"unknown domain {kind!r}; {suggestion(str(kind), kinds, f'give {_FORMS}')}"
        )
    low, high = _numbers(kind, bounds, 2)
    if low >= high:
        raise ValueError(f"{kind} {bounds!r}: the lower bound must be less than the upper bound")
    if kind == "loguniform" and low <= 0:
        raise ValueError(f"loguniform {bounds!r}: the bounds must be positive")
    if kind == "randint":
        if low != int(low) or high != int(high) or max(abs(low), abs(high)) > 2**53:
            raise ValueError(
                f"randint {bounds!r}: the bounds must be whole numbers with absolute values up to"
                " 2^53"
            )
        return RandInt(int(low), int(high))
    return Uniform(float(low), float(high), log=kind == "loguniform")
