"""Text tables, whose encoding, delimiter, header and decimal mark are recognised."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice, pairwise, zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from raysel.core.errors import DataError
from raysel.core.machine import BYTES_OF_A_NUMBER, check_data_bytes
from raysel.core.printing import by_number
from raysel.data.formats.comment_lines import read_name_line, without_comments
from raysel.data.formats.compressed import text_content
from raysel.data.formats.files import ReadOptions
from raysel.data.formats.recognition import taken_names
from raysel.data.formats.sparse_matrices import refuse_sparse_text
from raysel.data.formats.written_numbers import (
    Written,
    is_number,
    is_number_of_thousands,
    is_plain_number,
    parse_number,
    with_hyphens,
    with_numbers,
)

#: Texts that stand for a missing value: those of pandas and of PyArrow, and the question mark of
#: the UCI files.
MISSING = (
    *(
        "",
        "?",
        "NA",
        "N/A",
        "n/a",
        "<NA>",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "NaN",
        "nan",
        "-NaN",
        "-nan",
        "NULL",
        "null",
    ),
    *("None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
#: The same as they stand in the cells, some behind a blank.
_EMPTY = (*MISSING, " ", *(f" {text}" for text in MISSING))
#: Stands for runs of blanks and tabs between the cells.
BLANKS = " "

#: Where several fit equally well, the first is taken.
_DELIMITERS = ("\t", ";", ",", BLANKS)
#: Rows that are looked at, and bytes that are read for them at first.
_ROWS, _SAMPLE, _LEAST_ROWS = 40, 2**20, 4
#: Cells of a row that are looked at to choose the delimiter.
_FIRST_CELLS = 500
#: Least number of increasing numbers that are taken for a header of wavelengths or positions, and
#: of 0, 1, 2, ...
_LEAST_POSITIONS, _LEAST_COUNTED = 8, 3
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", BLANKS: "blanks"}
#: A number with a decimal comma in quotes.
_QUOTED_COMMA = re.compile(rb'"[^",\w]*\d*,\d+[^",\d]{0,5}"')
#: Most bytes that PyArrow parses at once: columns of many pieces are slow.
_BLOCK = 2**30
#: Bytes that are searched for the decimal mark to try first.
_SAMPLE_TEXT = 2**16
#: Least number that does not fit in 64 bits with a sign, and most digits of a decimal number.
_NO_INT64, _DIGITS = 2.0**63, 38
#: What PyArrow says of a row with another number of cells.
_OTHER_WIDTH = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
#: Bytes of memory that a column takes besides its values, measured with a table of 100,000 columns.
_COLUMN = 24 * 2**10


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
        return data.decode("cp1252").encode(), (
            "the text is no UTF-8 and is read as Windows-1252 (Latin-1)",
        )
    return data, ()


def text_without_comments(
    data: bytes, delimiter: str | None, known: Collection[str] = ()
) -> tuple[bytes, tuple[str, ...]]:
    """Leave out comment lines, but for the one above the rows that names the columns."""
    lines = without_comments(data)
    if not lines.n_comments:
        return data, ()
    header = _naming(lines.last_above, recognise(lines.text, delimiter, known), lines.text)
    n = lines.n_comments - bool(header)
    what = f"{n} comment {by_number(n, 'line is', 'lines are')} left out"
    return header + lines.text, (what,) * bool(n)


def _naming(comment: bytes, dialect: Dialect, rows: bytes) -> bytes:
    """Return the comment above the rows as the line of names, if it is one; else nothing."""
    below = _rows(_first_lines(rows, dialect.start), dialect.delimiter)
    if dialect.names and below and any(map(is_number, below[0][0])):
        return b""  # the table has another such line, above numbers
    line = read_name_line(comment)
    cells = [cells for cells, _ in _rows([line], dialect.delimiter)]
    fits = cells and len(cells[0]) == dialect.n_columns > 1 and all(cells[0])
    if fits:
        return line
    return b""


def recognise(data: bytes, delimiter: str | None = None, known: Collection[str] = ()) -> Dialect:
    r"""Recognise how a text table is written, from its first rows.

    The delimiter is the one of tab, semicolon, comma and blanks that gives most rows the same
    number of cells and most cells that are numbers.
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
        # R writes no name above the names of the rows; other programs end every row but the header
        # by a delimiter.
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
    if not rows:
        return 0
    return Counter(map(len, rows)).most_common(1)[0][0]


