"""Successive halving: Ray's own rule where trials come as they please; in batches their order changes nothing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray.tune.schedulers.async_hyperband import _Bracket
from small_studies import make_study, write_digits

from raysel.evaluation.configurations import Configuration
from raysel.evaluation.nested_search import WORST_SCORE, FoldSearch, SuccessiveHalving, empty_record, last_score
from raysel.evaluation.records import FoldTrace, InnerTrace


@given(
    st.integers(1, 4),
    st.integers(2, 4),
    st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_trials_are_stopped_as_ray_stops_them(grace, factor, curves, random):
    longest = grace * factor**3 + 1
    ours, theirs = SuccessiveHalving(grace, factor, longest, None), _Bracket(grace, longest, factor, 0)
    going = {f"t{n}": iter(zip(ours.levels, curve, strict=False)) for n, curve in enumerate(curves)}
    while going:  # whichever comes next
        name = random.choice(sorted(going))
        reached = next(going[name], None)
        if reached is None:
            del going[name]
            continue
        level, score = reached
        kept = ours.should_continue(name, 0, level, score)
        assert kept == (theirs.on_result(SimpleNamespace(trial_id=name), level, score) == "CONTINUE")
        if not kept:
            del going[name]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=14), st.integers(1, 5), st.randoms(use_true_random=False))
def test_in_batches_the_order_within_changes_nothing(scores, size, random):
    def decisions(shuffled: bool) -> dict[int, bool]:
        rungs, found = SuccessiveHalving(2, 3, 10, size), {}
        for start in range(0, len(scores), size):
            batch = list(range(start, min(start + size, len(scores))))
            if shuffled:
                random.shuffle(batch)
            found |= {n: rungs.should_continue(str(n), n, 2, scores[n]) for n in batch}
        return found

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


@pytest.mark.parametrize(("grace", "longest", "levels"), [(3, 30, (3, 9, 27)), (3, 27, (3, 9)), (3, 3, ()), (5, 1, ())])
def test_no_rung_lies_at_or_beyond_the_last_iteration(grace, longest, levels):
    assert SuccessiveHalving(grace, 3, longest, None).levels == levels


ASHA = {
    "solver__params": {"max_iter": 12},
    "solver__space": {"alpha": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]},
    "search": {"early_stopping": "asha", "synchronous": True, "batch_size": 3, "reduction_factor": 2},
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
