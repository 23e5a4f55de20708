"""Memory of a study of many features: what it needs beside the same study of few."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from raysel.core.arrays import column_blocks

#: Prints the peak of the resident memory of a process that runs a study, in bytes.
STUDY = """
import resource, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from small_studies import make_study, run_serially
changes = {{"solver": {solver}, "evaluation__n_features": [5, 20], "cv": {{"outer": 3, "inner": 2}}}}
run_serially(make_study(Path({data!r}), **changes), Path({data!r}).with_suffix(""))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def peak(data: Path, solver: dict[str, object]) -> int:
    script = STUDY.format(tests=str(Path(__file__).parents[1]), data=str(data), solver=solver)
    return int(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [{"name": "fisher_score"}, {"name": "variance"}])
def test_many_features_need_at_most_six_times_their_file(tmp_path, solver):
    X = np.random.default_rng(0).standard_normal((200, 100_000), dtype=np.float32)
    for name, d in (("few", 30), ("many", 100_000)):
        np.savez(tmp_path / f"{name}.npz", X=X[:, :d], y=np.arange(200) % 2)
    need = peak(tmp_path / "many.npz", solver) - peak(tmp_path / "few.npz", solver)
    assert need < 6 * X.nbytes


@pytest.mark.parametrize("width", [1, 2, 4096, 4097, 9001])
def test_blocks_of_columns_are_all_columns_and_have_their_last_bits(width):
    X = np.random.default_rng(0).lognormal(0.0, 9.0, (37, width))
    blocks = list(column_blocks(X))
    assert all(1 < block.shape[1] <= 4096 for block in blocks) or width == 1
    np.testing.assert_array_equal(np.concatenate(blocks, axis=1), X)
    for of in (np.ndarray.var, np.ndarray.mean, np.ndarray.sum):
        np.testing.assert_array_equal(np.concatenate([of(block, axis=0) for block in blocks]), of(X, axis=0))
