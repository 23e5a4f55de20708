"""No two places of a study draw from the same seed."""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.core.errors import ConfigError, DataError
from raysel.evaluation.plan import _PURPOSES, NestedPlan, derived_seed
from raysel.evaluation.records import FINAL


def test_no_two_places_share_a_seed():
    """Over three seeds, all purposes and up to three indices from 0 to 5, zeros at the end among
    them.
    """
    places = [()] + [key for n in (1, 2, 3) for key in itertools.product(range(6), repeat=n)]
    actual = [
        derived_seed(seed, purpose, *key)
        for seed in (0, 1, 7)
        for purpose in _PURPOSES
        for key in places
    ]
    assert len(set(actual)) == len(actual)  # by chance two of 4662 agree with probability .003
    child = np.random.SeedSequence(3, spawn_key=(_PURPOSES.index("refit"), 1, 2))
    assert derived_seed(3, "refit", 1, 2) == child.generate_state(1)[0]


def labels(n_a_class: int, n_classes: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(n_classes), n_a_class))


def as_text(plan: NestedPlan) -> str:
    return json.dumps(plan.to_json())


@given(
    n_a_class=st.integers(9, 14),
    n_classes=st.integers(2, 3),
    outer=st.integers(2, 3),
    inner=st.integers(2, 3),
    repeats=st.integers(1, 2),
    grouped=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=15)
def test_no_test_sample_is_in_any_training(
    tmp_path_factory, n_a_class, n_classes, outer, inner, repeats, grouped, seed
):
    y = labels(n_a_class, n_classes, seed)
    # Groups of two or three samples, classes mixed.
    groups = np.random.default_rng(seed).permutation(len(y)) // 2 if grouped else None
    how = {"outer": outer, "inner": inner, "repeats": repeats, "groups": groups}
    try:
        plan = NestedPlan.make(y, **how, seed=seed)
    except DataError:
        assert grouped  # without groups these classes always suffice
        return
    everything = list(range(len(y)))
    assert len(plan.folds) == repeats * outer + 1
    for repeat in range(repeats):
        tests = [fold.test for fold in plan.outer if fold.repeat == repeat]
        assert sorted(np.concatenate(tests)) == everything
    assert plan.final.name == FINAL
    assert plan.final.train.tolist() == everything
    assert not len(plan.final.test)
    for fold in plan.folds:
        assert sorted([*fold.train, *fold.test]) == everything
        assert len(fold.inner) == inner
        assert sorted(np.concatenate([i.validation for i in fold.inner])) == fold.train.tolist()
        for part in fold.inner:
            assert sorted([*part.train, *part.validation]) == fold.train.tolist()
            assert not {*part.train, *part.validation} & set(fold.test)
            assert set(y[part.train]) == set(y)
            if groups is not None:
                assert not set(groups[part.train]) & set(groups[part.validation])
        if groups is not None:
            assert not set(groups[fold.train]) & set(groups[fold.test])
    assert len(list(plan.training_sets())) == len(plan.folds) * inner

    path = tmp_path_factory.mktemp("plan") / "plan.json"
    path.write_text(as_text(plan))
    assert as_text(NestedPlan.load(path, y, groups)) == as_text(plan)
    assert as_text(NestedPlan.make(y, **how, seed=seed)) == as_text(plan)


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_fixed_number_a_class_is_drawn_anew_in_every_repeat(repeats):
    y = labels(9, 4, 0)
    plan = NestedPlan.make(
        y, outer=5, inner=2, repeats=repeats, groups=None, seed=1, train_per_class=4
    )
    assert len(plan.outer) == repeats  # one draw a repeat, whatever cv.outer says
    assert len({tuple(fold.train) for fold in plan.outer}) == repeats
    for fold in plan.outer:
        assert np.bincount(y[fold.train]).tolist() == [4] * 4
        assert sorted([*fold.train, *fold.test]) == list(range(len(y)))
        for part in fold.inner:
            assert np.bincount(y[part.train]).tolist() == [2] * 4
            assert sorted([*part.train, *part.validation]) == fold.train.tolist()
    assert len(plan.final.train) == len(y)
    again = NestedPlan.make(
        y, outer=5, inner=2, repeats=repeats, groups=None, seed=1, train_per_class=4
    )
    assert as_text(plan) == as_text(again)


