"""Check of the types of a record's fields, down to the items of lists, against the annotations of its class."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

#: Function that raises TypeError if a value, of a field of that name, has the wrong type.
Check: TypeAlias = Callable[[Any, str], None]
#: Largest whole number of a record, that of 64 bits.
_LARGEST = 2**63 - 1


def check_fields(cls: type, raw: Mapping[str, Any], of: str = "") -> None:
    """Check the fields of a record as a line of the journal has them."""
    for name, check in _checks(cls):
        if name in raw:
            check(raw[name], f"{of}{name}")


@cache
def _checks(cls: type) -> list[tuple[str, Check]]:
    """Name and check of each field of a dataclass."""
    return [(name, _check_of(hint)) for name, hint in get_type_hints(cls).items()]


def _check_of(hint: Any) -> Check:
    """Return the check of a type annotation."""
    options = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if len(options) > 1:
        return _any_of([_check_of(option) for option in options])
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return _check_finite
    if is_dataclass(hint):
        return _record(hint)  # type: ignore[arg-type]
    if origin in (list, Sequence):
        return _numbers if arguments == (float,) else _list(_check_of(arguments[0]))
    if origin in (dict, Mapping) or hint is dict:
        return _mapping(_check_of(arguments[1]) if arguments else _check_finite)
    return _PLAIN[hint]


def _wrong(value: Any, name: str, expected: str) -> TypeError:
    return TypeError(f"'{name}' is of type {type(value).__name__}, not {expected}")


def _plain(kind: type) -> Check:
    def check(value: Any, name: str) -> None:
        if type(value) is not kind:
            raise _wrong(value, name, "None" if kind is type(None) else kind.__name__)

    return check


def _whole(value: Any, name: str) -> None:
    if type(value) is not int:
        raise _wrong(value, name, "int")
    if abs(value) > _LARGEST:
        raise TypeError(f"'{name}' is larger than any count")


def _number(value: Any, name: str) -> None:
    if type(value) not in (int, float):
        raise _wrong(value, name, "float or int")
    _finite(value, name)


def _finite(value: float, name: str) -> None:
    if type(value) is int:
        _whole(value, name)
    elif not math.isfinite(value):
        raise TypeError(f"'{name}' is not finite")


def _numbers(value: Any, name: str) -> None:
    """Check a list of numbers, which may be long, without a loop in Python."""
    if type(value) is not list:
        raise _wrong(value, name, "list")
    if wrong := set(map(type, value)) - {int, float}:
        raise TypeError(f"'{name}' holds {next(iter(wrong)).__name__}, not only numbers")
    try:
        finite = all(map(math.isfinite, value))
    except OverflowError:
        finite = False
    if not finite:
        raise TypeError(f"'{name}' holds a number that is not finite")


def _list(check: Check) -> Check:
    def check_items(value: Any, name: str) -> None:
        if type(value) is not list:
            raise _wrong(value, name, "list")
        for i, item in enumerate(value):
            check(item, f"{name}[{i}]")

    return check_items


def _mapping(check: Check) -> Check:
    def check_items(value: Any, name: str) -> None:
        if type(value) is not dict:
            raise _wrong(value, name, "dict")
        for key, item in value.items():
            check(item, f"{name}[{key}]")

    return check_items


def _record(cls: type) -> Check:
    def check(value: Any, name: str) -> None:
        if type(value) is not dict:
            raise _wrong(value, name, "dict")
        check_fields(cls, value, f"{name}.")

    return check


def _any_of(checks: Sequence[Check]) -> Check:
    def check(value: Any, name: str) -> None:
        errors = list(_errors(checks, value, name))
        if len(errors) == len(checks):
            raise TypeError(" or ".join(dict.fromkeys(errors)))

    return check


def _errors(checks: Iterable[Check], value: Any, name: str) -> Iterable[str]:
    for check in checks:
        try:
            check(value, name)
        except TypeError as error:
            yield str(error)


def _check_finite(value: Any, name: str) -> None:
    """Check the numbers in plain data of any form."""
    left = [value]
    while left:
        item = left.pop()
        if type(item) is float and not math.isfinite(item):
            raise TypeError(f"'{name}' holds a number that is not finite")
        if type(item) is list:
            left += item
        elif type(item) is dict:
            left += item.values()


_PLAIN: dict[Any, Check] = {
    **{kind: _plain(kind) for kind in (str, bool, type(None))},
    int: _whole,
    float: _number,
}
