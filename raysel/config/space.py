"""The domains a solver's parameters are searched over, as a configuration writes them."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

#: One value of a parameter; a list of numbers is one too, e.g. a number for each task.
Scalar: TypeAlias = bool | int | float | str | Sequence[int | float] | None

#: More are no search but a slip of the pen, and would take minutes to list and check.
MOST_CONFIGURATIONS = 100_000
_LARGEST = 1e300  # differences of two are still finite
_MOST_VALUES = 10_000


@dataclass(frozen=True)
class Choices:
    """A list of values."""

    values: tuple[Scalar, ...]

    def to_yaml(self) -> Any:
        """As a configuration writes it."""
        return [list(value) if isinstance(value, tuple) else value for value in self.values]


@dataclass(frozen=True)
class Uniform:
    """Real numbers between two bounds, uniform; ``log`` makes their logarithm uniform."""

    low: float
    high: float
    log: bool = False

    def to_yaml(self) -> Any:
        """As a configuration writes it."""
        return {"loguniform" if self.log else "uniform": [self.low, self.high]}


@dataclass(frozen=True)
class RandInt:
    """Whole numbers from ``low`` to ``high``, both included."""

    low: int
    high: int

    def to_yaml(self) -> Any:
        """As a configuration writes it."""
        return {"randint": [self.low, self.high]}


@dataclass(frozen=True)
class LogSpace:
    """``n`` values from ``low`` to ``high``, equally far apart in their logarithm."""

    low: float
    high: float
    n: int

    @property
    def values(self) -> tuple[float, ...]:
        """The values, smallest first when ``low < high``."""
        if self.n == 1:
            return (self.low,)
        start, step = math.log10(self.low), (math.log10(self.high) - math.log10(self.low)) / (self.n - 1)
        inside = (float(f"{10 ** (start + i * step):.10g}") for i in range(1, self.n - 1))
        return (self.low, *inside, self.high)

    def to_yaml(self) -> Any:
        """As a configuration writes it."""
        return {"logspace": [self.low, self.high, self.n]}


Domain: TypeAlias = Choices | Uniform | RandInt | LogSpace

_FORMS = (
    "a list, {uniform: [low, high]}, {loguniform: [low, high]}, {randint: [low, high]} or {logspace: [low, high, n]}"
)


def _is_number(raw: Any) -> bool:
    return isinstance(raw, int | float) and not isinstance(raw, bool) and abs(raw) <= _LARGEST


def scalar_from_yaml(raw: Any) -> Scalar:
    """Take one value of a parameter.

    Parameters
    ----------
    raw : object

    Returns
    -------
    bool, int, float, str, None, or tuple of numbers

    Raises
    ------
    ValueError
        If raw is a mapping, no finite number, or a list of anything else.
    """
    if raw is None or isinstance(raw, bool | str) or _is_number(raw):
        return raw
    if isinstance(raw, list | tuple) and raw and all(map(_is_number, raw)):
        return tuple(raw)
    raise ValueError(f"{raw!r} is no value: give a finite number, a word, true or false, or a list of numbers")


def _numbers(kind: str, raw: Any, count: int) -> list[float]:
    if not isinstance(raw, list) or len(raw) != count or not all(map(_is_number, raw)):
        raise ValueError(f"{kind} takes {count} finite numbers, not {raw!r}")
    return raw


def _choices(raw: list[Any]) -> Choices:
    if not raw:
        raise ValueError("an empty list leaves nothing to try; give at least one value")
    values = tuple(scalar_from_yaml(v) for v in raw)
    if len({(isinstance(v, bool), v) for v in values}) < len(values):
        raise ValueError(f"{raw!r} names a value twice")
    return Choices(values)


def domain_from_yaml(raw: Any) -> Domain:
    """Read a domain.

    Parameters
    ----------
    raw : list or dict of one key
        ``[a, b, ...]``, ``{uniform: [low, high]}``, ``{loguniform: [low, high]}``,
        ``{randint: [low, high]}`` or ``{logspace: [low, high, n]}``.

    Returns
    -------
    Choices, Uniform, RandInt or LogSpace

    Raises
    ------
    ValueError
        If raw is none of these, or its bounds are out of order.

    Examples
    --------
    >>> domain_from_yaml({"logspace": [0.001, 1, 4]}).values
    (0.001, 0.01, 0.1, 1)
    """
    if isinstance(raw, Choices | Uniform | RandInt | LogSpace):
        return raw
    if isinstance(raw, list):
        return _choices(raw)
    if not isinstance(raw, dict) or len(raw) != 1:
        raise ValueError(f"{raw!r} is no domain; give {_FORMS}")
    kind, bounds = next(iter(raw.items()))
    if kind == "logspace":
        low, high, n = _numbers(kind, bounds, 3)
        if low <= 0 or high <= 0 or n != int(n) or not 1 <= n <= _MOST_VALUES:
            raise ValueError(
                f"logspace takes two positive bounds and a number of values up to {_MOST_VALUES}, not {bounds!r}"
            )
        found = LogSpace(low, high, int(n))
        if len(set(found.values)) < n:
            raise ValueError(f"logspace {bounds!r} names a value twice; move the bounds apart")
        return found
    if kind not in {"uniform", "loguniform", "randint"}:
        near = difflib.get_close_matches(str(kind), ("uniform", "loguniform", "randint", "logspace"), 1)
        raise ValueError(f"{kind!r} is no kind of domain; {f'did you mean `{near[0]}`?' if near else f'give {_FORMS}'}")
    low, high = _numbers(kind, bounds, 2)
    if low >= high:
        raise ValueError(f"{kind} {bounds!r}: the lower bound must lie below the upper")
    if kind == "loguniform" and low <= 0:
        raise ValueError(f"loguniform {bounds!r}: the bounds must be positive")
    if kind == "randint":
        if low != int(low) or high != int(high) or max(abs(low), abs(high)) > 2**53:
            raise ValueError(f"randint {bounds!r}: the bounds must be whole numbers of at most 2^53")
        return RandInt(int(low), int(high))
    return Uniform(float(low), float(high), log=kind == "loguniform")
