"""The result of a study: its figures, tables, pictures and model, finished or not."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil

import numpy as np
import pytest
from matplotlib.figure import Figure

import raysel
from raysel.core.errors import ConfigError, DirectoryError, StudyError, UnfinishedStudyError
from raysel.evaluation.records import FoldTrace, InnerTrace, PathRecord, RefitRecord, TrialRecord
from raysel.results.comparison.result import ComparisonResult
from raysel.results.result import StudyResult
from raysel.tracking.locks import FileLock


def test_its_figures_are_those_of_the_refits(finished):
    rng = np.random.default_rng(0)
    inner, test = rng.random(4), rng.random((3, 2))
    names = ["outer0", "outer1", "outer2", "final"]
    refits = {
        name: RefitRecord(
            name,
            "t",
            "t",
            {},
            float(inner[i]),
            test[i].tolist() if i < 3 else [],
            [1.0] * 64,
            [1.0],
        )
        for i, name in enumerate(names)
    }
    study = dataclasses.replace(finished.stored.study, folds=names)
    result = StudyResult(dataclasses.replace(finished.stored, study=study, refits=refits))
    scores = [sum(pair) / 2 for pair in test.tolist()]
    mean = sum(scores) / 3
    assert result.test_scores == pytest.approx(scores)
    assert result.inner_scores == inner[:3].tolist()
    assert result.final is refits["final"]
    assert result.final.test_score is None
    assert result.test_mean == pytest.approx(mean)
    assert result.test_sd == pytest.approx((sum((s - mean) ** 2 for s in scores) / 2) ** 0.5)


def test_its_summary_is_a_row_an_outer_fold(finished):
    table = finished.summary()
    assert table.outer_fold.tolist() == ["outer0", "outer1", "outer2"]
    assert table.inner_accuracy.tolist() == finished.inner_scores
    assert table.test_accuracy.mean() == pytest.approx(finished.test_mean)
    frame = finished.ranking(4).to_frame()
    assert (len(frame), frame["consensus_place"].is_monotonic_increasing) == (64, True)
    assert frame.score[frame["rank"] == 1].item() == max(finished.final.feature_scores)
    assert table.features_with_score.tolist() == finished.ranking(4).fold_n_scored.tolist()
    assert f"{finished.test_mean:.3f}" in repr(finished)
    assert "<table" in finished._repr_html_()
    ranking = finished.ranking()
    best = [ranking.feature_names[i] for i in ranking.consensus_top(10)]
    for shown in (finished._repr_html_(), ranking._repr_html_()):
        cells = re.findall(r"<td>(.*?)</td>", shown.rpartition("<table")[2])
        assert [cell for cell in cells if cell in ranking.feature_names] == best


def test_its_trials_are_a_row_a_configuration_best_first_and_traces_a_row_an_iteration(finished):
    table = finished.trials()
    assert len(table) == 6
    assert sorted(zip(table.param_alpha, table.param_rank, strict=True)) == [
        (alpha, rank) for alpha in (0.01, 0.1, 2.0) for rank in (1, 2)
    ]
    assert table.val_accuracy.is_monotonic_decreasing
    outer = table[[f"val_accuracy/outer{i}" for i in range(3)]].mean(axis=1)
    assert np.allclose(outer, table.val_accuracy)
    best = finished.outer[0].inner_score
    assert table["val_accuracy/outer0"].max() == pytest.approx(best)
    assert set(table.loc[table.param_alpha == 2.0, "status"]) == {"null"}
    assert table.seconds.gt(0).all()
    along = dataclasses.replace(
        finished.stored, paths=[PathRecord("outer0", 0, started=1.0, ended=9.0)]
    )
    assert (
        StudyResult(along).trials().seconds.isna().all()
    )  # configurations of a path have no time of their own
    traces, record = finished.traces(), finished.records[0]
    own = traces[traces.trial == record.id]
    assert len(own) == sum(
        len(inner.objective) for trace in record.folds.values() for inner in trace.inner
    )
    one = own[(own.fold == "outer0") & (own.inner == 1)]
    assert one.objective.tolist() == record.folds["outer0"].inner[1].objective


def test_the_score_of_a_trial_on_a_fold_is_the_inner_score_by_which_it_was_chosen_to_the_last_bit(
    finished,
):
    # Means over tasks and inner folds in another order differ in the last bit for some of these.
    rng = np.random.default_rng(0)
    config = dict(finished.config) | {"evaluation": {"classifier": "native", "choose_n": "mean"}}
    study = dataclasses.replace(finished.stored.study, config=config, labels=["a", "b", "c"])
    folds = [
        {
            fold: FoldTrace(inner=[InnerTrace([1.0], [row.tolist()]) for row in rng.random((3, 3))])
            for fold in study.folds
        }
        for _ in range(20)
    ]
    trials = [TrialRecord(str(i), str(i), {}, "finished", traces) for i, traces in enumerate(folds)]
    table = (
        StudyResult(dataclasses.replace(finished.stored, study=study, trials=trials))
        .trials()
        .set_index("trial")
    )
    for i, traces in enumerate(folds):
        assert table.loc[str(i), "val_accuracy/outer0"] == traces["outer0"].score(study.choose_n)


def test_a_study_without_a_trial_has_tables_with_their_columns(finished):
    begun = StudyResult(
        dataclasses.replace(finished.stored, trials=[], refits={}, status="interrupted")
    )
    for table in (begun.summary(), begun.trials(), begun.traces()):
        assert len(table) == 0
        assert {*table.columns} <= {
            *finished.summary().columns,
            *finished.trials(),
            *finished.traces(),
        }
    assert begun.trials().columns[:2].tolist() == ["trial", "status"]
    assert repr(begun) == "StudyResult(few, interrupted after 0 of 6 trials)"
    assert "<table" not in begun._repr_html_()


@pytest.mark.parametrize("top", [0, -1, 65, 2.5, "3", True])
def test_an_invalid_number_of_features_is_refused_everywhere(finished, top):
    methods = [finished.ranking, finished.stability, finished.remarks]
    for method in [*methods, finished.plot_ranking, finished.plot_profile]:
        with pytest.raises(ConfigError):
            method(top)


def test_its_pictures_are_drawn_on_given_axes(finished):
    axes = Figure().add_subplot()
    assert finished.plot_ranking(ax=axes) is axes
    drawn = axes.get_images()[1].get_array()  # above the mean of the samples
    scores = np.array(finished.final.feature_scores).reshape(8, 8)
    assert np.array_equal(~drawn.mask, (scores > 0) & ~finished.recorded.constant.reshape(8, 8))
    assert np.array_equal(drawn.data[~drawn.mask], scores[~drawn.mask])
    lines = finished.plot_convergence(Figure().add_subplot()).get_lines()
    assert (len(lines), sum(line.get_label().startswith("final model") for line in lines)) == (6, 1)


@pytest.mark.slow
def test_an_unfinished_study_opens_and_says_what_it_lacks(finished, tmp_path):
    shutil.copytree(finished.path, tmp_path / "cut")
    journal = tmp_path / "cut" / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    first_refit = next(i for i, line in enumerate(lines) if json.loads(line)["kind"] == "refit")
    journal.write_text("".join(lines[: first_refit + 1]))
    opened = raysel.open_study(tmp_path / "cut")
    assert opened.status == "killed"
    assert "killed after 6 of 6 trials" in repr(opened)
    assert len(opened.trials()) == 6
    assert opened.summary().outer_fold.tolist() == ["outer0"]
    for asked in (opened.ranking, lambda: opened.model, lambda: opened.test_mean):
        with pytest.raises(UnfinishedStudyError, match="has not finished: 6 of 6 trials are done"):
            asked()
    resumed = raysel.resume_study(tmp_path / "cut", progress=False)
    assert resumed.test_scores == finished.test_scores
    assert resumed.final.feature_scores == finished.final.feature_scores


def test_a_method_that_ranks_nothing_has_a_result_without_ranking(finished, tmp_path):
    refits = {
        fold: dataclasses.replace(refit, feature_scores=None)
        for fold, refit in finished.stored.refits.items()
    }
    shutil.copytree(finished.path, tmp_path / "study")
    directory = dataclasses.replace(finished.directory, path=tmp_path / "study")
    result = StudyResult(dataclasses.replace(finished.stored, refits=refits, read_from=directory))
    assert not result.recorded.is_ranked
    assert result.summary().features_with_score.isna().all()
    assert any("this one does not, so there is no ranking" in text for text in result.remarks())
    with pytest.raises(StudyError):
        result.ranking()


def test_a_study_that_another_process_runs_is_opened_as_running(finished, tmp_path):
    shutil.copytree(finished.path, tmp_path / "study")
    journal = tmp_path / "study" / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text(
        "".join(line for line in lines if json.loads(line)["kind"] in ("study", "trial"))
    )
    assert raysel.open_study(tmp_path / "study").status == "killed"
    with FileLock(raysel.open_study(tmp_path / "study").directory.lock):
        opened = raysel.open_study(tmp_path / "study")
        assert opened.status == "running"
        assert repr(opened).startswith("StudyResult(few, running with 6 of 6 trials)")


def test_a_folder_without_a_study_is_refused(finished, tmp_path):
    with pytest.raises(
        DirectoryError, match=r"holds no comparison but one study; .*raysel report .*open_study"
    ):
        raysel.open_comparison(finished.path)
    with pytest.raises(DirectoryError):
        raysel.open_study(tmp_path)
    (tmp_path / "file").touch()
    for function in (raysel.open_study, raysel.open_comparison):
        with pytest.raises(
            DirectoryError, match=r"file is not a directory; give the directory of a study"
        ):
            function(tmp_path / "file")


def test_html_of_a_comparison_shows_the_names_of_members_as_text(tmp_path):
    found = ComparisonResult(tmp_path, "small", "<img src=x>", (), None)._repr_html_()
    assert "<img" not in found
    assert "&lt;img src=x&gt;" in found


def test_whether_a_remark_on_the_data_is_a_limitation_is_recorded_and_not_read_from_it(finished):
    said = "1 of 4 columns is constant, which tells nothing of the label: x."
    lists = {"data_remarks": [said], "data_notes": ["A copy of the label."]}
    study = dataclasses.replace(finished.stored.study, **lists)
    facts = StudyResult(dataclasses.replace(finished.stored, study=study)).facts
    found = [
        [remark.values["text"] for remark in remarks if remark.key == "data"]
        for remarks in (facts.actions, facts.limitations)
    ]
    assert found == [[said], []]
