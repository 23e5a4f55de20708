"""Text tables (.csv, .tsv, .txt, .data) as Arrow tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from raysel.data.formats.files import ReadOptions
from raysel.data.formats.tables.dialect import BLANKS, MISSING, Dialect, as_utf8, recognise
from raysel.errors import DataError
from raysel.limits import BYTES_OF_A_NUMBER, check_data_bytes

_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", BLANKS: "blanks"}
#: Marks between thousands beside the point or comma: apostrophes, blanks, no-break and narrow no-break blanks.
_MARKS = "'\u2019 \u00a0\u202f"
#: Most bytes that PyArrow parses at once: columns of many pieces are slow.
_BLOCK = 2**30
#: Bytes that are searched for the decimal mark to try first.
_SAMPLE = 2**16
#: Rows of a column of text that are tried first, and columns that a note names.
_FIRST_ROWS, _MOST_NAMED = 100, 3
#: Bytes of memory that a column takes besides its values, measured with a table of 100,000 columns.
_COLUMN = 24 * 2**10


def text_table(path: Path, options: ReadOptions) -> tuple[Any, tuple[str, ...]]:
    """Read a text table."""
    check_data_bytes(path, path.stat().st_size)
    data, notes = as_utf8(path.read_bytes())
    _check_columns(path, data, options.delimiter)
    known = {name for name in (options.label, options.groups, *options.drop) if name}
    dialect = recognise(data, options.delimiter, known)
    if dialect.n_columns < 2:
        given = "no comma, semicolon, tab or blank separates its cells"
        if options.delimiter is not None:
            given = f"delimiter={options.delimiter!r} does not occur in its first rows"
        raise DataError(
            f"{path} has one column only: {given}; set delimiter to the character that does. A table has a column of "
            "labels and at least one of values."
        )
    body = _single_blanks(data[dialect.start :]) if dialect.delimiter == BLANKS else data[dialect.start :]
    if not body.strip():
        raise DataError(f"{path} is empty: it has a header but no rows.")
    n_rows = 1 + body.count(b"\n") + (body.count(b"\r") if b"\n" not in body else 0)
    claimed = dialect.n_columns * (_COLUMN + BYTES_OF_A_NUMBER * n_rows)
    check_data_bytes(path, claimed, f"its table of {n_rows} rows and {dialect.n_columns} columns")
    table, decimal, grouped = _parsed(body, dialect)
    if options.delimiter is None and dialect.delimiter != ",":
        notes += (f"its cells are separated by {_NAMES.get(dialect.delimiter, repr(dialect.delimiter))}",)
    if decimal == ",":
        notes += ("its numbers have a decimal comma",)
    table, below = _without_last_empty_rows(table)
    notes += below
    table, empty = _with_header(table, dialect)
    if grouped:
        names = [table.column_names[i] for i in grouped[:_MOST_NAMED]]
        more = f" and {len(grouped) - len(names)} more columns" if len(grouped) > len(names) else ""
        notes += (f"marks between thousands are left out of the numbers in {', '.join(names)}{more}",)
    return table, (*notes, *empty)


def _check_columns(path: Path, data: bytes, delimiter: str | None) -> None:
    """Check the memory of as many columns as a delimiter occurs in the first line, before its cells are looked at."""
    end = data.find(b"\n")
    line = data if end < 0 else data[:end]
    n_columns = 1 + max(line.count(mark.encode()) for mark in ([delimiter] if delimiter else _NAMES))
    check_data_bytes(path, n_columns * _COLUMN, f"its first line of up to {n_columns} cells")


def _single_blanks(body: bytes) -> bytes:
    """Make runs of blanks and tabs outside quotes one blank, and remove those at the ends of lines."""
    if b'"' in body:
        body = re.sub(rb'("[^"]*")|[ \t]+', lambda match: match[1] or b" ", body)
    else:
        body = re.sub(rb"[ \t]+", b" ", body)
    return re.sub(rb"(?m)^ | (?=\r?$)", b"", body)


def _parsed(body: bytes, dialect: Dialect) -> tuple[Any, str, list[int]]:
    """Read the rows with the decimal mark under which more columns hold numbers; a point if both do."""
    # Returned are the table, the mark, and the positions of the columns whose numbers have marks between thousands.
    start = body[:_SAMPLE]
    if dialect.delimiter == ",":  # a number with a comma is quoted
        n_points, n_commas = 1, int(re.search(rb'"\s*[+-]?\d*,\d+\s*"', start) is not None)
    else:
        n_points, n_commas = len(re.findall(rb"\d\.\d", start)), len(re.findall(rb"\d,\d", start))
    first, second = (".", ",") if n_points >= n_commas else (",", ".")
    table, grouped = _without_thousands(_parse(body, dialect, first), first)
    n_texts = _number_of_texts(table)
    if n_texts and second.encode() in body and (n_commas or dialect.delimiter != ","):
        other, grouped_otherwise = _without_thousands(_parse(body, dialect, second), second)
        if _number_of_texts(other) < n_texts + (second == "."):
            return other, second, grouped_otherwise
    return table, first, grouped


def _without_thousands(table: Any, decimal: str) -> tuple[Any, list[int]]:
    """Make columns of text numbers if all their cells are, some with marks between thousands; and their positions."""
    point = re.escape(decimal)
    marks = ("," if decimal == "." else r"\.", *(re.escape(mark) for mark in _MARKS))
    found = []
    for i, kind in enumerate(table.schema.types):
        if not pa.types.is_string(kind):
            continue
        texts = pc.utf8_trim_whitespace(table.column(i))
        for mark in marks:
            number = rf"^[+-]?([1-9]\d{{0,2}}({mark}\d{{3}})+|\d+)({point}\d*)?$"
            if not _all_match(texts.slice(0, _FIRST_ROWS), number) or not _all_match(texts, number):
                continue
            if not pc.any(pc.match_substring_regex(texts, mark)).as_py():
                break
            plain = pc.replace_substring(pc.replace_substring_regex(texts, mark, ""), decimal, ".")
            table = table.set_column(i, table.schema.names[i], plain.cast(pa.float64()))
            found.append(i)
            break
    return table, found


def _all_match(texts: Any, pattern: str) -> bool:
    """Return whether all cells that are not empty match."""
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py() is True


def _number_of_texts(table: Any) -> int:
    return sum(pa.types.is_string(kind) for kind in table.schema.types)


def _parse(body: bytes, dialect: Dialect, decimal: str) -> Any:
    convert = pa.csv.ConvertOptions(
        strings_can_be_null=True,
        decimal_point=decimal,
        null_values=[*MISSING, " ", *(f" {text}" for text in MISSING)],
    )
    parse = pa.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=b'"' in body)

    def read(*, use_threads: bool) -> Any:
        columns = [str(i) for i in range(dialect.n_columns)]
        how = pa.csv.ReadOptions(column_names=columns, block_size=min(len(body) + 1, _BLOCK), use_threads=use_threads)
        return pa.csv.read_csv(pa.BufferReader(body), read_options=how, parse_options=parse, convert_options=convert)

    try:
        return read(use_threads=True)
    except pa.ArrowInvalid:
        return read(use_threads=False)  # names the row


def _without_last_empty_rows(table: Any) -> tuple[Any, tuple[str, ...]]:
    """Leave out the rows of empty cells that spreadsheets write below a table."""
    n_rows = table.num_rows
    while n_rows and all(not column[n_rows - 1].is_valid for column in table.columns):
        n_rows -= 1
    n_empty = table.num_rows - n_rows
    if not n_empty or not n_rows:
        return table, ()
    return table.slice(0, n_rows), (f"{n_empty} empty {'row' if n_empty == 1 else 'rows'} at its end left out",)


def _with_header(table: Any, dialect: Dialect) -> tuple[Any, tuple[str, ...]]:
    """Give the columns their names, and leave out a last column without name and values."""
    columns = [pc.utf8_trim_whitespace(own) if pa.types.is_string(own.type) else own for own in table.columns]
    table = pa.table(columns, names=table.column_names)
    if not dialect.names:
        names = [f"column{i}" for i in range(table.num_columns)]
        return table.rename_columns(names), (f"it has no header: its columns are called column0 to {names[-1]}",)
    if not dialect.names[-1] and table.column(-1).null_count == table.num_rows:
        table = table.remove_column(table.num_columns - 1).rename_columns(list(dialect.names[:-1]))
        return table, ("its last column is empty and left out",)
    return table.rename_columns(list(dialect.names)), ()
