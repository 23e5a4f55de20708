"""In this process and on Ray a study gives the same numbers to the last bit."""

from __future__ import annotations

import subprocess
import sys

import pytest
from small_studies import make_study, run_on_ray, run_serially, timeless, write_digits, write_yaml

from raysel.api import run_study
from raysel.errors import ConfigError, StudyError
from raysel.tracking.journal import read_journal
from raysel.tune import main


@pytest.fixture
def digits(tmp_path):
    write_digits(tmp_path / "few.npz")
    return tmp_path / "few.npz"


def refitted(refits):
    return [(timeless(r.record.to_json()), r.model.named_steps["solver"].coef_.tobytes()) for r in refits]


STUDIES = {
    "grid": {"solver__params": {"max_iter": 4, "init": "random"}},
    "linear svm": {"evaluation": {"classifier": "linear_svm", "n_features": [4, 8]}, "solver__params": {"max_iter": 2}},
    "failing": {
        "solver__params": {"max_iter": 3, "alpha_scale": "absolute", "p": 0.5, "alpha": 1e250},
        "solver__space": {"zeta": [1e-10, 1e300]},
    },
    "path": {
        "solver": {"name": "smml", "params": {"tol": 1e-2}, "space": {"gamma1": [0.1, 0.4, 2.0], "gamma2": [0.0, 0.2]}},
        "evaluation": {"classifier": "native"},
        "search": {"method": "path"},
    },
    "asha": {
        "solver__params": {"max_iter": 12, "tol": 0.0},
        "solver__space": {"alpha": [0.01, 0.05, 0.1, 0.3, 0.6, 2.0]},
        "search": {"early_stopping": "asha", "synchronous": True, "batch_size": 3, "reduction_factor": 2},
    },
    "tpe": {
        "solver__params": {"max_iter": 3},
        "solver__space": {"alpha": {"loguniform": [0.01, 0.5]}},
        "search": {"method": "tpe", "num_samples": 12, "synchronous": True, "batch_size": 6},
    },
}


@pytest.mark.usefixtures("ray_here")
@pytest.mark.parametrize("name", STUDIES)
def test_serial_and_ray_agree_to_the_last_bit(name, digits, tmp_path):
    study = make_study(digits, **STUDIES[name])
    records, refits, kept = run_serially(study, tmp_path / "serial")
    on_ray, ray_refits, ray_kept = run_on_ray(study, tmp_path / "ray")
    assert {id_: without_traceback(record) for id_, record in records.items()} == {
        id_: without_traceback(record) for id_, record in on_ray.items()
    }
    assert refitted(refits) == refitted(ray_refits)
    assert {entry["kind"] for entry in kept} == {entry["kind"] for entry in ray_kept}
    progress = [(tmp_path / where / "progress.json").read_text() for where in ("serial", "ray")]
    assert progress[0] == progress[1]


def without_traceback(record):
    """The frames of a traceback are the executor's own."""
    for fold in record["folds"].values():
        fold["error"] = fold["error"].strip().rpartition("\n")[2]
    return record


def test_a_serial_study_starts_no_ray(tmp_path):
    write_digits(tmp_path / "few.npz")
    write_yaml(tmp_path / "few.yaml", search={"executor": "serial"})
    script = (
        "import sys; from raysel.tune import main; code = main(['few.yaml', '--output', 'study', '--quiet']); "
        "print(code, 'ray' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0", "False"], done.stderr
    assert (tmp_path / "study/ranking/ranking.csv").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_a_serial_study_is_resumed_on_ray_and_the_other_way_round(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "few.npz")
    write_yaml(tmp_path / "few.yaml")
    whole = main(["few.yaml", "--output", "whole", "--set", "search.executor=serial"])
    assert whole == 0
    lines = (tmp_path / "whole/journal.jsonl").read_text().splitlines(keepends=True)
    for first, second in (("serial", "ray"), ("ray", "serial")):
        assert main(["few.yaml", "--output", first, "--set", f"search.executor={first}"]) == 0
        (tmp_path / first / "journal.jsonl").write_text("".join(lines[:4]))  # as killed after three trials
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


def test_too_many_failures_and_a_failed_refit_end_a_serial_study(digits, tmp_path):
    study = make_study(digits, **STUDIES["failing"], search={"max_failures": 0})
    with pytest.raises(StudyError, match=r"more than search.max_failures=0; .*objective became inf"):
        run_serially(study, tmp_path / "run")


def test_a_serial_study_with_a_cluster_is_refused(digits, tmp_path):
    study = make_study(digits, search={"executor": "serial"})
    with pytest.raises(ConfigError, match=r"search\.executor serial computes in this process"):
        run_study(study, output=tmp_path / "study", address="auto")


def test_the_executor_is_no_part_of_a_studys_identity(digits):
    serial, on_ray = (make_study(digits, search={"executor": name}).config.hash for name in ("serial", "ray"))
    assert serial == on_ray
