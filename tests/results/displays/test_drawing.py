"""The pictures of a study show its numbers, and lie in its directory in every format."""

from __future__ import annotations

import contextlib
import dataclasses
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib import pyplot as plt
from small_studies import raw_config, run_offline, write_digits

from raysel.base.registry import OWN, solver_capabilities
from raysel.core.errors import StudyError
from raysel.results.displays import data as picture_data
from raysel.results.displays.drawing import draw_pictures, score_meaning, write_pictures
from raysel.results.result import StudyResult


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    write_digits(folder / "few.npz")
    with contextlib.chdir(folder):
        return run_offline(raw_config(folder / "few.npz"), folder / "study")


@pytest.fixture(scope="module")
def confused(finished):
    """The study with confusions and references of its test samples, as if they had been recorded."""
    rng, refits = np.random.default_rng(0), dict(finished.stored.refits)
    for refit in finished.outer:
        counts = rng.integers(0, 6, (4, 4))
        refits[refit.fold] = dataclasses.replace(
            refit,
            confusion=counts.tolist(),
            n_test=int(counts.sum()),
            references={"all features": [0.9], "f_test": [0.5, 0.6], "chance": [0.25]},
        )
    return StudyResult(dataclasses.replace(finished.stored, refits=refits))


def test_a_study_that_asks_for_none_has_none(finished):
    assert not [path for path in (finished.path / "ranking").iterdir() if path.suffix in {".png", ".svg", ".pdf"}]


@pytest.mark.slow
def test_every_picture_is_written_in_every_format(confused, tmp_path):
    names = ["ranking", "scores", "stability", "search", "confusion", "profile"]
    paths = write_pictures(confused, tmp_path, confused.ranking())
    assert [path.name for path in paths] == [f"{name}.{kind}" for name in names for kind in ("png", "svg", "pdf")]
    for name in names:
        assert ET.parse(tmp_path / f"{name}.svg").getroot().tag.endswith("svg")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_maps_lie_over_the_mean_of_the_data_without_the_data_file(finished):
    with np.load(finished.config["dataset"]["path"]) as file:
        mean = file["X"].mean(axis=0)
    drawn = draw_pictures(finished, finished.ranking())["ranking"]
    np.testing.assert_allclose(drawn.axes[0].images[0].get_array(), mean)


def test_the_curve_is_the_journals(confused):
    found = picture_data.score_curves(confused)
    assert found["n_features"] == [4, 8]
    assert found["test"].tolist() == [refit.test_scores for refit in confused.outer]
    assert found["inner"].tolist() == [refit.inner_curve for refit in confused.outer]
    assert found["chosen"] == [refit.n_features for refit in confused.outer]
    assert found["references"]["f_test"].tolist() == [[0.5, 0.6]] * 2
    told = " ".join(text.get_text() for text in draw_pictures(confused, None)["scores"].texts)
    assert f"{confused.test_mean:.3f} ± {confused.test_sd:.3f} (SD)" in told


def test_scores_of_the_model_s_own_predictions_have_no_numbers_of_features(finished):
    evaluation = dict(finished.config["evaluation"], classifier="native", n_features=[4, 8])
    study = dataclasses.replace(finished.stored.study, config=dict(finished.config, evaluation=evaluation))
    refits = {
        fold: dataclasses.replace(refit, test_scores=[0.5], inner_curve=[0.6], references={}, position=None)
        for fold, refit in finished.stored.refits.items()
    }
    native = StudyResult(dataclasses.replace(finished.stored, study=study, refits=refits))
    assert picture_data.score_curves(native)["n_features"] == []
    assert "scores" in draw_pictures(native, None)


def test_each_configuration_is_there_once_with_its_winners(finished):
    tried = picture_data.tried_configurations(finished)
    table = finished.trials().set_index("trial")
    assert len(tried) == len(table) == 6
    assert sum(one.n_winners for one in tried) == 2
    (model,) = (one for one in tried if one.is_model)
    assert model.params == finished.final.params
    assert sorted(one.score for one in tried) == pytest.approx(sorted(table.val_accuracy))


def test_the_profile_is_the_models_coefficients(finished):
    found = picture_data.profile(finished, 5)
    solver = finished.model.steps[1][1]
    solver = getattr(solver, "estimator_", solver)
    assert found["features"] == finished.ranking(5).to_frame().feature[:5].tolist()
    np.testing.assert_array_equal(found["coefficients"], solver.coef_[:, finished.ranking(5).top()])
    np.testing.assert_allclose(
        np.linalg.norm(found["coefficients"], axis=0), finished.ranking(5).scores[finished.ranking(5).top()]
    )


def test_confusions_are_summed_over_the_folds(confused):
    found = picture_data.confusion(confused)
    np.testing.assert_array_equal(found["counts"], np.sum([refit.confusion for refit in confused.outer], axis=0))
    assert not found["multilabel"]
    for refit in confused.outer:  # four labels: each row counts all test samples
        refit.confusion = [[5, 1, 2, 2], [9, 0, 0, 1], [4, 2, 2, 2], [0, 0, 5, 5]]
        refit.n_test = 10
    assert picture_data.confusion(confused)["multilabel"]


def test_each_plot_is_drawn_on_given_axes(finished):
    for name in ("scores", "stability", "search", "profile"):
        figure, ax = plt.subplots()
        assert getattr(finished, f"plot_{name}")(ax=ax) is ax
        assert ax.has_data()
        plt.close(figure)
    own = finished.plot_scores()
    assert own.has_data()
    plt.close(own.figure)


def test_what_was_not_recorded_is_said(finished):
    for refit in finished.outer:
        refit.confusion = []
    with pytest.raises(StudyError, match="recorded no confusion"):
        finished.plot_confusion()


def test_every_method_that_scores_features_says_what_the_score_is():
    known = {name for name in OWN if not score_meaning(name).startswith("score of the method")}
    assert known == {name for name in OWN if solver_capabilities(name).ranks}
    assert score_meaning("sklearn.svm.LinearSVC").endswith("of LinearSVC")
    assert score_meaning("someones_method") == "score of the method someones_method"
