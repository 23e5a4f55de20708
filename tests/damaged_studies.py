"""Directories of finished studies and comparisons, damaged, and what the commands that read them
must come to.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from small_studies import streams_of

#: What stands in place of a value of JSON or YAML.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3.5, -0.0, 1e300, 2**31, 2**63, 10**30, float("nan")),
    *(float("inf"), "", "x", "nan", "0", "../x", "/etc/passwd", "\x1b[2J", "a" * 2000, "\ud800"),
    *([], [0], ["x"], [[]], [None], {}, {"x": 1}, {"": {}}),
)
#: What stands in place of a file.
CONTENTS = (
    *(b"", b"\0" * 9, b"\n", b"null", b"[]", b"{}", b"7", b'"x"', b"NaN", b"[" * 20_000),
    *(b'{"a":' * 20_000, b"9" * 9_000, b"\xff\xfe\x00", b"PK\x03\x04", b"&a [*a]", b"{}\n" * 9),
)
_TEXTS = (".json", ".jsonl", ".yaml", ".csv", ".html", ".md")


def doors(study: Path) -> list[tuple[str, ...]]:
    """Commands that read the directory of a study or of a comparison."""
    path = str(study)
    few = (path, "--executor", "serial")
    if (study / "members.json").exists():
        return [("compare", path), ("report", path), ("tune", "--resume", path, "--quiet")]
    return [
        *(("select", path), ("select", path, "--top", "2"), ("report", path), ("compare", path)),
        *(("trust", path), ("audit", path, "--permutations", "0")),
        *(("stability", "--subsamples", "4", *few), ("permute", "--permutations", "3", *few)),
        ("claims", *few),
        *(("tune", "--resume", path, "--quiet"), ("tune", str(study / "config.yaml"), "--dry-run")),
    ]


def said(words: tuple[str, ...]) -> str:
    """Return what a command prints in place of a sentence, a fault of raysel's own; empty if it
    ends as it should.
    """
    status, _, text = streams_of(*words)
    is_told = status == 0 or text.strip()
    fault = "has a fault" in text or "Traceback" in text
    return "" if is_told and not fault else f"status {status}: {text[-600:]}"


def damage(study: Path, draw: random.Random) -> str:
    """Damage one to three files of a directory, and say how."""
    return "; ".join(_damage_file(study, draw) for _ in range(draw.choice((1, 1, 1, 2, 3))))


def _damage_file(study: Path, draw: random.Random) -> str:
    files = sorted(path for path in study.rglob("*") if path.is_file() and not path.is_symlink())
    read = [path for path in files if path.suffix in (".json", ".jsonl", ".yaml")]
    path = draw.choice(read if read and draw.random() < 0.7 else files)
    ways: list[Callable[[Path, random.Random], str]] = [_bytes, _cut, _content, _place, _swap]
    if path.suffix in _TEXTS[:3]:
        ways += [_values] * 8
    if path.suffix == ".jsonl":
        ways += [_lines] * 3
    way = draw.choice(ways)
    return f"{path.relative_to(study)}: {way(path, draw)}"


def _bytes(path: Path, draw: random.Random) -> str:
    raw = bytearray(path.read_bytes() or b"x")
    for _ in range(draw.randint(1, 4)):
        raw[draw.randrange(len(raw))] = draw.randrange(256)
    path.write_bytes(raw)
    return "bytes"


def _cut(path: Path, draw: random.Random) -> str:
    size = draw.randrange(path.stat().st_size + 1)
    os.truncate(path, size)
    return f"cut to {size}"


def _content(path: Path, draw: random.Random) -> str:
    content = draw.choice(CONTENTS)
    path.write_bytes(content)
    return f"content {content[:9]!r}"


def _place(path: Path, draw: random.Random) -> str:
    """Remove a file, or put in its place what is no file."""
    path.unlink()
    what = draw.choice(("nothing", "folder", "link", "pipe"))
    if what == "folder":
        path.mkdir()
    elif what == "link":
        path.symlink_to("/etc/passwd")
    elif what == "pipe":
        os.mkfifo(path)
    return what


def _swap(path: Path, draw: random.Random) -> str:
    """Put another file in its place."""
    folder = path.parent
    other = draw.choice([file for file in sorted(folder.iterdir()) if file.is_file()] or [path])
    content = other.read_bytes() if other != path else path.read_bytes() * 2
    path.write_bytes(content)
    return f"content of {other.name}"


def _lines(path: Path, draw: random.Random) -> str:
    """Repeat, leave out, exchange or join lines."""
    lines = path.read_bytes().splitlines(keepends=True)
    if not lines:
        return "no lines"
    i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
    way = draw.choice(("repeat", "leave out", "exchange", "join", "blank"))
    if way == "repeat":
        lines.insert(j, lines[i])
    elif way == "leave out":
        del lines[i]
    elif way == "exchange":
        lines[i], lines[j] = lines[j], lines[i]
    elif way == "join":
        lines[i] = lines[i].rstrip(b"\n")
    else:
        lines.insert(i, b"\n")
    path.write_bytes(b"".join(lines))
    return f"{way} lines {i}, {j}"


def _values(path: Path, draw: random.Random) -> str:
    """Replace, remove or add values of JSON, or of YAML, which JSON is."""
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        if path.suffix == ".yaml":
            import yaml  # noqa: PLC0415

            data = yaml.safe_load(text)
            told = _change(data, draw)
            path.write_text(yaml.safe_dump(data, allow_unicode=False), encoding="utf-8")
            return told
        lines = text.splitlines() if path.suffix == ".jsonl" else [text]
        i = draw.randrange(len(lines))
        data = json.loads(lines[i])
        told = _change(data, draw)
        lines[i] = json.dumps(data)
    except (ValueError, IndexError, RecursionError):  # damaged before
        return _content(path, draw)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"record {i}, {told}"


def _change(data: Any, draw: random.Random) -> str:
    """Change a value, at any depth, of a mapping or a list."""
    place, told = data, ""
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return "nothing"
        key = draw.choice(keys)
        told += f".{key}"
        inner = place[key]
        if isinstance(inner, dict | list) and inner and draw.random() < 0.75:
            place = inner
            continue
        way = draw.choice(("set", "set", "set", "remove", "repeat"))
        if way == "remove":
            del place[key]
        elif way == "repeat" and isinstance(place, list):
            place.append(inner)
        else:
            place[key] = draw.choice(VALUES)
        return f"{told} {way} {str(place[key])[:30] if way == 'set' else ''}"


def damaged_copy(study: Path, folder: Path, draw: random.Random) -> str:
    """Damage a copy of a directory, in place of a former copy, and say how."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(study, folder, symlinks=True)
    return damage(folder, draw)
