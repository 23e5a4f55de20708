"""Text for people: listings, shortened names, what a terminal may print, last words of a process.

Words that cannot be printed are no reason for a study to end: `Terminal` never raises the errors of
its stream.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NoReturn, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

#: Categories of Unicode whose characters are shown as escape sequences: controls, controls of the
#: text direction and of zero width, halves of surrogate pairs, private and unassigned characters,
#: line and paragraph separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Words longer than this are shortened in the middle: no name, path or address that a person reads
#: is as long.
_LONGEST_WORD = 1000
_LONG_WORD = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")
#: What a spreadsheet takes for the start of a formula, also full-width as in East Asia, and the
#: mark itself.
_FORMULA = (*"=+-@\t\r\n\uff1d\uff0b\uff0d\uff20", "'")
#: Places in Markdown before the signs that make a picture, a link, the address of one, or an
#: element of HTML.
_OF_MARKDOWN = re.compile(r"(?<=!)(?=\[)|(?<=\])(?=[(\[:])|(?=<[A-Za-z/!?])")

#: What raysel's own texts contain beyond ASCII, for streams of other encodings.
_PLAIN = str.maketrans({"±": "+/-", "…": "...", "·": "|", "\u00d7": "x", "≤": "<=", "≥": ">="})

T = TypeVar("T")
#: Texts of the commands that run in this process; that of the innermost one is printed.
_WORDS: list[Callable[[], str]] = []


def printable(text: str) -> str:
    r"""Return a text with hidden characters as escape sequences, and long words shortened.

    Line breaks stay. Words of more than 1000 letters keep their first and last 500.
    """
    text = escaped(text)
    if len(text) > _LONGEST_WORD:
        return _LONG_WORD.sub(_shortened, text)
    return text


def escaped(text: str) -> str:
    """Return a text with hidden characters as escape sequences, and of full length."""
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(letter: str) -> str:
    if letter == "\n" or letter.isprintable() or unicodedata.category(letter) not in _HIDDEN:
        return letter
    return letter.encode("unicode_escape").decode("ascii")


def _shortened(word: re.Match[str]) -> str:
    text, half = word.group(), _LONGEST_WORD // 2
    return f"{text[:half]}… ({len(text)} letters) …{text[-half:]}"


def csv_cell(value: T) -> T | str:
    """Return a cell of a CSV file that no spreadsheet takes for a formula.

    A text that starts with =, +, -, @, a tab or a line break gets an apostrophe in front, and so
    does one that starts with an apostrophe: without one leading apostrophe each is as it was.
    Numbers stay as they are.
    """
    if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA):
        return f"'{value}"
    return value


def csv_row(values: Sequence[object]) -> list[object]:
    """Return a row of a CSV file, header or values, each as `csv_cell` returns it."""
    return [csv_cell(value) for value in values]


def markdown_text(text: str) -> str:
    r"""Return a text in Markdown of which no part is a link, a picture or HTML.

    A picture would be loaded from a server of the author's choice when the text is shown.
    """
    return _OF_MARKDOWN.sub(r"\\", escaped(text))


def listed(names: Iterable[object], most: int = 12, rest: str = ", ... ({n_all} in all)") -> str:
    """Return names as text, of more than `most` the first ones and the `rest`.

    The rest may count all of them as ``{n_all}``, and those that are left out as ``{n_more}``.
    """
    every = [str(name) for name in names]
    shown = [name if name.isprintable() and name else repr(name) for name in every[:most]]
    text = ", ".join(shown) or "nothing"
    if len(every) <= most:
        return text
    return text + rest.format(n_all=len(every), n_more=len(every) - most)


def by_number(n: int, one: str, several: str) -> str:
    """Return the words for one thing, or those for several."""
    return one if n == 1 else several


def mean_and_sd(mean: float, sd: float = math.nan) -> str:
    """Return a mean and its standard deviation as text; the mean alone without one."""
    if math.isnan(mean):
        return "undefined"
    if math.isnan(sd):
        return f"{mean:.3f}"
    return f"{mean:.3f} ± {sd:.3f}"


def short(name: str, longest: int) -> str:
    """Shorten a text to one line of at most ``longest`` characters."""
    line = _one_line(name)
    if len(line) <= longest:
        return line
    return f"{line[: longest - 1]}…"


def quoted(name: str) -> str:
    """Shorten a name to one line of 40 characters; quoted where it could be misread."""
    line = short(name, 40)
    if line != name.strip() or " " in line or "," in line or not line:
        return f"'{line}'"
    return line


def short_middle(name: str, longest: int) -> str:
    """Shorten a text to one line of ``longest`` characters, keeping start and end."""
    line = _one_line(name)
    end = (longest - 1) // 2
    if len(line) <= longest:
        return line
    return f"{line[: longest - 1 - end]}…{line[-end:]}"


def list_doubt(doubt: str) -> str:
    """Return a remark as an item of a list, its further lines one below the other."""
    below = "\n".ljust(13) + "- "
    lines = below.join(doubt.splitlines())
    return f"{'to check':<12}{lines}"


def first_line(text: str) -> str:
    """Return the first line of a remark: what to do, in one sentence."""
    return text.partition("\n")[0]


def joined_lines(text: str) -> str:
    """Return all lines of a remark as one."""
    return text.replace("\n", " ")


def _one_line(name: str) -> str:
    """Join the words of a text by single spaces, without what SVG must not contain."""
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(name.split()))


def encodable(text: str, encoding: str | None) -> str:
    r"""Return a text with escape sequences for characters that an encoding lacks."""
    encoding = encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAIN).encode(encoding, "backslashreplace").decode(encoding)
    return text


def program(name: str = "raysel") -> str:
    """Return how a shell starts a program of this environment from the current directory."""
    script = Path(sys.executable).with_name(name)
    found = shutil.which(name)
    if found and Path(found).absolute() == script.absolute():
        return name
    if not script.exists():
        return f"{shlex.quote(sys.executable)} -m {name}"
    here = Path.cwd()
    return shlex.quote(str(script.relative_to(here) if script.is_relative_to(here) else script))


class _Stream:
    """Stream of a terminal that replaces what it cannot encode, and ends with an error."""

    def __init__(self, stream: IO[str], terminal: Terminal) -> None:
        self._stream, self._terminal = stream, terminal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, or nothing."""
        return self._unless_broken(self._write, text)

    def flush(self) -> None:
        """Flush the stream."""
        self._unless_broken(lambda _: self._stream.flush(), "")

    def _write(self, text: str) -> None:
        self._stream.write(encodable(text, getattr(self._stream, "encoding", None)))

    def _unless_broken(self, action: Callable[[str], None], text: str) -> int:
        if not self._terminal.is_broken:
            try:
                action(text)
            except (OSError, ValueError) as error:  # a full disk, a lost reader, a closed stream
                self._terminal.is_broken = True
                if not (self._terminal.stderr or isinstance(error, BrokenPipeError)):
                    _warn_of_lost_words(error)
        return len(text)


