"""Studies with permuted labels: folds move with the labels, and the scores are those of
scikit-learn and the study.
"""

from __future__ import annotations

import json
import shutil
import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, permutation_test_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_studies import Watcher, make_study, raw_config, write_digits

import raysel
from raysel.cli.main import main as run_command
from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, DirectoryError, StudyError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Matrix
from raysel.data.loading import save_dataset
from raysel.data.targets import find_target
from raysel.evaluation.plan import derived_seed
from raysel.execution.serial import SerialExecutor
from raysel.numerics.permutation import feature_p_values, permutation_p_value
from raysel.run import permutation
from raysel.run.permutation import (
    Chosen,
    _evaluated,
    _search,
    packed,
    permuted_scores,
    permuted_study,
    unpacked,
)
from raysel.run.pieces import finished_study, read_pieces
from raysel.study.definition import Study
from raysel.testing.checks import run_by
from raysel.tracking.journal import last_end, read_journal
from raysel.tracking.mlflow_view import end_view
from raysel.tracking.records import NodeRecord

SMML = {"name": "smml", "params": {"tol": 1e-2}, "space": {"gamma1": [0.1, 0.4], "gamma2": [0.0]}}
#: Changes to the small study, one for each kind of search and evaluation.
STUDIES = {
    "grid": {},
    "mean": {"evaluation__choose_n": "mean"},
    "linear svm": {"evaluation__classifier": "linear_svm"},
    "path": {"solver": SMML, "search__method": "path", "evaluation": {"classifier": "native"}},
    "tpe": {
        "solver": {
            "name": "smr",
            "params": {"max_iter": 3},
            "space": {"alpha": {"loguniform": [0.01, 0.5]}},
        },
        "search__method": "tpe",
        "search__num_samples": 4,
        "search__synchronous": True,
        "search__batch_size": 2,
    },
    "asha": {
        "search__early_stopping": "asha",
        "search__synchronous": True,
        "search__batch_size": 3,
        "search__grace_period": 2,
    },
}


def grouped(folder, y, groups):
    """A study of noise with groups."""
    X = np.random.default_rng(0).normal(size=(len(y), 9))
    save_dataset(Dataset(X, y, Matrix(3, 3), groups=groups), folder / "grouped.parquet")
    raw = raw_config(folder / "grouped.parquet", evaluation__n_features=[2, 4])
    return Study.prepare(
        config_from_dict({**raw, "cv": {"outer": 3, "inner": 2, "groups": "groups"}})
    )


def all_sets(plan):
    for fold in plan.folds:
        yield fold.train
        yield fold.test
        for inner in fold.inner:
            yield inner.train
            yield inner.validation


def test_every_set_of_the_plan_keeps_its_labels(tmp_path):
    write_digits(tmp_path / "few.npz")
    study = make_study(tmp_path / "few.npz")
    permuted = permuted_study(study, 1, seed=0)
    assert not np.array_equal(permuted.dataset.y, study.dataset.y)
    assert permuted.dataset.X is study.dataset.X
    for before, after in zip(all_sets(study.plan), all_sets(permuted.plan), strict=True):
        assert np.array_equal(study.dataset.y[before], permuted.dataset.y[after])
    permuted.plan.check(permuted.dataset.y, None, "permuted")
    assert permuted_study(study, 0, seed=0) is study
    assert not np.array_equal(permuted_study(study, 2, seed=0).dataset.y, permuted.dataset.y)
    assert np.array_equal(permuted_study(study, 1, seed=0).dataset.y, permuted.dataset.y)


