"""The number of features that the inner scores choose."""

from __future__ import annotations

import json
from statistics import mean, stdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.core.files import make_instance
from raysel.evaluation.records import (
    Convergence,
    FoldTrace,
    InnerTrace,
    RefitRecord,
    TrialRecord,
    choose_n,
    mean_curve,
)
from raysel.results.tables import trace_table

SCORES = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 8), min_size=n, max_size=n), min_size=2, max_size=5)
)


@settings(max_examples=100)
@given(SCORES)
def test_each_rule_is_its_definition(scores):
    scores = [[value / 8 for value in row] for row in scores]
    columns = list(zip(*scores, strict=True))
    means = [mean(column) for column in columns]
    best = means.index(max(means))
    limit = means[best] - stdev(columns[best]) / len(scores) ** 0.5
    within = next(j for j, value in enumerate(means) if value >= limit - 1e-12)
    table = np.array(scores)
    assert choose_n(table, "best") == pytest.approx((best, means[best]))
    assert choose_n(table, "mean") == pytest.approx((best, mean(means)))
    assert choose_n(table, "one_se") == pytest.approx((within, means[within]))
    assert choose_n(table[::-1], "one_se") == pytest.approx(
        (within, means[within])
    )  # the order of the folds is free


def test_without_spread_over_the_folds_one_standard_error_is_the_best():
    scores = np.array([[0.5, 0.75, 0.75, 0.25]] * 3)
    assert choose_n(scores, "one_se") == choose_n(scores, "best") == (1, 0.75)


def test_means_that_differ_in_their_last_bit_are_tied():
    low, high = sorted([(0.1 + 0.2) / 3, 0.1])
    assert low != high
    assert choose_n(np.array([[low, high]] * 2), "best").position == 0


floats = st.floats(allow_nan=False, allow_infinity=False)


def inner_traces(n_scores: int):
    return st.integers(1, 4).flatmap(
        lambda n: st.builds(
            InnerTrace,
            st.lists(floats, min_size=n, max_size=n),
            st.lists(
                st.lists(floats, min_size=n_scores, max_size=n_scores), min_size=n, max_size=n
            ),
        )
    )


failed_folds = st.builds(FoldTrace, error=st.text(min_size=1))
fold_traces = failed_folds | st.builds(
    FoldTrace, st.booleans(), st.lists(inner_traces(2), min_size=1, max_size=3)
)
params = st.dictionaries(
    st.text(), st.booleans() | st.integers() | floats | st.text() | st.none(), max_size=3
)
trials = st.builds(
    TrialRecord,
    id=st.text(),
    name=st.text(),
    params=params,
    status=st.sampled_from(["finished", "null", "failed"]),
    folds=st.dictionaries(st.sampled_from(["outer0", "outer1", "final"]), fold_traces),
    error=st.text(),
    started=floats,
    ended=floats,
)
refits = st.builds(
    RefitRecord,
    **dict.fromkeys(["fold", "trial", "name"], st.text()),
    params=params,
    **dict.fromkeys(["inner_score", "started", "ended"], floats),
    **dict.fromkeys(["test_scores", "feature_scores", "objective"], st.lists(floats, max_size=4)),
)


@given(record=trials)
@settings(max_examples=60)
def test_a_trial_survives_json(record):
    again = make_instance(TrialRecord, json.loads(json.dumps(record.to_json(), allow_nan=False)))
    assert again == record
    assert repr(again) == repr(record)  # -0.0 is not 0.0


@given(record=refits)
@settings(max_examples=60)
def test_a_refit_survives_json_whatever_stands_beside_it(record):
    stored = json.loads(
        json.dumps({"kind": "refit", **record.to_json(), "metrics": {}}, allow_nan=False)
    )
    assert repr(make_instance(RefitRecord, stored)) == repr(record)


@given(curves=st.lists(st.lists(st.floats(-1e6, 1e6), max_size=5), max_size=4))
@settings(max_examples=30)
def test_a_curve_that_has_ended_holds_its_last_value(curves):
    actual = mean_curve(curves)
    alive = [curve for curve in curves if curve]
    assert len(actual) == max((len(curve) for curve in alive), default=0)
    for i, value in enumerate(actual):
        assert value == pytest.approx(
            sum(c[i] if i < len(c) else c[-1] for c in alive) / len(alive), abs=1e-9
        )


def a_record() -> TrialRecord:
    return TrialRecord(
        "id0",
        "alpha=1",
        {"alpha": 1},
        "finished",
        {
            "outer0": FoldTrace(
                inner=[
                    InnerTrace([4.0, 2.0], [[0.2, 0.4], [0.4, 0.8]]),
                    InnerTrace([6.0], [[0.0, 0.6]]),
                ]
            ),
            "outer1": FoldTrace(error="Traceback: singular"),
            "outer2": FoldTrace(inner=[InnerTrace([1.0], [[1.0, 0.0]])]),
            "final": FoldTrace(inner=[InnerTrace([9.0], [[0.9, 0.9]])]),
        },
    )


