"""Comparison of a few small studies: figures, tests, texts and files against what the journals
say.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from report_pages import Page
from rich.console import Console
from scipy import stats
from small_comparisons import (
    MEMBERS,
    change_refits,
    fill_in,
    read_members,
    write_comparison,
    write_lines,
    write_members,
)

import raysel
from raysel.base.estimator import RECONSTRUCTED, TRANSDUCTIVE
from raysel.cli.compare import print_comparison, print_outcome
from raysel.cli.main import main as run_command
from raysel.core.errors import DirectoryError
from raysel.core.glossary import TERMS
from raysel.numerics.inference import paired_comparison
from raysel.numerics.rankings import nogueira_stability
from raysel.results.comparison.export import export_comparison
from raysel.results.comparison.result import ComparisonResult, pair_table, score_table
from raysel.results.comparison.rows import Pair
from raysel.results.comparison.texts import comparison_text
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
def original(tmp_path_factory) -> Path:
    """Three members on three folds."""
    folder = write_comparison(
        tmp_path_factory.mktemp("comparison") / "few", cv={"outer": 3, "inner": 2}
    )
    fill_in(folder)
    return folder


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> Path:
    """Two members on four draws of the training set."""
    members = {label: MEMBERS[label] for label in ("SMR, rank 1", "all pixels")}
    cv = {"train_per_class": 4, "repeats": 4, "inner": 2}
    return write_comparison(tmp_path_factory.mktemp("drawn") / "few", members=members, cv=cv)


def test_its_report_has_every_table_and_the_scores_at_each_common_number(folder, capsys):
    assert run_command(["report", str(folder)]) == 0
    assert capsys.readouterr().out.strip() == str(folder / "report.html")
    page = Page((folder / "report.html").read_text())
    comparison = ComparisonResult.open(folder)
    text = comparison_text(comparison)
    for table in text.tables:
        assert table.title in page.text
        for row in table.rows:
            assert " ".join(cell for cell in row if cell) in page.text
    assert len(text.answer) == 2
    for sentence in (*text.answer, *text.notes, *text.remarks):
        assert " ".join(sentence.split()) in page.text
    assert all(meaning in page.text for meaning in TERMS.values())
    assert str(folder.parent) not in page.text
    (at_n,) = (table for table in text.tables if "each common number" in table.title)
    assert at_n.header == ["method", "4", "8"]
    for row, (label, study) in zip(at_n.rows, list(comparison.studies.items())[:2], strict=True):
        scores = np.array([refit.test_scores for refit in study.outer])
        expected = [f"{own.mean():.3f} ± {own.std(ddof=1):.3f}" for own in scores.T]
        assert row == [label, *expected], "all pixels have no such numbers"


@pytest.fixture
def folder(original, tmp_path) -> Path:
    """A copy that may be damaged."""
    return shutil.copytree(original, tmp_path / "few")


def refits(folder: Path, member: int) -> list[dict]:
    lines = read_journal(folder / f"member{member}" / "journal.jsonl")
    return [line for line in lines if line["kind"] == "refit" and line["fold"] != "final"]


def scores(folder: Path, member: int) -> list[float]:
    return [figure(refit, refit["test_scores"]) for refit in refits(folder, member)]


def figure(refit: dict, values: list[float]) -> float:
    """The value at the number of features that the inner scores choose, or the mean of all."""
    return float(np.mean(values)) if refit["position"] is None else values[refit["position"]]


def rename_reference(folder: Path, label: str, **further: dict) -> ComparisonResult:
    """Rename the first member, which is the reference, and add members."""
    raw = read_members(folder)
    raw["reference"] = raw["members"][0]["label"] = label
    raw["members"] += [
        {**raw["members"][0], "label": name, **entry} for name, entry in further.items()
    ]
    write_members(folder, raw)
    return ComparisonResult.open(folder)


def change_study(folder: Path, member: int, change: Callable[[dict], None]) -> None:
    """Change the first record of a member's journal, which describes the study."""
    lines = list(read_journal(folder / f"member{member}" / "journal.jsonl"))
    change(lines[0])
    write_lines(folder / f"member{member}", lines)


