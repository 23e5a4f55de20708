"""The files of conf/cluster/ are what Ray, Kubernetes and pip read, and no built-in studies."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import raysel
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
        assert "RAY_AUTH_MODE=token" in command.partition("ray start")[0]
        assert "0.0.0.0" not in command  # the dashboard runs programs for whoever reaches it
    assert all(config[key] == read("local.yaml")[key] for key in SETUP)


def test_the_job_of_kubernetes_has_the_fields_of_its_resource_definition():
    # No cluster is at hand: names and nesting as in KubeRay's ray.io_rayjobs.yaml, version v1.
    job = read("kuberay.yaml")
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    spec = job["spec"]
    assert spec.keys() <= {
        "entrypoint",
        "shutdownAfterJobFinishes",
        "backoffLimit",
        "rayClusterSpec",
    }
    cluster = spec["rayClusterSpec"]
    assert cluster.keys() == {"rayVersion", "authOptions", "headGroupSpec", "workerGroupSpecs"}
    assert cluster["authOptions"] == {"mode": "token"}
    (workers,) = cluster["workerGroupSpecs"]
    assert workers.keys() == {
        "groupName",
        "replicas",
        "minReplicas",
        "maxReplicas",
        "rayStartParams",
        "template",
    }
    for group in (cluster["headGroupSpec"], workers):
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        pod = group["template"]["spec"]
        volumes = {volume["name"] for volume in pod.get("volumes", ())}
        (container,) = pod["containers"]
        assert {mount["name"] for mount in container.get("volumeMounts", ())} == volumes
        assert (
            pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsUser"] == 1000
        )  # the image's user
        assert container["image"].endswith(f":{raysel.__version__}")
    assert "volumes" not in workers["template"]["spec"]  # a claim may be of one node only
    (head,) = cluster["headGroupSpec"]["template"]["spec"]["containers"]
    (uri,) = (
        variable["value"] for variable in head["env"] if variable["name"] == "MLFLOW_TRACKING_URI"
    )
    assert uri.startswith("http")  # a file of the pod would end with it
    assert "USER 1000" in (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    assert f"ray=={cluster['rayVersion']}\n" in (FOLDER / "constraints.txt").read_text(
        encoding="utf-8"
    )


def test_the_image_has_the_tag_of_this_version():
    tags = re.findall(r"raysel:(\S+)", (FOLDER / "Dockerfile").read_text(encoding="utf-8"))
    assert set(tags) == {raysel.__version__}


def test_the_constraints_pin_every_dependency_of_the_package():
    text = (FOLDER / "constraints.txt").read_text(encoding="utf-8")
    pinned = {
        name.lower().replace("_", "-")
        for name in re.findall(r"^([\w.-]+)==\S+$", text, re.MULTILINE)
    }
    project = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    assert {
        re.match(r"[\w.-]+", one)[0].lower().replace("_", "-") for one in project["dependencies"]
    } <= pinned


def test_the_script_of_slurm_is_sound():
    if shutil.which("shellcheck") is None:
        pytest.skip("needs shellcheck")
    script = FOLDER / "slurm.sh"
    checked = subprocess.run(["shellcheck", script], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
