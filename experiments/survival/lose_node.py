"""A study on a small cluster: a second node is added while it runs, and removed with its trials on it.

python experiments/survival/lose_node.py
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ray.cluster_utils import Cluster

DIGITS = [
    "digits-smr",
    "--set",
    "search.num_samples=6",
    "--set",
    "solver.params.max_iter=150",
    "--set",
    "solver.params.tol=0",
]


def progress(study: Path) -> dict:
    """The study's counts."""
    path = study / "progress.json"
    return json.loads(path.read_text()) if path.exists() else {"finished": 0, "running": 0, "failed": 0}


def tune(study: Path, *arguments: str) -> subprocess.Popen:
    """The command on its way."""
    store = f"tracking.uri=sqlite:///{study.absolute()}.db"
    return subprocess.Popen(
        [sys.executable, "-m", "raysel.tune", *arguments, "--output", str(study), "--set", store, "--quiet"]
    )


def wait_for(study: Path, process: subprocess.Popen, **counts: int) -> None:
    """Until the study has as much."""
    while process.poll() is None and any(progress(study)[key] < count for key, count in counts.items()):
        time.sleep(0.1)


def trials(study: Path) -> dict[str, dict]:
    """What the journal says of each trial, by id; each stands there once."""
    records = [json.loads(line) for line in (study / "journal.jsonl").read_text().splitlines()]
    found = [record for record in records if record["kind"] == "trial"]
    if len({record["id"] for record in found}) != len(found):
        raise SystemExit("a trial is there twice")
    return {record["id"]: record["folds"] | {"status": record["status"]} for record in found}


def main() -> None:
    """Print what happened, and whether the numbers are those of one machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", nargs=argparse.REMAINDER, help="arguments of raysel.tune (default: a digits study)")
    asked = parser.parse_args().study or DIGITS
    with tempfile.TemporaryDirectory(prefix="survival-") as name:
        alone = Path(name, "alone")
        if tune(alone, *asked).wait():
            raise SystemExit("the study on one machine failed")
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        try:
            study = Path(name, "study")
            process = tune(study, *asked, "--address", cluster.address)
            wait_for(study, process, running=1)
            node = cluster.add_node(num_cpus=1)
            print("a node came", flush=True)
            wait_for(study, process, finished=2)
            cluster.remove_node(node, allow_graceful=False)
            print(f"it went, with {progress(study)}", flush=True)
            if process.wait():
                raise SystemExit(f"the study ended with {process.returncode}")
        finally:
            cluster.shutdown()
        if trials(study) != trials(alone):
            raise SystemExit("the numbers are not those of one machine")
        print(f"{len(trials(study))} trials, each once, with the numbers of one machine")


if __name__ == "__main__":
    main()
