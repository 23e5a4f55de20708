"""The displays of a study show its numbers, and its pictures lie in its directory in every
format.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib import pyplot as plt
from small_studies import raw_config, run_offline, write_digits

from raysel.core.errors import StudyError
from raysel.data.loading import load_dataset
from raysel.results.displays.confusion import Confusion, LabelErrors
from raysel.results.displays.preview_data import preview_parts, write_preview_parts
from raysel.results.displays.profile import Profile
from raysel.results.displays.ranking import RankingFigure, score_meaning
from raysel.results.displays.registry import DISPLAYS, find_display, find_displays, write_displays
from raysel.results.displays.scores import ScoreCurve, ScoreRows
from raysel.results.displays.search import SearchSurface
from raysel.results.page.contents import render_page
from raysel.results.page.report import make_page
from raysel.results.result import StudyResult

PLOTS = ("ranking", "scores", "stability", "search", "confusion", "profile", "convergence")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    write_digits(folder / "few.npz")
    with contextlib.chdir(folder):
        return run_offline(raw_config(folder / "few.npz"), folder / "study")


def with_refits(result, change):
    refits = {name: change(refit) for name, refit in result.stored.refits.items()}
    return StudyResult(dataclasses.replace(result.stored, refits=refits))


@pytest.fixture(scope="module")
def confused(finished):
    """The study with confusions and references of its test samples, as if they had been
    recorded.
    """
    rng = np.random.default_rng(0)

    def change(refit):
        counts = rng.integers(0, 6, (4, 4))
        references = {"all features": [0.9], "f_test": [0.5, 0.6], "chance": [0.25]}
        of_folds = (
            {"n_test": int(counts.sum()), "references": references} if refit.test_scores else {}
        )
        return dataclasses.replace(refit, confusion=counts.tolist(), **of_folds)

    return with_refits(finished, change)


def test_a_study_that_asks_for_no_pictures_has_none(finished):
    assert not [
        path
        for path in (finished.path / "ranking").iterdir()
        if path.suffix in {".png", ".svg", ".pdf"}
    ]


@pytest.mark.slow
def test_every_picture_is_written_in_every_format(confused, tmp_path):
    names = [
        "ranking",
        "scores",
        "stability",
        "search",
        "confusion",
        "roc",
        "precision_recall",
        "calibration",
        "profile",
    ]
    paths = write_displays(
        confused.facts, tmp_path, confused.ranking(), ("png", "svg", "pdf"), only_ranking=False
    )
    assert [path.name for path in paths] == [
        f"{name}.{kind}" for name in names for kind in ("png", "svg", "pdf")
    ]
    for name in names:
        assert ET.parse(tmp_path / f"{name}.svg").getroot().tag.endswith("svg")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    (only,) = write_displays(
        confused.facts, tmp_path, confused.ranking(by="outer0"), ["png"], only_ranking=True
    )
    assert only.name == "ranking.png"


def shown_of(confused):
    """The displays of a study that has all but that of a stability selection."""
    parts = preview_parts(load_dataset(confused.config["dataset"]["path"]))
    write_preview_parts(parts, confused.directory.preview_parts)
    return [display for kind in DISPLAYS if (display := kind.from_facts(confused.facts))]


def test_every_display_has_a_table_a_caption_and_a_title(confused):
    shown = shown_of(confused)
    keys = [display.key for display in shown]
    assert len(shown) >= 9
    assert len(set(keys)) == len(keys)
    assert {kind.section for kind in DISPLAYS} - {"claims"} == {
        display.section for display in shown
    }
    for display in shown:
        assert display.title.startswith("few: ")
        assert display.title != "few: "
        assert display.caption.endswith(".")
        assert len(display.frame())


@pytest.mark.slow
def test_every_display_has_a_place_in_the_report(confused):
    shown = shown_of(confused)  # writes what the page shows of the data
    svg = " ".join(re.findall(r"<svg.*?</svg>", render_page(make_page(confused)), re.DOTALL))
    for display in shown:
        for panel in find_displays(confused.facts, display.section):
            assert f'id="{panel.key}-title"' in svg


def test_maps_lie_over_the_mean_of_the_data_without_the_data_file(finished):
    with np.load(finished.config["dataset"]["path"]) as file:
        mean = file["X"].mean(axis=0)
    panel = RankingFigure.from_facts(finished.facts).panels[0]
    np.testing.assert_allclose(panel.plot().images[0].get_array(), mean.reshape(8, 8))


def test_the_curve_is_the_journals(confused):
    shown = ScoreCurve.from_facts(confused.facts)
    assert shown.n_features == [4, 8]
    for name, scores in (("test", "test_scores"), ("inner", "inner_curve")):
        rows = np.array([getattr(refit, scores) for refit in confused.outer])
        assert shown.curve[f"{name}_mean"] == rows.mean(axis=0).tolist()
        assert shown.curve[f"{name}_sd"] == rows.std(axis=0, ddof=1).tolist()
    assert shown.chosen == [refit.n_features for refit in confused.outer]
    assert shown.references["f_test"] == [0.5, 0.6]
    assert f"{confused.test_mean:.3f} ± {confused.test_sd:.3f}" in shown.caption
    table, expected = shown.frame(), confused.score_curves()
    for name in expected:
        np.testing.assert_allclose(table[name].astype(float), expected[name].astype(float))


def test_scores_of_the_models_own_predictions_are_rows(finished):
    evaluation = dict(finished.config["evaluation"], estimator="native", n_features=[4, 8])
    study = dataclasses.replace(
        finished.stored.study, config=dict(finished.config, evaluation=evaluation)
    )
    native = {"test_scores": [0.5], "inner_curve": [0.6], "references": {}, "position": None}
    refits = {
        name: dataclasses.replace(refit, **native) for name, refit in finished.stored.refits.items()
    }
    result = StudyResult(dataclasses.replace(finished.stored, study=study, refits=refits))
    assert ScoreCurve.from_facts(result.facts) is None
    assert ScoreRows.from_facts(result.facts).rows["test (unseen samples)"].values == (0.5, 0.5)


def test_each_configuration_is_there_once_with_its_winners(finished):
    tried, table = (
        SearchSurface.from_facts(finished.facts).tried,
        finished.trials().set_index("trial"),
    )
    assert len(tried) == len(table) == 6
    assert sum(one.n_winners for one in tried) == 2
    (model,) = (one for one in tried if one.is_model)
    assert model.params == finished.final.params
    assert sorted(one.score for one in tried) == pytest.approx(sorted(table.val_accuracy))


def test_the_profile_is_the_models_coefficients(finished):
    ranking = finished.ranking(5)
    shown = Profile.from_facts(finished.facts, ranking)
    solver = finished.model.steps[1][1]
    solver = getattr(solver, "estimator_", solver)
    assert list(shown.features) == [ranking.feature_names[i] for i in ranking.top()]
    np.testing.assert_array_equal(shown.coefficients, solver.coef_[:, ranking.top()])
    np.testing.assert_allclose(
        np.linalg.norm(shown.coefficients, axis=0), ranking.scores[ranking.top()]
    )


def test_confusions_are_summed_over_the_folds(confused):
    counts = Confusion.from_facts(confused.facts).counts
    np.testing.assert_array_equal(
        counts, np.sum([refit.confusion for refit in confused.outer], axis=0)
    )
    assert LabelErrors.from_facts(confused.facts) is None
    of_labels = [
        [5, 1, 2, 2],
        [9, 0, 0, 1],
        [4, 2, 2, 2],
        [0, 0, 5, 5],
    ]  # each row counts all test samples
    labelled = with_refits(
        confused, lambda refit: dataclasses.replace(refit, confusion=of_labels, n_test=10)
    )
    assert Confusion.from_facts(labelled.facts) is None
    assert (
        LabelErrors.from_facts(labelled.facts).counts.tolist() == (2 * np.array(of_labels)).tolist()
    )


def test_each_plot_is_drawn_on_given_axes_or_new_ones(confused):
    for name in PLOTS:
        _, ax = plt.subplots()
        plot = getattr(confused, f"plot_{name}")
        assert plot(ax=ax) is ax
        assert ax.has_data()
        assert plot() is not ax


def test_what_was_not_recorded_is_refused(finished):
    result = with_refits(finished, lambda refit: dataclasses.replace(refit, confusion=[]))
    with pytest.raises(StudyError, match="recorded no confusion"):
        result.plot_confusion()
    for kind in DISPLAYS:
        if kind.lacks:
            assert kind.lacks.endswith(".")
    with pytest.raises(StudyError):
        find_display(result.facts, "confusion")


def meaning(name, **more):
    return score_meaning({"solver": {"name": name} | more, "evaluation": {"metric": "roc_auc"}})


def test_captions_say_what_the_score_is():
    assert meaning("variance") == "variance of the feature"
    assert meaning("sklearn.svm.LinearSVC").endswith("of LinearSVC")
    assert meaning("sklearn.svm.SVC", importance="permutation").startswith(
        "loss of ROC AUC where the feature is permuted"
    )
    assert meaning("someones_method") == "score of the method someones_method"
