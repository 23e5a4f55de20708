"""Texts of unknown origin, made safe for a terminal, for a table that a spreadsheet opens, and for Markdown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TypeVar

#: Categories of Unicode whose characters are shown as escape sequences: controls, controls of the text direction and
#: of zero width, halves of surrogate pairs, private and unassigned characters, line and paragraph separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Words longer than this are shortened in the middle: no name, path or address that a person reads is as long.
_LONGEST_WORD = 1000
_LONG_WORD = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")
#: What a spreadsheet takes for the start of a formula, also full-width as in East Asia, and the mark itself.
_FORMULA = (*"=+-@\t\r\n\uff1d\uff0b\uff0d\uff20", "'")
#: Places in Markdown before the signs that make a picture, a link, the address of one, or an element of HTML.
_OF_MARKDOWN = re.compile(r"(?<=!)(?=\[)|(?<=\])(?=[(\[:])|(?=<[A-Za-z/!?])")

T = TypeVar("T")


def printable(text: str) -> str:
    r"""Return a text with the characters that a terminal obeys or hides as escape sequences, and long words shortened.

    Line breaks stay. Words of more than 1000 letters keep their first and last 500.
    """
    text = escaped(text)
    return _LONG_WORD.sub(_shortened, text) if len(text) > _LONGEST_WORD else text


def escaped(text: str) -> str:
    """Return a text with hidden characters as escape sequences, as `printable` does, and of full length."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(letter: str) -> str:
    if letter == "\n" or letter.isprintable() or unicodedata.category(letter) not in _HIDDEN:
        return letter
    return letter.encode("unicode_escape").decode("ascii")


def _shortened(word: re.Match[str]) -> str:
    text, half = word.group(), _LONGEST_WORD // 2
    return f"{text[:half]}… ({len(text)} letters) …{text[-half:]}"


def csv_cell(value: T) -> T | str:
    """Return a cell of a CSV file that no spreadsheet takes for a formula.

    A text that starts with =, +, -, @, a tab or a line break gets an apostrophe in front, and so does one that starts
    with an apostrophe: without one leading apostrophe each is as it was. Numbers stay as they are.
    """
    return f"'{value}" if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA) else value


def csv_row(values: Sequence[object]) -> list[object]:
    """Return a row of a CSV file, header or values, each as `csv_cell` returns it."""
    return [csv_cell(value) for value in values]


def markdown_text(text: str) -> str:
    r"""Return a text in Markdown of which no part is a link, a picture or HTML.

    A picture would be loaded from a server of the author's choice when the text is shown.
    """
    return _OF_MARKDOWN.sub(r"\\", escaped(text))
