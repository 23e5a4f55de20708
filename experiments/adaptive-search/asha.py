"""What early stopping saves and what it costs: the full search against ASHA on the same folds.

python experiments/adaptive-search/asha.py orl-smr
python experiments/adaptive-search/asha.py msrcv1-smml-fractions --set search.method=grid
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ASHA = ("search.early_stopping=asha", "search.synchronous=true", "search.batch_size=4")


def tune(study: Path, *arguments: str) -> list[dict]:
    """Run the command; give the journal."""
    store = f"tracking.uri=sqlite:///{study.parent.absolute()}/mlflow.db"
    command = [sys.executable, "-m", "raysel.tune", *arguments, "--output", str(study), "--set", store, "--quiet"]
    subprocess.run(command, check=True)
    return [json.loads(line) for line in (study / "journal.jsonl").read_text().splitlines()]


def iterations(journal: list[dict]) -> int:
    """All inner solver iterations of a study."""
    trials = [record for record in journal if record["kind"] == "trial"]
    return sum(len(i["objective"]) for r in trials for fold in r["folds"].values() for i in fold["inner"])


def test_scores(journal: list[dict]) -> np.ndarray:
    """The winners' test scores by outer fold."""
    refits = {record["fold"]: record["test_scores"] for record in journal if record["kind"] == "refit"}
    return np.array([np.mean(scores) for fold, scores in refits.items() if fold != "final"])


def main() -> None:
    """Print the share of iterations saved, and the difference of the test scores with its SD over the outer folds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study")
    parser.add_argument("--set", action="append", default=[], help="passed on to both sides")
    arguments = parser.parse_args()
    common = [arguments.study, *(part for value in arguments.set for part in ("--set", value))]
    with tempfile.TemporaryDirectory() as name:
        full = tune(Path(name, "full"), *common)
        plan = f"cv.plan={Path(name, 'full', 'plan.json')}"
        early = tune(Path(name, "asha"), *common, *(p for value in (plan, *ASHA) for p in ("--set", value)))
    saved = 1 - iterations(early) / iterations(full)
    stopped = sum(record.get("status") == "stopped" for record in early if record["kind"] == "trial")
    trials = sum(record["kind"] == "trial" for record in early)
    a, b = test_scores(full), test_scores(early)
    d = b - a
    print(
        f"{arguments.study}: {iterations(full)} solver iterations -> {iterations(early)}, saved {saved:.1%}; "
        f"{stopped} of {trials} trials stopped; test {a.mean():.4f} -> {b.mean():.4f}, "
        f"difference {d.mean():+.4f} ± {d.std(ddof=1):.4f} (SD) over {len(d)} overlapping outer folds; "
        f"{int((d == 0).sum())} of {len(d)} winners score the same"
    )


if __name__ == "__main__":
    main()