def text_of(folder: Path) -> str:
    return comparison_text(ComparisonResult.open(folder)).markdown().replace("\\", "")


def test_the_table_has_the_figures_of_the_journals(original):
    table = raysel.open_comparison(original).table().set_index("member")
    assert table.index.tolist() == list(MEMBERS)
    for i, label in enumerate(MEMBERS):
        own, row = refits(original, i), table.loc[label]
        assert row["test_accuracy"] == pytest.approx(np.mean(scores(original, i)))
        assert row["sd"] == pytest.approx(np.std(scores(original, i), ddof=1))
        reported = [figure(refit, refit["report"]["mean_average_precision"]) for refit in own]
        assert row["mean_average_precision"] == pytest.approx(np.mean(reported))
        assert row["mean_average_precision_sd"] == pytest.approx(np.std(reported, ddof=1))
        assert row["cpu_seconds"] == pytest.approx(0.02)  # the median of 0.01, 0.02 and 0.04
        assert row["configurations"] == (6 if label == "SMR" else 1)
        chosen = [refit["n_features"] for refit in own]
        if label == "all pixels":
            assert row[["least_features", "most_features"]].isna().all()
        else:
            assert (row["least_features"], row["most_features"]) == (min(chosen), max(chosen))
    # The second of two numbers of features is the default number.
    assert table.loc["SMR", "top"] == 8
    assert table.loc["SMR", "redundancy"] == pytest.approx(
        np.mean([r["redundancy"][1] for r in refits(original, 0)])
    )
    assert table.loc["all pixels", "top"] == 6  # a tenth of all
    red = [refit["redundancy"][0] for refit in refits(original, 2)]
    assert table.loc["all pixels", "redundancy"] == pytest.approx(np.mean(red))
    X = np.load(original.parent / "few.npz")["X"].reshape(80, -1)
    chosen = []
    for refit in refits(original, 0):
        values = np.where(np.ptp(X, axis=0) == 0, 0.0, refit["feature_scores"])
        best = sorted(np.flatnonzero(values > 0), key=lambda j: -values[j])[:8]
        chosen.append(np.isin(np.arange(64), best))
    assert table.loc["SMR", "stability"] == pytest.approx(nogueira_stability(chosen).value)


def test_folds_have_the_corrected_test_and_draws_the_plain_one(original, drawn):
    for folder, n_members, main, ratio, n_runs in (
        (original, 3, "corrected", 0.5, 3),
        (drawn, 2, "plain", 4.0, 4),
    ):
        found = ComparisonResult.open(folder)
        table, shown = pair_table(found).set_index("member"), found.table().set_index("member")
        raw = []
        for i in range(1, n_members):
            label = found.members[i].label
            d = np.subtract(scores(folder, i), scores(folder, 0))
            row = table.loc[label]
            assert (row["main_test"], row["n_runs"]) == (main, n_runs)
            assert row["test_train_ratio"] == pytest.approx(ratio, rel=0.05)
            assert (row["won"], row["lost"]) == ((d > 1e-12).sum(), (d < -1e-12).sum())
            error = math.sqrt(
                (1 / n_runs + (row["test_train_ratio"] if main == "corrected" else 0))
                * d.var(ddof=1)
            )
            raw.append(2 * stats.t.sf(abs(d.mean()) / error, n_runs - 1))
            assert row[f"{main}_p"] == pytest.approx(raw[-1])
            margin = stats.t.ppf(0.975, n_runs - 1) * error
            bounds = shown.loc[label, ["difference", "lower", "upper"]].tolist()
            assert bounds == pytest.approx([d.mean(), d.mean() - margin, d.mean() + margin])
        # Holm's correction of one or two p values.
        expected = (
            [min(1, 2 * p) if p == min(raw) else max(2 * min(raw), p) for p in raw]
            if len(raw) == 2
            else raw
        )
        assert table[f"{main}_p_holm"].tolist() == pytest.approx(expected)
        said = text_of(folder)
        assert f"n_test/n_train = {ratio:g}" in said
        assert ("next to no power" in said) == (main == "plain")
        text = comparison_text(found)
        own = [line for line in text.remarks if not line.startswith("Scores of")]
        assert max(len(line.split()) for line in (*text.answer, *own)) <= 25
        (differences,) = (table for table in text.tables if f"p ({main})" in table.header)
        assert differences.header[3] == f"p ({main})"
        lines = zip(text.answer, differences.rows, found.members[1:], expected, strict=True)
        for i, (sentence, row, member, p) in enumerate(lines, start=1):
            low, high = shown.loc[member.label, ["lower", "upper"]]
            assert row[0] == member.label
            assert f"[{low:+.3f}, {high:+.3f}]" in row[1]
            assert row[3] == f"{p:.3f}"
            figures = [f"{np.mean(scores(folder, number)):.3f}" for number in (0, i)]
            assert re.findall(r"\d\.\d{3}", sentence) == figures
            assert sentence.endswith(": no clear difference.")


