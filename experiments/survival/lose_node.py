"""A study on a small cluster: a second node is added while it runs, and removed with its trials on it.

python experiments/survival/lose_node.py
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

from command import start_command
from ray.cluster_utils import Cluster

from raysel import open_study
from raysel.tracking.directory import StudyDirectory

CHANGES = ("search.num_samples=6", "solver.params.max_iter=150", "solver.params.tol=0")
DIGITS = ["digits-smr", *(part for change in CHANGES for part in ("--set", change))]


def progress(study: Path) -> dict:
    """Counts of the study's trials."""
    path = StudyDirectory(study).progress
    return json.loads(path.read_text()) if path.exists() else {"finished": 0, "running": 0, "failed": 0}


def wait_for(study: Path, process: subprocess.Popen[bytes], **counts: int) -> None:
    """Wait until the study has reached these counts."""
    while process.poll() is None and any(progress(study)[key] < count for key, count in counts.items()):
        time.sleep(0.1)


def trials(study: Path) -> dict[str, tuple[str, dict]]:
    """Status and folds of each trial, by id; each must be in the journal once."""
    records = open_study(study).records
    if len({record.id for record in records}) != len(records):
        raise SystemExit("a trial is there twice")
    return {record.id: (record.status, record.folds) for record in records}


def main() -> None:
    """Print what happened, and whether the numbers are those of one machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", nargs=argparse.REMAINDER, help="arguments of raysel.tune (default: a digits study)")
    asked = parser.parse_args().study or DIGITS
    with tempfile.TemporaryDirectory(prefix="survival-") as name:
        alone = Path(name, "alone")
        if start_command(*asked, "--output", str(alone), store=Path(name, "alone.db")).wait():
            raise SystemExit("the study on one machine failed")
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        try:
            study = Path(name, "study")
            here = ["--output", str(study), "--address", cluster.address]
            process = start_command(*asked, *here, store=Path(name, "study.db"))
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
