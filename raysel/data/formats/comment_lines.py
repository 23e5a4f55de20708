"""Lines of a text table that are no rows of it: comments above, between and below its rows."""

from __future__ import annotations

import re
from typing import NamedTuple

#: Start of a comment above the rows, which a spreadsheet may have put in quotes.
_MARK = rb'[ \t]*"?(?:[#%!](?![,;\t"])|//)'
_ABOVE = re.compile(_MARK + rb"[^\r\n]*(?:\r\n|\n|\r|\Z)")
#: A comment among the rows: "#" alone is a cell, and so may a sign be that is followed by others.
_AMONG = re.compile(rb'(?m)^"?(?:(?:#(?![,;\t"])|//)[^\r\n]*|[%!][^\r\n,;\t]*)(?:\r\n|\n|\r|\Z)')
#: Found at once, where looking at each line takes long.
_START = re.compile(rb'\n"?(?:[#%!]|//)')
_BLANK = re.compile(rb"(?:[ \t]*(?:\r\n|\n|\r))*")
#: The mark with the blanks behind it, at the start of a comment that names columns, e.g. "# a b c".
_BEFORE_NAMES = re.compile(_MARK + rb"[#%!/]*[ \t]+")


class Lines(NamedTuple):
    """Text without comments, and what the comments are."""

    #: All but the comments.
    text: bytes
    n_comments: int = 0
    #: The comment above the first row, which may name the columns; empty if none is there.
    last_above: bytes = b""


def without_comments(text: bytes) -> Lines:
    """Leave out comment lines: those above the rows, and among them if few begin so."""
    start = end = n_above = 0
    last = b""
    while comment := _ABOVE.match(text, _BLANK.match(text, end).end()):  # type: ignore[union-attr]
        last, end, n_above = comment[0], comment.end(), n_above + 1
    below = text[end:]
    if not below or below.isspace():  # every line has the mark, so that it is none of comments
        return Lines(text)
    among = []
    if _START.search(text):
        among = _spans(text, end)
    n_lines = text.count(b"\n", end) + 1
    if 2 * len(among) >= n_lines:
        among = []
    kept = []
    start = end
    for first, behind in among:
        kept.append(text[start:first])
        start = behind
    return Lines(b"".join([*kept, text[start:]]), n_above + len(among), last)


def _spans(text: bytes, start: int) -> list[tuple[int, int]]:
    """Starts and ends of the lines with a mark behind a place, without those within quotes."""
    found, n_quotes, counted = [], 0, start
    for comment in _AMONG.finditer(text, start):
        n_quotes += text.count(b'"', counted, comment.start())
        counted = comment.start()
        if n_quotes % 2 == 0:
            found.append(comment.span())
            counted = comment.end()
    return found


def read_name_line(comment: bytes) -> bytes:
    """Return a comment as a line of names; a mark right before a name is a part of it."""
    return _BEFORE_NAMES.sub(b"", comment, count=1)