def test_every_task_has_every_class_in_every_training_set():
    """Classes of joined tasks are stratified one by one, so a small task does not lose its own
    to a large one.
    """
    y = np.repeat(["big/0", "big/1", "small/0", "small/1"], [60, 30, 5, 4])
    y = np.random.default_rng(0).permutation(y)
    plan = NestedPlan.make(y, outer=2, inner=2, repeats=4, groups=None, seed=0)
    for train, held_out in plan.training_sets():
        assert set(y[train]) == set(y)
        for label in set(y):
            share = (y[held_out] == label).sum() / (y == label)[[*train, *held_out]].sum()
            assert abs(share - 0.5) <= 0.5 / (y == label)[[*train, *held_out]].sum() + 1e-12
    with pytest.raises(DataError, match=r"class small/1 has 4 samples, too few for cv\.outer=5"):
        NestedPlan.make(y, outer=5, inner=2, repeats=1, groups=None, seed=0)
    with pytest.raises(
        DataError, match=r"class small/[01] has [123] samples, too few for .* outer0: cv\.inner"
    ):
        NestedPlan.make(y, outer=2, inner=4, repeats=1, groups=None, seed=0)


def test_a_fold_depends_on_its_own_place_only():
    """More repeats, or another number of inner folds, leave the other folds as they were."""
    y = labels(20, 3, 0)
    make = {"groups": None, "seed": 5}
    small = NestedPlan.make(y, outer=3, inner=3, repeats=1, **make)
    large = NestedPlan.make(y, outer=3, inner=3, repeats=3, **make)
    for one, other in zip(
        [*small.outer, small.final], [*large.outer[:3], large.final], strict=True
    ):
        assert json.dumps(
            [[i.train.tolist(), i.validation.tolist()] for i in one.inner]
        ) == json.dumps([[i.train.tolist(), i.validation.tolist()] for i in other.inner])
        assert np.array_equal(one.test, other.test)
    finer = NestedPlan.make(y, outer=3, inner=4, repeats=1, **make)
    assert all(
        np.array_equal(a.test, b.test) for a, b in zip(small.folds, finer.folds, strict=True)
    )
    other = NestedPlan.make(y, outer=3, inner=3, repeats=3, groups=None, seed=6)
    drawn = [
        tuple(sorted(tuple(f.test) for f in plan.outer if f.repeat == repeat))
        for plan in (large, other)
        for repeat in range(3)
    ]
    assert len(set(drawn)) == 6  # another seed, or repeat, draws other folds


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_random_states_come_from_seed_repeat_outer_and_inner_only(seed):
    def states(plan: NestedPlan) -> dict[tuple[int, int, int | None], int]:
        return {
            (fold.repeat, fold.index, inner): fold.random_state(seed, inner)
            for fold in plan.folds
            for inner in (None, *range(len(fold.inner)))
        }

    plan = NestedPlan.make(labels(12, 2, 0), outer=3, inner=4, repeats=3, groups=None, seed=seed)
    other = NestedPlan.make(
        labels(15, 3, 1), outer=3, inner=4, repeats=3, groups=None, seed=seed + 1
    )
    actual = states(plan)
    assert actual == states(other)
    assert len(set(actual.values())) == len(actual) == (3 * 3 + 1) * 5
    assert not set(actual.values()) & {
        f.random_state(seed + 1, i) for f in plan.folds for i in (None, 0, 1, 2, 3)
    }
    assert all(0 <= state < 2**32 for state in actual.values())


# --- plans that are given ---

