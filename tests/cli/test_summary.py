"""The summary at the end of a command: readable in 80 columns, and whole sentences in a file."""

from __future__ import annotations

import dataclasses
import io

import pytest
from rich.console import Console

from raysel.api import open_study
from raysel.cli.summary import print_summary
from raysel.results import words
from raysel.results.result import StudyResult


@pytest.fixture(scope="module")
def finished(finished_study):
    return open_study(finished_study.study)


def with_metric(result, metric):
    """The same figures under another metric's name."""
    study = dataclasses.replace(result.stored.study, metric=metric)
    return StudyResult(dataclasses.replace(result.stored, study=study))


def shown(result, terminal):
    screen = io.StringIO()
    console = Console(
        file=screen, width=80, force_terminal=terminal, color_system=None, soft_wrap=True, highlight=False
    )
    print_summary(result, console)
    return screen.getvalue().splitlines()


@pytest.mark.parametrize("metric", ["accuracy", "mean_average_precision"])
def test_it_fits_80_columns_and_no_cell_is_cut_or_wrapped(finished, metric):
    result = with_metric(finished, metric)
    lines = shown(result, terminal=True)
    files = next(i for i, line in enumerate(lines) if line.startswith("ranking    "))
    assert max(map(len, lines[:files])) <= 80
    assert "…" not in "\n".join(lines)
    cells = [line.split("  ") for line in lines]
    rows = [[cell.strip() for cell in line if cell.strip()] for line in cells]
    for row in words.curve_rows(result)[1]:
        assert row in rows
    for row in words.score_rows(result):
        assert [cell for cell in row if cell] in rows
    for refit in result.outer:
        numbers = [str(refit.n_features), str(result.n_scored[refit.fold])]
        assert [refit.fold, refit.name, *numbers, f"{refit.inner_score:.3f}", f"{refit.test_score:.3f}"] in rows
    assert ["features", "inner", "test", "all 64", "variance", "F-test", "chance"] in rows


def test_the_answer_comes_first_and_the_explanations_after_the_figures(finished):
    text = " ".join(" ".join(shown(finished, terminal=True)).split())
    told = [words.headline(finished), *words.verdict_sentences(finished), "mean", *finished.remarks()]
    told += [words.rule_sentence(finished), words.interval_footnote(finished), str(finished.path)]
    places = [text.index(part) for part in told]
    assert places == sorted(places)


def test_a_sentence_is_one_line_in_a_file(finished):
    lines = shown(finished, terminal=False)
    for sentence in (words.headline(finished), words.rule_sentence(finished), *finished.remarks()):
        assert sentence in lines
