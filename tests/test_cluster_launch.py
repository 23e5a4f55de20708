"""Studies that `ray submit` and `ray job submit` start on two machines give the numbers of one, to the last bit."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
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
#: A method of the user's own, in the folder of the study. Where the file is, 15 fits begin and the others wait: of the
#: trials that run, two at once and with 6 fits each, one or two end.
METHOD = """
import os, time
from contextlib import suppress
from raysel import SMR

class Held(SMR):
    def _updates(self, X, y, prepared):
        with suppress(FileNotFoundError):
            file = os.open("{hold}", os.O_WRONLY | os.O_APPEND)
            os.write(file, b"1")
            os.close(file)
            while os.stat("{hold}").st_size > 15:
                time.sleep(0.05)
        yield from super()._updates(X, y, prepared)
"""
SPACE = {"alpha": [0.01, 0.03, 0.1, 0.3], "rank": [1, 2]}
#: Computes the study in this process, without MLflow.
ALONE = """
import sys
from pathlib import Path
import yaml
sys.path.insert(0, "{tests}")
from small_studies import run_offline
run_offline(yaml.safe_load(Path("study.yaml").read_text()), Path("{folder}"))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A head and a worker with sshd, the machine of a user, and an MLflow server; Ray is not running yet."""
    folder = tmp_path_factory.mktemp("cluster")
    with Network(folder / "network") as network:
        head, worker, user = network.add("head"), network.add("worker"), network.add("user")
        work = user.home / "work"
        work.mkdir()
        write_digits(work / "few.npz")
        raw = raw_config(solver__name="held.Held", solver__params={"max_iter": 20}, solver__space=SPACE, search={})
        (work / "study.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
        (work / "held.py").write_text(METHOD.format(hold=network.folder / "hold"), encoding="utf-8")
        (work / ".gitignore").write_text("left-out\n", encoding="utf-8")
        (work / "left-out").write_text("not for the cluster", encoding="utf-8")
        (work / "local.yaml").write_text(yaml.safe_dump(_filled_in(network, head, worker)), encoding="utf-8")
        with _mlflow(folder, network.terminal) as uri:
            hold = network.folder / "hold"
            yield SimpleNamespace(
                head=head, worker=worker, user=user, work=work, uri=uri, network=network, hold=hold, log=folder / "log"
            )


def _filled_in(network: Network, head: Host, worker: Host) -> dict[str, Any]:
    """conf/cluster/local.yaml for these hosts, which have raysel and no network to install it from."""
    config = yaml.safe_load(CLUSTER.read_text(encoding="utf-8"))
    config["provider"] |= {"head_ip": head.address, "worker_ips": [worker.address]}
    config["auth"] = {"ssh_user": "root", "ssh_private_key": str(network.key)}
    # bash reads ~/.bashrc once more for the workers of a job, whose PYTHONPATH names the code that was shipped.
    path = "${PYTHONPATH:+$PYTHONPATH:}" + str(REPOSITORY)
    config["setup_commands"] = [f"echo {shlex.quote(f'export PYTHONPATH={path}')} >> ~/.bashrc"]
    for commands in (config["head_start_ray_commands"], config["worker_start_ray_commands"]):
        commands[-1] += " --num-cpus=1 --object-store-memory=200000000"
    # `ray down` stops Ray on the head; the others end once they have not reached it for a minute, here a few seconds.
    config["worker_start_ray_commands"][-1] = (
        f"RAY_gcs_rpc_server_reconnect_timeout_s=5 {config['worker_start_ray_commands'][-1]}"
    )
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
def alone(cluster: SimpleNamespace) -> Iterator[Callable[[], Path]]:
    """The study on the user's machine, in one process, with no more environment than a login has, once it has ended."""
    folder = cluster.user.home / "alone"
    script = ALONE.format(tests=Path(__file__).parent, folder=folder)
    log = cluster.work.parent / "alone.log"
    running = cluster.user.start(f"bash -c {shlex.quote(in_work(cluster, f'python -c {shlex.quote(script)}'))}", log)

    def ended() -> Path:
        assert running.wait(400) == 0, log.read_text()
        return folder

    yield ended
    running.kill()


def records(study: Path) -> list[dict[str, Any]]:
    """The study's journal."""
    return [json.loads(line) for line in (study / "journal.jsonl").read_text(encoding="utf-8").splitlines()]


def trials(study: Path) -> dict[str, dict[str, Any]]:
    """The journal's trials without their times."""
    found = [timeless(record) for record in records(study) if record["kind"] == "trial"]
    assert len({record["id"] for record in found}) == len(found)
    return {record["id"]: record for record in found}


def ranking(study: Path) -> bytes:
    """The study's ranking."""
    return (study / "ranking/ranking.csv").read_bytes()


def ends(study: Path) -> list[str]:
    """How the study's runs ended."""
    return [record["status"] for record in records(study) if record["kind"] == "end"]


