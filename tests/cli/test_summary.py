"""The end of a command: short, readable in 80 columns, whole sentences in a file, and all of it
when asked.
"""

from __future__ import annotations

import dataclasses
import io
import re

import pytest
from rich.console import Console
from small_studies import SCREEN_LINES, raw_config, run_offline, shown, write_digits

from raysel.cli.summary import print_files
from raysel.results import texts
from raysel.results.export import markdown
from raysel.results.page.findings import answer_sentences
from raysel.results.remarks import short_remarks
from raysel.results.result import StudyResult
from raysel.run.api import open_study


@pytest.fixture(scope="module")
def finished(finished_study):
    return open_study(finished_study.study)


def with_metric(result, metric):
    """The same figures under another metric's name."""
    study = dataclasses.replace(result.stored.study, metric=metric)
    return StudyResult(dataclasses.replace(result.stored, study=study))


@pytest.mark.parametrize("metric", ["accuracy", "mean_average_precision"])
def test_it_fits_80_columns_and_no_cell_is_cut_or_wrapped(finished, metric):
    result = with_metric(finished, metric)
    lines = shown(result, terminal=True)
    assert max(map(len, lines)) <= 80
    assert "…" not in "\n".join(lines)
    cells = [line.split("  ") for line in lines]
    rows = [[cell.strip() for cell in line if cell.strip()] for line in cells]
    for row in texts.curve_table(result.facts).rows:
        assert row in rows
    for row in texts.score_table(result.facts).rows:
        assert [cell for cell in row if cell] in rows
    for refit in result.outer:
        numbers = [str(refit.n_features), str(result.recorded.n_scored[refit.fold])]
        assert [
            refit.fold,
            refit.name,
            *numbers,
            f"{refit.inner_score:.3f}",
            f"{refit.test_score:.3f}",
        ] in rows


@pytest.mark.parametrize("method", ["smr", "linear_svm_of_groups"])
def test_the_table_of_references_fits_80_columns_beside_the_longest_guess(finished, method):
    solver = finished.stored.study.config["solver"] | {"name": method}
    guessed = {
        fold: dataclasses.replace(
            refit, references={**refit.references, "most frequent class": [0.9]}
        )
        for fold, refit in finished.stored.refits.items()
    }
    config = finished.stored.study.config | {"solver": solver}
    study = dataclasses.replace(finished.stored.study, config=config)
    result = StudyResult(dataclasses.replace(finished.stored, study=study, refits=guessed))
    lines = shown(result, terminal=False, verbose=False)
    (head,) = [i for i, line in enumerate(lines) if line.startswith("reference ")]
    table = lines[head : head + 2 + len(result.references)]
    assert any("chance (most frequent class)" in line for line in table)
    assert all("[" in line for line in [table[0], *table[2:]])  # in one block
    assert max(map(len, table)) <= 80


def test_no_sentence_has_more_than_25_words(finished):
    refits = {
        name: dataclasses.replace(refit, n_features=4 + 4 * (i == 1), position=int(i == 1))
        for i, (name, refit) in enumerate(finished.stored.refits.items())
    }
    many = StudyResult(dataclasses.replace(finished.stored, refits=refits))
    texts_shown = [shown(finished, terminal=False), shown(many, terminal=False)]
    texts_shown.append([*answer_sentences(many), *markdown(many.facts).splitlines()])
    assert any("count as selected" in line for line in texts_shown[2])
    sentences = [
        sentence
        for lines in texts_shown
        for line in lines
        if "  " not in line[11:] and not line.startswith("|")  # no table
        for sentence in re.split(r"(?<=[.]) +(?=[A-Z0-9])", line)
    ]
    assert len(sentences) > 30
    assert [
        sentence for sentence in sentences if len(sentence.removeprefix("- ").split()) > 25
    ] == []


def test_the_answer_comes_first_and_the_explanations_after_the_figures(finished):
    text = " ".join(" ".join(shown(finished, terminal=True)).split())
    told = [
        texts.headline(finished.facts),
        *texts.verdict_sentences(finished.facts),
        *finished.remarks(),
    ]
    told += [
        texts.rule_sentence(finished.facts.evaluation, finished.facts.study.choose_n),
        texts.interval_footnote(finished.facts),
    ]
    places = [text.index(part) for part in told]
    assert places == sorted(places)


