"""A study on two hosts that join late, are cut off, come back and are killed: an undisturbed study's numbers."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
import yaml
from hosts import REPOSITORY, Network
from small_studies import raw_config, run_offline, write_digits

pytestmark = pytest.mark.slow

#: A method whose fits take longer on the hosts, without use of their processors.
SLOW = """
import os, time
from sklearn.svm import LinearSVC
class Slow(LinearSVC):
    def fit(self, X, y):
        time.sleep(float(os.environ.get("SLOW", 0)))
        return super().fit(X, y)
"""
SPACE = [round(0.01 * 1.1**n, 6) for n in range(44)]
#: Ray notices within ten seconds that a node is gone, and not only within one and a half minutes.
QUICK = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "6",
}


def numbers(journal: Path) -> dict:
    """Records of trials and refits without times; each is there once."""
    found = {}
    for line in journal.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["kind"] in ("trial", "refit"):
            key = record["kind"], record.get("id") or record["fold"]
            assert key not in found
            found[key] = {k: v for k, v in record.items() if k not in ("started", "ended", "cpu_seconds")}
    return found


class Course:
    """A study that runs on the head host, and what a person sees of it."""

    def __init__(self, folder: Path) -> None:
        self.journal, self.log = folder / "study" / "journal.jsonl", folder / "terminal.txt"

    def n_ended(self) -> int:
        return self.journal.read_text(encoding="utf-8").count('"kind":"trial"') if self.journal.exists() else 0

    def wait(self, condition, seconds: float = 240) -> float:
        """Wait for a condition and return how long it took."""
        began = time.monotonic()
        while not condition():
            assert time.monotonic() < began + seconds, self.log.read_text(encoding="utf-8")
            time.sleep(0.1)
        return time.monotonic() - began

    def says(self, text: str, times: int = 1) -> bool:
        return self.log.read_text(encoding="utf-8").count(text) >= times


def test_hosts_that_come_go_and_die_change_no_number(tmp_path):
    write_digits(tmp_path / "few.npz")
    (tmp_path / "slow_code.py").write_text(SLOW, encoding="utf-8")
    raw = raw_config(
        tmp_path / "few.npz",
        solver={"name": "slow_code.Slow", "space": {"C": SPACE}},
        evaluation={"classifier": "native"},
        search={"executor": "ray"},
        tracking={"uri": f"sqlite:///{tmp_path}/mlflow.db"},
    )
    (tmp_path / "few.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        run_offline({**raw, "search": {"executor": "serial"}}, tmp_path / "undisturbed")
    # The last bits of a sum depend on the processor that OpenBLAS computes for.
    same = {name: os.environ[name] for name in ("OPENBLAS_CORETYPE",) if name in os.environ}
    environment = {"PYTHONPATH": f"{REPOSITORY}:{tmp_path}", "SLOW": "0.5", **QUICK, **same}
    options = "--num-cpus=1 --object-store-memory=100000000 --disable-usage-stats"
    course = Course(tmp_path)
    with Network(tmp_path) as network:
        head, worker = network.add("head"), network.add("worker")
        address = f"{head.address}:6379"
        start = f"ray start --node-ip-address={{}} {options}"
        head.run(f"{start.format(head.address)} --head --include-dashboard=false", timeout=240, **environment)

        def join():
            worker.run(f"{start.format(worker.address)} --address={address}", timeout=240, **environment)

        def run_some_there():
            course.wait(lambda: "StudyTrainable" in worker.run("ps ax", check=False).stdout, 60)
            n = course.n_ended()
            course.wait(lambda: course.n_ended() >= n + 2)

        command = f"python -m raysel.tune {tmp_path}/few.yaml --address {address} --output {tmp_path}/study"
        study = head.start(command, course.log, **environment)
        course.wait(lambda: course.n_ended() >= 1)
        join()
        course.wait(lambda: course.says(f"node {worker.address} joined: 2 slots now"), 10)
        run_some_there()

        worker.cut()
        course.wait(lambda: course.says(f"node {worker.address} left the cluster"))
        worker.reconnect()
        worker.kill()
        worker.restart()
        join()
        course.wait(lambda: course.says(f"node {worker.address} joined: 2 slots now", 2))
        run_some_there()

        worker.kill()
        assert study.wait(300) == 0, course.log.read_text(encoding="utf-8")
    assert numbers(course.journal) == numbers(tmp_path / "undisturbed" / "journal.jsonl")
    seen = course.log.read_text(encoding="utf-8")
    assert seen.count("left the cluster") in (1, 2)  # the last loss may come after the last task
    assert "left the cluster; its 1 running trial runs again: 1 slot now" in seen
    assert seen.count(" joined: ") == 2
    for noise in ("raylet", "Traceback", ".cc:", "ActorDied", "heartbeat"):
        assert noise not in seen