def test_whole_blocks_move_with_their_labels_and_their_places(tmp_path):
    y = np.repeat([0, 1, 1, 0, 1, 0, 0, 1, 0, 1], 6)
    y[::7] = 1 - y[::7]  # labels differ within blocks
    save_dataset(
        Dataset(np.random.default_rng(0).normal(size=(60, 9)), y, Matrix(3, 3)),
        tmp_path / "rows.parquet",
    )
    raw = raw_config(tmp_path / "rows.parquet", evaluation__n_features=[2, 4])
    blocks = {"size": 6, "gap": 1}
    study = Study.prepare(
        config_from_dict({**raw, "cv": {"outer": 2, "inner": 2, "blocks": blocks}})
    )
    permuted = permuted_study(study, 1, seed=0)
    before, after = (one.dataset.y.reshape(10, 6) for one in (study, permuted))
    assert not np.array_equal(before, after)
    assert sorted(before.tolist()) == sorted(after.tolist())
    for old, new in zip(all_sets(study.plan), all_sets(permuted.plan), strict=True):
        assert len(old) == len(new)
        places = [[np.isin(np.arange(60), part).reshape(10, 6).tolist()] for part in (old, new)]
        assert sorted(zip(before.tolist(), *places[0], strict=True)) == sorted(
            zip(after.tolist(), *places[1], strict=True)
        )


def test_groups_of_different_sizes_move_as_a_whole(tmp_path):
    groups = np.repeat(np.arange(12), [2, 3, 4] * 4)
    y = (np.arange(12) % 2)[groups]
    study = grouped(tmp_path, y, groups)
    permuted = permuted_study(study, 3, seed=0)
    labels = permuted.dataset.y
    assert all(len(set(labels[groups == group])) == 1 for group in range(12))
    assert sum(labels[groups == group][0] for group in range(12)) == 6
    permuted.plan.check(
        labels, groups, "permuted"
    )  # no group is on both sides, and no class is missing
    for before, after in zip(all_sets(study.plan), all_sets(permuted.plan), strict=True):
        counts = [
            np.bincount(
                [d.y[groups == g][0] for g in np.unique(groups[index])], minlength=2
            ).tolist()
            for d, index in ((study.dataset, before), (permuted.dataset, after))
        ]
        assert counts[0] == counts[1]


def test_labels_move_within_groups_and_folds_do_not_move(tmp_path):
    groups = np.repeat(np.arange(6), 4)
    study = grouped(tmp_path, np.arange(24) % 2, groups)
    permuted = permuted_study(study, 1, seed=0)
    assert all(permuted.dataset.y[groups == group].sum() == 2 for group in range(6))
    for before, after in zip(all_sets(study.plan), all_sets(permuted.plan), strict=True):
        assert set(before) == set(after)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow) if kind in ("linear svm", "asha") else kind
        for kind in STUDIES
    ],
)
def test_the_true_labels_give_the_figures_of_the_study(kind, tmp_path):
    write_digits(tmp_path / "few.npz", classes=3, each=12)
    raw = raw_config(tmp_path / "few.npz", **STUDIES[kind])
    study = Study.prepare(config_from_dict(raw))
    refits = [
        refit.record for refit in run_by(SerialExecutor(study), study, tmp_path / "run").refits
    ]
    fixed = {refit.fold: Chosen.of_refit(refit) for refit in refits}
    for chosen in (fixed, None):
        found = permuted_scores(study, 0, seed=0, chosen=chosen, ranks=True)
        assert found["scores"] == {refit.fold: refit.test_score for refit in refits[:-1]}
        expected = np.array(refits[-1].feature_scores, dtype=np.float32)
        assert np.array_equal(unpacked(found["feature_scores"]), expected)
    assert "feature_scores" not in permuted_scores(study, 0, seed=0, chosen=None, ranks=False)


def test_permuted_labels_are_the_true_labels_of_permuted_samples(tmp_path):
    """Why a test that searches again is exact: each permutation is a study of the samples in
    another order.
    """
    X, y = np.random.default_rng(0).normal(size=(30, 9)), np.repeat([0, 1], [9, 21])

    def study_of(name, samples):
        save_dataset(Dataset(samples, y, Matrix(3, 3)), tmp_path / name)
        return Study.prepare(
            config_from_dict(raw_config(tmp_path / name, evaluation__n_features=[2, 4]))
        )

    study = study_of("first.parquet", X)
    source = (
        find_target(y)
        .permutations(y)
        .draw(np.random.default_rng(derived_seed(7, "permutation", 1)))
    )
    other = study_of("second.parquet", X[np.argsort(source)])
    found = permuted_scores(study, 1, seed=7, chosen=None, ranks=True)
    assert found == permuted_scores(other, 0, seed=7, chosen=None, ranks=True)
    assert found != permuted_scores(study, 0, seed=7, chosen=None, ranks=True)