Y = labels(10, 2, 3)
GROUPS = np.arange(20) // 2
PLAN = NestedPlan.make(Y, outer=2, inner=2, repeats=1, groups=GROUPS, seed=0)


def loaded(tmp_path, raw: Any) -> NestedPlan:
    path = tmp_path / "plan.json"
    path.write_text(raw if isinstance(raw, str) else json.dumps(raw))
    return NestedPlan.load(path, Y, GROUPS)


def mutate(change) -> dict[str, Any]:
    raw = copy.deepcopy(PLAN.to_json())
    change(raw)
    return raw


def set_at(*place_and_value):
    *place, last, value = place_and_value

    def change(raw):
        for key in place:
            raw = raw[key]
        raw[last] = value

    return change


def moved(sample, source, target):
    """Move a sample from one part of a fold to another, and out of the fold's inner folds if
    they are outer parts.
    """

    def change(raw):
        *fold, part = source
        outer = raw
        for key in fold:
            outer = outer[key]
        outer[part].remove(sample)
        outer[target].append(sample)
        for inner in outer.get("inner", ()):
            for rows in inner.values():
                if sample in rows:
                    rows.remove(sample)

    return change


OUTER0, OUTER1, LAST = PLAN.folds
TWIN, INNER_TWIN = (
    int(OUTER0.train[0]),
    int(LAST.inner[0].train[0]),
)  # the others of their groups stay
LEAKS = [
    *(
        (
            lambda raw, where=where, number=number: raw["folds"][0]["inner"][number][where].append(
                int(OUTER0.test[0])
            ),
            f"outer0, inner fold {number} uses samples from outside",
        )
        for where in ("train", "validation")
        for number in (0, 1)
    ),
    (
        lambda raw: raw["folds"][1]["train"].append(int(OUTER1.test[0])),
        "outer1: a sample is listed twice, or is on both sides",
    ),
    (moved(TWIN, ("folds", 0, "train"), "test"), f"outer0: group {GROUPS[TWIN]} is on both sides"),
    (
        moved(INNER_TWIN, ("folds", -1, "inner", 0, "train"), "validation"),
        "final, inner fold 0: group",
    ),
]


@pytest.mark.parametrize(("leak", "message"), LEAKS)
def test_a_sample_or_group_on_both_sides_is_a_leak(tmp_path, leak, message):
    with pytest.raises(ConfigError, match=message):
        loaded(tmp_path, mutate(leak))
    if "group" in message:  # without groups the same plan is honest
        assert NestedPlan.load(tmp_path / "plan.json", Y, None).n_samples == 20


@pytest.mark.parametrize(
    "place",
    [
        ("folds", 0, "train", 0),
        ("folds", 0, "inner", 0, "validation", 0),
        ("n_samples",),
        ("folds", 0, "index"),
    ],
)
def test_an_index_is_a_whole_number(tmp_path, place):
    for bad in (1.0, True, "3", None, [1], 2**70, float("nan")):
        with pytest.raises(ConfigError):
            loaded(tmp_path, mutate(set_at(*place, bad)))