def test_a_sentence_is_one_line_in_a_file(finished):
    lines = shown(finished, terminal=False)
    for sentence in (
        f"{texts.headline(finished.facts)}.",
        texts.rule_sentence(finished.facts.evaluation, finished.facts.study.choose_n),
        *finished.remarks(),
    ):
        assert sentence in lines


def test_the_end_names_the_ten_best_features_what_to_do_and_the_next_command(finished):
    lines = shown(finished, terminal=False, verbose=False)
    screen = io.StringIO()
    print_files(finished, Console(file=screen, width=80))
    files = screen.getvalue().splitlines()
    ranking = finished.ranking()
    table = texts.best_features_table(finished.facts, ranking)
    best = [ranking.feature_names[i] for i in ranking.recommended_top(10)]
    assert [row[1] for row in table.rows] + [row[5] for row in table.rows if row[5]] == best
    assert all(any(name in line for line in lines) for name in best)
    short = short_remarks(finished.facts.actions)
    told = [line for line in lines if line in short]
    assert told == short[: len(told)]
    assert bool(told) == bool(short)
    labels = [line.split()[0] for line in files if line[0] != " "]
    place = "report" if finished.directory.report.exists() else "study"
    assert labels == [place, "next", "MLflow"]
    assert f"raysel stability {finished.path}" in screen.getvalue()


#: Lines of report, next command and MLflow at the end of a study, below what is found.
FILE_LINES = 24 - SCREEN_LINES
#: Studies of several kinds, by the changes of a small one: of a quantity, of grouped samples with
#: many remarks, of a method without references to select by, with further metrics.
KINDS = {
    "quantity": {
        "dataset": {"source": "diabetes"},
        "solver": {"name": "f_test"},
        "evaluation": {"n_features": [2, 5]},
    },
    "many remarks": {
        "solver__params": {"max_iter": 1},
        "solver__space": {"alpha": [0.01, 0.1, 1.0], "rank": [1]},
        "evaluation__report": ["f1_macro", "balanced_accuracy"],
        "cv": {"outer": 2, "inner": 2, "blocks": {"size": 4}},
    },
    "own predictions": {"solver": {"name": "linear_svm"}, "evaluation": {"classifier": "native"}},
    "no reference": {"evaluation__references": False, "cv__final": False},
}


@pytest.mark.parametrize(
    "kind",
    [
        *("quantity", "many remarks"),
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in ("own predictions", "no reference")
        ),
    ],
)
def test_the_end_of_a_study_fits_a_screen_of_24_lines_and_80_columns(kind, tmp_path):
    write_digits(tmp_path / "few.npz")
    result = run_offline(raw_config(tmp_path / "few.npz", **KINDS[kind]), tmp_path / "study")
    for noted in (True, False):
        lines = shown(result, terminal=True, verbose=False, noted=noted)
        assert max(map(len, lines)) <= 80
        assert len(lines) <= SCREEN_LINES


def test_the_files_of_a_study_take_five_lines_of_80_columns(finished, monkeypatch):
    monkeypatch.chdir(finished.path.parent)
    screen = io.StringIO()
    print_files(finished, Console(file=screen, width=80))
    text = screen.getvalue().replace(str(finished.path), "raysel-studies/name-20260101-000000")
    assert sum(-(-len(line) // 80) for line in text.splitlines()) <= FILE_LINES


def test_what_the_command_has_noted_on_the_data_is_not_printed_again(finished):
    remark = "Column 'x' copies the label: leave it out.\nIt does so in 79 of 80 samples."
    study = dataclasses.replace(finished.stored.study, data_remarks=[remark])
    result = StudyResult(dataclasses.replace(finished.stored, study=study))
    sentence, figures = remark.split("\n")
    text = "\n".join(shown(result, terminal=False, verbose=False))
    assert text.count(sentence) == 1
    assert figures not in text
    noted = "\n".join(shown(result, terminal=False, verbose=False, noted=True))
    assert sentence not in noted
    assert "see the notes on the data above." in noted
    assert f"{sentence} {figures}" in shown(result, terminal=False)  # with --verbose
    plain = shown(finished, terminal=False, verbose=False, noted=True)
    assert "see the notes" not in "\n".join(plain)
