"""A cluster of two hosts: code and threads reach nodes that lack them, other versions and tokens are refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import scipy
from hosts import REPOSITORY, Network
from small_studies import make_study, raw_config, run_serially, write_digits

from raysel.tracking.journal import read_journal

pytestmark = pytest.mark.slow

METHODS = """
import helpers
from sklearn.svm import LinearSVC

class Mine(LinearSVC):
    def fit(self, X, y):
        helpers.note()
        return super().fit(X, y)

class Held(Mine):
    def fit(self, X, y):
        helpers.wait()
        return super().fit(X, y)
"""
HELPERS = """
import os, sys, time
def wait():
    if "worker" in sys.argv[0]:  # not in the driver, which tries a fit before
        time.sleep(600)
def note():
    import raysel
    with open("/tmp/ran", "a") as file:
        threads = os.environ.get("OPENBLAS_NUM_THREADS")
        file.write(f"{raysel.__file__} {__file__} {threads} {os.environ.get('MKL_CBWR')}\\n")
"""
#: Runs studies in one session of Ray, without MLflow; prints the error of one that cannot run.
DRIVER = """
import json, sys
from pathlib import Path
from raysel.config import config_from_dict
from raysel.core.errors import RayselError
from raysel.run.launch import joined, slots
from raysel.run.launch import make_executor
from raysel.study.definition import Study
from raysel.testing.checks import run_by
address, mixed, folder = sys.argv[1], sys.argv[2] == "mixed", Path(sys.argv[3])
studies = [Study.prepare(config_from_dict(raw)) for raw in json.loads(Path(sys.argv[4]).read_text())]
try:
    with joined(studies, address, allow_mixed_versions=mixed) as nodes:
        print(slots(studies[0], nodes))
        for study in studies:
            run_by(make_executor(study, address, allow_mixed_versions=mixed), study, folder / study.config.name)
except RayselError as error:
    print(type(error).__name__, error)