def _warn_of_lost_words(error: Exception) -> None:
    reason = getattr(error, "strerror", None) or error
    with suppress(OSError, ValueError, AttributeError):  # there may be no stream for errors
        sys.stderr.write(
            f"The standard output cannot be written ({reason}): further words are lost, results are"
            " not.\n"
        )


class Terminal(Console):
    r"""Console that shows control characters as escape sequences instead of obeying them.

    Colours, the progress line and the width of lines work as in rich's console; only texts are made
    `printable`, on a terminal and in a log alike. A stream that cannot be written, e.g. a closed
    pipe, ends the printing without an error.
    """

    def __init__(self, **settings: Any) -> None:
        self.is_broken = False
        super().__init__(
            **{"soft_wrap": True, "highlight": False, "markup": False, "emoji": False, **settings}
        )

    @property
    def file(self) -> IO[str]:
        """Stream that is written to."""
        stream: Any = _Stream(super().file, self)
        return stream

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        Console.file.fset(self, new_file)  # type: ignore[attr-defined]

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the segments of anything that can be printed; every output passes here."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)

    def confirms(self, question: str, *, default: bool) -> bool:
        """Ask a question; the end of the input is a no."""
        from rich.prompt import Confirm  # noqa: PLC0415 - few commands ask

        try:
            return Confirm.ask(Text(question), console=self, default=default)
        except EOFError:
            self.print()
            return False


@contextmanager
def last_words(words: Callable[[], str]) -> Iterator[None]:
    """Let `end_process` print a text, which says how to resume what runs inside the context."""
    _WORDS.append(words)
    try:
        yield
    finally:
        _WORDS.remove(words)


def end_process(error: Exception) -> NoReturn:
    """Print an error and the text of `last_words`, and end this process at once."""
    with suppress(Exception):  # the process ends in any case
        sys.stderr.write(f"error: {error}\n")
        for words in _WORDS[-1:]:
            sys.stderr.write(f"{words()}\n")
        sys.stderr.flush()
    os._exit(1)
