"""Studies that `ray submit` and `ray job submit` start on two machines give the numbers of one, to the last bit."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hosts import REPOSITORY, Host, Network
from small_studies import raw_config, timeless, write_digits

pytestmark = pytest.mark.slow

CLUSTER = REPOSITORY / "conf" / "cluster" / "local.yaml"
SUBMIT = REPOSITORY / "experiments" / "submit.py"
JOBS = "http://127.0.0.1:8265"
#: Trials long enough for a stop in their midst, short enough to wait for.
STUDY: dict[str, Any] = {
    "solver__params": {"max_iter": 2000, "tol": 0.0},
    "solver__space": {"alpha": [0.01, 0.03, 0.1, 0.3], "rank": [1, 2]},
    "search": {},
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A head and a worker with sshd, the machine of a user, and an MLflow server; Ray is not running yet."""
    folder = tmp_path_factory.mktemp("cluster")
    with Network(folder / "network") as network:
        head, worker, user = network.add("head"), network.add("worker"), network.add("user")
        work = user.home / "work"
        work.mkdir()
        write_digits(work / "few.npz")
        (work / "study.yaml").write_text(yaml.safe_dump(raw_config(**STUDY)), encoding="utf-8")
        (work / ".gitignore").write_text("left-out\n", encoding="utf-8")
        (work / "left-out").write_text("not for the cluster", encoding="utf-8")
        (work / "local.yaml").write_text(yaml.safe_dump(_filled_in(network, head, worker)), encoding="utf-8")
        with _mlflow(folder, network.terminal) as uri:
            yield SimpleNamespace(head=head, worker=worker, user=user, work=work, uri=uri, network=network)


def _filled_in(network: Network, head: Host, worker: Host) -> dict[str, Any]:
    """conf/cluster/local.yaml for these hosts, which have raysel and no network to install it from."""
    config = yaml.safe_load(CLUSTER.read_text(encoding="utf-8"))
    config["provider"] |= {"head_ip": head.address, "worker_ips": [worker.address]}
    config["auth"] = {"ssh_user": "root", "ssh_private_key": str(network.key)}
    config["setup_commands"] = [f"echo export PYTHONPATH={shlex.quote(str(REPOSITORY))} >> ~/.bashrc"]
    for commands in (config["head_start_ray_commands"], config["worker_start_ray_commands"]):
        commands[-1] += " --num-cpus=1 --object-store-memory=200000000"
    return config


class _mlflow:  # noqa: N801 - a context
    """An MLflow server at the address of the tests' process in the network."""

    def __init__(self, folder: Path, address: str) -> None:
        with socket.socket() as free:
            free.bind((address, 0))
            port = free.getsockname()[1]
        self.uri = f"http://{address}:{port}"
        store = f"sqlite:///{folder}/mlflow.db"
        command = ["-m", "mlflow", "server", "--host", address, "--port", str(port), "--backend-store-uri", store]
        command += ["--artifacts-destination", str(folder / "artifacts"), "--workers", "1"]
        command += ["--allowed-hosts", f"{address},{address}:{port}"]
        with (folder / "mlflow.log").open("wb") as log:
            environment = os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true"}
            self._server = subprocess.Popen([sys.executable, *command], stdout=log, stderr=log, env=environment)

    def __enter__(self) -> str:
        return self.uri

    def __exit__(self, *_: object) -> None:
        self._server.terminate()
        self._server.wait()


@pytest.fixture(scope="module")
def alone(cluster: SimpleNamespace) -> Path:
    """The study on the user's machine, in one process, with no more environment than a login has."""
    serial = "--set search.executor=serial --set tracking.uri=sqlite:////tmp/alone.db"
    command = f"python -m raysel.tune study.yaml --output ~/alone {serial}"
    cluster.user.run(in_work(cluster, command), timeout=400)
    return cluster.user.home / "alone"


def records(study: Path) -> list[dict[str, Any]]:
    """The study's journal."""
    return [json.loads(line) for line in (study / "journal.jsonl").read_text(encoding="utf-8").splitlines()]


def trials(study: Path) -> dict[str, dict[str, Any]]:
    """The journal's trials without their times."""
    found = [timeless(record) for record in records(study) if record["kind"] == "trial"]
    assert len({record["id"] for record in found}) == len(found)
    return {record["id"]: record for record in found}


def ends(study: Path) -> list[str]:
    """How the study's runs ended."""
    return [record["status"] for record in records(study) if record["kind"] == "end"]