def test_a_difference_is_judged_by_its_p_after_holms_correction():
    high, low = [0.9, 0.92, 0.9], [0.5, 0.51, 0.52]
    for scores, other, p, verdict in (
        (high, low, 0.04, "better"),
        (low, high, 0.04, "worse"),
        (high, low, 0.06, "not distinguishable"),
        (high, [score - 0.1 for score in high], np.nan, "not distinguishable"),
        (high, high, np.nan, "equal"),
    ):
        pair = Pair("a", paired_comparison(scores, other, 0.5), "corrected", {"corrected": p})
        assert pair.verdict == verdict


def test_equal_scores_have_no_test_and_the_table_says_so(folder):
    def same(refit, number):
        refit["test_scores"] = [0.25 * number] * len(refit["test_scores"])

    for i in range(3):
        change_refits(folder / f"member{i}", same)
    found = ComparisonResult.open(folder)
    table = pair_table(found)
    assert table["reason"].tolist() == ["the difference is 0 in all runs"] * 2
    assert table["corrected_p"].isna().all()
    text = comparison_text(found)
    assert all(sentence.endswith(": the same on every fold.") for sentence in text.answer)
    assert text_of(folder).count("+0.000 (0 in all runs)") == 2
    assert "Holm" not in text_of(folder)
    assert {path.name for path in export_comparison(found, folder / "out")} == FILES


def test_every_score_is_in_the_long_table(original):
    table = score_table(ComparisonResult.open(original))
    for i, label in enumerate(MEMBERS):
        for refit in refits(original, i):
            own = table[(table["member"] == label) & (table["outer_fold"] == refit["fold"])]
            numbers = [4, 8] if i < 2 else [None]
            expected = [
                ("accuracy", n, s) for n, s in zip(numbers, refit["test_scores"], strict=True)
            ]
            reported = refit["report"]["mean_average_precision"]
            expected += [
                ("mean_average_precision", n, s) for n, s in zip(numbers, reported, strict=True)
            ]
            sizes = [4, 8] if i < 2 else [6]
            expected += [
                ("redundancy", n, s) for n, s in zip(sizes, refit["redundancy"], strict=True)
            ]
            filled = own["n_features"].astype(object).where(own["n_features"].notna(), None)
            assert list(zip(own["metric"], filled, own["score"], strict=True)) == expected
    assert table["task"].isna().all()


