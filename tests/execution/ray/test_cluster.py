"""The view of the cluster counts the trials that fit now, and says once who came and who left."""

from __future__ import annotations

import pytest

from raysel.config.values import n_trials_at_once
from raysel.core.errors import ConfigError
from raysel.execution.ray.nodes import Cluster, Node

BIG = Node("a", "10.0.0.1", {"CPU": 8.0, "GPU": 2.0, "memory": 2.0**33, "node:10.0.0.1": 1.0})
SMALL = Node("b", "10.0.0.2", {"CPU": 3.0})


class Nodes:
    """Nodes that come and go."""

    def __init__(self, *alive):
        self.alive, self.said = list(alive), []

    def cluster(self, needs, most=None, demand=None):
        return Cluster(needs, most, self.said.append, demand, alive=lambda: self.alive)


class Asked:
    """Takes the requests of a cluster for places."""

    def __init__(self):
        self.asked = []

    def ask(self, n, *, all_taken):
        self.asked.append((n, all_taken))


@pytest.mark.parametrize(
    ("needs", "most", "slots"),
    [
        ({"CPU": 1.0}, None, 11),
        ({"CPU": 2.0}, None, 5),
        ({"CPU": 2.0}, 3, 3),
        ({"CPU": 1.0, "GPU": 0.5}, None, 4),
        ({"CPU": 1.0, "memory": 2.0**32}, None, 2),
        ({"CPU": 1.0, "licence": 1.0}, None, 0),
    ],
)
def test_slots(needs, most, slots):
    assert Nodes(BIG, SMALL).cluster(needs, most).slots == slots


def test_parts_of_a_resource_that_add_up_to_it_all_fit():
    assert n_trials_at_once({"CPU": 9.0, "x": 0.3}, {"CPU": 1.0, "x": 0.1}) == 3


def test_nodes_that_come_and_go_are_told_once():
    nodes = Nodes(BIG)
    cluster = nodes.cluster({"CPU": 1.0})
    nodes.alive.append(SMALL)
    for _ in range(2):
        cluster.refresh(now=True)
    assert nodes.said == ["node 10.0.0.2 joined: 11 slots now"]
    for name in ("c1", "c2", "c3"):
        cluster.started(name, "b")
    cluster.started("c4", "a")
    cluster.ended("c3")
    nodes.alive.remove(SMALL)
    for _ in range(2):
        cluster.refresh(now=True)
    assert nodes.said[1:] == ["node 10.0.0.2 left the cluster; its 2 running trials run again: 8 slots now"]
    cluster.started("task 0", "a", "refit")
    cluster.ended("c4")
    nodes.alive.clear()
    cluster.refresh(now=True)
    assert nodes.said[2:] == ["node 10.0.0.1 left the cluster; its 1 running refit runs again: 0 slots now"]
    nodes.alive.append(BIG)
    assert set(cluster.lost) == {"a", "b"}
    cluster.refresh(now=True)
    assert cluster.slots == 8


def test_a_need_that_no_node_meets_is_refused_with_what_the_nodes_have():
    with pytest.raises(
        ConfigError, match=r"needs CPU 1, GPU 4, which no .*10\.0\.0\.1: CPU 8, GPU 2, memory 8\.0 GiB;"
    ):
        Nodes(BIG, SMALL).cluster({"CPU": 1.0, "GPU": 4.0}).check()
    Nodes(BIG, SMALL).cluster({"CPU": 1.0, "GPU": 2.0}).check()


def test_fewer_run_at_once_on_a_node_where_memory_ran_short_until_it_is_one():
    nodes = Nodes(BIG, SMALL)
    cluster = nodes.cluster({"CPU": 1.0})
    for name in ("c1", "c2", "c3"):
        cluster.started(name, "b")
    cluster.started("c4", "a")
    assert not cluster.run_fewer("c5", "")  # ended before it was known where it ran
    assert not cluster.run_fewer("c4", "a")  # alone there: its own memory is too much
    assert cluster.slots == 11
    assert cluster.run_fewer("c1", "b")
    cluster.ended("c1")
    assert cluster.slots == 10
    assert cluster.run_fewer("c2", "b")
    cluster.ended("c2")
    assert not cluster.run_fewer("c3", "b")
    assert (cluster.places(SMALL), cluster.limited(SMALL), cluster.limited(BIG)) == (1, True, False)
    short = "memory ran short on node 10.0.0.2 and Ray ended a trial, which runs again: "
    assert nodes.said == [f"{short}at most {n} at once there from now on" for n in (2, 1)]


def test_tasks_that_wait_at_a_node_count_as_running_no_more_than_fit():
    cluster = Nodes(SMALL).cluster({"CPU": 1.0})
    for number in range(6):  # three of them wait there
        cluster.started(f"task {number}", "b", "refit")
    assert cluster.run_fewer("task 0", "b")
    assert cluster.slots == 2


@pytest.mark.parametrize(("most", "missing"), [(None, 4), (5, 2), (2, -1)])
def test_places_are_requested_for_what_is_left_once_all_places_are_taken(most, missing):
    demand = Asked()
    cluster = Nodes(SMALL).cluster({"CPU": 1.0}, most, demand)
    for name in ("c1", "c2"):
        cluster.started(name, "b")
    cluster.want(7)
    cluster.started("c3", "b")
    cluster.want(7)
    assert demand.asked == [(missing, False), (missing, True)]
    cluster.run_fewer("c3", "b")
    cluster.ended("c3")
    cluster.want(7)
    assert demand.asked[2:] == [(missing, False)]  # the place that stays free would meet the request
