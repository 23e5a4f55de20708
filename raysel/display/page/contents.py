"""Contents of a report as plain data: sections of texts, lists of facts, tables, figures and commands."""

from __future__ import annotations

import base64
import csv
import io
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from raysel.printing.printable import csv_row

#: Largest size of the data of one figure or table in the file, in bytes.
LARGEST_DOWNLOAD = 100_000
#: Characters that HTML forbids, and those that change the direction of the text that follows.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def printable(text: str) -> str:
    r"""Replace control characters and controls of the text direction by the replacement character.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        Text of the same length that HTML and SVG may hold.

    Examples
    --------
    >>> printable("pixel\x00 7")
    'pixel� 7'
    """
    return _UNPRINTABLE.sub("\ufffd", text)


@dataclass(frozen=True)
class Download:
    """File inside the report, behind a link.

    Parameters
    ----------
    name : str
        Suggested name of the file.
    content : bytes
        Content, CSV in UTF-8.
    note : str, default=""
        What the file leaves out; empty if nothing.
    """

    name: str
    content: bytes
    note: str = ""

    @property
    def address(self) -> str:
        """Address with the content itself (RFC 2397)."""
        return f"data:text/csv;charset=utf-8;base64,{base64.b64encode(self.content).decode('ascii')}"


def csv_download(
    name: str, columns: Sequence[str], rows: Iterable[Sequence[object]], largest: int = LARGEST_DOWNLOAD, rest: str = ""
) -> Download:
    r"""Return a table as a CSV file; rows that would exceed the largest size are left out, which the note says.

    Parameters
    ----------
    name : str
        Name of the file.
    columns : sequence of str
        Names of the columns.
    rows : iterable of sequence
        Values; a float is written without loss, None as an empty cell, a text as `csv_cell` returns it.
    largest : int, default=100000
        Largest size in bytes.
    rest : str, default=""
        File of the study's directory that holds all rows, for the note.

    Returns
    -------
    Download
        The file.

    Examples
    --------
    >>> csv_download("curve.csv", ["n", "accuracy"], [(4, 0.5), (8, None)]).content
    b'n,accuracy\r\n4,0.5\r\n8,\r\n'
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)  # quotes line breaks, which it ends lines with
    writer.writerow(csv_row(columns))
    parts, size, cut = [], 0, False
    for row in itertools.chain([None], rows):
        if row is not None:
            writer.writerow(csv_row(row))
        part = text.getvalue().encode("utf-8", "replace")
        text.seek(0)
        text.truncate()
        size += len(part)
        cut = row is not None and size > largest
        if cut:
            break
        parts.append(part)
    note = f"first {len(parts) - 1} rows{f'; all are in {rest}' if rest else ''}" if cut else ""
    return Download(name, b"".join(parts), note)


@dataclass(frozen=True)
class Text:
    """Paragraphs.

    Parameters
    ----------
    paragraphs : sequence of str
        Plain text.
    style : {"", "answer", "note", "warning"}, default=""
        Emphasis.
    """

    kind: ClassVar[str] = "text"
    paragraphs: Sequence[str]
    style: str = ""


@dataclass(frozen=True)
class Remarks:
    """List of sentences.

    Parameters
    ----------
    sentences : sequence of str
        Plain text.
    """

    kind: ClassVar[str] = "remarks"
    sentences: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """Terms with their values.

    Parameters
    ----------
    rows : sequence of (str, str)
        Term and value.
    """

    kind: ClassVar[str] = "facts"
    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Table:
    """Table with a caption; the first column heads the rows.

    Parameters
    ----------
    caption : str
        What the table shows.
    columns : sequence of str
        Heads of the columns.
    rows : sequence of sequence of str
        Cells as text.
    text_columns : sequence of int, default=(0,)
        Columns that hold words, which are aligned left; the others hold numbers.
    strong : sequence of int, default=()
        Rows that are emphasized.
    download : Download, optional
        Data of the table.
    """

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: Sequence[int] = (0,)
    strong: Sequence[int] = ()
    download: Download | None = None


@dataclass(frozen=True)
class Picture:
    """Figure with its caption and its data.

    Parameters
    ----------
    svg : str
        Element ``svg`` made by `inline_svg`: the only part of a report that is not escaped.
    caption : str
        What the figure shows, of what, over what.
    download : Download, optional
        Data of the figure.
    on_white : bool, default=False
        Whether it stands on white also in dark mode, because its colours are those of a scale that starts there.
    """

    kind: ClassVar[str] = "picture"
    svg: str
    caption: str
    download: Download | None = None
    on_white: bool = False


@dataclass(frozen=True)
class Pictures:
    """Figures side by side where there is room.

    Parameters
    ----------
    pictures : sequence of Picture
        The figures.
    """

    kind: ClassVar[str] = "pictures"
    pictures: Sequence[Picture]


@dataclass(frozen=True)
class Command:
    """Command to copy, or text of a file.

    Parameters
    ----------
    text : str
        The command or text.
    label : str, default=""
        What it does.
    """

    kind: ClassVar[str] = "command"
    text: str
    label: str = ""


@dataclass(frozen=True)
class Folded:
    """Blocks that are shown on request.

    Parameters
    ----------
    title : str
        What they are.
    blocks : sequence
        The blocks.
    """

    kind: ClassVar[str] = "folded"
    title: str
    blocks: Sequence[Block]


Block: TypeAlias = Text | Remarks | Facts | Table | Picture | Pictures | Command | Folded


@dataclass(frozen=True)
class Section:
    """Section of a report.

    Parameters
    ----------
    key : str
        Name in the address, letters and hyphens.
    title : str
        Heading.
    blocks : sequence of Block
        Contents.
    """

    key: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """Report of a study.

    Parameters
    ----------
    title : str
        Heading and title of the page.
    subtitle : str
        Line below the heading.
    sections : sequence of Section
        Sections in their order.
    footer : str, default=""
        Last line.
    tiles : sequence of (str, str, str), default=()
        Figures at the top: the value, what it is, and a line below.
    """

    title: str
    subtitle: str
    sections: Sequence[Section]
    footer: str = ""
    tiles: Sequence[tuple[str, str, str]] = ()
