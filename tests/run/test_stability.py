"""Complementary pairs: disjoint halves of equal size, stratified, with whole groups."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_pages import page_of
from sklearn.feature_selection import f_classif
from sklearn.preprocessing import StandardScaler
from small_studies import raw_config, run_offline

import raysel
from raysel.cli.main import main
from raysel.core.errors import ConfigError, DataError, DirectoryError, StudyError
from raysel.data.loading import save_dataset
from raysel.data.synthetic import make_multimodal_classification
from raysel.evaluation.plan import derived_seed
from raysel.execution.serial import SerialExecutor
from raysel.numerics.rankings import nogueira_stability, simple_bound, unimodal_bound
from raysel.results import texts
from raysel.results.export import markdown
from raysel.results.facts import Facts
from raysel.results.page import findings
from raysel.results.result import StudyResult
from raysel.results.stability import StabilitySelectionResult
from raysel.run.pieces import Pieces
from raysel.run.stability import check_halves, count_selections, draw_halves, stability_selection
from raysel.tracking.journal import read_journal
from raysel.tracking.records import NodeRecord


@settings(max_examples=60)
@given(st.lists(st.integers(2, 9), min_size=2, max_size=6), st.integers(0, 2**31))
def test_halves_are_disjoint_equal_and_stratified(sizes, seed):
    y = np.random.default_rng(seed).permutation(
        np.repeat([f"class {i}" for i in range(len(sizes))], sizes)
    )
    first, second = draw_halves(y, None, seed)
    assert len(first) == len(second) == len(y) // 2
    assert not set(first) & set(second)
    for name, size in zip(*np.unique(y, return_counts=True), strict=True):
        assert {int((y[first] == name).sum()), int((y[second] == name).sum())} <= {
            size // 2,
            size - size // 2,
        }
    again = draw_halves(y, None, seed)
    assert (first == again[0]).all()
    assert (second == again[1]).all()


def test_every_sample_is_as_often_in_either_half():
    y = np.repeat([0, 1, 2], [5, 7, 4])
    drawn = [draw_halves(y, None, seed) for seed in range(2000)]
    for side in (0, 1):
        share = np.bincount(np.concatenate([pair[side] for pair in drawn]), minlength=16) / 2000
        np.testing.assert_allclose(
            share, 0.5, atol=5 * 0.5 / 2000**0.5
        )  # no class has an odd one too many: 16 samples


def test_groups_stay_whole_and_labels_are_stratified():
    rng = np.random.default_rng(0)
    groups, y = np.repeat(np.arange(20), 4), np.repeat(np.arange(20) % 2, 4)
    first, second = draw_halves(y, groups, 3)
    assert not set(groups[first]) & set(groups[second])
    assert len(first) == len(second) == 40
    indicator = (rng.random((60, 3)) < [0.2, 0.5, 0.8]).astype(int)
    first, second = draw_halves(indicator, None, 3)
    np.testing.assert_allclose(indicator[first].sum(axis=0), indicator[second].sum(axis=0), atol=2)


def test_a_class_that_one_half_would_lack_is_refused():
    with pytest.raises(DataError):
        check_halves(np.array([0, 0, 1]), None)
    with pytest.raises(DataError):
        check_halves(np.array([0, 0, 1, 1]), np.array([0, 1, 2, 2]))
    with pytest.raises(DataError, match="label number 1 is that of one sample only"):
        check_halves(np.array([[1, 0], [1, 1], [0, 0]]), None)
    check_halves(np.array([0, 1, 0, 1]), None)


@pytest.mark.parametrize("labels", ["one a group", "mixed", "indicator"])
def test_groups_of_different_sizes_are_divided_anew_for_each_pair(labels):
    sizes = np.random.default_rng(0).permutation(np.arange(3, 17))
    groups = np.repeat(np.arange(14), sizes)
    y = groups % 2
    if labels != "one a group":
        y = np.random.default_rng(1).integers(
            0, 2, len(groups) if labels == "mixed" else (len(groups), 3)
        )
    together = np.zeros((14, 14))
    for seed in range(300):
        first, second = (np.unique(groups[half]) for half in draw_halves(y, groups, seed))
        assert len(first) == len(second) == 7
        assert not set(first) & set(second)
        for half in (first, second):
            together[np.ix_(half, half)] += 1
    # Two groups are together in 6 of 13 draws; in 3 of 6 if 3 or 4 of each class are in a half, and
    # in 21 of 49 if not.
    shares = together[~np.eye(14, dtype=bool)] / 300
    assert shares.min() > 0.25
    assert shares.max() < 0.75


def test_groups_without_a_division_into_halves_with_all_labels_are_refused():
    y = np.eye(3, dtype=int)[[0, 1, 0, 2, 1, 2]]  # each pair of labels shares a group
    with pytest.raises(DataError, match="all lack a class or label in one half"):
        draw_halves(y, np.array([0, 0, 1, 1, 2, 2]), 0)


FISHER = {"name": "fisher_score", "params": {}, "space": {}}


def write_samples(path, order=None, n=60, n_features=30):
    """Three classes that differ in the first five of the features, whose columns are then
    permuted.
    """
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, n_features))
    X[:, :5] += rng.standard_normal((3, 5))[y]
    X[:, 7] = 1.0
    order = np.arange(n_features) if order is None else order
    np.savez(path, X=X[:, order], y=y)
    return X, y


def run_filter(folder, order=None, **changes):
    folder.mkdir(parents=True, exist_ok=True)
    write_samples(folder / "few.npz", order)
    changes = {"solver": FISHER, "dataset__scaling": "zscore", **changes}
    return run_offline(
        raw_config(folder / "few.npz", evaluation__n_features=[5], **changes), folder / "study"
    ).path


@pytest.fixture(scope="module")
def filtered(tmp_path_factory):
    """A finished study of a filter, and its stability selection."""
    path = run_filter(tmp_path_factory.mktemp("filtered"))
    return path, stability_selection(path, subsamples=20, progress=False)


def same(first, second):
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("counts", "pair_counts", "n_selected", "threshold", "top")
    )


def test_probabilities_are_those_of_an_independent_computation(filtered, tmp_path):
    _, found = filtered
    X, y = write_samples(tmp_path / "again.npz")
    selected = np.zeros((20, 30), dtype=bool)
    for pair in range(10):
        for side, half in enumerate(draw_halves(y, None, derived_seed(3, "halves", pair))):
            scaled = StandardScaler().fit_transform(X[half])
            F = f_classif(np.delete(scaled, 7, axis=1), y[half])[0]
            selected[2 * pair + side, np.delete(np.arange(30), 7)[np.argsort(-F)[:5]]] = True
    np.testing.assert_array_equal(found.counts, selected.sum(axis=0))
    np.testing.assert_array_equal(
        found.simultaneous_probability, (selected[::2] & selected[1::2]).mean(axis=0)
    )
    assert (found.q, found.p, found.n_pairs, found.top) == (5, 29, 10, 5)
    choosable = np.delete(selected, 7, axis=1)
    pairs = [nogueira_stability(choosable[2 * pair : 2 * pair + 2]).value for pair in range(10)]
    assert found.stability == pytest.approx(np.mean(pairs))
    assert found.simple_bound == simple_bound(5, 29, found.threshold)
    assert found.unimodal_bound == unimodal_bound(5, 29, found.threshold, 10) <= 1
    assert found.selected.tolist() == (found.probability >= found.threshold - 1e-12).tolist()


def test_permuted_features_have_permuted_probabilities(filtered, tmp_path):
    order = np.random.default_rng(1).permutation(30)
    found = stability_selection(run_filter(tmp_path, order), subsamples=20, progress=False)
    np.testing.assert_array_equal(found.counts, filtered[1].counts[order])
    np.testing.assert_array_equal(found.pair_counts, filtered[1].pair_counts[order])


def test_it_is_written_and_joined_to_the_ranking(filtered):
    path, found = filtered
    result = StudyResult.open(path)
    assert same(result.stability_selection, found)
    expected = dict(zip(result.feature_names, found.probability.tolist(), strict=True))
    for table in (
        pd.read_csv(path / "ranking" / "ranking.csv"),
        pd.read_parquet(path / "ranking" / "ranking.parquet"),
        pd.read_csv(path / "stability" / "selection.csv"),
        pd.read_parquet(path / "stability" / "selection.parquet"),
        result.ranking().to_frame(),
    ):
        assert dict(zip(table.feature, table.selection_probability, strict=True)) == expected
    written = json.loads((path / "stability" / "result.json").read_text())
    assert written["sentence"] == found.sentence()
    manifest = json.loads((path / "ranking" / "manifest.json").read_text())
    for noted in (written, manifest["stability_selection"]):
        assert noted["assumptions"] == found.assumptions
    report = page_of(findings.answer(result), findings.claims(result)).text
    claimed = [result.feature_names[i] for i in found.order() if found.selected[i]]
    assert f"{found.short_sentence()} They are {', '.join(claimed[:10])}" in report
    for text in (found.sentence(), manifest["stability_selection"]["sentences"][0], report):
        assert found.assumptions in text
    # Its halves share no sample, so it is shown in the place of the stability over the outer folds.
    told = f"of the top 5 over 10 pairs of disjoint halves of the samples: {found.stability:.2f}"
    for text in (
        texts.short_stability(result.facts),
        texts.stability(Facts(result.recorded, 5)),
        markdown(result.facts),
        report,
    ):
        assert told in text
    assert "overlapping outer folds" in texts.stability(Facts(result.recorded, 3))
    described = manifest["stability_selection"]
    assert described["of"].startswith(
        "share of 20 random halves of all samples that select a feature among the top 5"
    )
    assert described["sentences"] == [found.sentence(), *found.remarks()]
    assert set(described["selected"]) == set(written["selected"])
    assert set(written["selected"]) == {
        name for name, chosen in zip(expected, found.selected, strict=True) if chosen
    }
    curve = found.thresholds()
    assert curve.n_features.is_monotonic_decreasing
    row = curve[curve.threshold == found.threshold].iloc[0]
    assert (row.n_features, row.simple_bound) == (found.selected.sum(), found.simple_bound)
    part = result.ranking().restrict_to(np.array([3, 1]), 1)
    assert part.added["selection_probability"].tolist() == found.probability[[3, 1]].tolist()


def test_it_continues_where_it_stopped_and_computes_nothing_again(filtered, tmp_path, monkeypatch):
    path, found = filtered
    shutil.copytree(path, tmp_path / "study")
    journal = tmp_path / "study" / "stability" / "journal.jsonl"
    whole = journal.read_bytes()
    files = {
        file: (tmp_path / "study" / file).read_bytes()
        for file in ("stability/selection.csv", "stability/result.json", "ranking/ranking.csv")
    }
    shutil.rmtree(tmp_path / "study" / "ranking")
    journal.write_bytes(whole[: len(whole) // 2])
    assert same(stability_selection(tmp_path / "study", subsamples=20, progress=False), found)
    assert {file: (tmp_path / "study" / file).read_bytes() for file in files} == files
    numbers = [line.get("number") for line in read_journal(journal)]
    assert sorted(numbers[1:]) == list(range(20))
    monkeypatch.setattr("raysel.run.pieces._compute", None)  # nothing is left to compute
    fewer = stability_selection(
        tmp_path / "study", subsamples=10, top=3, threshold=0.7, progress=False
    )
    assert (fewer.top, fewer.q, fewer.n_pairs, fewer.threshold) == (3, 3, 5, 0.7)


def test_nodes_with_other_versions_are_named_in_the_result(filtered, tmp_path, monkeypatch, capsys):
    node = NodeRecord("10.0.0.2", [("numpy", "2.4.6", "2.3.1")])
    monkeypatch.setattr(SerialExecutor, "mixed_nodes", lambda _: [node])
    shutil.copytree(filtered[0], tmp_path / "study")
    assert (
        main(["stability", str(tmp_path / "study"), "--subsamples", "22", "--allow-mixed-versions"])
        == 0
    )
    assert node.sentence in " ".join(capsys.readouterr().out.split())
    assert f"Stability selection: {node.sentence}" in StudyResult.open(tmp_path / "study").remarks()


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_ray_gives_the_same(digits_study, tmp_path):
    for executor in ("serial", "ray"):
        shutil.copytree(digits_study, tmp_path / executor)
        stability_selection(tmp_path / executor, subsamples=8, executor=executor, progress=False)
    for file in ("selection.csv", "result.json", "selection.parquet"):
        serial, ray = (
            (tmp_path / executor / "stability" / file).read_bytes()
            for executor in ("serial", "ray")
        )
        assert serial == ray


def test_a_result_of_another_model_is_not_shown(filtered, tmp_path):
    path, _ = filtered
    shutil.copytree(path, tmp_path / "study")
    file = tmp_path / "study" / "stability" / "result.json"
    written = json.loads(file.read_text())
    file.write_text(json.dumps(written | {"identity": {**written["identity"], "winner": {"k": 3}}}))
    assert StudyResult.open(tmp_path / "study").stability_selection is None
    file.write_text(json.dumps(written | {"halves": {}}))
    with pytest.raises(DirectoryError):
        _ = StudyResult.open(tmp_path / "study").stability_selection


def test_pairs_of_failed_halves_are_left_out_and_said():
    half = {"best": [0, 2], "n_scored": 2, "converged": None}
    other = {"best": [1], "n_scored": 1, "converged": False}
    constant = np.zeros(4, dtype=bool)
    pieces = Pieces({0: half, 1: half, 3: half, 4: half, 5: other}, {2: "LinAlgError: singular"})
    found = count_selections(pieces, 3, 6, constant, {})
    assert found.counts.tolist() == [3, 1, 3, 0]
    assert found.pair_counts.tolist() == [1, 0, 1, 0]
    assert (found.n_pairs, found.q) == (2, 2)
    text = " ".join(found.remarks())
    for part in (
        (
            "1 of 6 halves failed, and 1 pairs were left out: mend the cause and run it"
            " again.\nHalf 2: LinAlgError"
        ),
        "1 of 4 fits",
        "more than 2",
    ):
        assert part in text
    with pytest.raises(
        StudyError, match="1 of 2 halves failed, which leaves too few; number 2 first"
    ):
        count_selections(Pieces({3: half}, {2: "LinAlgError: singular"}), 3, 4, constant, {})


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"subsamples": 7}, "subsamples=7 must be an even"),
        ({"subsamples": 2}, "subsamples=2 must be"),
        ({"threshold": 0.5}, "threshold=0.5 must be above"),
        ({"executor": "cloud"}, "executor='cloud' is not known"),
        ({"top": 31}, "top=31 must be"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(filtered, settings, named):
    with pytest.raises(ConfigError, match=named):
        raysel.stability_selection(filtered[0], **{"progress": False, **settings})


def test_of_all_features_as_many_are_selected_by_default_as_a_bound_holds_for(tmp_path):
    write_samples(tmp_path / "few.npz")
    raw = raw_config(
        tmp_path / "few.npz",
        solver=FISHER,
        evaluation={"classifier": "knn", "n_features": [30], "references": False},
    )
    path = run_offline(raw, tmp_path / "study").path
    found = stability_selection(path, subsamples=20, progress=False)
    assert found.bound <= 1 < found.top < 29
    more = replace(found, top=found.top + 1, n_selected=found.n_selected + 1).at(None)
    assert more.threshold > 0.9
    [remark] = found.remarks()
    assert (
        f"each half selects at most {found.top} features, not the 30 of the final model" in remark
    )
    assert StudyResult.open(path).stability_selection.remarks() == [remark]
    every = stability_selection(path, subsamples=20, top=30, progress=False)
    assert (every.top, every.q, every.n_of_model) == (30, 29, None)
    assert every.counts[np.arange(30) != 7].min() == 20  # what was selected by default


@pytest.mark.slow
def test_studies_without_a_ranking_are_refused(tmp_path):
    write_samples(tmp_path / "few.npz")
    native = {"solver": {"name": "nearest_neighbor"}, "evaluation": {"classifier": "native"}}
    path = run_offline(raw_config(tmp_path / "few.npz", **native), tmp_path / "native").path
    with pytest.raises(StudyError):
        stability_selection(path, progress=False)
    path = run_filter(tmp_path / "folds", cv={"outer": 2, "inner": 2, "final": False})
    with pytest.raises(StudyError, match=r"cv\.final"):
        stability_selection(path, progress=False)


@pytest.mark.parametrize(
    ("cv", "unit"),
    [({}, "samples"), ({"groups": "video"}, "groups"), ({"blocks": {"size": 4}}, "blocks")],
)
def test_what_halves_keep_whole_is_what_is_taken_to_be_independent(cv, unit, tmp_path):
    rng = np.random.default_rng(0)
    groups, y = np.repeat(np.arange(24), 4), np.repeat(np.arange(24) % 2, 4)
    own = {"video": groups} if "groups" in cv else {}
    np.savez(tmp_path / "data.npz", X=rng.standard_normal((96, 6)), y=y, **own)
    raw = raw_config(
        tmp_path / "data.npz",
        solver=FISHER,
        cv={"outer": 2, "inner": 2, **cv},
        evaluation={"classifier": "knn", "n_features": [2], "references": False},
    )
    path = run_offline(raw, tmp_path / "study").path
    found = stability_selection(path, subsamples=4, progress=False)
    assert f"The {unit} are taken to be independent." in found.sentence()
    assert found.sentence().count("taken to be independent") == 1
    assert raysel.open_study(path).stability_selection.sentence() == found.sentence()


@pytest.mark.slow
def test_groups_tasks_and_labels(tmp_path):
    rng = np.random.default_rng(0)
    groups, y = np.repeat(np.arange(24), 4), np.repeat(np.arange(24) % 2, 4)
    np.savez(
        tmp_path / "groups.npz", X=rng.standard_normal((96, 12)) + y[:, None], y=y, video=groups
    )
    cv = {"outer": 2, "inner": 2, "groups": "video"}
    raw = raw_config(tmp_path / "groups.npz", solver=FISHER, cv=cv)
    found = stability_selection(
        run_offline(raw, tmp_path / "groups").path, subsamples=10, progress=False
    )
    assert (found.n_pairs, found.q) == (5, found.top)
    tasks = {
        "tasks": [{"name": "iris", "source": "iris"}, {"name": "wine", "source": "wine"}],
        "scaling": "none",
    }
    mtda = {"name": "mtda", "space": {"shrinkage": [0.5]}}
    raw = raw_config(dataset=tasks, solver=mtda, evaluation={"classifier": "native"})
    found = stability_selection(
        run_offline(raw, tmp_path / "tasks").path, subsamples=6, top=3, progress=False
    )
    assert (found.counts.sum(), found.p) == (18, 17)
    data, _ = make_multimodal_classification(
        {"a": 6, "b": 8}, {"a": 2, "b": 2}, 120, multilabel=True, random_state=0
    )
    save_dataset(data, tmp_path / "labels.arrow")
    raw = raw_config(
        tmp_path / "labels.arrow",
        solver={"name": "smml", "params": {"gamma1": 0.01, "gamma2": 0.01}, "space": {}},
        evaluation={"classifier": "native", "metric": "mean_average_precision"},
    )
    found = stability_selection(
        run_offline(raw, tmp_path / "labels").path, subsamples=6, top=4, progress=False
    )
    assert found.counts.sum() <= 24
    assert not found.errors


def test_the_command_prints_the_set_with_its_bounds(filtered, tmp_path, capsys):
    path, found = filtered
    shutil.copytree(path, tmp_path / "study")
    words = ["stability", str(tmp_path / "study"), "--subsamples", "20", "--executor", "serial"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert found.short_sentence() in out
    for name, probability, chosen in zip(
        StudyResult.open(path).feature_names, found.probability, found.selected, strict=True
    ):
        assert (f"  {name:<2}  {probability:.2f}  rank" in out) == chosen
    assert main([*words, "--quiet"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'study'}\n"
    assert main(["stability", str(tmp_path / "nothing")]) == 2
    assert "error: " in capsys.readouterr().err


def of_one_feature(counts: int, n_selected: int, threshold: float) -> StabilitySelectionResult:
    """40 halves that select so many of 50 features, one of them by far the most often."""
    return StabilitySelectionResult(
        top=n_selected,
        threshold=threshold,
        is_default=False,
        counts=np.array([counts, *[5] * 49]),
        pair_counts=np.zeros(50, dtype=np.int64),
        n_selected=np.full(40, n_selected),
        constant=np.zeros(50, dtype=bool),
        n_halves=40,
        errors={},
        n_unconverged=0,
    )


@given(st.integers(1, 12), st.sampled_from([0.6, 0.75, 0.9]))
def test_of_one_feature_the_sentence_says_how_often_it_is_false(n_selected, threshold):
    """A set holds a false feature at most as often as their expected number, by Markov's
    inequality.
    """
    found = of_one_feature(40, n_selected, threshold)
    said = found.short_sentence()
    assert "1 feature is among" in said
    assert "of this one" not in said
    stated = re.search(r"At most (\S+) % of such selections hold a false feature", said)
    if found.bound > 0.99:
        assert stated is None
        assert "Nothing bounds" in said
    else:
        assert float(stated[1]) == pytest.approx(100 * found.bound, abs=1, rel=0.1)
    assert max(len(part.split()) for part in said.split(". ")) <= 25


@pytest.mark.parametrize("subsamples", [10**12, 2, 5, True])
def test_a_number_of_subsamples_is_refused_before_anything_is_read(subsamples, tmp_path):
    with pytest.raises(ConfigError):
        stability_selection(tmp_path / "no study", subsamples=subsamples, progress=False)
