"""Run the guide and README.md as they are written: ``python -m experiments.guide.run [PAGE ...]``
makes the pictures of the guide anew.

A page is Markdown. Its blocks run in their order, in one folder: ``python`` in one namespace, or
saved where the first line is ``# NAME.py``; ``yaml`` saved by its first line; the commands of
``sh``. Each line of a ``text`` block must be one of those that the block before it has printed, in
their order. The blocks ``sh cluster`` need other machines and are left out here:
``tests/test_cluster_launch.py`` and ``tests/test_slurm.py`` run them.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raysel.cli.main import main as raysel

HERE = Path(__file__).parent
#: The pages by their names; README is the front page of the repository, not the guide's index.
FILES = {path.stem: path for path in sorted(HERE.glob("*.md"))}
FILES["README"] = HERE.parents[1] / "README.md"
PAGES = tuple(FILES)
#: The page about MLflow: tests upload nothing of the others.
TRACKED = "mlflow"
_BLOCK = re.compile(r"^```(\w+)( cluster)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w-]+\.(?:py|yaml))\b")
_PICTURE = re.compile(r"!\[[^\]]*\]\(([^)/]+)\)")  # beside the page, not in another folder


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each block of a page that runs or is compared."""
    for kind, elsewhere, text in _BLOCK.findall(FILES[page].read_text(encoding="utf-8")):
        if not elsewhere:
            yield kind, text


def pictures(page: str) -> list[str]:
    """Return the names of the pictures that a page shows."""
    return _PICTURE.findall(FILES[page].read_text(encoding="utf-8"))


def run_page(page: str, folder: Path) -> None:
    """Run the blocks of a page in an empty folder, and compare what they print with what the
    page says.
    """
    names: dict[str, Any] = {"__name__": page}
    printed = ""
    sys.path.insert(0, str(folder))
    try:
        with contextlib.chdir(folder):
            for kind, text in blocks(page):
                if kind == "text":
                    _compare(page, text, printed)
                elif saved := _FILE.match(text):
                    Path(saved[1]).write_text(text, encoding="utf-8")
                else:
                    printed = _run(page, kind, text, names)
    finally:
        sys.path.remove(str(folder))


def _run(page: str, kind: str, text: str, names: dict[str, Any]) -> str:
    """Run one block, and return what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if kind == "python":
            exec(compile(text, f"{page}.md", "exec"), names)
        elif kind == "sh":
            for line in text.splitlines():
                program, *words = shlex.split(line, comments=True)
                if program != "raysel" or raysel([*words, *_settings(words)]):
                    raise AssertionError(f"{page}.md: {line} fails.\n{out.getvalue()}")
        else:
            raise AssertionError(f"{page}.md: a block of {kind} is neither run nor saved.")
    return out.getvalue()


def _settings(words: list[str]) -> list[str]:
    """Return what makes a study short: the pages draw what they show, so that no other picture
    is needed, and Ray, which takes seconds to start, gives the same numbers.
    """
    if words[0] != "tune" or "--resume" in words:
        return []
    return ["--set", "pictures=[]", "--set", "search.executor=serial"]


def _compare(page: str, text: str, printed: str) -> None:
    """Find each line of a page in what was printed, in their order."""
    left = iter([line.rstrip() for line in printed.splitlines()])
    for line in text.splitlines():
        if line.rstrip() not in left:
            raise AssertionError(f"{page}.md says: {line}\nbut its block has printed:\n{printed}")


def main(pages: list[str]) -> None:
    """Run pages, and copy the pictures that they make beside them."""
    for page in pages or PAGES:
        with tempfile.TemporaryDirectory() as folder:
            run_page(page, Path(folder))
            for picture in pictures(page):
                shutil.copy(Path(folder) / picture, HERE / picture)


if __name__ == "__main__":
    main(sys.argv[1:])