def test_scores_by_task_are_listed_by_task(folder):
    def of_tasks(refit, number):
        refit["test_scores"], refit["report"], refit["redundancy"] = (
            [0.5, 0.75 + number / 8],
            {},
            [],
        )

    change_refits(folder / "member2", of_tasks)
    lines = list(read_journal(folder / "member2" / "journal.jsonl"))
    lines[0]["labels"] = ["drawings", "photos"]
    for line in lines:
        if line["kind"] == "refit":
            line["inner_curve"], line["training_scores"] = [], []
        for trace in line.get("folds", {}).values() if line["kind"] == "trial" else ():
            for fit in trace["inner"]:
                fit["scores"] = [2 * scores for scores in fit["scores"]]
    write_lines(folder / "member2", lines)
    found = ComparisonResult.open(folder)
    own = score_table(found).query("member == 'all pixels'")
    assert own["task"].tolist() == ["drawings", "photos"] * 3
    assert own["score"].tolist() == [0.5, 0.75, 0.5, 0.875, 0.5, 1.0]
    assert own["n_features"].isna().all()
    assert found.table().set_index("member").loc["all pixels", "test_accuracy"] == pytest.approx(
        0.6875
    )
    said = text_of(folder)
    assert "all pixels: The model's own predictions are scored" in said
    assert "The score is the mean over 2 tasks." in said
    assert "**Test accuracy of each task, mean ± SD over the outer folds**" in said
    assert "| all pixels | 0.500 ± 0.000 | 0.875 ± 0.125 |" in said
    row = found.table().set_index("member").loc["all pixels"]
    assert row[["test_accuracy/drawings", "test_accuracy/photos"]].tolist() == [0.5, 0.875]


def test_limitations_stand_where_the_figures_do(folder):
    def limited(refit, number):
        refit["converged"] = number != 0
        if number == 1:
            refit["feature_scores"] = [0.0] * 64
        if number == 2:
            refit["warnings"] = ["S_w is singular"]
            refit["report"]["mean_average_precision"][0] = None
            refit["redundancy"] = [None, None]

    change_refits(folder / "member1", limited)
    raw = read_members(folder)
    raw["members"][2] |= {"reconstructed": True, "transductive": True}
    write_members(folder, raw)
    lines = list(read_journal(folder / "member0" / "journal.jsonl"))
    cut = {"kind": "search", "n_tried": 6, "n_planned": 9, "cut": True}
    write_lines(folder / "member0", [*lines[:-1], cut, lines[-1]])
    rows = ComparisonResult.open(folder).rows
    assert rows["SMR, rank 1"].notes["test"][:2] == [
        "1 of 3 winners did not reach tol in max_iter iterations",
        "1 of 3 winners select no feature",
    ]
    assert (
        rows["SMR, rank 1"].notes["test"][-1]
        == "the fits of 1 of 3 winners warned: S_w is singular"
    )
    assert rows["SMR, rank 1"].facts.report["mean_average_precision"].values.index(None) == 2
    assert rows["SMR, rank 1"].redundancy == pytest.approx(
        np.mean([refit["redundancy"][1] for refit in refits(folder, 1)[:2]])
    )
    assert rows["SMR"].notes["tried"] == [
        "Raise search.time_budget and resume: it ended the search after 6 of 9 trials"
    ]
    said = text_of(folder)
    numbered = {
        line.split("] ", 1)[1].strip(): line.split("]")[0] + "]"
        for line in said.splitlines()
        if line[:1] == "["
    }
    of_method = ", ".join(
        numbered[f"{note}."].strip("[]") for note in (RECONSTRUCTED, TRANSDUCTIVE)
    )
    assert f"| all pixels [{of_method}] |" in said
    tried = numbered[f"{rows['SMR'].notes['tried'][0]}."]
    assert f"| 6 {tried} |" in said
    undefined = (
        "mean_average_precision is undefined on 1 of 3 outer folds, which are left out of its mean."
    )
    assert undefined in numbered


def test_a_native_member_has_its_redundancy_where_numbers_of_features_are_common_to_all(folder):
    def at_two_numbers(refit, _):
        refit["redundancy"] = [0.25, 0.5]

    change_refits(folder / "member2", at_two_numbers)
    change_study(folder, 2, lambda study: study["config"]["evaluation"].update(n_features=[4, 8]))
    row = ComparisonResult.open(folder).rows["all pixels"]
    assert (row.facts.top, row.redundancy) == (8, 0.5)
    assert row.by_n == {}