def test_the_curves_of_a_trial_are_means_over_the_outer_folds_that_did_not_fail():
    actual = a_record().curves("accuracy", ["n5", "n9"], "mean")
    expected = {
        "objective": [(5.0 + 1.0) / 2, (4.0 + 1.0) / 2],
        "val_accuracy": [(0.3 + 0.5) / 2, (0.45 + 0.5) / 2],
        "val_accuracy_n5": [(0.1 + 1.0) / 2, (0.2 + 1.0) / 2],
        "val_accuracy_n9": [(0.5 + 0.0) / 2, (0.7 + 0.0) / 2],
        "objective/outer0": [5.0, 4.0],
        "val_accuracy/outer0": [0.3, 0.45],
        "objective/outer2": [1.0],
        "val_accuracy/outer2": [0.5],
        "objective/final": [9.0],
        "val_accuracy/final": [0.9],
    }
    assert actual == {name: pytest.approx(curve) for name, curve in expected.items()}
    assert (
        TrialRecord("i", "n", {}, "failed", {"outer0": FoldTrace(error="x")}).curves(
            "accuracy", ["n5"], "mean"
        )
        == {}
    )
    assert TrialRecord("i", "n", {}, "failed").curves("accuracy", ["n5"], "mean") == {}


def test_a_failure_names_its_outer_folds():
    record = a_record()
    assert record.failed_folds == ["outer1"]
    assert record.failure == "on outer1: Traceback: singular"
    assert TrialRecord("i", "n", {}, "failed", error="killed").failure == "killed"


def test_converged_fits_are_counted_where_they_ended():
    fits = [
        InnerTrace([1.0], [[1.0]], converged=True, gap=1e-5),
        InnerTrace([1.0], [[1.0]], converged=False, gap=0.5),
        InnerTrace([1.0], [[1.0]]),  # stopped early
    ]
    record = TrialRecord("i", "n", {}, "finished", {"outer0": FoldTrace(inner=fits)})
    assert record.convergence() == Convergence(2, 1, 0.5)
    assert TrialRecord("i", "n", {}, "finished").convergence() == Convergence(0, 0, None)


def test_records_of_version_0_1_are_read():
    inner = {"objective": [2.0], "scores": [[0.5]], "source": "solved"}
    raw = {
        "id": "i",
        "name": "n",
        "params": {},
        "status": "finished",
        "error": "",
        "started": 0.0,
        "ended": 1.0,
    }
    raw |= {"fold": "", "folds": {"outer0": {"null": False, "inner": [inner]}}}
    assert make_instance(TrialRecord, raw).folds["outer0"].score("mean") == 0.5
    refit = RefitRecord("outer0", "t", "t", {}, 0.5, [0.5], [1.0], [1.0]).to_json()
    del refit["converged"], refit["gap"]
    assert make_instance(RefitRecord, refit).converged is None
    kept = RefitRecord("outer0", "t", "t", {}, 0.5, [0.5], [1.0, 2.0, 3.0], [1.0])
    kept.clear_scores([1])  # constant features had the scores that the method gave
    assert kept.feature_scores == [1.0, 0.0, 3.0]


def test_the_trace_table_has_a_row_an_iteration():
    once = TrialRecord(
        "id1",
        "svm",
        {},
        "finished",
        {"final": FoldTrace(inner=[InnerTrace([3.0, 2.0], [[0.5, 0.6]])])},
    )
    rows = trace_table([a_record(), once], ["n5", "n9"]).to_pylist()
    assert [(r["trial"], r["fold"], r["inner"], r["iteration"], r["objective"]) for r in rows] == [
        ("id0", "outer0", 0, 0, 4.0),
        ("id0", "outer0", 0, 1, 2.0),
        ("id0", "outer0", 1, 0, 6.0),
        ("id0", "outer2", 0, 0, 1.0),
        ("id0", "final", 0, 0, 9.0),
        ("id1", "final", 0, 0, 3.0),
        ("id1", "final", 0, 1, 2.0),
    ]
    assert [(r["score_n5"], r["score_n9"]) for r in rows[:3]] == [
        (0.2, 0.4),
        (0.4, 0.8),
        (0.0, 0.6),
    ]
    assert [(r["score_n5"], r["score_n9"]) for r in rows[-2:]] == [
        (None, None),
        (0.5, 0.6),
    ]  # scored at the last only
    assert {r["configuration"] for r in rows} == {"alpha=1", "svm"}
    single = TrialRecord(
        "i", "n", {}, "finished", {"final": FoldTrace(inner=[InnerTrace([1.0], [[0.25]])])}
    )
    assert trace_table([single], []).to_pylist()[0]["score"] == 0.25
    assert trace_table([], ["n5"]).num_rows == 0
