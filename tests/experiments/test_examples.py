"""The examples run as scripts, from an empty folder, and write nothing outside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "experiments" / "examples"
OF_MLFLOW = {"mlflow.db", "mlruns"}
#: The module ``sitecustomize`` by which examples upload at once and write no report, which takes
#: seconds and has tests.
QUICK = f"""
import sys
if any("examples" in word for word in sys.orig_argv):
    sys.path.append("{ROOT / "tests"}")
    import prompt_uploads
    from raysel.results.page import report
    report.write_final_report = lambda _: None
"""

pytestmark = pytest.mark.slow


def run(folder: Path, name: str, *arguments: str) -> str:
    """Run an example in a folder; give what it printed."""
    site = folder.with_name("site")
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(QUICK, encoding="utf-8")
    paths = os.pathsep.join(map(str, (ROOT, site)))
    environment = os.environ | {
        "PYTHONPATH": paths,
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    environment.pop("MLFLOW_TRACKING_URI", None)
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_own_data_are_ranked_and_the_study_can_be_read(tmp_path):
    out = run(tmp_path, "own_data.py")
    assert "test accuracy" in out
    assert "selection_frequency" in out
    assert {path.name for path in tmp_path.iterdir()} == {"own-data", *OF_MLFLOW}
    assert (tmp_path / "own-data" / "ranking-map.png").read_bytes().startswith(b"\x89PNG")

    read = run(tmp_path, "read_study.py", "own-data/study")
    for part in (
        "Best configurations",
        "Iterations of the inner fits",
        "16 features:",
        "Selected in every outer fold",
    ):
        assert part in read
    assert read.splitlines()[0] == out.splitlines()[0]


def test_an_estimator_of_ones_own_is_searched_and_ranked(tmp_path):
    out = run(tmp_path, "own_estimator.py")
    assert "shrinkage=" in out
    assert "consensus_rank" in out
    assert {path.name for path in tmp_path.iterdir()} == {"own-estimator", *OF_MLFLOW}