@pytest.mark.parametrize("width", [60, 80, 140])
def test_every_cell_is_printed_whole_on_a_narrow_terminal(folder, width):
    comparison = rename_reference(folder, "MKL (least squares, inf)", GP={"folder": "gp"})
    console = Console(
        width=width, file=io.StringIO(), force_terminal=True, no_color=True, color_system=None
    )
    print_comparison(comparison, console)
    printed = console.file.getvalue()
    for table in comparison_text(comparison).tables[:2]:
        cells = [cell.replace("_", " ") for line in [table.header, *table.rows] for cell in line]
        assert not {word for cell in cells for word in cell.split()} - set(printed.split()), width
        for row in table.rows:
            assert f"\n{row[0]} " in printed
            assert all(
                cell in printed
                for i, cell in enumerate(row)
                if table.is_number(i) and "(" not in cell
            )
    assert max(len(line.rstrip()) for line in printed.splitlines()) <= width
    # Where columns follow below, a member without a result has no empty row there.
    scores = printed.split("Test scores at")[0].splitlines()
    assert sum(line.startswith("method ") for line in scores) > (width == 60)
    assert sum(line.startswith("GP ") for line in scores) == 1


def test_the_end_of_a_comparison_fits_a_screen(folder):
    comparison = rename_reference(folder, "MKL (least squares, inf)")
    console = Console(width=80, file=io.StringIO(), force_terminal=True, color_system=None)
    print_outcome(comparison, console)
    lines = console.file.getvalue().splitlines()
    assert len(lines) <= 24 - 4  # with report, next command and MLflow
    assert max(len(line.rstrip()) for line in lines) <= 80
    text = " ".join(lines)
    for pair in comparison.pairs.values():
        assert pair.label in text.partition("Test scores")[0]