def wait_for(what: str, true: Any, seconds: float = 240) -> Any:
    """Wait until something holds, and return it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds} s")


def in_work(cluster: SimpleNamespace, command: str) -> str:
    """The command as the user gives it, in the folder of the study."""
    return f"cd {shlex.quote(str(cluster.work))} && RAY_UP_enable_autoscaler_v2=1 {command}"


def test_ray_submit_starts_all_machines_and_runs_the_study(cluster, alone):
    up = f"ray submit local.yaml {SUBMIT} --start -- study.yaml --output submitted --set tracking.uri={cluster.uri}"
    started = cluster.user.start(f"bash -c {shlex.quote(in_work(cluster, up))}", cluster.log)
    assert started.wait(400) == 0, cluster.log.read_text()
    there = cluster.head.home / "raysel-work"
    assert trials(there / "submitted") == trials(alone())
    assert ends(there / "submitted") == ["finished"]
    assert ranking(there / "submitted") == ranking(alone())
    assert not (there / "left-out").exists()
    cluster.user.run(in_work(cluster, "ray rsync-down local.yaml '~/raysel-work/submitted/' results"))
    assert trials(cluster.work / "results") == trials(alone())
    # The launcher has started Ray on the worker; the head and it are all that `ray status` lists.
    wait_for("the worker", lambda: "0.0/2.0 CPU" in cluster.head.run("ray status").stdout)


def test_a_study_goes_on_from_job_to_terminal_to_job(cluster, alone):
    study = cluster.head.home / "raysel-work" / "twice"  # results of a job are below the home of the head's user
    # The user's tunnel to the dashboard, which listens on the head's loopback only.
    options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    cluster.user.run(f"ssh -i {cluster.network.key} {options} -f -N -L 8265:localhost:8265 root@{cluster.head.address}")
    job = f"ray job submit --address {JOBS} --working-dir . --submission-id"

    cluster.hold.touch()
    output = f"--output raysel-work/twice --set tracking.uri={cluster.uri}"
    cluster.user.run(in_work(cluster, f"{job} one --no-wait -- python -m raysel.tune study.yaml {output}"))
    wait_for("a trial", lambda: (study / "journal.jsonl").exists() and trials(study))
    cluster.user.run(f"ray job stop --address {JOBS} one")
    assert ends(study) == ["interrupted"]
    n_first = len(trials(study))
    log = cluster.user.run(f"ray job logs --address {JOBS} one").stdout
    assert f"resume with: python -m raysel.tune --resume {study}" in log

    cluster.hold.write_bytes(b"")
    # With its configuration, because the study's method is code of the user's own.
    again = f"study.yaml --set tracking.uri={cluster.uri} --resume"
    resume = in_work(cluster, f"ray submit local.yaml {SUBMIT} -- {again} twice")
    connection = cluster.user.start(f"bash -c {shlex.quote(resume)}", cluster.log)
    wait_for("another trial", lambda: len(trials(study)) > n_first)
    cluster.user.run("pkill -KILL -f submit.py")  # the user's end of the connection
    connection.wait()
    wait_for("the end", lambda: len(ends(study)) == 2)
    assert ends(study) == ["interrupted", "interrupted"]
    assert n_first < len(trials(study)) < len(trials(alone()))

    cluster.hold.unlink()
    ran = cluster.user.run(in_work(cluster, f"{job} two -- python -m raysel.tune {again} {study}"), timeout=400)
    assert ends(study)[2:] == ["finished"]
    assert trials(study) == trials(alone())
    assert ranking(study) == ranking(alone())
    own = [line for line in ran.stdout.splitlines(keepends=True) if "cli.py:" not in line]  # ray colours its lines
    assert any("trials" in line for line in own)
    assert not {"\r", "\x1b"} & set("".join(own))
    assert len(own) < 60
    submitted, resumed = runs(cluster.uri)
    assert submitted == resumed


def test_ray_down_stops_the_cluster_and_nothing_outside(cluster):
    outside = subprocess.Popen(["sleep", "600"])
    cluster.user.run(in_work(cluster, "ray down -y local.yaml"), timeout=300)
    for host in (cluster.head, cluster.worker):
        wait_for("the raylet's end", lambda host=host: not host.run("pgrep raylet", check=False).stdout, 90)
    assert outside.poll() is None
    outside.kill()
    outside.wait()


def runs(uri: str) -> list[Counter[str]]:
    """The names of the runs that the server holds, of each study."""
    from mlflow import MlflowClient  # noqa: PLC0415 - takes seconds

    client = MlflowClient(uri)
    found = client.search_runs([one.experiment_id for one in client.search_experiments()], max_results=1000)
    tops = [run.info.run_id for run in found if "mlflow.parentRunId" not in run.data.tags]
    return [
        Counter(run.info.run_name for run in found if run.data.tags.get("mlflow.parentRunId") == top) for top in tops
    ]
