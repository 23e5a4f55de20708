"""A lost node gives a trial one more run; a worker that ends by itself counts against the trial."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from raysel.execution.ray.tasks import MAX_RETRIES, LostTrials, node_in

NODES = ["n1", "n2", "n3", ""]
TRIAL = {"name": "c1", "configuration": 1}


def ends(lost: LostTrials, nodes, gone) -> int:
    """Number of runs that a trial gets whose workers end on these nodes one after the other."""
    for n, node in enumerate(nodes, start=1):
        if not lost.runs_again(TRIAL, node, gone):
            return n
        assert lost.next() == TRIAL
    return len(nodes) + 1


@given(st.lists(st.sampled_from(NODES), max_size=12), st.sets(st.sampled_from(NODES[:3])))
def test_a_trial_runs_once_and_for_each_lost_node_and_retry_once_more(nodes, gone):
    runs = ends(LostTrials(), nodes, gone)
    excused = len(set(nodes[:runs]) & gone)
    assert runs <= 1 + MAX_RETRIES + excused
    assert runs == min(1 + MAX_RETRIES + excused, len(nodes) + 1)


def test_an_end_is_excused_when_its_node_is_found_lost_later():
    lost = LostTrials()
    assert all(lost.runs_again(TRIAL, node, set()) for node in ("n1", "n2"))
    assert lost.runs_again(TRIAL, "n3", {"n1", "n2"})
    assert lost.n_own_ends(TRIAL, {"n1", "n2"}) == 1


def test_trials_are_counted_apart():
    lost = LostTrials()
    for n in range(10):
        assert lost.runs_again({"name": f"c{n}"}, "n1", set())
    assert [lost.next()["name"] for _ in range(10)] == [f"c{n}" for n in range(10)]
    assert lost.next() is None


def test_the_node_of_a_dead_actor():
    # As Ray 2.60 words the death of a node, and of a worker on a living one.
    node = "The actor died because its node has died. Node Id: 64ab\n\tthe actor's node was terminated unexpectedly"
    worker = "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Node Id: 64ab"
    assert (node_in(node), node_in(worker), node_in(None)) == ("64ab", "", "")