def test_tables_are_100_columns_wide_where_the_output_is_no_terminal(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    console = Console(file=io.StringIO(), soft_wrap=True, highlight=False)
    print_comparison(rename_reference(folder, "MKL (least squares, inf)"), console)
    table = console.file.getvalue().split("\n\n")[2].splitlines()
    assert max(len(line.rstrip()) for line in table) in range(81, 101)
    assert console.width == 80


def test_the_plain_test_is_cautioned_against_only_where_folds_are_repeated(original, folder):
    assert "far too small" not in text_of(original)
    for i in range(3):
        plan = json.loads((folder / f"member{i}" / "plan.json").read_text())
        plan["folds"][2]["repeat"] = 1
        (folder / f"member{i}" / "plan.json").write_text(json.dumps(plan))
    assert "p (plain) is far too small here" in text_of(folder)


def test_settings_name_the_modalities_that_a_member_uses(folder):
    assert "| solver | fixed parameters | most frequent winner" in text_of(folder)
    assert "Settings; scaling of all methods: unit" in text_of(folder)
    change_study(
        folder, 2, lambda study: study["config"]["dataset"].update(only=["HOG"], scaling="zscore")
    )
    said = text_of(folder)
    assert "| all pixels | linear_svm | - | HOG | zscore |" in said
    assert "| smr | max_iter=6 | all | unit |" in said


def test_failed_and_unfinished_members_have_a_row_that_says_why(folder):
    lines = list(read_journal(folder / "member1" / "journal.jsonl"))
    write_lines(
        folder / "member1", [line for line in lines if line["kind"] not in ("refit", "end")]
    )
    failed = {"folder": "lpb", "error": "Traceback:\nValueError: class 3 is too small\n"}
    found = rename_reference(folder, "SMR", **{"LP-B": failed, "GP": {"folder": "gp"}})
    assert [member.failure for member in found.members] == [
        "",
        "it has not finished: 1 of 1 trials are done",
        "",
        "ValueError: class 3 is too small",
        "it has not started",
    ]
    table = found.table().set_index("member")
    assert table.loc["LP-B", "note"] == "ValueError: class 3 is too small"
    assert table["difference"].notna().sum() == 1
    assert "| LP-B | no result [" in text_of(folder)
    assert {path.name for path in export_comparison(found, folder / "out")} == FILES

    # Without the reference there is no difference; the scores are there.
    shutil.rmtree(folder / "member0")
    found = ComparisonResult.open(folder)
    assert pair_table(found).empty
    assert "There are no differences and no tests: the reference, SMR, has no result." in text_of(
        folder
    )
    assert {path.name for path in export_comparison(found, folder / "out")} == FILES

    # Without any member that has a result the table still has its rows.
    shutil.rmtree(folder / "member2")
    found = ComparisonResult.open(folder)
    assert found.table()["note"].str.len().min() > 0
    kept = {path.name for path in export_comparison(found, folder / "none")}
    assert kept == FILES - {"comparison.svg", "comparison.png"}


def test_a_member_on_other_folds_or_by_another_metric_is_not_compared(folder):
    plan = json.loads((folder / "member1" / "plan.json").read_text())
    plan["folds"][0]["test"].reverse()
    (folder / "member1" / "plan.json").write_text(json.dumps(plan))
    change_study(folder, 2, lambda study: study.update(metric="macro_f1"))
    change_study(folder, 2, lambda study: study["config"]["evaluation"].update(metric="macro_f1"))
    found = ComparisonResult.open(folder)
    assert [member.failure for member in found.members] == [
        "",
        "its outer folds are not those of SMR",
        "it is scored by macro_f1, and SMR by accuracy",
    ]


def test_a_damaged_list_of_members_is_refused(folder):
    raw = read_members(folder)
    first = raw["members"][0]
    for damaged, said in (
        ({**raw, "schema": 2}, "its schema is not 1"),
        ({**raw, "members": []}, "no members"),
        ({**raw, "reference": "MKL"}, "its reference is not one of the members"),
        ({**raw, "members": [first, first]}, "two members have the same label"),
        (
            {**raw, "members": [{**first, "folder": "../elsewhere"}]},
            "not the name of a member's folder",
        ),
        ({**raw, "members": [{**first, "error": 3}]}, "'members.0.error': Input should be"),
        ([], "its schema is not 1"),
    ):
        write_members(folder, damaged)
        with pytest.raises(DirectoryError, match=said):
            ComparisonResult.open(folder)
    (folder / "members.json").write_text("{")
    with pytest.raises(DirectoryError):
        ComparisonResult.open(folder)
    with pytest.raises(DirectoryError):
        ComparisonResult.open(folder / "member0")


def test_the_files_say_what_the_tables_say_and_are_the_same_each_time(original, tmp_path):
    found = ComparisonResult.open(original)
    first = {path.name: path.read_bytes() for path in export_comparison(found, tmp_path / "a")}
    second = {path.name: path.read_bytes() for path in export_comparison(found, tmp_path / "b")}
    assert set(first) == FILES
    assert first == second
    with (tmp_path / "a" / "comparison.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [float(row["score"]) for row in read] == score_table(found)["score"].tolist()
    described = json.loads(first["manifest.json"])
    assert described["members"][0]["scores"]["test"] == scores(original, 0)
    assert described["table"][0]["difference"] is None
    assert first["comparison.png"].startswith(b"\x89PNG")
    assert b"<svg" in first["comparison.svg"]


def test_a_label_has_no_meaning_in_markdown(folder):
    found = rename_reference(folder, "a|b *c* <i> $x$")
    row = next(
        line for line in comparison_text(found).markdown().splitlines() if line.startswith("| a")
    )
    assert row.startswith(r"| a\|b \*c\* \<i\> $x$ ")
    assert {path.name for path in export_comparison(found, folder / "out")} == FILES