def wait_for(what: str, true: Any, seconds: float = 240) -> Any:
    """Wait until something holds, and return it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {seconds} s")


def has_trial(study: Path) -> bool:
    """Whether the first trial of a study has ended."""
    return (study / "journal.jsonl").exists() and any(record["kind"] == "trial" for record in records(study))


def in_work(cluster: SimpleNamespace, command: str) -> str:
    """The command as the user gives it, in the folder of the study."""
    return f"cd {shlex.quote(str(cluster.work))} && RAY_UP_enable_autoscaler_v2=1 {command}"


def test_ray_submit_starts_all_machines_and_runs_the_study(cluster, alone):
    up = f"ray submit local.yaml {SUBMIT} --start -- study.yaml --output submitted --set tracking.uri={cluster.uri}"
    wait_for("MLflow", lambda: _answers(cluster.uri))
    started = cluster.user.start(f"bash -c {shlex.quote(in_work(cluster, up))}", cluster.work / "submit.log")
    assert started.wait(400) == 0, (cluster.work / "submit.log").read_text()
    there = cluster.head.home / "raysel-work"
    assert trials(there / "submitted") == trials(alone)
    assert ends(there / "submitted") == ["finished"]
    assert (there / "submitted/ranking/ranking.csv").read_bytes() == (alone / "ranking/ranking.csv").read_bytes()
    assert not (there / "left-out").exists()
    # The launcher has started Ray on the worker; the head and it are all that `ray status` lists.
    status = lambda: cluster.head.run("ray status").stdout  # noqa: E731
    wait_for("the worker", lambda: "0.0/2.0 CPU" in status(), 120)
    cluster.user.run(in_work(cluster, "ray rsync-down local.yaml '~/raysel-work/submitted/' results"))
    assert trials(cluster.work / "results") == trials(alone)


def test_a_job_keeps_its_results_and_prints_plain_lines(cluster, alone):
    job = f"ray job submit --address {JOBS} --working-dir . -- python -m raysel.tune study.yaml"
    output = f"--output job --set tracking.uri={cluster.uri}"
    # The user's tunnel to the dashboard, which listens on the head's loopback only.
    options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    cluster.user.run(f"ssh -i {cluster.network.key} {options} -f -N -L 8265:localhost:8265 root@{cluster.head.address}")
    ran = cluster.user.run(in_work(cluster, f"{job} {output}"), timeout=400)
    assert trials(cluster.head.home / "job") == trials(alone)
    assert (cluster.head.home / "job/ranking/ranking.csv").read_bytes() == (alone / "ranking/ranking.csv").read_bytes()
    own = ran.stdout.partition("Running entrypoint")[2].partition("\n-----")[0]  # ray colours its own lines
    assert "trials" in own
    assert "\r" not in own
    assert "\x1b" not in own
    assert len(own.splitlines()) < 150
    assert _runs(cluster.uri) >= 2 * len(trials(alone))


def test_a_stopped_job_and_a_lost_connection_leave_studies_that_resume_each_other_s_way(cluster, alone):
    study = cluster.head.home / "raysel-work" / "twice"
    job = f"ray job submit --address {JOBS} --working-dir . --submission-id one --no-wait -- python -m raysel.tune"
    cluster.user.run(in_work(cluster, f"{job} study.yaml --output {study}"))
    wait_for("a trial", lambda: has_trial(study))
    cluster.user.run(f"ray job stop --address {JOBS} one")
    assert ends(study) == ["interrupted"]
    log = cluster.user.run(f"ray job logs --address {JOBS} one").stdout
    assert f"resume with: python -m raysel.tune --resume {study}" in log
    before = len(trials(study))
    assert 0 < before < len(trials(alone))

    resume = in_work(cluster, f"ray submit local.yaml {SUBMIT} -- --resume twice")
    cluster.user.start(f"bash -c {shlex.quote(resume)}", cluster.work / "resume.log")
    wait_for("another trial", lambda: len(trials(study)) > before)
    cluster.user.run("pkill -KILL -f submit.py")  # the user's end of the connection
    wait_for("the end", lambda: len(ends(study)) == 2)
    assert ends(study) == ["interrupted", "interrupted"]

    cluster.head.run(f"cd ~/raysel-work && python -m raysel.tune --address auto --resume {study}", timeout=400)
    assert trials(study) == trials(alone)
    assert (study / "ranking/ranking.csv").read_bytes() == (alone / "ranking/ranking.csv").read_bytes()


def test_ray_down_stops_the_cluster_and_nothing_outside(cluster):
    outside = subprocess.Popen(["sleep", "600"])
    cluster.user.run(in_work(cluster, "ray down -y local.yaml"), timeout=300)
    assert cluster.head.run("pgrep raylet", check=False).stdout == ""
    assert outside.poll() is None
    outside.kill()


def _answers(uri: str) -> bool:
    try:
        with urllib.request.urlopen(f"{uri}/health", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def _runs(uri: str) -> int:
    """The number of runs that the server holds."""
    from mlflow import MlflowClient  # noqa: PLC0415 - takes seconds

    client = MlflowClient(uri)
    return sum(len(client.search_runs([one.experiment_id], max_results=1000)) for one in client.search_experiments())
