"""Executors in studies: memory of many features, and where Ray is not used. They pass the suite
in tests/testing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small_studies import make_study, write_digits, write_yaml

from raysel.core.arrays import column_blocks
from raysel.core.errors import ConfigError
from raysel.run.api import run_study

#: Prints the peak of the resident memory of a process after a study of few features and after one
#: of many, in bytes.
STUDIES = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from small_studies import make_study, run_serially
changes = {{"solver": {{"name": "fisher_score"}}, "evaluation__n_features": [5, 20], "cv": {{"outer": 3, "inner": 2}}}}
for name in ("few", "many"):
    run_serially(make_study(Path(f"{{name}}.npz"), **changes), Path(name))
    # The peak of getrusage is at first that of the process which started this one.
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(1024 * int(peak.split()[1]))
"""


@pytest.mark.slow
def test_many_features_need_at_most_six_and_a_half_times_their_file(tmp_path):
    X = np.random.default_rng(0).standard_normal((200, 100_000), dtype=np.float32)
    for name, d in (("few", 30), ("many", 100_000)):
        np.savez(tmp_path / f"{name}.npz", X=X[:, :d], y=np.arange(200) % 2)
    script = STUDIES.format(tests=str(Path(__file__).parents[1]))
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    few, many = map(int, done.stdout.split())
    assert X.nbytes < many - few < 6.5 * X.nbytes


@pytest.mark.parametrize("width", [1, 2, 4096, 4097, 9001])
def test_blocks_of_columns_are_all_columns_and_have_their_last_bits(width):
    X = np.random.default_rng(0).lognormal(0.0, 9.0, (37, width))
    blocks = list(column_blocks(X))
    assert all(1 < block.shape[1] <= 4096 for block in blocks) or width == 1
    np.testing.assert_array_equal(np.concatenate(blocks, axis=1), X)
    for of in (np.ndarray.var, np.ndarray.mean, np.ndarray.sum):
        np.testing.assert_array_equal(
            np.concatenate([of(block, axis=0) for block in blocks]), of(X, axis=0)
        )


@pytest.mark.slow
def test_a_serial_study_starts_no_ray(tmp_path):
    write_digits(tmp_path / "few.npz")
    write_yaml(tmp_path / "few.yaml")
    script = (
        f"import sys; sys.path.append('{Path(__file__).parents[1]}'); import bare_process\n"
        "from raysel.tune import main; code = main(['few.yaml', '--output', 'study', '--quiet']); "
        "print(code, 'ray' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["study", "0", "False"], done.stderr
    assert (tmp_path / "study/ranking/ranking.csv").exists()


def test_a_serial_study_with_a_cluster_is_refused_and_the_executor_is_no_part_of_its_identity(
    tmp_path,
):
    write_digits(tmp_path / "few.npz")
    serial, on_ray = (
        make_study(tmp_path / "few.npz", search={"executor": name}) for name in ("serial", "ray")
    )
    assert serial.config.hash == on_ray.config.hash
    with pytest.raises(ConfigError, match=r"search\.executor serial computes in this process"):
        run_study(serial, output=tmp_path / "study", address="auto")
