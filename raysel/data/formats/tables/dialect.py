"""Recognition of the encoding, the delimiter and the header of a text table."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from raysel.data.formats.column_names import taken_names

#: Texts that stand for a missing value: those of pandas and of PyArrow, and the question mark of the UCI files.
MISSING = (
    *("", "?", "NA", "N/A", "n/a", "<NA>", "#N/A", "#N/A N/A", "#NA", "NaN", "nan", "-NaN", "-nan", "NULL", "null"),
    *("None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
#: Stands for runs of blanks and tabs between the cells.
BLANKS = " "

#: Where several fit equally well, the first is taken.
_DELIMITERS = ("\t", ";", ",", BLANKS)
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
#: A number with points between thousands and a decimal comma, which could be taken for a delimiter.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+,\d*")
#: Rows that are looked at, and bytes that are read for them at first.
_ROWS, _SAMPLE, _LEAST_ROWS = 40, 2**20, 4
#: Cells of a row that are looked at to choose the delimiter.
_FIRST_CELLS = 500
#: Least number of increasing numbers that are taken for a header of wavelengths or positions, and of 0, 1, 2, ...
_LEAST_POSITIONS, _LEAST_COUNTED = 8, 3


@dataclass(frozen=True)
class Dialect:
    """Delimiter, header and first row of a text table."""

    delimiter: str
    names: tuple[str, ...]
    #: Position in bytes of the first row below the header.
    start: int
    n_columns: int


def as_utf8(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Text of a file in UTF-8 without byte-order mark."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16").encode(), ("the text is converted from UTF-16",)
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\0" in data:
        raise ValueError("it holds zero bytes, which no text has")
    if data.isascii():
        return data, ()
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252").encode(), ("the text is no UTF-8 and is read as Windows-1252 (Latin-1)",)
    return data, ()


def recognise(data: bytes, delimiter: str | None = None, known: Collection[str] = ()) -> Dialect:
    r"""Recognise how a text table is written, from its first rows.

    The delimiter is the one of tab, semicolon, comma and blanks that gives most rows the same number of cells and most
    cells that are numbers.
    """
    start = 0
    if stated := re.match(rb"sep=(.)\r?\n", data):  # a line that Excel reads and writes
        delimiter, start = delimiter or stated[1].decode(), stated.end()
    lines = _first_lines(data, start)
    if delimiter is None:
        delimiter = max(_DELIMITERS, key=lambda candidate: _fit(_rows(lines, candidate)))
    rows = _rows(lines, delimiter)
    if not rows:
        return Dialect(delimiter, (), start, 0)
    (first, n_lines), rest = rows[0], [cells for cells, _ in rows[1:]]
    if not _is_header(first, rest, known):
        return Dialect(delimiter, (), start, _usual_width(rest or [first]))
    if len(first) == _usual_width(rest) - 1:
        # R writes no name above the names of the rows; other programs end every row but the header by a delimiter.
        first = [*first, ""] if all(row[-1] == "" for row in rest) else ["", *first]
    start += sum(len(line) for line in lines[:n_lines])
    return Dialect(delimiter, tuple(cell.strip() for cell in first), start, len(first))


def _first_lines(data: bytes, start: int) -> list[bytes]:
    size = _SAMPLE
    while True:
        lines = data[start : start + size].splitlines(keepends=True)
        if start + size >= len(data):
            return lines
        if len(lines) > _LEAST_ROWS:
            return lines[:-1]  # the last is cut
        size *= 2


def _rows(lines: list[bytes], delimiter: str) -> list[tuple[list[str], int]]:
    """Cells of the first rows that are not blank, and the number of lines up to their end."""
    text: Iterable[str] = (line.decode("utf-8", "replace") for line in lines)
    if delimiter == BLANKS:
        text = (line.replace("\t", " ").strip(" \r\n") for line in text)
    reader = csv.reader(text, delimiter=delimiter, skipinitialspace=delimiter == BLANKS)
    try:
        return list(islice(((cells, reader.line_num) for cells in reader if any(cells)), _ROWS))
    except csv.Error:  # a cell of more than 128 KiB
        return []


def _usual_width(rows: Sequence[Sequence[str]]) -> int:
    return Counter(map(len, rows)).most_common(1)[0][0] if rows else 0


def _fit(rows: list[tuple[list[str], int]]) -> float:
    """Share of the rows with the most usual number of cells, more if cells are numbers; 0 for one cell a row."""
    cells = [row for row, _ in rows]
    width = _usual_width(cells)
    if width < 2:
        return 0.0
    looked_at = [cell for row in cells for cell in row[:_FIRST_CELLS]]
    n_numbers = sum(_is_number(cell) or _THOUSANDS.fullmatch(cell.strip()) is not None for cell in looked_at)
    return sum(len(row) == width for row in cells) / len(cells) * (1 + n_numbers / len(looked_at))


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell.strip()) is not None


def _is_header(first: list[str], rest: list[list[str]], known: Collection[str]) -> bool:
    texts = [i for i, cell in enumerate(first) if cell.strip() not in MISSING and not _is_number(cell)]
    numbers = [float(cell.replace(",", ".")) for cell in first if _is_number(cell)]
    below = {i: [row[i] for row in rest if i < len(row) and row[i].strip() not in MISSING] for i in texts}
    n_again = sum(first[i] in below[i] for i in texts)
    if n_again and (numbers or 2 * n_again > len(texts)):
        return False
    above_numbers = any(below[i] and all(map(_is_number, below[i])) for i in texts)
    called = any(cell.strip() in known for cell in first) or taken_names(first)
    return not numbers or above_numbers or bool(called) or _are_positions(numbers, rest)


def _are_positions(numbers: list[float], rest: list[list[str]]) -> bool:
    """Return whether the numbers of a row are names of columns: 0, 1, 2, ..., wavelengths or the like."""
    if len(numbers) < _LEAST_POSITIONS:
        counted = [numbers[0] + i for i in range(len(numbers))]
        return len(numbers) >= _LEAST_COUNTED and numbers[0] in (0, 1) and numbers == counted
    if not _is_monotone(numbers):
        return False
    values = ([float(cell.replace(",", ".")) for cell in row if _is_number(cell)] for row in rest)
    return not rest or sum(map(_is_monotone, values)) <= len(rest) / 2


def _is_monotone(values: list[float]) -> bool:
    return all(a < b for a, b in pairwise(values)) or all(a > b for a, b in pairwise(values))