TAMPERED = [
    *(
        (set_at("folds", fold, part, 0, bad), r"index outside 0\.\.19|uses samples from outside")
        for bad in (-1, 20, 2**62)
        for fold, part in ((0, "test"), (-1, "train"))
    ),
    (set_at("n_samples", 21), "made for 21 samples, but the data set has 20"),
    (lambda raw: raw["folds"].pop(), "the fold `final`"),
    (lambda raw: raw["folds"].pop(0), "two or more outer folds"),
    (lambda raw: raw["folds"].reverse(), "the fold `final`"),
    (set_at("folds", 0, "name", "outer1"), "distinct names"),
    (set_at("folds", 0, "index", 1), "have the same repeat and index"),
    (set_at("folds", 0, "repeat", -1), "whole numbers"),
    (set_at("folds", 0, "name", "../../outer0"), "must consist of letters"),
    (set_at("folds", 0, "name", 3), "must consist of letters"),
    (set_at("folds", 0, "test", []), "outer0 has no test samples"),
    (lambda raw: raw["folds"][-1]["train"].pop(), "must train on all samples"),
    (
        lambda raw: raw["folds"][-1]["test"].append(raw["folds"][-1]["train"].pop()),
        "must train on all samples",
    ),
    (lambda raw: raw["folds"][0]["inner"].pop(), "at least two inner folds"),
    (set_at("folds", 0, "inner", 0, "validation", []), "each with validation samples"),
    (set_at("folds", 0, "inner", 0, "train", []), "no training samples"),
    (
        lambda raw: raw["folds"][0]["test"].append(raw["folds"][0]["test"][0]),
        "a sample is listed twice",
    ),
    (lambda raw: raw["folds"][0].pop("inner"), "cannot be read as the plan.json"),
    (set_at("folds", {"outer0": []}), "cannot be read as the plan.json"),
    (set_at("folds", 7), "cannot be read as the plan.json"),
    (
        lambda raw: raw["folds"][0]["inner"][0].update(
            train=OUTER0.inner[0].train[Y[OUTER0.inner[0].train] == 0].tolist()
        ),
        "outer0, inner fold 0: class 1 is missing",
    ),
    (set_at("folds", 0, "inner", {"a": 1}), "cannot be read as the plan.json"),
]


def test_a_tampered_plan_is_refused(tmp_path):
    for change, message in TAMPERED:
        with pytest.raises(ConfigError, match=message):
            loaded(tmp_path, mutate(change))


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "3", "{", '{"folds": []}', "[" * 100_000, "\ufeff{}", "9" * 5000]
)
def test_a_file_that_is_no_plan_is_refused(tmp_path, text):
    with pytest.raises(ConfigError):
        loaded(tmp_path, text)


def test_a_plan_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError):
        NestedPlan.load(tmp_path / "nowhere.json", Y, None)
    (tmp_path / "binary.json").write_bytes(bytes(range(256)))
    with pytest.raises(ConfigError):
        NestedPlan.load(tmp_path / "binary.json", Y, None)


# --- without a final fold ---


def test_without_a_final_fold_the_outer_folds_are_the_same(tmp_path):
    whole = NestedPlan.make(Y, outer=3, inner=2, repeats=2, groups=GROUPS, seed=1)
    without = NestedPlan.make(Y, outer=3, inner=2, repeats=2, groups=GROUPS, seed=1, final=False)
    assert without.final is None
    assert as_text(without) == as_text(NestedPlan(whole.n_samples, whole.outer))
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(without.to_json()))
    assert as_text(NestedPlan.load(path, Y, GROUPS, final=False)) == as_text(without)
    with pytest.raises(ConfigError):
        NestedPlan.load(path, Y, GROUPS)
    path.write_text(json.dumps(whole.to_json()))
    assert as_text(NestedPlan.load(path, Y, GROUPS, final=False)) == as_text(without)


@pytest.mark.parametrize("repeats", [1, 3])
def test_folds_that_do_not_fit_into_memory_are_refused_before_they_are_made(monkeypatch, repeats):
    y, settings = np.arange(60) % 2, {"inner": 4, "groups": None, "seed": 0}
    folds = NestedPlan.make(y, outer=3, repeats=repeats, **settings).folds
    taken = sum(fold.train.nbytes + fold.test.nbytes for fold in folds)
    taken += sum(part.train.nbytes + part.validation.nbytes for f in folds for part in f.inner)
    monkeypatch.setattr("raysel.evaluation.plan.machine_memory", lambda: 4 * (taken - 1))
    with pytest.raises(
        ConfigError, match=f"{len(folds)} folds of 60 samples .* this machine's memory"
    ):
        NestedPlan.make(y, outer=3, repeats=repeats, **settings)
    monkeypatch.setattr("raysel.evaluation.plan.machine_memory", lambda: 8 * taken)
    assert len(NestedPlan.make(y, outer=3, repeats=repeats, **settings).folds) == len(folds)
