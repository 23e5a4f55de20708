"""Whatever the file and the place: `init`, `tune` and `audit` write a study, or end in a
sentence.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
import warnings
from contextlib import chdir
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_studies import streams_of

from raysel.config import load_config

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    with chdir(tmp_path_factory.mktemp("here")):
        yield


CELLS = (
    *("", "0", "1", "-3", "1.5", "a", "b", "yes", "nan", "inf", "1e308", "1e400", "1e-320"),
    *("0x1f", "1_000", "true", "2024-01-31", "12:00:00", "12%", "$3", "<LOD", "n.d.", "é"),
    *("\u2212 5", "a,b", "a;b", 'q"q', "two\nlines", "#", "=1+1", "9223372036854775806"),
    *("18446744073709551615", "9" * 23, "1,5", "1.234,5", "\u202e", "x" * 300, "?", "{a: 1}"),
    *("${oc.env:HOME}", "%s", "{}", "\t", "file.nii.gz", "a.nii", "*", "&a", "∞", "½"),
)
NAMES = (
    *("y", "label", "target", "class", "id", "Unnamed: 0", "__index_level_0__", "", "  ", " y "),
    *("y.a", "y.b", "y.", "X", "a.b", "a.c", "m[0]", "row", "col", "x", "time", "event", "well"),
    *("patient_id", "batch", "date", "a\nb", "a\tb", "é", "#x", "*", "[a]", "[!a]", "${x}", "&x"),
    *("on", "null", "~", "1", "2", "400.5", "x" * 2000, "\u202e", "'", '"', "a: b", "a #b", "- a"),
    *("task", "groups", "column0", "=1+1", "a,b", "%", "\\", "../x", "sample_weight", "weights"),
)
ROWS = (0, 1, 2, 5, 20, 40)
Table = tuple[list[str], list[list[object]]]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Names and columns of a table: some strange, others of numbers or classes."""
    n_rows = draw(st.sampled_from(ROWS))
    random = draw(st.randoms(use_true_random=False))
    names = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=draw(st.booleans())))
    names += [f"c{i}" for i in range(draw(st.integers(0, 4)))]
    kinds = {
        "numbers": lambda: random.gauss(0, 1),
        "large": lambda: random.gauss(0, 1e155),
        "classes": lambda: random.choice("ab"),
        "whole": lambda: random.randrange(3),
        "ids": lambda: 2**63 - 1 - random.randrange(4),
        "strange": lambda: random.choice(CELLS),
        "some strange": lambda: random.choice([*[random.gauss(0, 1)] * 60, *CELLS]),
    }
    columns = []
    for _ in names:
        kind = kinds[draw(st.sampled_from(["numbers", *kinds]))]
        columns.append([kind() for _ in range(n_rows)])
    if draw(st.booleans()):
        names.append("kind")
        columns.append([random.choice("ab") for _ in range(n_rows)])
    return names, columns


def written(table: Table, path: Path, how: str) -> Path:
    """Write a table as text, compressed text or Parquet."""
    names, columns = table
    if how == "parquet":
        texts = [[str(cell) for cell in column] for column in columns]
        pq.write_table(pa.table([pa.array(text) for text in texts], names=names), path)
        return path
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter="\t" if how == "tsv" else ",")
    writer.writerow(names)
    writer.writerows(zip(*columns, strict=True))
    raw = buffer.getvalue().encode("latin-1" if how == "txt" else "utf-8", "replace")
    path.write_bytes(gzip.compress(raw) if how == "csv.gz" else raw)
    return path


def ended(*words: str) -> tuple[int, str]:
    """Run a command, and return its status and the last line that it printed."""
    status, out, err = streams_of(*words)
    said = err if status else out
    assert said.strip(), f"nothing is said, status {status}"
    assert "has a fault" not in said, said
    return status, said.strip().splitlines()[-1]


@given(
    table=tables(),
    how=st.sampled_from(["csv", "csv", "tsv", "txt", "csv.gz", "parquet"]),
    label=st.sampled_from([None, None, None, *NAMES]),
)
@settings(max_examples=25, derandomize=True)
def test_whatever_the_table_a_command_ends_in_a_sentence(table, how, label):
    path, study = written(table, Path(f"t.{how}"), how), Path("t.yaml")
    study.unlink(missing_ok=True)
    given_label = [] if label is None else [f"--label={label}"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        status, said = ended("init", str(path), "--output", str(study), *given_label)
    assert (status, study.exists()) in {(0, True), (2, False)}, said
    if status == 0:
        load_config(study)
    else:
        assert ended("audit", str(path), "--permutations", "0", *given_label)[0] == 2
    assert ended("tune", str(path))[0] == 2


def names() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{i / 7},{i * 7 % 11},{i % 2}\n" for i in range(30)]
    Path("t.csv").write_text("".join(["a,b,y\n", *rows]), encoding="utf-8")
    return "t.csv"


@pytest.mark.parametrize(
    "place",
    [
        *("x" * 5000, f"{'x' * 5000}.yaml", f"{'a/' * 2000}x.yaml", "a\0b.yaml", "\ud800.yaml"),
        *("~no-such-user/x.yaml", "t.csv/x.yaml", "link.yaml", "loop.yaml/x.yaml", "folder.yaml"),
        *("/dev/null", "/dev/full", "/proc/x.yaml", "nowhere/x.yaml", "s3://bucket/x.yaml"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_in_a_sentence(table, place):
    Path("link.yaml").symlink_to("nowhere")
    Path("loop.yaml").symlink_to("loop.yaml")
    Path("folder.yaml").mkdir()
    before = names()
    status, said = ended("init", table, f"--output={place}")
    assert status == 2
    assert said.startswith("error: ")
    assert len(said) < 5000
    assert names() == before


@pytest.mark.parametrize(
    ("words", "place"),
    [
        *(
            (["tune", "t.yaml", "--output"], place)
            for place in ("x" * 5000, "t.csv/x", "loop/x", f"{'a/' * 2500}x")
        ),
        *((["tune", option], "loop/x") for option in ("--resume", "--replay")),
        *(
            ([command], "x" * 5000)
            for command in ("report", "select", "compare", "trust", "stability", "permute")
        ),
        *(([command], "t.csv/x") for command in ("audit", "tune")),
        (["upload", "--", "PLACE", "file:///nowhere/x"], "loop/x"),
    ],
)
def test_a_place_that_no_system_has_is_refused_in_a_sentence(table, words, place):
    Path("loop").symlink_to("loop")
    assert ended("init", table, "--output=t.yaml")[0] == 0
    words = [place if word == "PLACE" else word for word in words]
    status, said = ended(*words, *([] if place in words else [place]))
    assert status == 2
    assert said.startswith("error: ")
    assert len(said) < 5000


@pytest.mark.parametrize("call", [1, 30, 300, 1500, 3000, 6000])
def test_an_interrupted_init_says_so_and_leaves_no_part_of_a_study(table, call):
    n_calls = 0

    def interrupt(frame, *_):
        nonlocal n_calls
        n_calls += f"{os.sep}raysel{os.sep}study" in frame.f_code.co_filename
        if n_calls == call:
            sys.settrace(None)
            raise KeyboardInterrupt

    tracing = sys.gettrace()
    sys.settrace(interrupt)
    try:
        status, said = ended("init", table)
    finally:
        sys.settrace(tracing)
    left = names()
    if n_calls >= call:
        assert (status, said, left) == (130, "interrupted", ["t.csv"])
    else:
        assert (status, left) == (0, ["t-study.yaml", "t.csv"])
