"""Plain data from outside as instances of dataclasses."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Instance = TypeVar("Instance")


def instance_of(cls: type[Instance], raw: Any) -> Instance:
    """Make an instance of a dataclass from plain data, whose unknown keys are ignored.

    A ValueError names the first field that is missing or of another type, or a number that is not finite.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - takes a tenth of a second

    try:
        made: list[Instance] = _adapter(cls).validate_python([raw])  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"][1:]))
        raise ValueError(f"'{place}': {first['msg']}" if place else first["msg"]) from error
    return made[0]


@cache
def _adapter(cls: type) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter  # noqa: PLC0415

    # In a list, because pydantic takes no configuration beside a dataclass itself.
    return TypeAdapter(list[cls], config=ConfigDict(allow_inf_nan=False))  # type: ignore[valid-type]
