"""A study that the guide's lines start on two machines and go on with has the numbers of one, to
the last bit.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from cluster_studies import ends, go_on_alone, ranking, run_alone, trials, wait_for, write_study
from hosts import REPOSITORY, Host, Network

pytestmark = pytest.mark.slow

CLUSTER, SUBMIT = "conf/cluster/local.yaml", "experiments/submit.py"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A head and a worker with sshd, and the machine of a user; Ray is not running yet."""
    folder = tmp_path_factory.mktemp("cluster")
    with Network(folder / "network") as network:
        head, worker, user = network.add("head"), network.add("worker"), network.add("user")
        work = user.home / "work"
        work.mkdir()
        write_study(work, network.folder / "hold")
        (work / ".gitignore").write_text("left-out\n.venv\nraysel-studies/\n", encoding="utf-8")
        (work / "left-out").write_text("not for the cluster", encoding="utf-8")
        (work / ".venv").symlink_to(sys.prefix)
        for file in (CLUSTER, SUBMIT):
            (work / file).parent.mkdir(parents=True)
            shutil.copy(REPOSITORY / file, work / file)
        (work / CLUSTER).write_text(
            yaml.safe_dump(_filled_in(network, head, worker)), encoding="utf-8"
        )
        (user.home / ".ssh").mkdir(mode=0o700)
        known = (
            f"IdentityFile {network.key}\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
        )
        (user.home / ".ssh/config").write_text(known, encoding="utf-8")
        hold, log = network.folder / "hold", folder / "log"
        yield SimpleNamespace(
            head=head, worker=worker, user=user, work=work, network=network, hold=hold, log=log
        )


def _filled_in(network: Network, head: Host, worker: Host) -> dict[str, Any]:
    """conf/cluster/local.yaml for these hosts, which have raysel and no network to install it
    from.
    """
    config = yaml.safe_load((REPOSITORY / CLUSTER).read_text(encoding="utf-8"))
    config["provider"] |= {"head_ip": head.address, "worker_ips": [worker.address]}
    config["auth"] = {"ssh_user": "root", "ssh_private_key": str(network.key)}
    # bash reads ~/.bashrc once more for the workers of a job, whose PYTHONPATH names the code that
    # was shipped.
    path = "${PYTHONPATH:+$PYTHONPATH:}" + str(REPOSITORY)
    exported = (
        f"export PYTHONPATH={path} RAY_AUTH_MODE=token RAY_prestart_worker_first_driver=0"
        " RAY_worker_niceness=0"
    )
    assert "RAY_AUTH_MODE=token'" in config["setup_commands"][-1]
    config["setup_commands"] = [f"echo {shlex.quote(exported)} >> ~/.bashrc"]
    for commands in (config["head_start_ray_commands"], config["worker_start_ray_commands"]):
        commands[-1] += " --num-cpus=1 --object-store-memory=200000000 --include-log-monitor=false"
        assert commands[-1].startswith("RAY_AUTH_MODE=token ")
    # `ray down` stops Ray on the head; the others end once they have not reached it for a minute,
    # here a few seconds.
    config["worker_start_ray_commands"][-1] = (
        f"RAY_gcs_rpc_server_reconnect_timeout_s=5 {config['worker_start_ray_commands'][-1]}"
    )
    return config


@pytest.fixture(scope="module")
def alone(cluster: SimpleNamespace) -> Path:
    """The study in one process, outside the hosts."""
    folder = cluster.network.folder / "alone"
    run_alone(cluster.work, folder)
    return folder


def lines_of_the_guide(cluster: SimpleNamespace) -> dict[str, str]:
    """The commands for clusters by a word of each, as a user types them in the folder of the
    study.
    """
    text = (REPOSITORY / "experiments/guide/cluster.md").read_text(encoding="utf-8")
    block = text.partition("```sh cluster\n")[2].partition("```")[0]
    lines = [re.sub(r"\s+# .*", "", line).strip() for line in block.splitlines()]
    typed = [
        line.replace("CONFIG", "study").replace("HEAD", cluster.head.address) for line in lines
    ]
    words = (
        "get-auth-token",
        "export",
        "ray submit",
        "ssh -N",
        "job submit",
        "--address HEAD:6379",
        "sbatch",
    )
    assert all(word in line for word, line in zip(words, lines, strict=True))
    return dict(zip(words, typed, strict=True))


