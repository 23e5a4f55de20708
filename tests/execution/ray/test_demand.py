"""A study asks an autoscaler for the nodes that it has trials for, and for no others."""

from __future__ import annotations

import json

import pytest
from cluster_studies import alone_script, ends, ranking, trials, wait_for, write_study
from hosts import REPOSITORY, Network

pytestmark = pytest.mark.slow

_WORKER = {"resources": {"CPU": 1, "object_store_memory": 100_000_000}, "node_config": {}, "max_workers": 1}
#: Ray's own provider of nodes that are processes of the head's machine.
_CLUSTER = {
    "cluster_name": "few",
    "max_workers": 3,
    "upscaling_speed": 1.0,
    "idle_timeout_minutes": 0.05,
    "provider": {"type": "fake_multinode", "disable_node_updaters": True, "disable_launch_config_check": True},
    "available_node_types": {
        "ray.head.default": {"resources": {"CPU": 1}, "node_config": {}, "max_workers": 0},
        "worker": _WORKER,
    },
    "head_node_type": "ray.head.default",
    "auth": {},
    "file_mounts": {},
    "file_mounts_sync_continuously": False,
    **{key: [] for key in ("cluster_synced_files", "rsync_exclude", "rsync_filter", "initialization_commands")},
    **{f"{which}setup_commands": [] for which in ("", "head_", "worker_")},
    **{f"{which}_start_ray_commands": [] for which in ("head", "worker")},
}


def test_an_autoscaler_starts_the_node_that_trials_have_no_place_without(tmp_path):
    hold, log = tmp_path / "hold", tmp_path / "terminal.txt"
    write_study(tmp_path, hold)
    hold.touch()  # one or two trials end, and the next waits
    (tmp_path / "alone.py").write_text(alone_script(tmp_path / "alone"), encoding="utf-8")
    (tmp_path / "cluster.json").write_text(json.dumps(_CLUSTER), encoding="utf-8")
    environment = {
        "PYTHONPATH": f"{REPOSITORY}:{tmp_path}",
        "AUTOSCALER_UPDATE_INTERVAL_S": "1",
        "RAY_FAKE_CLUSTER": "1",
        "RAY_enable_autoscaler_v2": "0",  # the second needs a file that Ray's wheel lacks for this provider
    }
    with Network(tmp_path) as network:
        head = network.add("head")
        head.run(
            f"ray start --head --node-ip-address={head.address} --autoscaling-config={tmp_path}/cluster.json "
            "--num-cpus=1 --object-store-memory=100000000 --include-dashboard=false --disable-usage-stats",
            timeout=240,
            **environment,
        )
        study = head.start(
            f"env -C {tmp_path} python -m raysel.tune study.yaml --output study --address {head.address}:6379",
            log,
            **environment,
        )
        wait_for(log.read_text, lambda: "joined: 2 slots now" in log.read_text(encoding="utf-8"))
        hold.unlink()
        assert study.wait(240) == 0, log.read_text(encoding="utf-8")
        wait_for("a request is left", lambda: "no resource demands" in head.run("ray status", **environment).stdout)
        head.run(f"cd {tmp_path} && python alone.py", timeout=240, **environment)
    assert ends(tmp_path / "study") == ["finished"]
    assert trials(tmp_path / "study") == trials(tmp_path / "alone")
    assert ranking(tmp_path / "study") == ranking(tmp_path / "alone")
