"""What the commands do with an executor; executors themselves meet the suite in tests/testing."""

from __future__ import annotations

import subprocess
import sys

import pytest
from small_studies import make_study, write_digits, write_yaml

from raysel.core.errors import ConfigError
from raysel.run.api import run_study
from raysel.tracking.journal import read_journal
from raysel.tune import main


@pytest.fixture
def digits(tmp_path):
    write_digits(tmp_path / "few.npz")
    return tmp_path / "few.npz"


@pytest.mark.slow
def test_a_serial_study_starts_no_ray(tmp_path):
    write_digits(tmp_path / "few.npz")
    write_yaml(tmp_path / "few.yaml", search={"executor": "serial"})
    script = (
        "import sys; from raysel.tune import main; code = main(['few.yaml', '--output', 'study', '--quiet']); "
        "print(code, 'ray' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["study", "0", "False"], done.stderr
    assert (tmp_path / "study/ranking/ranking.csv").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_a_serial_study_is_resumed_on_ray_and_the_other_way_round(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "few.npz")
    write_yaml(tmp_path / "few.yaml")
    lines = {}
    for first in ("serial", "ray"):
        assert main(["few.yaml", "--output", first, "--set", f"search.executor={first}"]) == 0
        lines[first] = (tmp_path / first / "journal.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole/journal.jsonl").write_text("".join(lines["serial"]))
    for first, second in (("serial", "ray"), ("ray", "serial")):
        (tmp_path / first / "journal.jsonl").write_text("".join(lines[first][:4]))  # as killed after three trials
        assert main(["--resume", first, "--set", f"search.executor={second}"]) == 0
        found, expected = (
            {
                r["fold"]: r["feature_scores"]
                for r in read_journal(tmp_path / name / "journal.jsonl")
                if r["kind"] == "refit"
            }
            for name in (first, "whole")
        )
        assert found == expected


def test_a_serial_study_with_a_cluster_is_refused(digits, tmp_path):
    study = make_study(digits, search={"executor": "serial"})
    with pytest.raises(ConfigError, match=r"search\.executor serial computes in this process"):
        run_study(study, output=tmp_path / "study", address="auto")


def test_the_executor_is_no_part_of_a_studys_identity(digits):
    serial, on_ray = (make_study(digits, search={"executor": name}).config.hash for name in ("serial", "ray"))
    assert serial == on_ray
