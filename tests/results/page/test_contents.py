"""Contents of a report: tables as CSV, and text that HTML may hold."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raysel.results.page import contents
from raysel.results.page.contents import Block, csv_download, printable

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.lists(st.tuples(TEXT, st.floats(allow_nan=False), st.none())))
def test_a_table_reads_back_without_loss(rows):
    file = csv_download("t.csv", ["name", "value", "none"], rows, largest=10**9)
    head, *read = csv.reader(io.StringIO(file.content.decode(), newline=""))
    assert head == ["name", "value", "none"]
    names = [
        name.removeprefix("'") for name, _, _ in read
    ]  # which a formula and an apostrophe have in front
    assert all(name[:1] not in tuple("=+-@\t\r\n") for name, _, _ in read if name)
    assert names == [name for name, _, _ in rows]
    assert [(float(value), empty) for _, value, empty in read] == [
        (value, "") for _, value, _ in rows
    ]
    assert not file.note


@pytest.mark.parametrize("n_rows", [0, 1, 9, 10, 500])
def test_a_table_is_cut_at_the_largest_size(n_rows):
    rows = [(f"{i:03d}",) for i in range(n_rows)]
    file = csv_download("t.csv", ["abc"], rows, largest=50, rest="all.csv")
    assert len(file.content) <= 50
    kept = file.content.decode().splitlines()[1:]
    assert kept == [row[0] for row in rows[: len(kept)]]
    assert len(kept) == min(n_rows, 9)
    assert file.note == ("" if n_rows <= 9 else "first 9 rows; all are in all.csv")


@given(st.text())
def test_printable_text_keeps_its_length_and_can_be_encoded(text):
    shown = printable(text)
    assert len(shown) == len(text)
    shown.encode()
    assert all(c in "\t\n\r" or ord(c) >= 0x20 for c in shown)
    assert all(b in {a, "\ufffd"} for a, b in zip(text, shown, strict=True))


@pytest.mark.parametrize("kind", Block.__subclasses__())
def test_the_template_shows_blocks_of_each_kind(kind):
    template = Path(contents.__file__).with_name("report.html").read_text()
    assert f'block.kind == "{kind.__name__.lower()}"' in template
