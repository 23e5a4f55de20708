"""Reading of what cannot be used, and the message that must name why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from raysel.core.errors import DataError
from raysel.data.loading import load_dataset


def refused(
    source: Any, *culprits: str, read: Callable[..., Any] = load_dataset, **options: Any
) -> str:
    """Read what must be refused, and return the message, which holds all culprits."""
    with pytest.raises(DataError) as caught:
        read(source, **options)
    message = str(caught.value)
    for culprit in culprits:
        assert culprit in message, message
    return message
