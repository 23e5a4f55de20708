"""The report of a study of every kind: well formed, whole, self-contained, and its numbers are
the study's.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import re
import shlex

import numpy as np
import pytest
from matplotlib.figure import Figure
from report_pages import KINDS, Page, page_of

from raysel import tune
from raysel.core.errors import UnfinishedStudyError
from raysel.data.loading import load_dataset
from raysel.results import texts
from raysel.results.displays.ranking import RankingFigure
from raysel.results.page import findings, report
from raysel.results.page.contents import render_page
from raysel.results.page.findings import answer_sentences
from raysel.results.page.report import make_page, tiles, write_report
from raysel.results.remarks import Remark, format_remarks
from raysel.results.result import StudyResult
from raysel.results.stability import StabilitySelectionResult

TITLES = {
    "What was asked",
    "The answer",
    "Which features",
    "What was tried",
    "Convergence",
    "Training, inner and test score",
    "What can be claimed",
    "Remarks",
    "How to cite and run it again",
}
HOSTILE = (
    '</script></svg></style><img src=x onerror="alert(1)">{{ 7*7 }}\n\u202e\x00$\\frac$'
    " \u05d0\u05d1 " + "x" * 10_000
)


def rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_study_of_any_kind_writes_a_whole_report(kind, study_of):
    result = study_of(kind)
    content = result.directory.report.read_bytes()
    assert len(content) < 3_000_000
    page = Page(content.decode())
    titles = {title for level, title in page.headings if level == 2}
    assert titles >= TITLES
    assert page.headings[0][1] == result.name
    assert (
        ("Where the folds disagree" in titles)
        == result.recorded.ranks_features
        == ("How stable the selection is" in titles)
    )
    assert ("ranking.csv" in page.downloads) == any(result.recorded.n_scored.values())
    for sentence in [*texts.verdict_sentences(result.facts), *result.remarks()]:
        assert " ".join(sentence.split()) in page.text
    if kind in ("modalities", "tasks", "multilabel"):  # the reference is of another classifier
        assert b"(1-nearest neighbour)" in page.downloads["scores.csv"]
    # A mean over several numbers of features is not the score of one of them.
    of_one = re.search(r"with the [0-9-]+ best of 64 features", page.text)
    assert bool(of_one) == (bool(result.recorded.n_features) and kind != "mean over N")
    assert ("a mean over several N" in page.text) == (kind == "mean over N")
    assert ("raysel stability" in page.text) == result.recorded.is_ranked
    assert str(result.path.parent) not in content.decode(), (
        "a mailed report names no folder of the machine"
    )
    assert page.headings[1][1] == "The answer"
    headline = texts.headline(result.facts)
    assert f"{headline[0].upper()}{headline[1:]}." in page.text
    assert ("failed." in page.text) == (kind == "failed trials")
    assert ("stopped early" in page.text) == (result.n_trials["stopped"] > 0)
    if kind in ("matrix", "tasks"):  # drawing takes seconds
        assert render_page(make_page(StudyResult.open(result.path))).encode() == content


def test_its_figures_data_are_the_journals(matrix):
    page = Page(matrix.directory.report.read_text())
    curve = rows(page.downloads["scores.csv"])
    test = np.array([refit.test_scores for refit in matrix.outer])
    assert [int(row["n_features"]) for row in curve] == [4, 8]
    np.testing.assert_array_equal([float(row["test_mean"]) for row in curve], test.mean(axis=0))
    ranking = rows(page.downloads["ranking.csv"])
    with (matrix.directory.ranking / "ranking.csv").open(newline="") as file:
        assert ranking == list(csv.DictReader(file))
    cells = {
        (int(row["row"]), int(row["column"])): float(row["score"])
        for row in rows(page.downloads["map.csv"])
    }
    scores = np.where(matrix.recorded.constant, 0.0, matrix.final.feature_scores).reshape(8, 8)
    assert cells == dict(np.ndenumerate(scores))
    mean = {
        (int(row["row"]), int(row["column"])): float(row["mean"])
        for row in rows(page.downloads["mean.csv"])
    }
    expected = load_dataset(matrix.path.parent / "data.parquet").X.mean(axis=0)
    np.testing.assert_allclose([mean[place] for place in np.ndindex(8, 8)], expected, rtol=1e-12)
    tried = rows(page.downloads["tried.csv"])
    assert {(float(row["alpha"]), int(row["rank"])) for row in tried} == {
        (alpha, rank) for alpha in (0.01, 0.1, 2.0) for rank in (1, 2)
    }
    assert sum(int(row["outer_folds_won"]) for row in tried) == len(matrix.outer)
    ranks = rows(page.downloads["fold-ranks.csv"])
    with matrix.directory.fold_table("outer0").open(newline="") as file:
        expected_ranks = {row["feature"]: float(row["rank"]) for row in csv.DictReader(file)}
    shown = {row["feature"]: float(row["outer0"]) for row in ranks if row["outer0"]}
    assert shown.items() <= expected_ranks.items()
    assert len(shown) == matrix.recorded.n_scored["outer0"]


def test_its_objective_and_that_of_the_plot_are_the_mean_over_the_outer_folds(matrix):
    """By plain loops over the inner fits; the final fold, whose training set is another, does
    not count.
    """
    wanted, with_final = {}, {}
    for record in matrix.records:
        for means, folds in (
            (wanted, ("outer0", "outer1")),
            (with_final, ("outer0", "outer1", "final")),
        ):
            curves = [[inner.objective for inner in record.folds[fold].inner] for fold in folds]
            n = max(len(curve) for own in curves for curve in own)
            held = [
                [np.mean([curve[min(i, len(curve) - 1)] for curve in own]) for own in curves]
                for i in range(n)
            ]
            means[record.name] = np.mean(held, axis=1)
    assert not any(np.allclose(wanted[name][-1], with_final[name][-1]) for name in wanted)
    drawn = {}
    for row in rows(Page(matrix.directory.report.read_text()).downloads["objective.csv"]):
        drawn.setdefault(row["configuration"], []).append(float(row["objective"]))
    assert drawn.keys() == wanted.keys()
    plotted = sorted(
        line.get_ydata().tolist()
        for line in matrix.plot_convergence(Figure().add_subplot()).get_lines()
    )
    for curves in (sorted(drawn.values()), plotted):
        for one, other in zip(curves, sorted(map(list, wanted.values())), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_an_adaptive_search_over_one_parameter_is_a_line_a_fold(matrix):
    trials = [
        dataclasses.replace(record, id=f"{fold}-{record.id}", fold=fold, folds={fold: trace})
        for record in matrix.records
        if record.params["rank"] == 1
        for fold, trace in record.folds.items()
    ]
    lines = (
        StudyResult(dataclasses.replace(matrix.stored, trials=trials))
        .plot_search(Figure().add_subplot())
        .lines
    )
    in_order = sorted(trials, key=lambda trial: trial.params["alpha"])
    scores = {
        f: [t.folds[f].score("one_se") for t in in_order if t.fold == f]
        for f in matrix.stored.refits
    }
    drawn = sorted(line.get_ydata().tolist() for line in lines if line.get_linestyle() == "-")
    assert drawn == sorted(scores.values())


def test_the_figures_at_its_top_are_score_chance_number_and_stability(matrix):
    shown = {what: (value, below) for value, what, below in tiles(matrix)}
    guesses = {
        name: np.mean([refit.references[name][0] for refit in matrix.outer])
        for name in matrix.outer[0].references
        if name in ("most frequent class", "stratified guess")
    }
    assert shown["chance"] == (f"{max(guesses.values()):.3f}", max(guesses, key=guesses.get))
    assert shown["test accuracy"][0] == f"{np.mean(matrix.test_scores):.3f}"
    assert shown["stability"][0] == f"{matrix.stability().value:.2f}"
    assert not [what for what in shown if "trial" in what or "configuration" in what]


def test_one_stability_is_shown_in_all_places(matrix):
    """That over pairs of disjoint halves where they have run: of 20 pairs 15 share their
    features.
    """
    d, top = len(matrix.feature_names), matrix.default_top
    counts, pair_counts = np.zeros((2, d), dtype=np.int64)
    counts[:top], counts[top : 2 * top], pair_counts[:top] = 35, 5, 15
    halves = StabilitySelectionResult(
        top=top,
        threshold=0.9,
        is_default=False,
        counts=counts,
        pair_counts=pair_counts,
        n_selected=np.full(40, top),
        constant=np.zeros(d, dtype=bool),
        n_halves=40,
        errors={},
        n_unconverged=0,
    )
    result = StudyResult(matrix.stored)
    vars(result.recorded)["stability_selection"] = halves
    value = f"{1 - 0.25 / (1 - top / d):.2f}"
    of_folds = str(result.stability())
    assert value != of_folds
    figure = RankingFigure.from_facts(result.facts)
    places = [tiles(result)[-1][0], " ".join(answer_sentences(result)), figure.caption]
    assert all(value in place for place in places)
    assert not any(f"stability {of_folds}" in place for place in places)
    assert places[0] == value


def test_its_sentences_are_of_the_selected_features_and_of_the_test_score(matrix):
    page = Page(matrix.directory.report.read_text())
    n, ranking = matrix.default_top, matrix.ranking()
    first = ranking.consensus_top(n)
    always = int((ranking.fold_selected[:, first].sum(axis=0) == len(matrix.outer)).sum())
    assert (
        f"Of the first {n} features of the consensus, {always} are among the best {n} of each"
        in page.text
    )
    outer = sorted({refit.n_features for refit in matrix.outer})
    numbers = " to ".join(map(str, outer))
    assert (
        f"{numbers} best of 64 features chosen on the outer folds by inner scores; final model: {n}"
        in page.text
    )
    winners = len(matrix.refits)
    met = f"{matrix.facts.fits.n_converged} of {winners} winners (outer folds and final model)"
    assert f"{met} converged to a local optimum." in page.text
    assert format_remarks([Remark("local_optimum", matrix.final.other_start)])[0] in page.text
    stability = rows(page.downloads["stability.csv"])
    np.testing.assert_array_equal(
        [float(row["noise_highest"] or "nan") for row in stability],
        matrix.stability_curve()["noise_highest"],
    )


def test_a_cell_of_a_map_tells_its_score_and_its_folds(matrix):
    told = Page(matrix.directory.report.read_text()).texts
    table = matrix.ranking().to_frame()
    columns = ["feature", "score", "selection_frequency"]
    for name, score, share in table[columns].itertuples(index=False):
        scored = f"score {score:.3g}" if score > 0 else "no score"
        folds = round(2 * share)
        assert told.count(f"{name}: {scored}, selected by {folds} of 2 outer folds") == 2  # maps


def test_its_answer_says_that_nothing_bounds_the_false_features_yet(matrix):
    first = answer_sentences(matrix)
    assert any("How many of them are false is not known yet" in sentence for sentence in first)
    assert "raysel stability" in Page(matrix.directory.report.read_text()).text


@pytest.mark.parametrize("kind", ["matrix", pytest.param("multilabel", marks=pytest.mark.slow)])
def test_hostile_text_remains_text(kind, study_of):
    result = study_of(kind)
    record = dataclasses.replace(
        result.stored.study,
        name=HOSTILE,
        feature_names=[f"{i}{HOSTILE}" for i in range(len(result.feature_names))],
        versions={**result.stored.study.versions, HOSTILE: HOSTILE},
    )
    refits = {
        name: dataclasses.replace(refit, name=HOSTILE, warnings=[HOSTILE])
        for name, refit in result.stored.refits.items()
    }
    trials = [
        dataclasses.replace(t, name=HOSTILE, status="failed", error=HOSTILE)
        for t in result.records[:1]
    ]
    stored = dataclasses.replace(
        result.stored,
        study=record,
        refits=refits,
        trials=[*trials, *result.records[1:]],
        status="finished",
    )
    html = render_page(make_page(StudyResult(stored)))
    assert len(html) < 3_000_000
    assert not any(c in html for c in "\x00\u202e")
    page = Page(html)  # neither script nor handler nor element of its own
    assert '</script></svg></style><img src=x onerror="alert(1)">' in page.text
    assert "{{ 7*7 }}" in page.text


@pytest.mark.slow
def test_a_preview_that_is_missing_or_damaged_is_done_without(matrix, tmp_path):
    first = Page(write_report(matrix, tmp_path / "first.html").read_text())
    assert "Classes" in first.text
    kept = {
        path: path.read_bytes() for path in (matrix.directory.preview, matrix.directory.mean_sample)
    }
    try:
        for damaged, missing in (tuple(kept), tuple(reversed(kept))):
            damaged.write_bytes(b"[1, 2")
            missing.unlink(missing_ok=True)
            page = Page(write_report(matrix, tmp_path / "second.html").read_text())
            assert "Classes" not in page.text
            assert set(first.downloads) - set(page.downloads) == {"mean.csv"}
    finally:
        for path, content in kept.items():
            path.write_bytes(content)


def test_fewer_features_with_a_score_than_the_usual_number_are_all_that_count(matrix):
    few = dataclasses.replace(matrix.final, feature_scores=[1.0, 0.5, *[0.0] * 62])
    result = StudyResult(
        dataclasses.replace(matrix.stored, refits={**matrix.stored.refits, "final": few})
    )
    text = page_of(findings.features(result)).text
    assert "2 of 64 features have a score in the final model." in text


def test_its_commands_run_where_it_was_made_and_it_names_the_paper_and_the_verdict(
    matrix, monkeypatch
):
    monkeypatch.chdir(matrix.path.parent)
    text = page_of(findings.claims(matrix), report.cite(matrix)).text
    assert f"raysel stability {matrix.path.name} " in text
    (again,) = re.findall(r"raysel (tune .*?) Versions", text)
    arguments = [*shlex.split(again)[1:], "--dry-run"]
    assert tune.main(arguments) == 0
    cite = text.rpartition("How to cite and run it again")[2]
    for sentence in (
        texts.headline(matrix.facts)[1:],
        texts.short_verdict(matrix.facts),
        "doi:10.1109/TIP.2017.2713948",
    ):
        assert sentence in cite


def test_an_unfinished_study_has_no_report(matrix, tmp_path):
    unfinished = StudyResult(dataclasses.replace(matrix.stored, status="interrupted"))
    with pytest.raises(UnfinishedStudyError):
        write_report(unfinished, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())
