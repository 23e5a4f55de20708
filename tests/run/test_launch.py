"""Where a study runs: this machine or a cluster, its slots, and addresses that cannot be used."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from small_studies import make_study, write_digits

from raysel.cli.plan import announce, describe
from raysel.core.errors import ConfigError
from raysel.run.course import OneStudy
from raysel.run.launch import check_resources, cluster_address, joined, slots, with_known_executor
from raysel.run.options import RunOptions


@pytest.fixture
def study(tmp_path):
    write_digits(tmp_path / "few.npz")
    return make_study(tmp_path / "few.npz", search={"cpus_per_trial": 2})


def with_search(study, **changes):
    search = study.config.search.model_copy(update=changes)
    return replace(study, config=study.config.model_copy(update={"search": search}))


def test_a_trial_runs_within_a_node(study):
    nodes = [{"CPU": 3.0}, {"CPU": 3.0, "memory": 1e9}, {"CPU": 1.0}]
    assert slots(study, nodes).n == 2  # not 7 // 2
    assert slots(with_search(study, max_concurrent=1), nodes).n == 1
    assert slots(with_search(study, executor="serial"), nodes).n == 1
    assert slots(study).where == "this machine"


def test_other_resources_limit_the_places_of_a_node(study):
    wanted = with_search(study, resources={"GPU": 1.0, "special": 2.0})
    nodes = [{"CPU": 8.0, "GPU": 3.0, "special": 4.0}, {"CPU": 8.0, "special": 4.0}]
    assert slots(wanted, nodes).n == 2


def test_the_plan_is_quoted_for_the_cluster(study, tmp_path):
    nodes = [{"CPU": 4.0}, {"CPU": 2.0}]
    said = " ".join(announce(study, tmp_path, None, nodes=nodes))
    assert "on the 3 slots of the cluster, which has 2 nodes now." in said
    assert " if nothing else runs there: " in said
    assert "from pilot fits on this machine" in " ".join(describe(OneStudy.of(study), None, nodes))


def test_auto_is_serial_where_all_fits_take_less_than_the_start_of_ray(
    study, tmp_path, monkeypatch
):
    auto, told = with_search(study, executor="auto"), []
    hears = SimpleNamespace(message=told.append)
    options = RunOptions(listeners=[hears])
    assert auto.executor == "ray"  # until the cost is known
    assert (
        with_known_executor(auto, RunOptions("10.0.0.1:6379", listeners=[hears])).executor == "ray"
    )
    assert with_known_executor(study, options) is study
    assert told == []
    monkeypatch.setattr("raysel.study.cost.RAY_SECONDS", 1e9)
    small = with_known_executor(auto, options)
    assert (small.executor, small.config.search.executor, slots(small).n) == ("serial", "auto", 1)
    assert re.search(r"auto is serial: all fits take about \d+ s, less than the", told.pop())
    assert " auto is serial: " in " ".join(describe(OneStudy.of(auto)))
    on_gpu = with_search(auto, resources={"GPU": 1.0})
    assert with_known_executor(on_gpu, options).executor == "ray"
    monkeypatch.setattr("raysel.study.cost.RAY_SECONDS", 0.0)
    assert " auto is ray: " in " ".join(announce(auto, tmp_path, None))


def test_a_job_uses_its_cluster_and_local_this_machine(study, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert cluster_address(study, None) is None  # as ever, outside a job
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    assert cluster_address(study, None) == "10.0.0.1:6379"
    assert cluster_address(study, "local") is None
    assert cluster_address(study, "10.0.0.2:6379") == "10.0.0.2:6379"
    assert cluster_address(with_search(study, executor="serial"), None) is None
    with joined([with_search(study, executor="serial")], RunOptions()) as nodes:
        assert nodes is None


def test_ray_client_is_refused_with_what_to_do(study):
    with pytest.raises(ConfigError, match=r"ray job submit --address http://10\.0\.0\.1:8265"):
        check_resources(study, "ray://10.0.0.1:10001")
