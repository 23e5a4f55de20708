"""``raysel compare``: prints a comparison again, joins those of several data sets,
refuses in a sentence.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from small_comparisons import (
    MEMBERS,
    change_refits,
    read_members,
    write_comparison,
    write_lines,
    write_members,
)

from raysel.cli.main import main
from raysel.tracking.journal import read_journal

FILES = {
    "comparison.csv",
    "comparison.md",
    "comparison.svg",
    "comparison.png",
    "tests.csv",
    "manifest.json",
}


@pytest.fixture(scope="module")
def comparison(tmp_path_factory) -> Path:
    return write_comparison(tmp_path_factory.mktemp("compare") / "few", cv={"outer": 2, "inner": 2})


def on_other_data(comparison: Path, folder: Path, scores: dict[str, float]) -> Path:
    """A copy as if it were of other data, with these mean test scores."""
    shutil.copytree(comparison, folder)
    raw = read_members(folder)
    write_members(folder, {**raw, "name": folder.name})
    for member in raw["members"]:

        def scored(refit, number, score=scores[member["label"]]):
            refit["test_scores"] = [score + (0.01 if number else -0.01)] * len(refit["test_scores"])

        change_refits(folder / member["folder"], scored)
        lines = list(read_journal(folder / member["folder"] / "journal.jsonl"))
        lines[0]["data_hash"] = str(folder)
        write_lines(folder / member["folder"], lines)
    return folder


def test_one_comparison_is_printed_and_written_again(comparison, tmp_path, capsys):
    assert main(["compare", str(comparison)]) == 0
    out = capsys.readouterr().out
    assert {path.name for path in (comparison / "comparison").iterdir()} == FILES
    assert out.startswith(
        "few: 3 methods on the same 2 outer folds (40 training and 40 test samples)"
    )
    tables = out[out.index("Test scores") :].split("\n\nScores of")[0].splitlines()
    assert max(map(len, tables)) <= 100
    for label in MEMBERS:
        assert sum(line.startswith(label + " ") for line in tables) >= 2
    assert main(["compare", str(comparison), "--output", str(tmp_path / "out")]) == 0
    for name in FILES:
        assert (tmp_path / "out" / name).read_bytes() == (
            comparison / "comparison" / name
        ).read_bytes(), name


def test_six_data_sets_have_mean_ranks_and_their_tests(comparison, tmp_path, capsys):
    rng = np.random.default_rng(1)
    table = np.column_stack(
        [rng.uniform(0.8, 0.9, 6), rng.uniform(0.85, 0.95, 6), rng.uniform(0.3, 0.4, 6)]
    )
    folders = [
        on_other_data(
            comparison, tmp_path / f"set{i}", dict(zip(MEMBERS, row.tolist(), strict=True))
        )
        for i, row in enumerate(table)
    ]
    assert main(["compare", *map(str, folders), "--output", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    statistic, p = stats.friedmanchisquare(*table.T)
    assert f"chi2 = {statistic:.2f}, 2 degrees of freedom, p = {p:.3f}." in out
    described = json.loads((tmp_path / "out" / "manifest.json").read_text())
    ranks = stats.rankdata(-table, axis=1)
    assert described["mean_ranks"] == pytest.approx(
        dict(zip(MEMBERS, ranks.mean(axis=0), strict=True))
    )
    assert described["nemenyi"]["critical_difference"] == pytest.approx(
        2.343 * (3 * 4 / 36) ** 0.5, abs=1e-3
    )
    written = pd.read_csv(tmp_path / "out" / "ranks.csv")
    assert written["rank"].tolist() == ranks.ravel().tolist()
    assert written["score"].to_numpy() == pytest.approx(table.ravel())
    assert (tmp_path / "out" / "ranks.png").read_bytes().startswith(b"\x89PNG")
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {
        ".csv",
        ".md",
        ".json",
        ".svg",
        ".png",
    }

    assert "Friedman's test finds no clear difference" not in out

    # A label that one comparison lacks is left out of all.
    raw = read_members(folders[0])
    raw["members"][2]["label"] = "all cells"
    write_members(folders[0], raw)
    assert main(["compare", *map(str, folders), "--output", str(tmp_path / "fewer")]) == 0
    out = capsys.readouterr().out
    assert "all pixels is left out: it is no member of set0." in out
    assert "all cells is left out: it is no member of set1, set2, set3, set4, set5." in out

    # Two methods are left, of which the exact sign test is made.
    won = int((table[:, 0] > table[:, 1]).sum())
    p = stats.binomtest(won, 6).pvalue
    assert (
        f"Exact sign test of two methods over 6 data sets: SMR has won/tied/lost {won}/0/{6 - won}"
        in out
    )
    assert f"p = {p:.3f}." in out
    assert "Friedman" not in out.replace("no Friedman", "")
    assert "Nemenyi" not in out

    # Below five data sets there are ranks and no test, and no diagram, nor that of more data sets
    # from before.
    (tmp_path / "out").rename(tmp_path / "four")
    assert main(["compare", *map(str, folders[1:5]), "--output", str(tmp_path / "four")]) == 0
    out = capsys.readouterr().out
    assert (
        "no Friedman test and no critical-difference diagram: there are 4 data sets, and the tests"
        " need at" in out
    )
    assert {path.name for path in (tmp_path / "four").iterdir()} == {
        "ranks.csv",
        "ranks.md",
        "manifest.json",
    }
    assert json.loads((tmp_path / "four" / "manifest.json").read_text())["friedman"]["chi2"] is None


def change_config(folder: Path, member: int, section: str, **changes: object) -> None:
    lines = list(read_journal(folder / f"member{member}" / "journal.jsonl"))
    lines[0]["config"][section] |= changes
    write_lines(folder / f"member{member}", lines)


def test_what_makes_ranks_doubtful_is_said(comparison, tmp_path, capsys):
    folders = [
        on_other_data(comparison, tmp_path / name / "few", dict.fromkeys(MEMBERS, 0.5))
        for name in ("one", "two")
    ]

    def said() -> str:
        assert main(["compare", *map(str, folders), "--output", str(tmp_path / "out")]) == 0
        return capsys.readouterr().out

    # Both have the folder's name and read the same file: their paths tell them apart.
    out = said()
    assert f"{folders[0]}, {folders[1]} are parts of one data set, " in out
    assert "different solvers" not in out

    for number in range(3):
        change_config(folders[1], number, "dataset", path="other.npz")
    raw = read_members(folders[1])
    raw["members"][1]["label"] = "SMR *one*"
    raw["members"][2]["label"] = "SMR, rank 1"
    write_members(folders[1], {**raw, "name": "other"})
    raw = read_members(folders[0])
    raw["members"][0]["label"], raw["members"][2]["label"] = "all pixels", "SMR *one*"
    write_members(folders[0], {**raw, "reference": "all pixels"})
    out = said()
    assert "parts of one data set" not in out
    assert (
        "SMR, rank 1 has different solvers: smr in few; linear_svm in other. Its ranks are not"
        " those" in out
    )
    assert "SMR, rank 1 has different estimators: knn in few; native in other." in out
    assert "SMR *one* has different solvers: linear_svm in few; smr in other." in out
    assert "all pixels is left out: it is no member of other." in out
    assert "SMR is left out: it is no member of few." in out
    assert (
        r"- SMR \*one\* has different solvers: linear\_svm in few"
        in (tmp_path / "out" / "ranks.md").read_text()
    )


def test_a_member_that_failed_somewhere_is_left_out_with_the_reason(comparison, tmp_path, capsys):
    folders = [
        on_other_data(comparison, tmp_path / name, dict.fromkeys(MEMBERS, 0.5))
        for name in ("one", "two")
    ]
    shutil.rmtree(folders[1] / "member1")
    raw = read_members(folders[1])
    raw["members"][1]["error"] = "Traceback:\nValueError: class 3 is too small"
    write_members(folders[1], raw)
    assert main(["compare", *map(str, folders), "--output", str(tmp_path / "out")]) == 0
    said = "SMR, rank 1 is left out: it has no result in two: ValueError: class 3 is too small."
    assert said in capsys.readouterr().out
    left_out = json.loads((tmp_path / "out" / "manifest.json").read_text())["left_out"]
    assert left_out == {"SMR, rank 1": {"two": "ValueError: class 3 is too small"}}


def test_what_cannot_be_compared_is_refused_in_a_sentence(comparison, tmp_path, capsys):
    def refusal(*arguments: object) -> str:
        assert main(["compare", *map(str, arguments)]) == 2
        said = capsys.readouterr().err
        assert said.startswith("error: ")
        assert "Traceback" not in said
        return said

    assert "holds no comparison" in refusal(tmp_path)
    assert "holds no comparison" in refusal(comparison / "member0")
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refusal(comparison, "--output", tmp_path / "file")
    same = shutil.copytree(comparison, tmp_path / "same")
    assert "have the same data" in refusal(comparison, same, "--output", tmp_path / "out")
    other = on_other_data(comparison, tmp_path / "other", dict.fromkeys(MEMBERS, 0.5))
    raw = read_members(other)
    for member in raw["members"][:2]:
        member["label"] += " of other"
    write_members(other, {**raw, "reference": "SMR of other"})
    assert "1 of 5 members have a result in every comparison, and two or more" in refusal(
        comparison, other
    )
    assert not (tmp_path / "out").exists()