def _fit(rows: list[tuple[list[str], int]]) -> float:
    """Share of the rows with the usual number of cells, more if these are numbers."""
    cells = [row for row, _ in rows]
    width = _usual_width(cells)
    if width < 2:
        return 0.0
    looked_at = [*chain.from_iterable(row[:_FIRST_CELLS] for row in cells)]
    n_numbers = sum(is_number(cell) or is_number_of_thousands(cell) for cell in looked_at)
    return sum(len(row) == width for row in cells) / len(cells) * (1 + n_numbers / len(looked_at))


def _is_header(first: list[str], rest: list[list[str]], known: Collection[str]) -> bool:
    columns = list(enumerate(first))
    numbers = {i: parse_number(cell) for i, cell in columns if is_number(cell)}
    texts = [i for i, cell in columns if i not in numbers and cell.strip() not in MISSING]
    below = list(zip_longest(*rest, fillvalue=""))
    n_again = sum(first[i] in below[i] for i in texts if i < len(below))
    if n_again and (numbers or 2 * n_again > len(texts)):
        return False
    if not numbers or any(cell.strip() in known for cell in first) or taken_names(first):
        return True
    above_numbers = any(_is_above_numbers(below[i]) for i in texts if i < len(below))
    return above_numbers or _are_positions([*numbers.values()], rest)


def _is_above_numbers(cells: Sequence[str]) -> bool:
    """Return whether the cells of a column that are not empty are numbers."""
    known = [cell for cell in cells if cell.strip() not in MISSING]
    return bool(known) and all(map(is_number, known))


def _are_positions(numbers: list[float], rest: list[list[str]]) -> bool:
    """Return whether the numbers of a row name columns: 0, 1, 2, ..., wavelengths or the like."""
    if len(numbers) < _LEAST_POSITIONS:
        counted = [numbers[0] + i for i in range(len(numbers))]
        return len(numbers) >= _LEAST_COUNTED and numbers[0] in (0, 1) and numbers == counted
    if not _is_monotone(numbers):
        return False
    values = ([parse_number(cell) for cell in row if is_number(cell)] for row in rest)
    return not rest or sum(map(_is_monotone, values)) <= len(rest) / 2


def _is_monotone(values: list[float]) -> bool:
    return all(a < b for a, b in pairwise(values)) or all(a > b for a, b in pairwise(values))


