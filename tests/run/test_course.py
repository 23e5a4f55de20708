"""A study: the same numbers however it is run, on Ray too, no leak, and an end that is said
whatever ends it.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from small_studies import compute, make_study, run_on_ray, run_serially, timeless, write_digits

from raysel.core.errors import DirectoryError, StudyError
from raysel.data.loading import load_dataset
from raysel.evaluation.records import choose_n
from raysel.execution.ray import executor as ray_executor
from raysel.study.definition import Study
from raysel.tracking.journal import Journal
from raysel.tracking.log import Progress, StudyLog


@pytest.fixture
def digits(tmp_path) -> Path:
    write_digits(tmp_path / "few.npz")
    return tmp_path / "few.npz"


def refitted(refits):
    """What a refit found, but for when; a model's coefficients included."""
    return [(timeless(r.record.to_json()), r.model.method.coef_.tobytes()) for r in refits]


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_neither_workers_nor_order_nor_copies_change_a_bit(tmp_path, digits, monkeypatch):
    changes = {"solver__params": {"max_iter": 4, "init": "random"}}
    study = make_study(digits, **changes)
    records, refits, kept = run_serially(study, tmp_path / "one")

    two = make_study(digits, search={}, **changes)
    turned = dataclasses.replace(two, configurations=two.configurations[::-1])
    # None of the store's memory for prepared folds: every trial makes its own.
    monkeypatch.setattr(ray_executor, "_STORE_SHARE", 0.0)
    other_records, other_refits, other_kept = run_on_ray(turned, tmp_path / "two")

    assert sorted(r["id"] for r in kept) == sorted(c.id for c in study.configurations)
    assert [r["id"] for r in kept] != [
        c.id for c in study.configurations
    ]  # in an order drawn from the seed
    assert [r["id"] for r in other_kept] != [r["id"] for r in kept]
    assert other_records == records
    assert refitted(other_refits) == refitted(refits)
    # The seed is what decides: it draws other folds and other starts.
    assert make_study(digits, seed=4, **changes).plan.to_json() != study.plan.to_json()


@pytest.mark.slow
def test_scrambled_test_samples_leave_their_folds_choice_as_it_was(tmp_path, digits):
    study = make_study(digits, solver__params={"max_iter": 4})
    (tmp_path / "plan.json").write_text(json.dumps(study.plan.to_json()))
    records, refits, _ = run_serially(study, tmp_path / "honest")

    data, fold = study.dataset, study.plan.folds[0]
    X, y = data.X.copy(), data.y.copy()
    rng = np.random.default_rng(0)
    X[fold.test] = rng.uniform(0, 16, X[fold.test].shape)
    y[fold.test] = rng.permutation(y[fold.test])
    assert (y != data.y).any()
    np.savez(tmp_path / "scrambled.npz", X=X.reshape(-1, 8, 8), y=y)
    scrambled = make_study(
        tmp_path / "scrambled.npz",
        solver__params={"max_iter": 4},
        cv={"plan": str(tmp_path / "plan.json")},
    )
    other_records, other_refits, _ = run_serially(scrambled, tmp_path / "scrambled")

    assert set(other_records) == set(records)
    for key, record in records.items():
        assert other_records[key]["folds"][fold.name] == record["folds"][fold.name]
    before, after = timeless(refits[0].record.to_json()), timeless(other_refits[0].record.to_json())
    # There, and only there, they were looked at: redundancy (of all samples) and references choose
    # nothing.
    looked = ("test_scores", "pseudo_values", "outputs", "confusion", "redundancy", "references")
    for name in looked:
        assert after.pop(name) != before.pop(name)
    assert after == before
    assert {"n_features", "position", "inner_score", "inner_curve", "trial"} <= set(before)
    # The other folds trained on those samples.
    assert any(
        other_records[k]["folds"]["outer1"] != r["folds"]["outer1"] for k, r in records.items()
    )