@pytest.mark.slow
def test_a_fixed_pipeline_has_the_scores_of_scikit_learn(tmp_path):
    write_digits(tmp_path / "few.npz", classes=3)
    solver = {"name": "sklearn.linear_model.LogisticRegression", "params": {"C": 0.01}}
    study = make_study(
        tmp_path / "few.npz",
        dataset__scaling="zscore",
        solver=solver,
        evaluation={"classifier": "native"},
        cv={"outer": 3, "inner": 2},
    )
    X, y = study.dataset.X, study.dataset.y
    folds = [(fold.train, fold.test) for fold in study.plan.outer]
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    params = dict(study.config.solver.params)
    chosen = {
        fold.name: Chosen(params, None, settings=(), scored=(0,)) for fold in study.plan.folds
    }

    def ours(number):
        found = permuted_scores(study, number, seed=0, chosen=chosen, ranks=False)
        return np.mean(list(found["scores"].values()))

    score, permuted, p_value = permutation_test_score(
        pipeline, X, y, cv=folds, n_permutations=24, random_state=0
    )
    assert ours(0) == pytest.approx(score)
    assert permutation_p_value(score, permuted).p_value == pytest.approx(p_value)
    found = np.array([ours(number) for number in range(1, 25)])
    assert permutation_p_value(score, found).p_value == pytest.approx(p_value)  # both the smallest
    for number in (1, 2, 3):
        moved = permuted_study(study, number, seed=0)
        again = [(fold.train, fold.test) for fold in moved.plan.outer]
        expected = cross_val_score(pipeline, X, moved.dataset.y, cv=again)
        assert found[number - 1] == pytest.approx(expected.mean())
        # The same as permuting the samples against labels and folds.
        inverse = np.empty(len(y), dtype=int)
        inverse[np.concatenate([test for _, test in folds])] = np.concatenate(
            [test for _, test in again]
        )
        assert cross_val_score(pipeline, X[inverse], y, cv=folds).mean() == pytest.approx(
            expected.mean()
        )


def test_a_search_of_permuted_labels_does_not_see_the_outer_test_samples(tmp_path):
    write_digits(tmp_path / "few.npz", classes=3, each=12)
    study = make_study(tmp_path / "few.npz")
    moved = permuted_study(study, 1, seed=0)
    plain = permuted_scores(moved, 0, seed=0, chosen=None, ranks=False)["scores"]
    test = moved.plan.outer[0].test
    X = moved.dataset.X.copy()
    X[test] = np.random.default_rng(0).permutation(X[test].ravel()).reshape(X[test].shape)
    spoilt = Study(
        moved.config,
        Dataset(X, moved.dataset.y, moved.dataset.layout),
        moved.plan,
        moved.configurations,
    )
    name = moved.plan.outer[0].name
    assert _search(spoilt)[name] == _search(moved)[name]
    assert (
        plain[name] != permuted_scores(spoilt, 0, seed=0, chosen=None, ranks=False)["scores"][name]
    )


def test_scores_that_are_not_finite_are_an_error():
    assert unpacked(packed(np.array([0.5, 0.0]))).tolist() == [0.5, 0.0]
    with pytest.raises(FloatingPointError):
        packed(np.array([np.nan]))


N = 6


@pytest.fixture(scope="module")
def tested(digits_study, tmp_path_factory):
    """Copy of the study with a test of six permutations, and what the function returned."""
    path = tmp_path_factory.mktemp("permuted") / "study"
    shutil.copytree(digits_study, path)
    return path, raysel.permutation_test(path, permutations=N, progress=False)


@pytest.fixture
def path(tested, tmp_path):
    """Copy of its directory, for tests that write to it."""
    shutil.copytree(tested[0], tmp_path / "study")
    return tmp_path / "study"


def same(one, other):
    assert one.permuted == other.permuted
    assert one.p == other.p
    assert all(
        np.array_equal(one.features[name], other.features[name])
        for name in one.features | other.features
    )
    assert one.sentences() == other.sentences()


