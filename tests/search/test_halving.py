"""Successive halving: Ray's own rule where trials come as they please; in batches their order changes nothing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray.tune.schedulers.async_hyperband import _Bracket

from raysel.evaluation.nested_search import SuccessiveHalving


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
