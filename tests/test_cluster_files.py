"""The files of conf/cluster/ are what Ray, Kubernetes and pip read, and no built-in studies."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from raysel.config import builtin_configs

FOLDER = Path(__file__).parents[1] / "conf" / "cluster"
SETUP = ("file_mounts", "rsync_filter", "rsync_exclude")


def read(name: str) -> dict:
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


def test_they_are_no_studies():
    assert FOLDER.is_dir()
    assert {path.stem for path in FOLDER.glob("*")}.isdisjoint(builtin_configs())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["local.yaml", "aws.yaml", "gcp.yaml"])
def test_ray_accepts_the_cluster(name):
    from ray.autoscaler._private.util import prepare_config, validate_config  # noqa: PLC0415 - takes seconds

    config = prepare_config(read(name))
    validate_config(config)
    for command in (config["head_start_ray_commands"][-1], config["worker_start_ray_commands"][-1]):
        assert "ray start" in command
        assert "0.0.0.0" not in command  # the dashboard runs programs for whoever reaches it
    assert all(config[key] == read("local.yaml")[key] for key in SETUP)


def test_the_job_of_kubernetes_has_the_fields_of_its_resource_definition():
    # No cluster is at hand: names and nesting as in KubeRay's ray.io_rayjobs.yaml, version v1.
    job = read("kuberay.yaml")
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    spec = job["spec"]
    assert spec.keys() <= {"entrypoint", "shutdownAfterJobFinishes", "backoffLimit", "rayClusterSpec"}
    cluster = spec["rayClusterSpec"]
    assert cluster.keys() == {"rayVersion", "headGroupSpec", "workerGroupSpecs"}
    (workers,) = cluster["workerGroupSpecs"]
    assert workers.keys() == {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}
    for group in (cluster["headGroupSpec"], workers):
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        pod = group["template"]["spec"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for one in pod["containers"] for mount in one["volumeMounts"]} <= volumes
    assert f"ray=={cluster['rayVersion']}\n" in (FOLDER / "constraints.txt").read_text(encoding="utf-8")


def test_the_constraints_pin_every_dependency_of_the_package():
    text = (FOLDER / "constraints.txt").read_text(encoding="utf-8")
    pinned = {name.lower().replace("_", "-") for name in re.findall(r"^([\w.-]+)==\S+$", text, re.MULTILINE)}
    project = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {re.match(r"[\w.-]+", one)[0].lower().replace("_", "-") for one in project["dependencies"]} <= pinned


def test_the_script_of_slurm_is_sound():
    if shutil.which("shellcheck") is None:
        pytest.skip("needs shellcheck")
    script = FOLDER / "slurm.sh"
    checked = subprocess.run(["shellcheck", script], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