def test_the_p_values_are_those_of_the_journal(tested):
    path, found = tested
    result = raysel.open_study(path)
    pieces = {
        line["number"]: line["value"]
        for line in read_journal(path / "permutation/fixed/journal.jsonl")
        if "value" in line
    }
    means = [np.mean(list(pieces[number]["scores"].values())) for number in range(N + 1)]
    assert means[0] == found.recomputed == found.test_mean == result.test_mean
    assert list(found.permuted) == means[1:]
    assert found.p == permutation_p_value(result.test_mean, means[1:])
    scores = [permutation.unpacked(pieces[number]["feature_scores"]) for number in range(N + 1)]
    assert np.array_equal(scores[0], np.array(result.final.feature_scores, dtype=np.float32))
    expected = feature_p_values(scores[0], scores[1:], by_share=True)
    assert np.array_equal(found.features["p_value"], expected.p_value)
    assert np.array_equal(found.features["p_value_fwer"], expected.single_step)


def test_files_and_ranking_hold_what_was_found(tested):
    path, found = tested
    result = raysel.open_study(path)
    same(result.permutation_test, found)
    raw = json.loads((path / "permutation/result.json").read_text())
    assert raw["p_value"] == found.p_value == 1 / (N + 1)
    assert raw["sentences"] == found.sentences()
    tables = [
        pd.read_csv(path / "permutation/features.csv"),
        pd.read_parquet(path / "permutation/features.parquet"),
    ]
    for table in tables:
        assert table.feature.tolist() == list(result.feature_names)
        assert np.allclose(table.p_value_fwer, found.features["p_value_fwer"])
    described = json.loads((path / "ranking/manifest.json").read_text())["permutation_test"]
    assert described["p_value"] == found.p_value
    assert described["smallest_possible_p_value"] == 1 / (N + 1)
    assert described["sentences"] == found.sentences()
    status = end_view(result.stored.study, result.directory, last_end(result.directory.journal))
    assert status.metrics["permutation_p_value"] == found.p_value
    assert status.tags["raysel.permutation_test"] == " ".join(found.sentences())
    ranking = pd.read_csv(path / "ranking/ranking.csv")
    assert (
        ranking.p_value_fwer.tolist() == found.features["p_value_fwer"][ranking["index"]].tolist()
    )
    assert ranking.p_value.tolist() == found.features["p_value"][ranking["index"]].tolist()


def test_the_sentences_say_the_figure_and_its_limits(tested):
    first, *rest = tested[1].sentences()
    assert first == f"With permuted labels 0 of {N} scores are as high: p = 0.143."
    figures = dict(tested[1].figures().rows)
    assert figures["smallest possible p"] == "0.143"
    assert figures["samples that can get another label"] == "80"
    assert figures["test accuracy"] == f"{tested[1].test_mean:.3f}"
    highest = max(tested[1].permuted)
    assert figures["highest with permuted labels"] == f"{highest:.3f}"
    assert tested[1].claimed().rows == []
    text = " ".join(rest)
    assert "0 of 64 features have p <= 0.05 adjusted for all features" in text
    assert "compute at least 19." in text
    assert "chosen with the true labels" in text
    # SMR weighs all features together.
    assert "p values hold only if no feature" in text
    of_a_filter = replace(tested[1], shares=False, univariate=True)
    assert not any(
        "p values hold only if no feature" in sentence for sentence in of_a_filter.sentences()
    )
    of_neighbours = replace(tested[1], shares=False, univariate=False)
    assert any("the filter can name" in sentence for sentence in of_neighbours.sentences())
    of_places = replace(tested[1], features={}, places=True)
    assert any("places in an order" in sentence for sentence in of_places.sentences())
    every = (tested[1], of_a_filter, of_neighbours, of_places, replace(tested[1], retune=True))
    sentences = {sentence for test in every for sentence in test.sentences()}
    assert max(len(sentence.split()) for sentence in sentences) <= 25


