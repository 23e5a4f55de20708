"""Numbers as people write them: marks of thousands, signs of units, and print's minus."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from raysel.core.printing import listed

#: Marks between thousands beside the point or comma: apostrophes, blanks, no-break and narrow
#: no-break blanks.
_MARKS = "'\u2019 \u00a0\u202f"
#: Signs of a unit before or behind a number: of percent, degrees and currencies.
_UNIT = r"(?:%|\u2030|\u00b0[CF]?|[$\u00a2-\u00a5\u20a0-\u20cf])"
#: Minus signs other than the hyphen: of print, dashes, and the small and the wide one.
_MINUS = "\u2212\u2010\u2011\u2012\u2013\ufe63\uff0d"
#: Such a minus before a number: at the start of a cell, or of an exponent.
_BEFORE_NUMBER = re.compile(
    rb"((?:^|[\s,;|\"]|\d[eE]|\xc2\xa0)(?:\"|\xc2\xa0)?)(?:%s)(?=[.,]?\d)"
    % b"|".join(sign.encode() for sign in _MINUS),
    re.MULTILINE,
)
_PLAIN = r"(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?"
_NUMBER = re.compile(rf"[+-]?{_PLAIN}")
_MEASURE = re.compile(rf"{_UNIT}?\s?[+-]?{_UNIT}?{_PLAIN}\s?{_UNIT}?")
#: A number with points between thousands and a decimal comma, which could be taken for a delimiter.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+,\d*")
#: A number between the signs of a unit, which are looked up.
_WITH_UNIT = re.compile(r"[+-]?(\D*?)\s*[+-]?[\d.,].*?\s*(\D*)")
#: Rows of a column of text that are tried first, and columns that a note names.
_FIRST_ROWS, _MOST_NAMED = 100, 3


def is_plain_number(cell: str) -> bool:
    """Return whether a cell holds a number without signs of a unit or marks between thousands."""
    return _NUMBER.fullmatch(cell.strip()) is not None


def is_number(cell: str) -> bool:
    """Return whether a cell holds a number, with the sign of a unit too."""
    return is_plain_number(cell) or _MEASURE.fullmatch(cell.strip()) is not None


def is_number_of_thousands(cell: str) -> bool:
    """Return whether a cell holds a number with points between thousands and a decimal comma."""
    return _THOUSANDS.fullmatch(cell.strip()) is not None


def parse_number(cell: str) -> float:
    """Value of a cell that holds a number, without the sign of its unit."""
    return float(re.sub(rf"{_UNIT}|\s", "", cell).replace(",", "."))


def with_hyphens(text: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Make the minus signs of print that stand before numbers hyphens."""
    if text.isascii():
        return text, ()
    changed, n_signs = _BEFORE_NUMBER.subn(rb"\1-", text)
    if not n_signs:
        return text, ()
    return changed, ("its minus signs of print are read as hyphens",)


@dataclass
class Written:
    """Table in which columns of written numbers are numbers, and what was left out of them."""

    table: Any
    #: Positions of the columns with marks between thousands, and of those with each sign of a unit.
    thousands: list[int] = field(default_factory=list)
    units: dict[str, list[int]] = field(default_factory=dict)

    def notes(self, names: list[str]) -> tuple[str, ...]:
        """Say what was left out of the numbers of which columns."""
        found = {f"the sign {sign} is": columns for sign, columns in self.units.items()}
        if self.thousands:
            found["marks between thousands are"] = self.thousands
        return tuple(
            f"{what} left out of the numbers in"
            f" {listed([names[i] for i in columns], _MOST_NAMED, ' and {n_more} more columns')}"
            for what, columns in found.items()
        )


def with_numbers(table: Any, decimal: str) -> Written:
    """Make columns of text numbers if all cells are such, with one unit or marks of thousands."""
    result = Written(table)
    for i, kind in enumerate(table.schema.types):
        if not pa.types.is_string(kind):
            continue
        texts = pc.utf8_trim_whitespace(table.column(i))
        sign, texts = _without_unit(texts)
        mark, numbers = _numbers(texts, decimal, anyway=bool(sign))
        if numbers is None:
            continue
        result.table = result.table.set_column(i, table.schema.names[i], numbers)
        if sign:
            result.units.setdefault(sign, []).append(i)
        if mark:
            result.thousands.append(i)
    return result


def _without_unit(texts: Any) -> tuple[str, Any]:
    """Return the sign of a unit that all cells of a column have, and the cells without it."""
    first = next((text for text in texts.slice(0, _FIRST_ROWS).to_pylist() if text), "")
    found = _WITH_UNIT.fullmatch(first)
    if not found:
        return "", texts
    before, behind = found[1].strip(), found[2].strip()
    sign = before or behind
    if (before and behind) or not re.fullmatch(_UNIT, sign):
        return "", texts
    escaped = re.escape(sign)
    pattern = rf"^()(.*\d[.,]?)\s*{escaped}$"
    if before:
        pattern = rf"^([+-]?){escaped}\s*([^%\s].*)$"
    if not (_all_match(texts.slice(0, _FIRST_ROWS), pattern) and _all_match(texts, pattern)):
        return "", texts
    return sign, pc.replace_substring_regex(texts, pattern, r"\1\2")


def _numbers(texts: Any, decimal: str, *, anyway: bool) -> tuple[str, Any]:
    """Return the mark of thousands of a column of numbers, and these; None if it is none."""
    point = re.escape(decimal)
    marks = ("," if decimal == "." else r"\.", *(re.escape(mark) for mark in _MARKS))
    for mark in marks:
        number = rf"^[+-]?(([1-9]\d{{0,2}}({mark}\d{{3}})+|\d+)({point}\d*)?|{point}\d+)$"
        if not _all_match(texts.slice(0, _FIRST_ROWS), number) or not _all_match(texts, number):
            continue
        marked = pc.any(pc.match_substring_regex(texts, mark)).as_py()
        if not (marked or anyway):
            break
        plain = pc.replace_substring(pc.replace_substring_regex(texts, mark, ""), decimal, ".")
        return mark if marked else "", plain.cast(pa.float64())
    return "", None


def _all_match(texts: Any, pattern: str) -> bool:
    """Return whether all cells that are not empty match."""
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py() is True
