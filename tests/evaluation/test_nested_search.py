"""Successive halving: Ray's own rule where trials come as they please; in batches their order
changes nothing.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray.tune.schedulers.async_hyperband import _Bracket
from small_studies import make_study, raw_config, run_offline, write_digits

from raysel.core.errors import StudyError
from raysel.evaluation.configurations import Configuration
from raysel.evaluation.nested_search import (
    WORST_SCORE,
    FoldSearch,
    SuccessiveHalving,
    empty_record,
    last_score,
    select_winner,
)
from raysel.evaluation.records import FoldTrace, InnerTrace, TrialRecord


@given(
    st.integers(1, 4),
    st.integers(2, 4),
    st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_trials_are_stopped_as_ray_stops_them(grace, factor, curves, random):
    longest = grace * factor**3 + 1
    ours, theirs = (
        SuccessiveHalving(grace, factor, longest, None),
        _Bracket(grace, longest, factor, 0),
    )
    going = {f"t{n}": iter(zip(ours.levels, curve, strict=False)) for n, curve in enumerate(curves)}
    while going:  # whichever comes next
        name = random.choice(sorted(going))
        reached = next(going[name], None)
        if reached is None:
            del going[name]
            continue
        level, score = reached
        kept = ours.should_continue(name, 0, level, score)
        assert kept == (
            theirs.on_result(SimpleNamespace(trial_id=name), level, score) == "CONTINUE"
        )
        if not kept:
            del going[name]


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=14),
    st.integers(1, 5),
    st.randoms(use_true_random=False),
)
def test_in_batches_the_order_within_changes_nothing(scores, size, random):
    def decisions(shuffled: bool) -> dict[int, bool]:
        rungs, actual = SuccessiveHalving(2, 3, 10, size), {}
        for start in range(0, len(scores), size):
            batch = list(range(start, min(start + size, len(scores))))
            if shuffled:
                random.shuffle(batch)
            actual |= {n: rungs.should_continue(str(n), n, 2, scores[n]) for n in batch}
        return actual

    calm = decisions(shuffled=False)
    assert decisions(shuffled=True) == calm
    assert all(calm[n] for n in range(min(size, len(scores))))  # nobody judges the first batch
    for n, kept in calm.items():
        judges = scores[: n // size * size]
        assert kept == (not judges or scores[n] >= np.quantile(judges, 1 - 1 / 3))


def test_a_trial_that_has_ended_holds_its_last_score():
    rungs = SuccessiveHalving(1, 3, 10, None)
    assert rungs.levels == (1, 3, 9)
    rungs.note("a", 0, [0.2, 0.9], ended=True)
    assert not rungs.should_continue("b", 1, 9, 0.8)
    assert rungs.should_continue("b", 1, 1, 0.3)
    rungs.note("c", 2, [0.9], ended=False)  # stopped: it never came to 3
    assert rungs.should_continue("d", 3, 3, 0.9)


@pytest.mark.parametrize(
    ("grace", "longest", "levels"), [(3, 30, (3, 9, 27)), (3, 27, (3, 9)), (3, 3, ()), (5, 1, ())]
)
def test_no_rung_lies_at_or_beyond_the_last_iteration(grace, longest, levels):
    assert SuccessiveHalving(grace, 3, longest, None).levels == levels


ASHA = {
    "solver__params": {"max_iter": 12},
    "solver__space": {"alpha": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]},
    "search": {
        "early_stopping": "asha",
        "synchronous": True,
        "batch_size": 3,
        "reduction_factor": 2,
    },
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nested")
    write_digits(folder / "few.npz")
    return make_study(folder / "few.npz", **ASHA)


def make_search(study, fold, done=()):
    return FoldSearch(study.config, fold, study.configurations, study.halving(), done)


def scored(record, score: float):
    """The record as a trial of one iteration would leave it."""
    record.folds = {record.fold: FoldTrace(inner=[InnerTrace([1.0], [[score]])])}
    return record


def explore(search, scores) -> list[str]:
    """The ids of all trials, in the order of asking."""
    asked = []
    while not search.exhausted:
        record = search.next()
        asked.append(record.id)
        search.tell(scored(record, scores(record)))
    return asked


def test_each_configuration_is_tried_once_in_an_order_of_the_folds_own(study):
    orders = [explore(make_search(study, fold), lambda _: 0.5) for fold in study.plan.folds]
    for fold, order in zip(study.plan.folds, orders, strict=True):
        assert sorted(order) == sorted(f"{fold.name}-{c.id}" for c in study.configurations)
    assert len({tuple(id_.rpartition("-")[2] for id_ in order) for order in orders}) > 1


def test_a_resumed_search_continues_where_it_stopped(study):
    fold = study.plan.folds[0]
    whole = explore(make_search(study, fold), lambda _: 0.5)
    search, done = make_search(study, fold), []
    for _ in range(3):
        done.append(scored(search.next(), 0.5))
        search.tell(done[-1])
    assert explore(make_search(study, fold, done), lambda _: 0.5) == whole[3:]


def test_a_trial_below_the_quantile_of_an_earlier_batch_is_stopped(study):
    fold = study.plan.folds[0]
    search = make_search(study, fold)
    first = [search.next() for _ in range(3)]
    assert search.next() is None  # the next batch waits
    for record, score in zip(first, (0.2, 0.5, 0.8), strict=True):
        assert search.should_continue(record, 3, score)  # nobody of an earlier batch judges them
        search.tell(scored(record, score))
    later = [search.next(), search.next()]
    assert not search.should_continue(later[0], 3, 0.4)
    assert search.should_continue(later[1], 3, 0.6)


def test_the_score_of_a_trial_is_its_last_and_the_worst_without_one():
    record = empty_record(Configuration({"alpha": 0.1}, ("alpha",)), "outer1")
    assert (record.fold, record.id.partition("-")[0]) == ("outer1", "outer1")
    assert last_score(record, "mean") == WORST_SCORE
    assert last_score(scored(record, 0.75), "mean") == 0.75
    record.folds["outer1"].error = "failed"
    assert last_score(record, "mean") == WORST_SCORE


def trace(score: float | None) -> FoldTrace:
    if score is None:
        return FoldTrace(error="Traceback: singular")
    # Spread over two inner fits and two numbers of features; earlier iterations must not count.
    return FoldTrace(
        inner=[
            InnerTrace([3.0, 2.0], [[1.0, 1.0], [score - 0.125, score + 0.125]]),
            InnerTrace([3.0], [[score, score]]),
        ]
    )


def record(name: str, scores: dict[str, float | None], status: str = "finished") -> TrialRecord:
    return TrialRecord(
        name, name, {}, status, {fold: trace(score) for fold, score in scores.items()}
    )


RULES = ("mean", "best", "one_se")
SCORES = st.sampled_from([0.25, 0.5, 0.75, None])
RECORDS = st.lists(
    st.tuples(
        SCORES, SCORES, st.sampled_from(["finished", "finished", "stopped"]), st.integers(0, 2)
    ),
    min_size=1,
    max_size=8,
)


@given(drawn=RECORDS, order=st.randoms(use_true_random=False))
@settings(max_examples=75)
def test_the_winner_is_the_one_that_the_rules_name_in_any_order(drawn, order):
    records, preference = [], {}
    for number, (a, b, status, simple) in enumerate(drawn):
        name = f"{(number * 7) % 10}{number}"  # ids in no order
        failed = status == "finished" and (a is None or b is None)
        records.append(record(name, {"outer0": a, "outer1": b}, "failed" if failed else status))
        preference[name] = ((float(simple), -1.0), -number)  # listed in the other order than drawn
    for fold, which in (("outer0", 0), ("outer1", 1)):
        able = [
            (r, d)
            for r, d in zip(records, drawn, strict=True)
            if d[2] != "stopped" and d[which] is not None
        ]
        shuffled = records.copy()
        order.shuffle(shuffled)
        if not able:
            mend = (
                "Change solver.space"
                if any(r.failure for r in records)
                else "Raise search.time_budget"
            )
            with pytest.raises(StudyError, match=f"no configuration has a score on {fold}.*{mend}"):
                select_winner(shuffled, fold, preference, "mean")
            continue
        top = max(d[which] for _, d in able)
        best = [r.id for r, d in able if d[which] == top]
        simplest = min(preference[i][0] for i in best)
        tied = [i for i in best if preference[i][0] == simplest]
        expected = tied[-1]  # the first in the order of the list
        for given_order in (shuffled, records):
            winner, n_tied = select_winner(given_order, fold, preference, "mean")
            assert (winner.id, n_tied) == (expected, len(tied))


def test_each_fold_picks_its_own_and_the_mean_picks_none():
    records = [
        record("a", {"outer0": 0.9, "outer1": 0.1}),
        record("b", {"outer0": 0.1, "outer1": 0.9}),
        record("mean", {"outer0": 0.8, "outer1": 0.8}),
    ]
    preference = {r.id: ((), 0) for r in records}
    assert [
        select_winner(records, fold, preference, "mean")[0].id for fold in ("outer0", "outer1")
    ] == ["a", "b"]


def test_a_zero_solution_wins_where_nothing_does_better():
    null = TrialRecord(
        "null", "null", {}, "null", {"final": FoldTrace(True, [InnerTrace([1.0], [[0.4]])])}
    )
    preference = {"null": ((0.0,), 1), "other": ((9.0,), 0)}
    assert (
        select_winner([null, record("other", {"final": 0.4})], "final", preference, "mean")[0].id
        == "null"
    )
    assert (
        select_winner([null, record("other", {"final": 0.5})], "final", preference, "mean")[0].id
        == "other"
    )


def test_scores_that_differ_in_their_last_bit_are_tied():
    one, other = 0.1 + 0.2, 0.3
    assert one != other
    records = [
        record("complex", {"outer0": max(one, other)}),
        record("simple", {"outer0": min(one, other)}),
    ]
    assert (
        select_winner(records, "outer0", {"complex": ((2.0,), 0), "simple": ((1.0,), 1)}, "mean")[
            0
        ].id
        == "simple"
    )
    better = record("better", {"outer0": 0.3 + 1e-9})
    preference = {"complex": ((2.0,), 0), "simple": ((1.0,), 1), "better": ((3.0,), 2)}
    assert select_winner([*records, better], "outer0", preference, "mean")[0].id == "better"


def at_sizes(name, *scores):
    """Record of two equal inner fits with a score for each number of features."""
    fold = FoldTrace(inner=[InnerTrace([1.0], [list(scores)])] * 2)
    return TrialRecord(name, "", {}, "finished", {"outer0": fold})


@pytest.mark.parametrize(
    ("records", "preference", "winners"),
    [
        # A configuration is scored at the number of features that is chosen for it.
        (
            [at_sizes("level", 0.7, 0.7), at_sizes("steep", 0.1, 0.8)],
            {},
            ["level", "steep", "steep"],
        ),
        # Equal scores go to fewer features before the simpler.
        (
            [at_sizes("many", 0.2, 0.8), at_sizes("few", 0.8, 0.2)],
            {"few": 9.0, "many": 1.0},
            ["many", "few", "few"],
        ),
    ],
)
def test_the_rule_decides_at_which_number_of_features_configurations_are_compared(
    records, preference, winners
):
    order = {r.id: ((preference.get(r.id, 0.0),), place) for place, r in enumerate(records)}
    assert [select_winner(records, "outer0", order, rule)[0].id for rule in RULES] == winners


# --- the ties of a study --------------------------------------------------------------------------


@pytest.fixture
def separable(tmp_path):
    """Two classes that every setting of a linear classifier tells apart."""
    y = np.arange(40) % 2
    X = 10.0 * (2 * y - 1)[:, None] + np.random.default_rng(0).normal(size=(40, 4))
    np.savez(tmp_path / "few.npz", X=X, y=y)
    return tmp_path / "few.npz"


def run(data, folder, space, **search):
    solver = {"name": "sklearn.svm.LinearSVC", "space": space}
    evaluation = {"classifier": "native", "references": False}
    raw = raw_config(data, solver=solver, evaluation=evaluation, dataset__scaling="none")
    raw["search"] |= search
    return run_offline(raw, folder)


@pytest.mark.parametrize("values", [[0.1, 1.0, 10.0], [10.0, 0.1, 1.0]])
def test_the_first_that_is_listed_wins(separable, tmp_path, values):
    result = run(separable, tmp_path / "study", {"C": values})
    assert [refit.params["C"] for refit in result.refits] == values[:1] * 3
    assert [refit.n_tied for refit in result.refits] == [3, 3, 3]
    (remark,) = (text for text in result.remarks() if "Tied" in text)
    assert remark.startswith(
        "List the preferred configurations first: on 3 of 3 folds several tied"
    )
    assert (
        "outer0 (3 configurations), outer1 (3 configurations), final (3 configurations)" in remark
    )


def test_of_proposals_the_first_wins(separable, tmp_path):
    search = {"method": "tpe", "num_samples": 5, "synchronous": True, "batch_size": 2}
    result = run(separable, tmp_path / "study", {"C": {"loguniform": [0.1, 10.0]}}, **search)
    for refit in result.refits:
        trials = [record for record in result.records if record.fold == refit.fold]
        assert sorted(record.number for record in trials) == list(range(5))
        assert refit.trial == next(record.id for record in trials if record.number == 0)
        assert refit.n_tied == 5