def text_table(path: Path, options: ReadOptions) -> tuple[Any, tuple[str, ...]]:
    """Read a text table."""
    data, notes = as_utf8(text_content(path))
    refuse_sparse_text(path, data)
    known = {name for name in (options.label, options.groups, *options.drop) if name}
    data, without = text_without_comments(data, options.delimiter, known)
    data, hyphens = with_hyphens(data)
    notes += (*without, *hyphens)
    _check_columns(path, data, options.delimiter)
    dialect = recognise(data, options.delimiter, known)
    if dialect.n_columns < 2:
        given = "no comma, semicolon, tab or blank separates its cells"
        if options.delimiter is not None:
            given = f"delimiter={options.delimiter!r} does not occur in its first rows"
        raise DataError(
            f"{path} has one column only: {given}; set delimiter to the character that does. A"
            " table has a column of labels and at least one of values."
        )
    body = data[dialect.start :]
    del data  # as much as the body
    if dialect.delimiter == BLANKS:
        body = _single_blanks(body)
    if not body or body.isspace():
        raise DataError(f"{path} is empty: it has a header but no rows.")
    n_rows = 1 + (body.count(b"\n") or body.count(b"\r"))
    claimed = dialect.n_columns * (_COLUMN + BYTES_OF_A_NUMBER * n_rows)
    check_data_bytes(path, claimed, f"its table of {n_rows} rows and {dialect.n_columns} columns")
    try:
        written, decimal = _parsed(body, dialect)
    except pa.ArrowInvalid as error:
        _check_widths(error, path, dialect)
        raise
    pa.default_memory_pool().release_unused()  # the cells as text
    if options.delimiter is None and dialect.delimiter != ",":
        mark = _NAMES.get(dialect.delimiter, repr(dialect.delimiter))
        notes += (f"its cells are separated by {mark}",)
    if decimal == ",":
        notes += ("its numbers have a decimal comma",)
    table, below = _without_last_empty_rows(written.table)
    notes += below
    table, empty = _with_header(table, dialect)
    notes += written.notes(table.column_names)
    return table, (*notes, *empty)


def _check_columns(path: Path, data: bytes, delimiter: str | None) -> None:
    """Check the memory of as many columns as the first line may have, by its delimiters."""
    end = data.find(b"\n")
    if end < 0:
        end = len(data)
    line = data[:end]
    marks = [delimiter] if delimiter else [*_NAMES]
    n_columns = 1 + max(line.count(mark.encode()) for mark in marks)
    check_data_bytes(path, n_columns * _COLUMN, f"its first line of up to {n_columns} cells")


def _single_blanks(body: bytes) -> bytes:
    """Make runs of blanks and tabs outside quotes one blank, and none at the ends of lines."""
    if b'"' in body:
        body = re.sub(rb'("[^"]*")|[ \t]+', lambda match: match[1] or b" ", body)
    else:
        body = re.sub(rb"[ \t]+", b" ", body)
    return re.sub(rb"(?m)^ | (?=\r?$)", b"", body)


def _parsed(body: bytes, dialect: Dialect) -> tuple[Written, str]:
    """Read the rows with the decimal mark under which more columns hold numbers, or a point."""
    start = body[:_SAMPLE_TEXT]
    if dialect.delimiter == ",":  # a number with a comma is quoted
        n_points, n_commas = 1, int(_QUOTED_COMMA.search(start) is not None)
    else:
        n_points, n_commas = len(re.findall(rb"\d\.\d", start)), len(re.findall(rb"\d,\d", start))
    first, second = (".", ",") if n_points >= n_commas else (",", ".")
    written = with_numbers(_parse(body, dialect, first), first)
    n_texts = _count_texts(written.table)
    if n_texts and second.encode() in body and (n_commas or dialect.delimiter != ","):
        other = with_numbers(_parse(body, dialect, second), second)
        if _count_texts(other.table) < n_texts + (second == "."):
            return other, second
    return written, first


def _count_texts(table: Any) -> int:
    return sum(pa.types.is_string(kind) for kind in table.schema.types)


def _parse(body: bytes, dialect: Dialect, decimal: str) -> Any:
    # PyArrow tries one kind of values after the other, which takes most of the time of a table of
    # many columns. Below a number with a decimal mark are such numbers, or text.
    first = _rows([body[: body.find(b"\n") + 1]], dialect.delimiter)
    cells = first[0][0][: dialect.n_columns] if first else []
    numbers = [i for i, cell in enumerate(cells) if decimal in cell and is_plain_number(cell)]
    kinds = dict.fromkeys(numbers, pa.float64())
    try:
        table = _read(body, dialect, decimal, kinds)
    except pa.ArrowInvalid:
        # A cell is text, or a row has another number of cells, which one thread names.
        kinds = {}
        table = _read(body, dialect, decimal, use_threads=False)
    return _with_large_integers(table, body, dialect=dialect, decimal=decimal, kinds=kinds)


