"""Result of a comparison, finished or not."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from raysel.comparison.stored import StoredComparison
from raysel.comparison.tables import comparison_table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonResult(StoredComparison):
    """Several studies that were scored on the same outer folds, with their table.

    Use `open` to create one. The parameters are those of `StoredComparison`.
    """

    def table(self) -> pd.DataFrame:
        """Return the comparison as a table with one row a member.

        The columns of `comparison_table`.
        """
        return comparison_table(self)

    def __repr__(self) -> str:
        return (
            f"ComparisonResult({self.name}, {len(self.finished)} of {len(self.members)} members finished, "
            f"reference {self.reference})"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.table().to_html(index=False)}"
