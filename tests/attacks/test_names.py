"""Names that a terminal, a spreadsheet, a browser or matplotlib would obey."""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path

import matplotlib.text
import numpy as np
import pandas as pd
import pytest
from attack_studies import EVIL_NAMES, change_journal, name_features
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.live import Live
from rich.table import Table
from rich.text import Text

import raysel
from raysel import select
from raysel.cli.main import main as run_command
from raysel.cli.summary import print_path
from raysel.core.errors import DataError, RayselError
from raysel.core.files import write_result
from raysel.core.printing import Terminal, csv_cell, escaped, markdown_text, printable
from raysel.evaluation.ranking_files import write_ranking
from raysel.results.export import markdown
from raysel.tracking.mlflow_experiment import allowed_keys, logged_param

#: What a terminal obeys or hides: controls but the line break, turned text, zero width, halves of
#: surrogate pairs.
OBEYED = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


@settings(max_examples=50)
@given(st.text() | st.sampled_from(EVIL_NAMES))
def test_no_text_obeys_a_terminal_once_it_is_printable(text):
    shown = printable(text)
    assert not OBEYED.search(shown)
    assert printable(shown) == shown
    assert str(RayselError(text)) == shown
    if not OBEYED.search(text) and text.isprintable() and len(text) < 1000:
        assert shown == text
    for name in ("größe", "体积", "λ₁", "عرض", "été\u00a0x", "a\nb", "🧠"):
        assert escaped(name) == name


@pytest.mark.parametrize("terminal", [True, False])
def test_nothing_of_a_name_reaches_a_terminal(terminal, capsys):
    file = io.StringIO()
    out = Terminal(file=file, force_terminal=terminal, width=80, color_system=None)
    with Live(console=out, get_renderable=lambda: Text(EVIL_NAMES[0]), transient=True):
        for name in EVIL_NAMES:
            out.print(name, style="red")
            table = Table(title=Text(name))
            table.add_column(Text(name))
            table.add_row(name)
            out.print(table)
    written = file.getvalue()
    # Of rich itself: moves of the cursor for the line that is updated.
    assert not OBEYED.search(re.sub("\x1b\\[(\\?25[lh]|[0-9]*[AK])|\r", "", written))
    assert "]8;;" not in written.replace("\\x1b]8;;", "")
    assert len(written) < 100_000
    print_path(Path("a\x1b[2J"), Terminal())
    assert capsys.readouterr().out == "a\x1b[2J\n"  # as it is for a program


def test_commands_print_by_a_terminal_only():
    package = Path(raysel.__file__).parent
    for path in set(package.rglob("*.py")) - {package / "core/printing.py"}:
        for line in path.read_text(encoding="utf-8").splitlines():
            is_code = ">>>" not in line and "..." not in line and not line.strip().startswith('"')
            assert not (is_code and re.search(r"(?<![\w.\"])(print|Console)\(", line)), (
                f"{path}: {line}"
            )


@pytest.mark.slow
def test_a_study_with_evil_names_is_selected_and_reported(stranger, capfd):
    names = name_features(stranger, EVIL_NAMES)
    change_journal(
        stranger, "study", lambda line: line.update(classes=EVIL_NAMES[:4], data_remarks=EVIL_NAMES)
    )
    assert (
        select.main(
            [str(stranger), "--top", "20", "--output", "out", "--format", "csv,parquet,json,npz"]
        )
        == 0
    )
    assert select.main([str(stranger), "--top", "20", "--names"]) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_command(["report", str(stranger)]) == 0
    out, err = capfd.readouterr()
    assert not OBEYED.search(out + err)
    page = (stranger / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<img src=x" not in page
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u202a-\u202e\u2066-\u2069]", page)
    assert len(page) < 3_000_000
    assert sorted(Path("out").iterdir()) == sorted(Path("out").glob("[rm]*"))
    read = pd.read_csv("out/ranking.csv", keep_default_na=False)
    written = pd.read_parquet("out/ranking.parquet")["feature"].tolist()
    assert [cell.removeprefix("'") for cell in read["feature"]] == written
    assert read["score"].tolist() == pd.read_parquet("out/ranking.parquet")["score"].tolist()
    assert set(pd.read_parquet("out/ranking.parquet")["feature"]) == set(names)


@given(
    st.text(st.characters(codec="utf-8")) | st.sampled_from([*EVIL_NAMES, "-0.5", " =1", "\uff1d1"])
)
def test_no_text_in_a_csv_file_is_a_formula_and_each_reads_back(text):
    cell = csv_cell(text)
    assert not cell.lstrip(" ").startswith(
        ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
    )
    assert cell.removeprefix("'") == text
    for number in (-0.5, 7, -3, np.float64(-1e-7), float("nan"), None):
        assert csv_cell(number) is number


def test_markdown_shows_no_link_picture_or_html():
    for name in EVIL_NAMES:
        text = markdown_text(name)
        assert not re.search(
            r"(?<!\\)\]\(|!\[|<[a-zA-Z/]", text.replace("\\<", "").replace("!\\[", "")
        )
        assert not OBEYED.search(text)
    assert markdown_text("p < 0.05 [0.1, 0.2] at n_features") == "p < 0.05 [0.1, 0.2] at n_features"


def test_the_description_for_mlflow_has_no_picture_and_no_control_character(stranger):
    change_journal(stranger, "refit", lambda line: line.update(name=EVIL_NAMES[11] + EVIL_NAMES[0]))
    change_journal(stranger, "study", lambda line: line.update(data_remarks=EVIL_NAMES))
    text = markdown(raysel.open_study(stranger).facts)
    assert "![" not in text.replace("!\\[", "")
    assert "<img" not in text.replace("\\<img", "")
    assert not OBEYED.search(text)


def test_names_in_mlflow_keep_its_limits_and_hold_no_control_character():
    keys = allowed_keys(EVIL_NAMES)
    assert len(set(keys.values())) == len(EVIL_NAMES)
    assert max(map(len, keys.values())) <= 250
    assert not any(OBEYED.search(key) for key in keys.values())
    assert len(logged_param("x" * 10**5)) <= 6000
    assert not OBEYED.search(logged_param(EVIL_NAMES[0]))


def test_a_file_whose_name_is_evil_is_named_printably(tmp_path):
    with pytest.raises(DataError) as error:
        raysel.load_model(tmp_path / EVIL_NAMES[2])
    assert not OBEYED.search(str(error.value))
    with pytest.raises(RayselError):
        write_result(tmp_path / ("x" * 100_000), b"")


@pytest.mark.slow
def test_pictures_take_no_name_for_a_formula(stranger, tmp_path):
    name_features(stranger, ["$\\frac{1}{$", "$x^", "_$$_", *EVIL_NAMES[:4]])
    change_journal(stranger, "study", lambda line: line.update(classes=["$\\frac{$"] * 4))
    result = raysel.open_study(stranger)
    drawn = []
    for plot in (
        result.plot_ranking,
        result.plot_confusion,
        result.plot_scores,
        result.plot_convergence,
    ):
        figure = plot().figure
        figure.savefig(tmp_path / "picture.png")
        drawn += [text for text in figure.findobj(matplotlib.text.Text) if "$" in text.get_text()]
    assert drawn
    assert not any(text.get_parse_math() for text in drawn)
    write_ranking(result.ranking(), tmp_path)
    assert "$x^" in (tmp_path / "ranking.csv").read_text(encoding="utf-8")