def test_the_lines_of_the_guide_start_a_study_and_go_on_with_it(cluster, alone):
    typed, folder, study = (
        lines_of_the_guide(cluster),
        cluster.work,
        cluster.head.home / "raysel-work" / "study",
    )
    # One trial at a time: each worker process imports for seconds.
    own = "--set tracking.mlflow=false --set search.max_concurrent=1"

    def in_work(command: str) -> str:
        return (
            f"cd {shlex.quote(str(folder))}; {typed['export']}; export"
            f" RAY_UP_enable_autoscaler_v2=1; {command}"
        )

    def end_after_some_trials(start: Callable[[], Any], stop: Callable[[Any], object]) -> None:
        """Start the study, let some more trials end, and end it."""
        n_before, n_ends = len(trials(study)), len(ends(study))
        started = start()
        wait_for(cluster.log.read_text, lambda: len(trials(study)) > n_before, 400)
        cluster.hold.write_text("wait", encoding="utf-8")
        stop(started)
        wait_for(cluster.log.read_text, lambda: len(ends(study)) > n_ends)
        assert ends(study) == ["interrupted"] * (n_ends + 1)
        cluster.hold.write_bytes(b"")

    def press_ctrl_c(started: subprocess.Popen[bytes]) -> None:
        started.stdin.write(b"\x03")
        started.stdin.flush()
        started.wait(120)

    cluster.hold.touch()
    cluster.user.run(in_work(typed["get-auth-token"]))
    submit = in_work(f"{typed['ray submit']} --output study {own}")
    terminal = f"script --quiet --command {shlex.quote(submit)} /dev/null"
    end_after_some_trials(
        lambda: cluster.user.start(terminal, cluster.log, stdin=subprocess.PIPE), press_ctrl_c
    )
    assert not cluster.head.run("pgrep -f submit.py", check=False).stdout
    # With its configuration, because the study's method is code of the user's own.
    resume = f"study.yaml {own} --resume study"
    command = f"ray submit CLUSTER.yaml experiments/submit.py -- {resume}"
    assert f"kept; resume with: {command}" in " ".join(cluster.log.read_text().split())
    assert not (study.parent / "left-out").exists()
    # The launcher has started Ray on the worker; the head and it are all that `ray status` lists.
    wait_for("the worker", lambda: cluster.worker.run("pgrep raylet", check=False).stdout)
    wait_for(
        "both", lambda: "/2.0 CPU" in cluster.head.run("RAY_AUTH_MODE=token ray status").stdout
    )
    hosts = (cluster.user, cluster.head, cluster.worker)
    told = {
        host.run("stat -c %a ~/.ray/auth_token && cat ~/.ray/auth_token").stdout for host in hosts
    }
    assert [text[:4] for text in told] == ["600\n"]  # the same on all
    # Ray then takes nobody without it.
    assert (
        "\0RAY_AUTH_MODE=token\0"
        in cluster.head.run("cat /proc/$(pgrep gcs_server)/environ").stdout
    )

    # The user's tunnel to the dashboard, which listens on the head's loopback only, stays open
    # beside the job.
    tunnel = cluster.user.start(typed["ssh -N"].removesuffix("&"), cluster.log)
    wait_for("the tunnel", lambda: "127.0.0.1:8265" in cluster.user.run("ss -ltn").stdout)
    submit = typed["job submit"].replace(" submit ", " submit --submission-id one --no-wait ")
    # A relative path of a job is below the home directory, because Ray removes its copy of the
    # working folder.
    one = in_work(f"{submit} {own} --resume raysel-work/study")
    jobs = ".venv/bin/ray job {} --address http://localhost:8265 one"
    end_after_some_trials(
        lambda: cluster.user.run(one, timeout=400),
        lambda _: cluster.user.run(in_work(jobs.format("stop"))),
    )
    log = cluster.user.run(in_work(jobs.format("logs"))).stdout
    assert f"raysel tune study.yaml {own} --resume " in log
    said = [
        line for line in log.splitlines(keepends=True) if "cli.py:" not in line
    ]  # ray colours its lines
    assert any("trials" in line for line in said)
    assert not {"\r", "\x1b"} & set("".join(said))
    assert len(said) < 60
    assert len(trials(study)) < len(trials(alone))
    tunnel.kill()
    tunnel.wait()

    go_on_alone(study.parent, study)
    assert ends(study) == ["interrupted"] * 2 + ["finished"]
    assert trials(study) == trials(alone)
    assert ranking(study) == ranking(alone)
    cluster.user.run(in_work(f"ray rsync-down {CLUSTER} '~/raysel-work/study/' results"))
    assert trials(folder / "results") == trials(alone)

    # `ray down` stops Ray on both hosts, and nothing outside.
    assert cluster.head.run("pgrep raylet").stdout
    outside = subprocess.Popen(["sleep", "600"])
    cluster.user.run(in_work(f"ray down -y {CLUSTER}"), timeout=300)
    for host in (cluster.head, cluster.worker):
        wait_for(
            "the raylet's end",
            lambda host=host: not host.run("pgrep raylet", check=False).stdout,
            90,
            every=1,
        )
    assert outside.poll() is None
    outside.kill()
    outside.wait()
