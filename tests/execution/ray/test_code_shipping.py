"""A cluster: code and threads reach nodes that lack them, other versions and tokens are refused."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
import scipy
from cluster_studies import wait_for
from hosts import REPOSITORY, Network
from small_studies import make_study, raw_config, run_serially, write_digits

from raysel.tracking.journal import read_journal

pytestmark = pytest.mark.slow

#: A method of the user's own, with a module beside it, on one of another package that registers it
#: by an entry point.
METHODS = """
import helpers
from raysel.base.registry import solver_class

class Mine(solver_class("class_spread")):
    def _updates(self, X, y, prepared):
        helpers.note()
        yield from super()._updates(X, y, prepared)
"""
#: A host computes two trials, of three outer folds of two fits each, and the next one waits while
#: the test holds it.
HELPERS = """
import os, sys, time
from pathlib import Path
RAN = Path("/tmp/ran")
def computes():
    return "default_worker" in sys.argv[0]  # not the driver, which tries a fit before
def note():
    import raysel, raysel_sample
    if computes():
        held = Path(os.environ["HOLD"])
        while held.exists() and RAN.exists() and len(RAN.read_text().splitlines()) > 11:
            time.sleep(0.2)
        with RAN.open("a") as file:
            threads = os.environ.get("OPENBLAS_NUM_THREADS")
            names = raysel.__file__, __file__, raysel_sample.__file__
            file.write(f"{' '.join(names)} {threads} {os.environ.get('MKL_CBWR')}\\n")
"""
#: Runs a study in a session of Ray for each word, which says whether mixed versions are allowed,
#: without MLflow; prints the error of one that cannot run.
DRIVER = """
import json, sys
from pathlib import Path
from raysel.config import config_from_dict
from raysel.core.errors import RayselError
from raysel.execution import batches
from raysel.run.launch import joined, make_executor, slots
from raysel.run.options import RunOptions
from raysel.study.definition import Study
from raysel.testing.checks import run_by
address, folder, file, *words = sys.argv[1:]
batches._MOST = 1  # a fit that waits keeps no ended one back
study = Study.prepare(config_from_dict(json.loads(Path(file).read_text())))
for word in words:
    mixed = word == "mixed"
    print(word)
    try:
        with joined([study], RunOptions(address, mixed)) as nodes:
            print(slots(study, nodes))
            executor = make_executor(study, RunOptions(address, mixed))
            run_by(executor, study, Path(folder, word))
    except RayselError as error:
        print(type(error).__name__, error)
"""
#: The error of a cluster that this process may not join.
JOIN = """
import sys
from raysel.core.errors import RayselError
from raysel.execution.ray.head import check_cluster
try:
    check_cluster(sys.argv[1])
except RayselError as error:
    print(type(error).__name__, error)
"""
MINE = {"name": "mine.methods.Mine", "space": {"floor": [0.1, 0.2, 0.5, 1.0, 2.0, 5.0]}}


class Cluster:
    """Head, on which only the driver computes, and worker, with a token; its own raysel cannot
    be imported there.
    """

    def __init__(self, network: Network, folder: Path, site: Path) -> None:
        self.network, self.folder = network, folder
        self.head, self.worker = network.add("head"), network.add("worker")
        self.address = f"{self.head.address}:6379"
        self.work, self.broken, self.hold = folder / "work", folder / "broken", folder / "hold"
        self.hold.touch()
        for name, text in {
            "work/mine/__init__.py": "",
            "work/mine/methods.py": METHODS,
            "work/helpers.py": HELPERS,
            "work/driver.py": DRIVER,
            "work/join.py": JOIN,
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
        options = ("--head", "--include-dashboard=false", "--no-monitor")
        self.head.start_ray(*options, n_cpus=0, RAY_AUTH_MODE="token")
        self.start_node(self.worker, self.broken)

    def start_node(self, host, path):
        """Start Ray on a host that lacks the driver's files, and whose Python finds modules in a
        path first.
        """
        host.run(self.hide)
        own = {"PYTHONPATH": str(path), "HOLD": str(self.hold), "MKL_CBWR": "AVX"}
        host.start_ray(f"--address={self.address}", RAY_AUTH_MODE="token", **own)

    def run(self, command, **environment):
        """Start a command on the head, where the driver's files are; return its process and the
        file of its output.
        """
        with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".log", delete=False) as file:
            log = Path(file.name)
        environment = {"RAY_AUTH_MODE": "token", "PYTHONPATH": self.driver_path, **environment}
        return (
            self.head.start(
                f"env --chdir={self.work} {sys.executable} -u {command}", log, **environment
            ),
            log,
        )

    def journal(self, word):
        file = self.folder / "found" / word / "journal.jsonl"
        return list(read_journal(file)) if file.exists() else []


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster whose worker lacks a package that is installed for the driver, on the head."""
    source = Path(__file__).parent.parent.parent / "base/sample_package/wheel_backend.py"
    spec = importlib.util.spec_from_file_location("wheel_backend", source)
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    with Network(tmp_path_factory.mktemp("cluster")) as network:
        site = network.folder / "site"
        site.mkdir()
        with zipfile.ZipFile(network.folder / backend.build_wheel(network.folder)) as wheel:
            wheel.extractall(site)
        yield Cluster(network, network.folder, site)