def test_the_features_with_small_adjusted_p_values_stand_in_a_table_the_smallest_first(tested):
    d = len(tested[1].feature_names)
    adjusted, unadjusted = np.full(d, 0.5), np.full(d, 0.2)
    adjusted[[7, 3, 11]], unadjusted[[7, 3, 11]] = [0.04, 0.01, 0.05], [0.01, 0.005, 0.02]
    features = {"p_value": unadjusted, "p_value_fwer": adjusted}
    of_a_model = replace(tested[1], features=features)
    assert of_a_model.claimed().rows == []
    assert any(sentence.endswith("claims no single one.") for sentence in of_a_model.sentences())
    found = replace(of_a_model, shares=False, univariate=True)
    names = [found.feature_names[i] for i in (3, 7, 11)]
    assert [row[0] for row in found.claimed().rows] == names
    assert found.claimed().rows[0][1:] == ["0.005", "0.01"]
    claimed = f"3 of {d} features are claimed at a family-wise error of 0.05."
    assert claimed in found.sentences()
    many = replace(found, features={"p_value": unadjusted, "p_value_fwer": np.full(d, 0.01)})
    assert len(many.claimed().rows) == 20
    assert many.claimed().title.startswith(f"First 20 of {d} features")
    assert many.claimed().title.endswith("permutation/features.csv")


@pytest.mark.parametrize(
    ("name", "n", "univariate"),
    [
        ("fisher_score", 6, True),
        ("relieff", 6, False),
        ("mrmr", 0, False),
    ],
)
def test_p_values_of_features_are_given_and_limited_as_the_method_allows(
    name, n, univariate, tmp_path
):
    X = np.random.default_rng(0).normal(size=(40, 6))
    config = {
        "name": "small",
        "solver": {"name": name},
        "evaluation": {"classifier": "knn", "n_features": [2], "references": False},
        "cv": {"outer": 2, "inner": 2},
        "search": {"executor": "serial"},
        "tracking": {"mlflow": False},
        "pictures": [],
    }
    np.savez(tmp_path / "data.npz", X=X, y=np.arange(40) % 2)
    config["dataset"] = {"path": str(tmp_path / "data.npz")}
    result = raysel.run_study(config, output=tmp_path / "study", progress=False)
    found = raysel.permutation_test(result.path, permutations=2, progress=False)
    text = " ".join(found.sentences())
    assert len(found.features.get("p_value", ())) == n
    assert ("the filter can name" in text) == (n > 0 and not univariate)
    assert ("places in an order" in text) == (n == 0)
    again = raysel.open_study(result.path).permutation_test
    assert (again.univariate, again.places) == (univariate, n == 0)
    assert again.sentences() == found.sentences()


def test_nodes_with_other_versions_are_named_in_the_result(path, monkeypatch, capsys):
    node = NodeRecord("10.0.0.2", [("numpy", "2.4.6", "2.3.1")])
    monkeypatch.setattr(SerialExecutor, "mixed_nodes", lambda _: [node])
    assert (
        run_command(["permute", str(path), "--permutations", str(N + 1), "--allow-mixed-versions"])
        == 0
    )
    assert node.sentence in " ".join(capsys.readouterr().out.split())
    assert node.sentence in raysel.open_study(path).permutation_test.sentences()


def test_a_study_without_a_test_has_none(digits_study):
    result = raysel.open_study(digits_study)
    assert result.permutation_test is None
    assert "p_value" not in result.ranking().to_table().column_names


def test_an_interrupted_test_continues_and_more_permutations_keep_those_before(path, tested):
    journal = path / "permutation/fixed/journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    same(raysel.permutation_test(path, permutations=N, progress=False), tested[1])
    more = raysel.permutation_test(path, permutations=N + 2, progress=False)
    assert more.permuted[:N] == tested[1].permuted
    assert [line["number"] for line in read_journal(journal) if "value" in line] == list(
        range(N + 3)
    )