def test_no_test_score_exists_but_the_winners(tmp_path, digits):
    study = make_study(digits)
    records, refits, kept = run_serially(study, tmp_path / "run")
    for record in kept:
        assert record["kind"] == "trial"
        assert not [key for key in record if "test" in key]
    assert [refit.record.fold for refit in refits] == ["outer0", "outer1", "final"]
    assert [len(refit.record.test_scores) for refit in refits] == [2, 2, 0]
    for fold, refit in zip(study.plan.folds, refits, strict=True):
        inner = {
            key: (
                choose_n(
                    np.array([i["scores"][-1] for i in record["folds"][fold.name]["inner"]]),
                    "one_se",
                ).score
            )
            for key, record in records.items()
            if not record["folds"][fold.name]["error"]
        }
        assert refit.record.inner_score == inner[refit.record.trial] == max(inner.values())
        # Recomputed with scikit-learn's own nearest neighbours, which break ties by the order of
        # the samples.
        if len(fold.test):
            X = refit.model.named_steps["scaler"].transform(study.dataset.X)
            y, order = (
                study.dataset.y,
                np.argsort(-np.array(refit.record.feature_scores), kind="stable"),
            )
            expected = [
                KNeighborsClassifier(1)
                .fit(X[fold.train][:, order[:n]], y[fold.train])
                .score(X[fold.test][:, order[:n]], y[fold.test])
                for n in (4, 8)
            ]
            # Scaled digits tie: a sample or two may go to another neighbour at the same distance.
            assert np.abs(np.array(refit.record.test_scores) - expected).max() <= 2.001 / len(
                fold.test
            )


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_a_full_disk_ends_the_study_with_the_journals_own_words(tmp_path, digits):
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full, which refuses every byte as a full disk does")
    study = make_study(digits, solver__space={"alpha": [0.1]})
    log = StudyLog(Journal(Path("/dev/full")), Progress(1, "accuracy"), tmp_path / "progress.json")
    with pytest.raises(StudyError) as ended:
        compute(ray_executor.RayExecutor(study, None), study, log)
    assert (
        str(ended.value)
        == "the journal /dev/full cannot be written: No space left on device. Its earlier records"
        " are kept."
    )


@pytest.mark.slow
def test_a_winner_that_cannot_be_refitted_is_named(tmp_path, digits):
    # Two images whose sum overflows: only training sets with both fail, and outer0 trains on them
    # in its refit but in none of its inner fits.
    study = make_study(digits)
    fold = study.plan.folds[0]
    samples = fold.train[:2]
    inner = [
        dataclasses.replace(
            i, train=np.setdiff1d(i.train, samples), validation=np.setdiff1d(i.validation, samples)
        )
        for i in fold.inner
    ]
    folds = (dataclasses.replace(fold, inner=tuple(inner)), *study.plan.folds[1:])
    X = study.dataset.X.copy()
    X[samples] = 1.7e308
    data = dataclasses.replace(study.dataset, X=X)
    broken = Study(
        study.config.model_copy(
            update={"dataset": study.config.dataset.model_copy(update={"scaling": "none"})}
        ),
        data,
        dataclasses.replace(study.plan, folds=folds[:1]),
        study.configurations[:1],
    )
    with pytest.raises(
        StudyError, match=r"^the winner of outer0, alpha=0.01 rank=1, could not be refitted: \w+"
    ):
        run_serially(broken, tmp_path / "run")


def test_groups_stay_whole_through_the_plan_of_a_study(tmp_path):
    write_digits(tmp_path / "few.npz")
    data = load_dataset(tmp_path / "few.npz")
    np.savez(
        tmp_path / "grouped.npz",
        X=data.X.reshape(-1, 8, 8),
        y=data.y,
        writer=np.arange(data.n_samples) // 3,
    )
    study = make_study(tmp_path / "grouped.npz", cv={"outer": 3, "inner": 2, "groups": "writer"})
    for train, held_out in [
        *((fold.train, fold.test) for fold in study.plan.outer),
        *study.plan.training_sets(),
    ]:
        assert not set(study.dataset.groups[train]) & set(study.dataset.groups[held_out])


def test_a_directory_error_is_a_study_error():
    assert issubclass(DirectoryError, StudyError)
