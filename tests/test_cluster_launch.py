"""Studies that `ray submit` and `ray job submit` start on two machines give the numbers of one, to the last bit.

First the lines of the guide's page are typed, on a machine that nothing but a study on it has run on.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from cluster_studies import alone_script, ends, ranking, trials, wait_for, write_study
from hosts import REPOSITORY, Host, Network

pytestmark = pytest.mark.slow

CLUSTER = REPOSITORY / "conf" / "cluster" / "local.yaml"
SUBMIT = REPOSITORY / "experiments" / "submit.py"
JOBS = "http://127.0.0.1:8265"
#: Two outer folds and the final one, each of which has a run in MLflow.
N_FOLDS = 3


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A head and a worker with sshd, the machine of a user, and an MLflow server; Ray is not running yet."""
    folder = tmp_path_factory.mktemp("cluster")
    with Network(folder / "network") as network:
        head, worker, user = network.add("head"), network.add("worker"), network.add("user")
        work = user.home / "work"
        work.mkdir()
        write_study(work, network.folder / "hold")
        (work / ".gitignore").write_text("left-out\n.venv\nraysel-studies/\n", encoding="utf-8")
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
    exported = f"export PYTHONPATH={path} RAY_AUTH_MODE=token"
    assert "RAY_AUTH_MODE=token'" in config["setup_commands"][-1]
    config["setup_commands"] = [f"echo {shlex.quote(exported)} >> ~/.bashrc"]
    for commands in (config["head_start_ray_commands"], config["worker_start_ray_commands"]):
        commands[-1] += " --num-cpus=1 --object-store-memory=200000000"
        assert commands[-1].startswith("RAY_AUTH_MODE=token ")
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
            # As in mlflow-compose.yaml: without the dozen processes of jobs for language models.
            environment = os.environ | {
                "MLFLOW_DISABLE_TELEMETRY": "true",
                "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            }
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
    script = alone_script(folder)
    log = cluster.work.parent / "alone.log"
    running = cluster.user.start(f"bash -c {shlex.quote(in_work(cluster, f'python -c {shlex.quote(script)}'))}", log)

    def ended() -> Path:
        assert running.wait(400) == 0, log.read_text()
        return folder

    yield ended
    running.kill()


def in_work(cluster: SimpleNamespace, command: str) -> str:
    """The command as the user gives it, in the folder of the study."""
    return f"cd {shlex.quote(str(cluster.work))} && RAY_AUTH_MODE=token RAY_UP_enable_autoscaler_v2=1 {command}"


def lines_of_the_guide() -> list[str]:
    """The commands for clusters, without their comments."""
    text = (REPOSITORY / "experiments/guide/cluster.md").read_text(encoding="utf-8")
    block = text.partition("```sh cluster\n")[2].partition("```")[0]
    return [re.sub(r"\s+# .*", "", line).strip() for line in block.splitlines()]


def test_the_lines_of_the_guide_work_as_typed_in_their_order(cluster):
    work, lines = cluster.work, lines_of_the_guide()
    for name in ("conf/cluster/local.yaml", "experiments/submit.py"):
        (work / name).parent.mkdir(parents=True)
        shutil.copy(work / "local.yaml" if name.endswith(".yaml") else SUBMIT, work / name)
    (cluster.user.home / ".ssh").mkdir(mode=0o700)
    known = f"IdentityFile {cluster.network.key}\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
    (cluster.user.home / ".ssh/config").write_text(known, encoding="utf-8")
    typed = "\n".join(lines).replace("CONFIG", "study").replace("HEAD", cluster.head.address).splitlines()
    (on_a_node,) = (line for line in typed if "--address" in line and ":6379" in line)
    # A human takes longer from the tunnel to the job; that the tunnel ends lets the script end.
    own = [f"{line}\nsleep 5" if line.endswith("&") else line for line in typed[: typed.index(on_a_node)]]
    script = ["set -e", "trap 'kill $(jobs -p)' EXIT", f"cd {work}", ".venv/bin/python -m raysel.tune study.yaml", *own]
    (work / ".venv").symlink_to(sys.prefix)
    said = cluster.user.run("\n".join(script), timeout=550).stdout
    assert said.count("raysel-studies/few-") >= 3
    (cluster.head.home / "raysel-work/.venv").symlink_to(sys.prefix)
    login = "source ~/.bashrc; cd raysel-work;"  # nsenter is no login
    cluster.head.run(f"{login} {on_a_node}", timeout=300)

    here, there = ([path.parent for path in host.home.rglob("journal.jsonl")] for host in (cluster.user, cluster.head))
    assert (len(here), len(there)) == (1, 3)
    assert all(ends(study) == ["finished"] and trials(study) == trials(here[0]) for study in there)
    tokens = [cluster.user, cluster.head, cluster.worker]
    told = {host.run("stat -c %a ~/.ray/auth_token && cat ~/.ray/auth_token").stdout for host in tokens}
    assert [text[:4] for text in told] == ["600\n"]  # the same on all
    without = f"{on_a_node.replace('--address', '--output none --address')}"
    refused = cluster.head.run(f"{login} RAY_AUTH_MODE=disabled {without}", check=False)
    assert refused.returncode != 0
    assert "asks for a token" in refused.stdout + refused.stderr


def test_a_study_goes_on_from_terminal_to_job_to_terminal_to_job(cluster, alone):
    study = cluster.head.home / "raysel-work" / "study"
    cluster.user.run("umask 077 && ray get-auth-token --generate")
    again = f"study.yaml --set tracking.uri={cluster.uri} --resume"

    def end_after_some_trials(start: Callable[[], Any], stop: Callable[[Any], object]) -> None:
        """Start the study, let some more trials end, and end it."""
        n_before, n_ends = len(trials(study)), len(ends(study))
        started = start()
        wait_for(cluster.log.read_text, lambda: len(trials(study)) > n_before, 400)
        stop(started)
        wait_for(cluster.log.read_text, lambda: len(ends(study)) > n_ends)
        assert ends(study) == ["interrupted"] * (n_ends + 1)
        cluster.hold.write_bytes(b"")

    cluster.hold.touch()
    up = f"ray submit local.yaml {SUBMIT} --start -- study.yaml --output study --set tracking.uri={cluster.uri}"
    terminal = f"script --quiet --command {shlex.quote(in_work(cluster, up))} /dev/null"

    def press_ctrl_c(started: subprocess.Popen[bytes]) -> None:
        started.stdin.write(b"\x03")
        started.stdin.flush()
        started.wait(120)

    end_after_some_trials(lambda: cluster.user.start(terminal, cluster.log, stdin=subprocess.PIPE), press_ctrl_c)
    assert not cluster.head.run("pgrep -f 'submit.py|raysel.tracking'", check=False).stdout
    # With its configuration, because the study's method is code of the user's own.
    command = f"ray submit CLUSTER.yaml experiments/submit.py -- {again} study"
    assert f"kept; resume with: {command}" in " ".join(cluster.log.read_text().split())
    assert not (study.parent / "left-out").exists()
    # The launcher has started Ray on the worker; the head and it are all that `ray status` lists.
    wait_for("the worker", lambda: "/2.0 CPU" in cluster.head.run("RAY_AUTH_MODE=token ray status").stdout)

    # The user's tunnel to the dashboard, which listens on the head's loopback only.
    options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    cluster.user.run(f"ssh -i {cluster.network.key} {options} -f -N -L 8265:localhost:8265 root@{cluster.head.address}")
    job = f"ray job submit --address {JOBS} --working-dir . --submission-id"
    # A relative path of a job is below the home directory, because Ray removes its copy of the working folder.
    one = in_work(cluster, f"{job} one --no-wait -- python -m raysel.tune {again} raysel-work/study")
    end_after_some_trials(
        lambda: cluster.user.run(one, timeout=400),
        lambda _: cluster.user.run(f"RAY_AUTH_MODE=token ray job stop --address {JOBS} one"),
    )
    log = cluster.user.run(f"RAY_AUTH_MODE=token ray job logs --address {JOBS} one").stdout
    assert f"resume with: python -m raysel.tune {again} " in log

    resume = in_work(cluster, command.replace("CLUSTER", "local").replace("experiments/submit.py", str(SUBMIT)))

    def lose_the_connection(started: subprocess.Popen[bytes]) -> None:
        cluster.user.run("pkill -KILL -f submit.py")  # the user's end of it
        started.wait()

    end_after_some_trials(
        lambda: cluster.user.start(f"bash -c {shlex.quote(resume)}", cluster.log), lose_the_connection
    )
    assert len(trials(study)) < len(trials(alone()))

    cluster.hold.unlink()
    ran = cluster.user.run(in_work(cluster, f"{job} two -- python -m raysel.tune {again} {study}"), timeout=400)
    assert ends(study) == ["interrupted"] * 3 + ["finished"]
    assert trials(study) == trials(alone())
    assert ranking(study) == ranking(alone())
    own = [line for line in ran.stdout.splitlines(keepends=True) if "cli.py:" not in line]  # ray colours its lines
    assert any("trials" in line for line in own)
    assert not {"\r", "\x1b"} & set("".join(own))
    assert len(own) < 60
    cluster.user.run(in_work(cluster, "ray rsync-down local.yaml '~/raysel-work/study/' results"))
    assert trials(cluster.work / "results") == trials(alone())
    (found,) = runs(cluster.uri)
    assert set(found.values()) == {1}
    assert len(found) >= len(trials(study)) + N_FOLDS

    # `ray down` stops Ray on both hosts, and nothing outside.
    assert cluster.head.run("pgrep raylet").stdout
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