def test_another_seed_is_refused_and_a_new_search_has_a_folder_of_its_own(path):
    with pytest.raises(DirectoryError):
        raysel.permutation_test(path, permutations=N, seed=4, progress=False)
    found = raysel.permutation_test(path, permutations=2, retune=True, seed=4, progress=False)
    assert (found.retune, found.seed, found.recomputed) == (True, 4, found.test_mean)
    assert any("searched again" in sentence for sentence in found.sentences())
    assert not any("chosen with the true labels" in sentence for sentence in found.sentences())
    assert (path / "permutation/fixed/journal.jsonl").exists()
    assert raysel.open_study(path).permutation_test.retune


def test_failed_permutations_count_against_the_result_and_are_said(path):
    journal = path / "permutation/fixed/journal.jsonl"
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    for entry in entries:
        if entry.get("number") in (0, 2):
            del entry["value"]
            entry["error"] = "FloatingPointError: planted"
    entries = [entry for entry in entries if entry.get("number") != 5]
    journal.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    pieces = read_pieces(journal.parent, range(5))
    with finished_study(path) as finished:
        labels = finished.study.dataset.permutations()
        found = _evaluated(finished, pieces, labels, retune=False, seed=3, n=4)
        with pytest.raises(StudyError):
            _evaluated(
                finished, read_pieces(journal.parent, [2]), labels, retune=False, seed=3, n=2
            )
    assert (found.p_value, found.p.n_failed, found.permuted[1]) == (2 / 5, 1, None)
    assert found.features["p_value"].min() >= 2 / 5
    text = " ".join(found.sentences())
    figures = dict(found.figures().rows)
    assert (figures["that reach the score"], figures["of these failed"]) == ("1", "1")
    assert "permutation 2: FloatingPointError: planted" in text
    assert "could not be computed again" in text


def test_a_result_of_other_winners_or_damaged_files_are_not_shown(path):
    file = path / "permutation/result.json"
    raw = json.loads(file.read_text())
    file.write_text(json.dumps(raw | {"of": raw["of"] | {"test_scores": [0.5, 0.5]}}))
    assert raysel.open_study(path).permutation_test is None
    file.write_text(json.dumps({"of": raw["of"]}))
    with pytest.raises(DirectoryError):
        _ = raysel.open_study(path).permutation_test


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"permutations": 0}, "permutations=0"),
        ({"permutations": 2.5}, "permutations=2.5"),
        ({"permutations": True}, "permutations=True"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_arguments_are_checked_before_anything_is_read(change, named, tmp_path):
    with pytest.raises(ConfigError, match=named):
        raysel.permutation_test(tmp_path / "nothing", **change)


def test_the_command_prints_the_sentences_and_its_errors(path, tested, capsys):
    words = ["permute", str(path), "--executor", "serial", "--permutations"]
    assert run_command([*words, str(N)]) == 0
    out = capsys.readouterr().out
    for sentence in tested[1].sentences():
        assert sentence in out
    assert run_command([*words, str(N), "--quiet"]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert run_command(["permute", str(path), "--permutations", "0"]) == 2
    assert "permutations=0 must be a whole number" in capsys.readouterr().err
    assert run_command(["permute", str(path / "folds")]) == 2
    assert "holds no readable journal" in capsys.readouterr().err


def test_the_command_says_how_to_finish_a_study_and_that_it_was_terminated(
    path, capsys, monkeypatch
):
    monkeypatch.setattr(
        "raysel.cli.resampling.ProgressLine",
        lambda _: Watcher(phase=f"{N + 2}/", number=signal.SIGTERM),
    )
    assert (
        run_command(["permute", str(path), "--permutations", str(N + 2), "--executor", "serial"])
        == 143
    )
    assert f"resume with: raysel permute {path} --permutations {N + 2}" in capsys.readouterr().err
    lines = (path / "journal.jsonl").read_text().splitlines(keepends=True)
    (path / "journal.jsonl").write_text(
        "".join(line for line in lines if '"kind":"end"' not in line)
    )
    assert run_command(["permute", str(path)]) == 2
    assert f"raysel tune --resume {path}" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_ray_computes_the_same(copied, tmp_path):
    shutil.copytree(copied, tmp_path / "other")
    asked = {"permutations": 4, "retune": True, "progress": False}
    serial = raysel.permutation_test(copied, **asked)
    same(raysel.permutation_test(tmp_path / "other", executor="ray", **asked), serial)