@pytest.fixture(scope="module")
def driver(cluster):
    """A driver whose first study waits once the worker has computed two trials."""
    # The reference is computed in this process, whose processor the variable may name.
    kernels = {name: os.environ[name] for name in ("OPENBLAS_CORETYPE",) if name in os.environ}
    environment = {"OPENBLAS_NUM_THREADS": "1", "MKL_CBWR": "COMPATIBLE", **kernels}
    # Trials wait for another node.
    study = raw_config(cluster.work / "few.npz", solver=MINE, search={"max_concurrent": 6})
    (cluster.folder / "study.json").write_text(json.dumps(study))
    words = f"{cluster.folder}/found {cluster.folder}/study.json first same mixed"
    process, log = cluster.run(f"driver.py {cluster.address} {words}", **environment)
    wait_for(
        log.read_text,
        lambda: process.poll() is not None or len(by_id(cluster.journal("first"))) == 2,
    )
    assert process.poll() is None, log.read_text()
    return process, log


def by_id(records):
    return {r["id"]: r["folds"] for r in records if r["kind"] == "trial"}


def without_times(folds):
    return {
        name: {k: v for k, v in fold.items() if "seconds" not in k} for name, fold in folds.items()
    }


def ended(driver):
    """The output of a driver, once it has ended."""
    process, log = driver
    process.wait(500)
    return log.read_text()


def test_code_plugins_and_threads_reach_nodes_that_lack_them(
    cluster, driver, tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(cluster.work)
    monkeypatch.syspath_prepend(cluster.folder / "site")
    expected, _, _ = run_serially(
        make_study(cluster.work / "few.npz", solver=MINE), tmp_path / "here"
    )
    for name in ("mine.methods", "mine", "helpers", "raysel_sample"):
        sys.modules.pop(name, None)
    found = by_id(cluster.journal("first"))
    assert len(found) == 2
    for id_, folds in found.items():
        assert without_times(folds) == without_times(json.loads(json.dumps(expected[id_]["folds"])))
    assert "Slots(n=1, where='the cluster, which has 1 node now')" in driver[1].read_text()
    *files, threads, kernels = cluster.worker.run("sort -u /tmp/ran").stdout.split()
    assert ["py_modules_files" in file for file in files] == [True] * 3
    assert (threads, kernels) == ("1", "COMPATIBLE")


def test_a_driver_without_the_token_is_told_so(cluster):
    without = {"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
    for refused in [
        cluster.run(f"join.py {cluster.address}", **environment) for environment in without
    ]:
        message = ended(refused)
        assert message.startswith("ConfigError address"), message
        assert "asks for a token, and this process has none, or another (401" in message
        assert message.count("\n") == 1


@pytest.mark.usefixtures("driver")
def test_the_token_reaches_no_process_list_and_no_file_of_the_study(cluster):
    token = f"{7:064d}"
    assert token not in cluster.head.run("ps axww -o args").stdout
    files = [path for path in (cluster.folder / "found").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if token in path.read_text()]


def test_a_node_with_other_versions_is_not_used_unless_allowed(cluster, driver):
    """One that joins while a study runs ends it; one that is there is refused before anything is
    computed.
    """
    cluster.worker.run(
        "pkill raylet; while pgrep raylet; do sleep 0.2; done"
    )  # each node's workers take seconds
    other = cluster.network.add("other")
    other.run("mkdir -p -m 700 ~/.ray && umask 077 && printf %064d 7 > ~/.ray/auth_token")
    cluster.start_node(other, cluster.folder / "other")
    read = driver[1].read_text
    wait_for(read, lambda: driver[0].poll() is not None or "\nmixed\n" in read())
    cluster.hold.unlink()
    message = ended(driver)
    first, at_start = (line for line in message.splitlines() if line.startswith("MixedVersions"))
    assert f"the node {other.address} computes with other versions" in first, message
    assert f"scipy 1.0.0 instead of {scipy.__version__}" in first
    assert len(by_id(cluster.journal("first"))) == 2
    assert "the nodes of the cluster would not compute the same numbers" in at_start, message
    assert f"the node {other.address} has scipy 1.0.0 instead of" in at_start
    assert not (cluster.folder / "found/same").exists()
    (record,) = [record for record in cluster.journal("mixed") if record["kind"] == "node"]
    assert record["node"] == other.address, message
    assert [name for name, *_ in record["versions"]] == ["scipy"]
    assert len(by_id(cluster.journal("mixed"))) == len(MINE["space"]["floor"])
