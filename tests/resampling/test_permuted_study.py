"""Studies with permuted labels: folds move with the labels, and the scores are those of scikit-learn and the study."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, permutation_test_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_studies import make_study, raw_config, write_digits

from raysel.config import config_from_dict
from raysel.data.dataset import Dataset
from raysel.data.formats.writers import save_dataset
from raysel.data.layouts import Matrix
from raysel.evaluation.plan import derived_seed
from raysel.execution.serial import SerialExecutor
from raysel.numerics.permutation import LabelPermutations, permutation_p_value
from raysel.run.resampling.permutation import Chosen, packed, permuted_scores, permuted_study, unpacked
from raysel.study.definition import Study
from raysel.testing.studies import run_by

SMML = {"name": "smml", "params": {"tol": 1e-2}, "space": {"gamma1": [0.1, 0.4], "gamma2": [0.0]}}
#: Changes to the small study, one for each kind of search and evaluation.
STUDIES = {
    "grid": {},
    "mean": {"evaluation__choose_n": "mean"},
    "linear svm": {"evaluation__classifier": "linear_svm"},
    "path": {"solver": SMML, "search__method": "path", "evaluation": {"classifier": "native"}},
    "tpe": {
        "solver": {"name": "smr", "params": {"max_iter": 3}, "space": {"alpha": {"loguniform": [0.01, 0.5]}}},
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
    return Study.prepare(config_from_dict({**raw, "cv": {"outer": 3, "inner": 2, "groups": "groups"}}))


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
    save_dataset(Dataset(np.random.default_rng(0).normal(size=(60, 9)), y, Matrix(3, 3)), tmp_path / "rows.parquet")
    raw = raw_config(tmp_path / "rows.parquet", evaluation__n_features=[2, 4])
    blocks = {"size": 6, "gap": 1}
    study = Study.prepare(config_from_dict({**raw, "cv": {"outer": 2, "inner": 2, "blocks": blocks}}))
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
    permuted.plan.check(labels, groups, "permuted")  # no group is on both sides, and no class is missing
    for before, after in zip(all_sets(study.plan), all_sets(permuted.plan), strict=True):
        counts = [
            np.bincount([d.y[groups == g][0] for g in np.unique(groups[index])], minlength=2).tolist()
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


@pytest.mark.parametrize("kind", STUDIES)
def test_the_true_labels_give_the_figures_of_the_study(kind, tmp_path):
    write_digits(tmp_path / "few.npz", classes=3, each=12)
    raw = raw_config(tmp_path / "few.npz", **STUDIES[kind])
    study = Study.prepare(config_from_dict(raw))
    refits = [refit.record for refit in run_by(SerialExecutor(study), study, tmp_path / "run").refits]
    fixed = {refit.fold: Chosen.of_refit(refit) for refit in refits}
    for chosen in (fixed, None):
        found = permuted_scores(study, 0, seed=0, chosen=chosen, ranks=True)
        assert found["scores"] == {refit.fold: refit.test_score for refit in refits[:-1]}
        expected = np.array(refits[-1].feature_scores, dtype=np.float32)
        assert np.array_equal(unpacked(found["feature_scores"]), expected)
    assert "feature_scores" not in permuted_scores(study, 0, seed=0, chosen=None, ranks=False)


def test_permuted_labels_are_the_true_labels_of_permuted_samples(tmp_path):
    """Why a test that searches again is exact: each permutation is a study of the samples in another order."""
    X, y = np.random.default_rng(0).normal(size=(30, 9)), np.repeat([0, 1], [9, 21])

    def study_of(name, samples):
        save_dataset(Dataset(samples, y, Matrix(3, 3)), tmp_path / name)
        return Study.prepare(config_from_dict(raw_config(tmp_path / name, evaluation__n_features=[2, 4])))

    study = study_of("first.parquet", X)
    source = LabelPermutations(y).draw(np.random.default_rng(derived_seed(7, "permutation", 1)))
    other = study_of("second.parquet", X[np.argsort(source)])
    found = permuted_scores(study, 1, seed=7, chosen=None, ranks=True)
    assert found == permuted_scores(other, 0, seed=7, chosen=None, ranks=True)
    assert found != permuted_scores(study, 0, seed=7, chosen=None, ranks=True)


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
    chosen = {fold.name: Chosen(dict(study.config.solver.params), None) for fold in study.plan.folds}

    def ours(number):
        found = permuted_scores(study, number, seed=0, chosen=chosen, ranks=False)
        return np.mean(list(found["scores"].values()))

    score, permuted, p_value = permutation_test_score(pipeline, X, y, cv=folds, n_permutations=24, random_state=0)
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
        inverse[np.concatenate([test for _, test in folds])] = np.concatenate([test for _, test in again])
        assert cross_val_score(pipeline, X[inverse], y, cv=folds).mean() == pytest.approx(expected.mean())


def test_a_search_of_permuted_labels_does_not_see_the_outer_test_samples(tmp_path):
    write_digits(tmp_path / "few.npz", classes=3, each=12)
    study = make_study(tmp_path / "few.npz")
    moved = permuted_study(study, 1, seed=0)
    plain = permuted_scores(moved, 0, seed=0, chosen=None, ranks=False)["scores"]
    test = moved.plan.outer[0].test
    X = moved.dataset.X.copy()
    X[test] = np.random.default_rng(0).permutation(X[test].ravel()).reshape(X[test].shape)
    from raysel.run.resampling.permutation import _search  # noqa: PLC0415 - what the scores do not tell

    spoilt = Study(moved.config, Dataset(X, moved.dataset.y, moved.dataset.layout), moved.plan, moved.configurations)
    name = moved.plan.outer[0].name
    assert _search(spoilt)[name] == _search(moved)[name]
    assert plain[name] != permuted_scores(spoilt, 0, seed=0, chosen=None, ranks=False)["scores"][name]


def test_scores_that_are_not_finite_are_an_error():
    assert unpacked(packed(np.array([0.5, 0.0]))).tolist() == [0.5, 0.0]
    with pytest.raises(FloatingPointError):
        packed(np.array([np.nan]))
