"""What of a process changes bits is told: the kernels of the BLAS and the instructions of numpy."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from threadpoolctl import threadpool_info

from raysel.study.identity import differing, machine_versions

SHOW = "import json; from raysel.study.identity import machine_versions; print(json.dumps(machine_versions()))"


def elsewhere(**environment):
    done = subprocess.run(
        [sys.executable, "-c", SHOW], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_kernel_and_instructions_are_told():
    here = machine_versions()
    kernels = {library["architecture"] for library in threadpool_info() if library["internal_api"] == "openblas"}
    assert all(kernel in here["blas"] for kernel in kernels)
    other = "Prescott" if "Prescott" not in here["blas"] else "Haswell"
    disabled = here["simd"].split()[-1]
    there = elsewhere(OPENBLAS_CORETYPE=other, NPY_DISABLE_CPU_FEATURES=disabled)
    changed = {name for name, *_ in differing(here, there)}
    assert changed <= {"blas", "simd"}
    assert not kernels or "blas" in changed  # OpenBLAS names the kernel by an older processor's name
    assert disabled not in there["simd"].split() or changed == {"blas"}  # a baseline cannot be disabled