def _with_large_integers(
    table: Any, body: bytes, dialect: Dialect, decimal: str, kinds: Mapping[int, Any]
) -> Any:
    """Read columns of integers again that do not fit in 64 bits, which PyArrow takes for floats."""
    for i, column in enumerate(table.columns):
        if i in kinds or not pa.types.is_floating(column.type):
            continue
        if (pc.max(pc.abs(column)).as_py() or 0) < _NO_INT64:
            continue
        for kind in (pa.uint64(), pa.decimal128(_DIGITS, 0)):
            with suppress(pa.ArrowInvalid):
                again = _read(body, dialect, decimal, {**kinds, i: kind})
                table = table.set_column(i, table.schema.names[i], again.column(i))
                break
    return table


def _check_widths(error: Exception, path: Path, dialect: Dialect) -> None:
    """Name the row with another number of cells of which PyArrow complains."""
    if found := _OTHER_WIDTH.search(str(error)):
        row, expected, there = map(int, found.groups())
        cells = f"{there} {by_number(there, 'cell', 'cells')}"
        between = _NAMES.get(dialect.delimiter, repr(dialect.delimiter))
        below = " below the names of the columns" if dialect.names else ""
        raise DataError(
            f"{path}: row {row}{below} has {cells}, separated by {between}, and the table"
            f" {expected} columns. Correct the row, set delimiter, or write a truncated file again."
        ) from error


def _read(
    body: bytes,
    dialect: Dialect,
    decimal: str,
    kinds: Mapping[int, Any] | None = None,
    *,
    use_threads: bool = True,
) -> Any:
    columns = [str(i) for i in range(dialect.n_columns)]
    how = pa.csv.ReadOptions(
        column_names=columns, block_size=min(len(body) + 1, _BLOCK), use_threads=use_threads
    )
    parse = pa.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=b'"' in body)
    convert = pa.csv.ConvertOptions(
        strings_can_be_null=True,
        decimal_point=decimal,
        # PyArrow makes a table of them for each column, of up to 20 KB.
        null_values=[text for text in _EMPTY if _may_hold(body, text)],
        column_types={columns[i]: kind for i, kind in (kinds or {}).items()},
    )
    return pa.csv.read_csv(
        pa.BufferReader(body), read_options=how, parse_options=parse, convert_options=convert
    )


def _may_hold(body: bytes, text: str) -> bool:
    """Return whether all characters of an ASCII text occur in the rows, which is found fast."""
    return all(character in body for character in text.encode())


def _without_last_empty_rows(table: Any) -> tuple[Any, tuple[str, ...]]:
    """Leave out the rows of empty cells that spreadsheets write below a table."""
    n_rows = table.num_rows
    while n_rows and all(not column[n_rows - 1].is_valid for column in table.columns):
        n_rows -= 1
    n_empty = table.num_rows - n_rows
    if not n_empty or not n_rows:
        return table, ()
    rows = by_number(n_empty, "row", "rows")
    return table.slice(0, n_rows), (f"{n_empty} empty {rows} at its end left out",)


def _with_header(table: Any, dialect: Dialect) -> tuple[Any, tuple[str, ...]]:
    """Give the columns their names, and leave out a last column without name and values."""
    columns = table.columns
    for i, cells in enumerate(columns):
        if pa.types.is_string(cells.type):
            columns[i] = pc.utf8_trim_whitespace(cells)
    table = pa.table(columns, names=table.column_names)
    if not dialect.names:
        names = [f"column{i}" for i in range(table.num_columns)]
        return table.rename_columns(names), (
            f"it has no header: its columns are called column0 to {names[-1]}",
        )
    if not dialect.names[-1] and table.column(-1).null_count == table.num_rows:
        table = table.remove_column(table.num_columns - 1).rename_columns(list(dialect.names[:-1]))
        return table, ("its last column is empty and left out",)
    return table.rename_columns(list(dialect.names)), ()