"""
MINE = {"name": "mine.methods.Mine", "space": {"C": [0.001, 0.01, 0.1, 1.0]}}
HELD = {**MINE, "name": "mine.methods.Held"}
PLUGGED = {"name": "class_spread", "space": {"floor": [0.1, 1.0]}}


class Cluster:
    """Head and worker, with a token; the worker's own raysel cannot be imported."""

    def __init__(self, network: Network, folder: Path, site: Path) -> None:
        self.network, self.folder = network, folder
        self.head, self.worker = network.add("head"), network.add("worker")
        self.address = f"{self.head.address}:6379"
        self.work, self.broken = folder / "work", folder / "broken"
        for name, text in {
            "work/mine/__init__.py": "",
            "work/mine/methods.py": METHODS,
            "work/helpers.py": HELPERS,
            "work/driver.py": DRIVER,
            "broken/raysel/__init__.py": "raise ImportError('an old raysel')",
            "other/sitecustomize.py": "import scipy; scipy.__version__ = '1.0.0'",
        }.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        write_digits(self.work / "few.npz")
        self.hide = f"mount -t tmpfs tmpfs {self.work} && mount -t tmpfs tmpfs {site}"
        self.driver_path = f"{REPOSITORY}:{site}"
        for host in (self.head, self.worker):
            host.run("mkdir -p -m 700 ~/.ray && umask 077 && printf %064d 7 > ~/.ray/auth_token")
        self.start(self.head, f"--head --node-ip-address={self.head.address} --include-dashboard=false", self.broken)
        self.start(self.worker, f"--address={self.address} --node-ip-address={self.worker.address}", self.broken, True)

    def start(self, host, arguments, path, hide=False):
        """Start Ray on a host whose Python finds modules in a path first; it may lack the driver's files."""
        if hide:
            host.run(self.hide)
        options = "--num-cpus=1 --object-store-memory=200000000 --disable-usage-stats"
        variables = {"PYTHONPATH": str(path), "RAY_AUTH_MODE": "token", "MKL_CBWR": "AVX"}
        # A busy machine needs longer than the half minute that Ray waits for itself.
        host.run(f"ray start {arguments} {options}", timeout=300, RAY_raylet_start_wait_time_s="240", **variables)

    def study(self, name, solver, **search):
        return raw_config(self.work / "few.npz", name=name, solver=solver, search=search)

    def drive(self, *studies, mixed="same", **environment):
        """Start a driver on the head; return its process and the file of its output."""
        with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".json", mode="w", delete=False) as file:
            json.dump(studies, file)
        log = Path(file.name).with_suffix(".log")
        command = f"{sys.executable} -u driver.py {self.address} {mixed} {self.folder}/found {file.name}"
        environment = {"RAY_AUTH_MODE": "token", "PYTHONPATH": self.driver_path, **environment}
        return self.head.start(f"env --chdir={self.work} {command}", log, **environment), log

    def journal(self, name):
        return list(read_journal(self.folder / "found" / name / "journal.jsonl"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster whose worker lacks a package that pip has installed for the driver, on the head."""
    source = Path(__file__).parent.parent.parent / "base/sample_package"
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    with Network(tmp_path_factory.mktemp("cluster")) as network:
        site = network.folder / "site"
        site.mkdir()
        pip = subprocess.Popen([sys.executable, "-m", "pip", "install", *options, "--target", str(site), str(source)])
        built = Cluster(network, network.folder, site)
        assert pip.wait() == 0
        yield built


@pytest.fixture(scope="module")
def driver(cluster):
    """A driver whose last study waits."""
    studies = [cluster.study("own", MINE), cluster.study("plugged", PLUGGED)]
    late = cluster.study("late", HELD, max_concurrent=6)  # trials wait for another node
    # The reference is computed in this process, whose processor the variable may name.
    kernels = {name: os.environ[name] for name in ("OPENBLAS_CORETYPE",) if name in os.environ}
    return cluster.drive(*studies, late, OPENBLAS_NUM_THREADS="1", MKL_CBWR="COMPATIBLE", **kernels)


def by_id(records):
    return {r["id"]: r["folds"] for r in records if r["kind"] == "trial"}


def without_times(folds):
    return {name: {k: v for k, v in fold.items() if "seconds" not in k} for name, fold in folds.items()}


def wait_for(file, driver):
    process, log = driver
    while not file.exists():
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)


def ended(driver):
    """The output of a driver, once it has ended."""
    process, log = driver
    process.wait(500)
    return log.read_text()


def test_code_plugins_and_threads_reach_nodes_that_lack_them(cluster, driver, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(cluster.work)
    monkeypatch.syspath_prepend(cluster.folder / "site")
    expected = {}
    for name, solver in (("own", MINE), ("plugged", PLUGGED)):
        study = make_study(cluster.work / "few.npz", name=name, solver=solver)
        expected[name], _, _ = run_serially(study, tmp_path / name)
    wait_for(cluster.folder / "found/late/journal.jsonl", driver)
    for name, here in expected.items():
        there = by_id(cluster.journal(name))
        assert there.keys() == here.keys()
        for id_, record in here.items():
            assert without_times(there[id_]) == without_times(json.loads(json.dumps(record["folds"])))
    assert "Slots(n=2, where='the cluster, which has 2 nodes now')" in driver[1].read_text()
    ran = cluster.worker.run("sort -u /tmp/ran").stdout.split()
    assert "py_modules_files" in ran[0]
    assert "py_modules_files" in ran[1]
    assert ran[2:] == ["1", "COMPATIBLE"]
    for name in ("mine.methods", "mine", "helpers", "raysel_sample"):
        sys.modules.pop(name, None)


def test_a_driver_without_the_token_is_told_so(cluster):
    without = {"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
    for refused in [cluster.drive(cluster.study("refused", MINE), **environment) for environment in without]:
        message = ended(refused)
        assert message.startswith("ConfigError address"), message
        assert "asks for a token, and this process has none, or another (401" in message
        assert message.count("\n") == 1


def test_the_token_reaches_no_process_list_and_no_file_of_the_study(cluster, driver):
    token = f"{7:064d}"
    wait_for(cluster.folder / "found/late/journal.jsonl", driver)
    assert token not in cluster.head.run("ps axww -o args").stdout
    files = [path for path in (cluster.folder / "found").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if token in path.read_text()]


def test_a_node_with_other_versions_is_not_used_unless_allowed(cluster, driver):
    """One that joins while a study runs ends it; one that is there is refused before anything is computed."""
    other = cluster.network.add("other")
    other.run("mkdir -p -m 700 ~/.ray && umask 077 && printf %064d 7 > ~/.ray/auth_token")
    wait_for(cluster.folder / "found/late/journal.jsonl", driver)
    arguments = f"--address={cluster.address} --node-ip-address={other.address}"
    cluster.start(other, arguments, cluster.folder / "other", hide=True)
    message = ended(driver)
    assert f"MixedVersionsError the node {other.address} computes with other versions" in message, message
    assert f"scipy 1.0.0 instead of {scipy.__version__}" in message
    assert not [record for record in cluster.journal("late") if record["kind"] == "trial"]

    refused = cluster.drive(cluster.study("refused", MINE))
    allowed = cluster.drive(cluster.study("mixed", MINE), mixed="mixed")
    message = ended(refused)
    assert message.startswith("MixedVersionsError the nodes of the cluster would not compute the same numbers"), message
    assert f"the node {other.address} has scipy 1.0.0 instead of" in message
    assert not (cluster.folder / "found/refused").exists()

    message = ended(allowed)
    (record,) = [record for record in cluster.journal("mixed") if record["kind"] == "node"]
    assert record["node"] == other.address, message
    assert [name for name, *_ in record["versions"]] == ["scipy"]
    assert len(by_id(cluster.journal("mixed"))) == len(MINE["space"]["C"])
