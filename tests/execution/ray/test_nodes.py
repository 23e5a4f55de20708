"""The view of the cluster: trials that fit now, nodes that come and go, and requests for places
that are missing.
"""

from __future__ import annotations

import json

import pytest
from cluster_studies import bare_commands, ends, ranking, run_alone, trials, wait_for, write_study
from hosts import Network

from raysel.config.values import n_trials_at_once
from raysel.core.errors import ConfigError
from raysel.execution.ray.nodes import Cluster, Node

BIG = Node("a", "10.0.0.1", {"CPU": 8.0, "GPU": 2.0, "memory": 2.0**33, "node:10.0.0.1": 1.0})
SMALL = Node("b", "10.0.0.2", {"CPU": 3.0})


class Nodes:
    """Nodes that come and go."""

    def __init__(self, *alive):
        self.alive, self.messages = list(alive), []

    def cluster(self, needs, most=None, demand=None):
        return Cluster(needs, most, self.messages.append, demand, alive=lambda: self.alive)


class Requests:
    """Keeps what a cluster requests."""

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


def test_nodes_that_come_and_go_are_reported_once():
    nodes = Nodes(BIG)
    cluster = nodes.cluster({"CPU": 1.0})
    nodes.alive.append(SMALL)
    for _ in range(2):
        cluster.refresh(now=True)
    assert nodes.messages == ["node 10.0.0.2 joined: 11 slots now"]
    for name in ("c1", "c2", "c3"):
        cluster.started(name, "b")
    cluster.started("c4", "a")
    cluster.ended("c3")
    nodes.alive.remove(SMALL)
    for _ in range(2):
        cluster.refresh(now=True)
    assert nodes.messages[1:] == [
        "node 10.0.0.2 left the cluster; its 2 running trials run again: 8 slots now"
    ]
    cluster.started("task 0", "a", "refit")
    cluster.ended("c4")
    nodes.alive.clear()
    cluster.refresh(now=True)
    assert nodes.messages[2:] == [
        "node 10.0.0.1 left the cluster; its 1 running refit runs again: 0 slots now"
    ]
    nodes.alive.append(BIG)
    assert set(cluster.lost) == {"a", "b"}
    cluster.refresh(now=True)
    assert cluster.slots == 8


def test_a_need_that_no_node_meets_is_refused_with_what_the_nodes_have():
    with pytest.raises(
        ConfigError,
        match=r"needs CPU 1, GPU 4, which no .*10\.0\.0\.1: CPU 8, GPU 2, memory 8\.0 GiB;",
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
    assert nodes.messages == [f"{short}at most {n} at once there from now on" for n in (2, 1)]


def test_tasks_that_wait_at_a_node_count_as_running_no_more_than_fit():
    cluster = Nodes(SMALL).cluster({"CPU": 1.0})
    for number in range(6):  # three of them wait there
        cluster.started(f"task {number}", "b", "refit")
    assert cluster.run_fewer("task 0", "b")
    assert cluster.slots == 2


@pytest.mark.parametrize(("most", "missing"), [(None, 4), (5, 2), (2, -1)])
def test_places_are_requested_for_what_is_left_once_all_places_are_taken(most, missing):
    demand = Requests()
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
    assert demand.asked[2:] == [
        (missing, False)
    ]  # the place that stays free would meet the request


_WORKER = {
    "resources": {"CPU": 1, "object_store_memory": 100_000_000},
    "node_config": {},
    "max_workers": 1,
}
#: Ray's own provider of nodes that are processes of the head's machine.
_CLUSTER = {
    "cluster_name": "few",
    "max_workers": 3,
    "upscaling_speed": 1.0,
    "idle_timeout_minutes": 0.05,
    "provider": {
        "type": "fake_multinode",
        "disable_node_updaters": True,
        "disable_launch_config_check": True,
    },
    "available_node_types": {
        "ray.head.default": {"resources": {"CPU": 1}, "node_config": {}, "max_workers": 0},
        "worker": _WORKER,
    },
    "head_node_type": "ray.head.default",
    "auth": {},
    "file_mounts": {},
    "file_mounts_sync_continuously": False,
    **{
        key: []
        for key in (
            "cluster_synced_files",
            "rsync_exclude",
            "rsync_filter",
            "initialization_commands",
        )
    },
    **{f"{which}setup_commands": [] for which in ("", "head_", "worker_")},
    **{f"{which}_start_ray_commands": [] for which in ("head", "worker")},
}


@pytest.mark.slow
def test_an_autoscaler_starts_the_node_that_trials_have_no_place_without(tmp_path):
    hold, log = tmp_path / "hold", tmp_path / "terminal.txt"
    write_study(tmp_path, hold)
    hold.touch()  # one or two trials end, and the next waits
    (tmp_path / "cluster.json").write_text(json.dumps(_CLUSTER), encoding="utf-8")
    environment = {
        "PYTHONPATH": bare_commands(tmp_path),
        "AUTOSCALER_UPDATE_INTERVAL_S": "1",
        "RAY_FAKE_CLUSTER": "1",
        "RAY_enable_autoscaler_v2": (
            "0"
        ),  # the second needs a file that Ray's wheel lacks for this provider
    }
    with Network(tmp_path) as network:
        head = network.add("head")
        options = (
            "--head",
            "--include-dashboard=false",
            f"--autoscaling-config={tmp_path}/cluster.json",
        )
        head.start_ray(*options, **environment)
        study = head.start(
            f"env -C {tmp_path} python -m raysel.tune study.yaml --output study --address"
            f" {head.address}:6379",
            log,
            **environment,
        )
        wait_for(log.read_text, lambda: "joined: 2 slots now" in log.read_text(encoding="utf-8"))
        hold.unlink()
        assert study.wait(240) == 0, log.read_text(encoding="utf-8")

        def status() -> str:
            return head.run("ray status", **environment).stdout

        wait_for("a request is left", lambda: "no resource demands" in status(), every=1)
    run_alone(tmp_path, tmp_path / "alone")
    assert ends(tmp_path / "study") == ["finished"]
    assert trials(tmp_path / "study") == trials(tmp_path / "alone")
    assert ranking(tmp_path / "study") == ranking(tmp_path / "alone")
