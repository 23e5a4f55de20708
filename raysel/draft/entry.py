"""Key of a drafted configuration with its value and its explanation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One key of a drafted configuration.

    Parameters
    ----------
    key : str
        Dotted key, e.g. ``"cv.outer"``.
    value : object
        Value as plain data.
    comment : str
        Explanation that stands beside the key in the YAML.

    Examples
    --------
    >>> Entry("cv.outer", 5, "folds whose test sets give the scores").section
    'cv'
    """

    key: str
    value: Any
    comment: str

    @property
    def section(self) -> str:
        """First part of a dotted key; empty for a key without a section."""
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        """Last part of the key."""
        return self.key.rpartition(".")[2]
