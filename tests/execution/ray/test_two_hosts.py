"""A study on a host that joins late and is cut off, and a head that is killed: an undisturbed
study's numbers.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from cluster_studies import bare_commands
from hosts import Host, Network
from small_studies import raw_config, resume_offline, run_offline, write_digits

from raysel.tracking import locks

pytestmark = pytest.mark.slow

#: A method whose fits wait while the gate of their host is closed, so that a trial surely runs
#: there.
GATED = """
import os, socket, time
from pathlib import Path
from sklearn.svm import LinearSVC
class Gated(LinearSVC):
    def fit(self, X, y):
        if gates := os.environ.get("GATES"):
            gate = Path(gates, socket.gethostname())
            while gate.exists():
                gate.with_suffix(".waits").touch()
                time.sleep(0.05)
        return super().fit(X, y)
"""
SPACE = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08]
#: Ray notices within ten seconds that a node is gone, and not only within one and a half minutes.
QUICK = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "6",
}


class Gates:
    """Folder in which a file named as a host keeps the fits there waiting."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def close(self, host: Host) -> None:
        (self.folder / f"{host.name}.waits").unlink(missing_ok=True)
        (self.folder / host.name).touch()

    def open(self, host: Host) -> None:
        (self.folder / host.name).unlink()

    def keep(self, host: Host) -> bool:
        """Whether a fit waits on a host whose gate is closed."""
        return (self.folder / f"{host.name}.waits").exists()


class Course:
    """A study that runs on the head host, and what a person sees of it."""

    def __init__(self, folder: Path) -> None:
        self.journal, self.log = folder / "study" / "journal.jsonl", folder / "terminal.txt"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def seen(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def n_ended(self) -> int:
        return self.journal.read_text(encoding="utf-8").count('"kind":"trial"')

    def wait(self, condition, seconds: float = 240) -> None:
        """Wait for a condition."""
        began = time.monotonic()
        while not condition():
            assert self.process is not None
            assert self.process.poll() is None, self.seen
            assert time.monotonic() < began + seconds, self.seen
            time.sleep(0.1)


def numbers(journal: Path) -> dict:
    """Records of trials and refits without times; each is there once."""
    actual = {}
    for line in journal.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["kind"] in ("trial", "refit"):
            key = record["kind"], record.get("id") or record["fold"]
            assert key not in actual
            actual[key] = {
                k: v for k, v in record.items() if k not in ("started", "ended", "cpu_seconds")
            }
    return actual


@pytest.mark.usefixtures("without_report")
def test_hosts_that_come_go_and_die_change_no_number(tmp_path, monkeypatch):
    write_digits(tmp_path / "few.npz")
    (tmp_path / "gated_code.py").write_text(GATED, encoding="utf-8")
    raw = raw_config(
        tmp_path / "few.npz",
        solver={"name": "gated_code.Gated", "space": {"C": SPACE}},
        evaluation={"classifier": "native"},
        search={"executor": "ray"},
    )
    (tmp_path / "few.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    gates, course = Gates(tmp_path / "gates"), Course(tmp_path)
    environment = {"PYTHONPATH": bare_commands(tmp_path), **QUICK}
    gated = {**environment, "GATES": str(gates.folder)}
    with Network(tmp_path) as network:
        head, worker = network.add("head"), network.add("worker")
        address = f"{head.address}:6379"
        head.start_ray("--head", "--include-dashboard=false", "--no-monitor", **gated)
        for host in network.hosts:
            gates.close(host)
        words = f"few.yaml --output study --address {address}"
        course.process = head.start(
            f"env -C {tmp_path} python -m raysel.tune {words}", course.log, **environment
        )
        course.wait(lambda: gates.keep(head))

        worker.start_ray(f"--address={address}", **gated)
        course.wait(lambda: gates.keep(worker))
        assert f"node {worker.address} joined: 2 slots now" in course.seen
        worker.cut()
        left = f"node {worker.address} left the cluster; its 1 running trial runs again: 1 slot now"
        course.wait(lambda: left in course.seen)
        worker.reconnect()

        gates.open(head)
        course.wait(lambda: course.n_ended() >= 3)
        gates.close(head)
        course.wait(lambda: gates.keep(head))
        head.kill()
        course.process.wait()
    assert 3 <= course.n_ended() < len(SPACE)
    lease = tmp_path / "study" / ".lease"
    os.utime(
        lease, (lease.stat().st_mtime - 2 * locks.LEASE_SECONDS,) * 2
    )  # of a host that is silent
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    resume_offline(raw, tmp_path / "study")
    run_offline(raw, tmp_path / "alone")
    assert numbers(course.journal) == numbers(tmp_path / "alone" / "journal.jsonl")
    assert course.seen.count(" left the cluster") == 1
    assert course.seen.count(" joined: ") == 1
    for noise in ("raylet", "Traceback", ".cc:", "ActorDied", "heartbeat"):
        assert noise not in course.seen
