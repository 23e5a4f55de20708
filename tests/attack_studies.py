"""Study directories as an attacker would send them, made from a finished study."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

Line = dict[str, Any]

#: Names that a terminal, a spreadsheet, HTML, Markdown or a formula of matplotlib obeys.
EVIL_NAMES = [
    "\x1b[2J\x1b[31mred",  # clears the screen
    "\x1b]8;;http://evil.example\x07click\x1b]8;;\x07",  # a link
    "\x9b31mred\x07\x08\x08\r",  # one-byte control sequence, bell, backspace, carriage return
    "\u202egnp.\u2066exe\u200b\ufeff",  # turned text, zero width
    '=HYPERLINK("http://evil.example","x")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "-2+3",
    "+1",
    "\tx",
    "'quoted",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "![x](http://evil.example/x.png)",
    "$\\frac{1}{$",
    "../../../etc/passwd",
    "/etc/passwd",
    "[link=http://evil.example]x[/link]",
    "x" * 100_000,
]


def copied(study: Path, folder: Path) -> Path:
    """Copy a study into a new folder."""
    return Path(shutil.copytree(study, folder, symlinks=True))


def lines_of(study: Path) -> list[Line]:
    return [json.loads(line) for line in (study / "journal.jsonl").read_text().splitlines()]


def write_journal(study: Path, lines: Iterable[Line]) -> None:
    (study / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def change_journal(study: Path, kind: str, change: Callable[[Line], None]) -> None:
    """Change every record of a kind in a journal."""
    lines = lines_of(study)
    for line in lines:
        if line["kind"] == kind:
            change(line)
    write_journal(study, lines)


def change_config(study: Path, section: str | None = None, **values: Any) -> None:
    """Change values of the stored configuration, or of a section of it."""
    raw = yaml.safe_load((study / "config.yaml").read_text())
    (raw if section is None else raw.setdefault(section, {})).update(values)
    (study / "config.yaml").write_text(yaml.safe_dump(raw))


def name_features(study: Path, names: Iterable[str]) -> list[str]:
    """Give the best features of a study such names; return all names."""
    names = list(names)
    lines = lines_of(study)
    final = next(line for line in lines if line["kind"] == "refit" and line["fold"] == "final")
    scores = final["feature_scores"]
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    for line in lines:
        if line["kind"] == "study":
            for i, name in zip(order, names, strict=False):
                line["feature_names"][i] = name
            named = line["feature_names"]
    write_journal(study, lines)
    return named
