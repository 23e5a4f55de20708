"""A lost node gives a trial one more run; a worker that ends by itself counts against the trial."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from raysel.execution.ray.nodes import Cluster, Node
from raysel.execution.ray.tasks import MAX_RETRIES, Losses, node_in

NODES = ["n1", "n2", "n3", ""]
#: As Ray 2.60 words the death of a node, and of a worker on a living one.
NODE_DIED = (
    "The actor died because its node has died. Node Id: 64ab\n\tthe actor's node was terminated"
    " unexpectedly"
)
WORKER_DIED = (
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Node Id:"
    " 64ab"
)


def losses(gone=()):
    cluster = Cluster({"CPU": 1.0}, None, print, alive=list)
    cluster.lost = {node: Node(node, "") for node in gone}
    return Losses(cluster), cluster


@given(st.lists(st.sampled_from(NODES), max_size=12), st.sets(st.sampled_from(NODES[:3])))
def test_a_trial_runs_once_and_for_each_lost_node_and_retry_once_more(nodes, gone):
    lost, _ = losses(gone)
    ended = next(
        (
            n
            for n, node in enumerate(nodes, start=1)
            if not lost.runs_again("c1", node, WORKER_DIED)
        ),
        None,
    )
    runs = ended or len(nodes) + 1
    excused = len(set(nodes[:runs]) & gone)
    assert runs == min(1 + MAX_RETRIES + excused, len(nodes) + 1)


def test_an_end_is_excused_when_its_node_is_found_lost_later_or_the_error_names_it():
    lost, cluster = losses()
    assert all(lost.runs_again("c1", node, WORKER_DIED) for node in ("n1", "n2"))
    cluster.lost = {"n1": Node("n1", ""), "n2": Node("n2", "")}
    assert lost.runs_again("c1", "n3", WORKER_DIED)
    assert lost.n_own_ends("c1") == 1
    assert lost.runs_again("c1", "n3", NODE_DIED)
    assert lost.n_own_ends("c1") == 1


def test_trials_are_counted_apart():
    lost, _ = losses()
    assert all(lost.runs_again(f"c{n}", "n1", WORKER_DIED) for n in range(10))


def test_the_node_of_a_dead_actor():
    assert (node_in(NODE_DIED), node_in(WORKER_DIED), node_in(None)) == ("64ab", "", "")
