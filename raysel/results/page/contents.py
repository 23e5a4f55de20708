"""Contents of a report as plain data, with places named from where it was made, and their HTML."""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from raysel.core.glossary import TERMS
from raysel.core.printing import csv_row
from raysel.core.storage.location import as_uri
from raysel.core.storage.working_copy import shown_place

#: Largest size of the data of one figure or table in the file, in bytes.
LARGEST_DOWNLOAD = 100_000
#: Characters that HTML forbids, and those that change the direction of the text that follows.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
#: What stands for the folder of a file outside the folder where the report was made.
ELSEWHERE = "FOLDER"
_LOCAL = re.compile(r"((?:sqlite:///|file://)?)(/.*)", re.DOTALL)


def printable(text: str) -> str:
    """Replace controls, of the text direction too, by the replacement character."""
    return _UNPRINTABLE.sub("\ufffd", text)


@dataclass(frozen=True)
class Download:
    """File inside the report, behind a link."""

    name: str
    content: bytes
    note: str = ""

    @property
    def address(self) -> str:
        """Address with the content itself (RFC 2397)."""
        encoded = base64.b64encode(self.content).decode("ascii")
        return f"data:text/csv;charset=utf-8;base64,{encoded}"


def csv_download(
    name: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    largest: int = LARGEST_DOWNLOAD,
    rest: str = "",
) -> Download:
    """Return a table as a CSV file; a note says if rows beyond the largest size are left out."""
    parts = [_csv_line(columns)]
    size = len(parts[0])
    for row in rows:
        line = _csv_line(row)
        size += len(line)
        if size > largest:
            note = f"first {len(parts) - 1} rows"
            if rest:
                note += f"; all are in {rest}"
            return Download(name, b"".join(parts), note)
        parts.append(line)
    return Download(name, b"".join(parts))


def _csv_line(row: Sequence[object]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerow(csv_row(row))  # quotes line breaks, which it ends lines with
    return text.getvalue().encode("utf-8", "replace")


class Block:
    """Part of a section; the template shows each kind in its way."""

    @property
    def kind(self) -> str:
        """Name of the class in lower case."""
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Text(Block):
    """Paragraphs."""

    paragraphs: Sequence[str]
    style: str = ""


@dataclass(frozen=True)
class Remarks(Block):
    """List of sentences."""

    sentences: Sequence[str]


@dataclass(frozen=True)
class TermList(Block):
    """Terms with their values."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Table(Block):
    """Table with a caption; the first column heads the rows."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: Sequence[int] = (0,)
    strong: Sequence[int] = ()
    download: Download | None = None


@dataclass(frozen=True)
class Picture(Block):
    """Figure with its caption and its data."""

    svg: str
    caption: str
    download: Download | None = None
    on_white: bool = False


@dataclass(frozen=True)
class Pictures(Block):
    """Figures side by side where there is room."""

    pictures: Sequence[Picture]


@dataclass(frozen=True)
class CodeBlock(Block):
    """Command to copy, or text of a file."""

    text: str
    label: str = ""


@dataclass(frozen=True)
class Folded(Block):
    """Blocks that are shown on request."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Section:
    """Section of a report."""

    key: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """Report of a study."""

    title: str
    subtitle: str
    sections: Sequence[Section]
    footer: str = ""
    tiles: Sequence[tuple[str, str, str]] = ()


def glossary() -> Section:
    """Return the section on the words of a report."""
    table = Table("Terms of this report.", ["term", "meaning"], list(TERMS.items()), (0, 1))
    return Section("words", "What the words mean", [table])


def render_page(page: Page) -> str:
    """Return a report as HTML that needs neither network nor scripts.

    All texts are escaped; only the figures' SVG and the package's own style sheet are put in as
    they are. A content security policy in the file forbids scripts and all requests.
    """
    environment = Environment(
        loader=PackageLoader("raysel.results.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    template = environment.get_template("report.html")
    style = files("raysel.results.page").joinpath("report.css").read_text(encoding="utf-8")
    return template.render(page=page, style=style)


def _finalized(value: Any) -> Any:
    """Make a text printable; markup is left as it is."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return printable(value)
    return value


def named(place: str | Path) -> str:
    """Return a path or URI as a report names it."""
    shown = shown_place(place)
    if as_uri(shown) and not shown.startswith("file:"):
        return shown
    path = Path(shown.removeprefix("file://")).absolute()
    if path.is_relative_to(Path.cwd()):
        return str(path.relative_to(Path.cwd()))
    return f"{ELSEWHERE}/{path.name}"


def without_folders(value: Any) -> Any:
    """Return plain data with the paths in it as a report names them."""
    if isinstance(value, Mapping):
        return {key: without_folders(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_folders(own) for own in value]
    if isinstance(value, str) and (found := _LOCAL.fullmatch(value)):
        return f"{found[1]}{named(found[2])}"
    return value


def where_to_run(command: str) -> str:
    """Return the folder where a command runs."""
    where = "in the folder where this report was made"
    if ELSEWHERE in command:
        where += f", with {ELSEWHERE} as the file's own folder"
    return where
