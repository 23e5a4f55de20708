"""Whatever a model file says of the fitted attributes, loading it and predicting by it stays within the arrays."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import fuzzing
import numpy as np
import pytest
import scipy.sparse
import skops.io

from raysel.base.models import foreign_nodes, load_model, trusted_types
from raysel.core.errors import DataError


def fuzz(*arguments: str) -> tuple[int, int]:
    """Numbers of files that were refused and taken; an error that says what was changed if the process crashed."""
    script = Path(fuzzing.__file__)
    paths = os.pathsep.join([str(script.parents[1]), *filter(None, sys.path)])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(script), *arguments], env=environment, capture_output=True, text=True, check=False
    )
    last = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, f"{done.returncode} at {last}: {done.stderr[-2000:]}"
    refused, taken = last[0].split()
    return int(refused), int(taken)


def test_a_forged_sparse_matrix_is_refused_under_the_name_that_skops_trusts(tmp_path):
    """Its indices lead out of the result, into which SciPy's product would write."""
    model = fuzzing.fitted("linear_svm")
    model.coef_ = fuzzing.forged_sparse(model.coef_.shape)
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(model))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members["schema.json"])
    node = schema["content"]["content"]["coef_"]
    node["__class__"], node["__module__"] = scipy.sparse.spmatrix.__name__, scipy.sparse.spmatrix.__module__
    members["schema.json"] = json.dumps(schema).encode()
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert not [name for name in skops.io.get_untrusted_types(file=path) if "sparse" in name]
    assert scipy.sparse.issparse(skops.io.load(path, trusted=sorted(trusted_types())).coef_)
    with pytest.raises(DataError, match=r"its member .*\.npz is no array"):
        load_model(path)
    assert "scipy.sparse._matrix.spmatrix" in foreign_nodes(path.read_bytes(), trusted_types())


def _random_state():
    random = np.random.RandomState(0)
    state = random.get_state(legacy=False)
    random.set_state(state | {"state": state["state"] | {"pos": 10**9}})  # where it is read from
    return random


@pytest.mark.parametrize(
    ("attribute", "value", "said"),
    [
        ("predict", "text", "`predict` of LinearSVM"),
        ("random_state", _random_state(), "invalid state of a random number generator"),
    ],
)
def test_a_changed_attribute_is_named(attribute, value, said, tmp_path):
    model = fuzzing.fitted("linear_svm")
    setattr(model, attribute, value)
    (tmp_path / "model.skops").write_bytes(skops.io.dumps(model))
    with pytest.raises(DataError, match=said):
        load_model(tmp_path / "model.skops")


def test_changed_attributes_crash_nothing():
    refused, _ = fuzz("linear_svm", "KNeighborsClassifier", "1")
    assert refused > 5


@pytest.mark.slow
def test_changed_attributes_of_every_class_crash_nothing():
    refused, taken = fuzz(*fuzzing.MODELS, "2")
    assert refused > 100
    assert taken > 1000
