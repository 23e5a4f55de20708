"""A model file of a stranger: whatever it says, nothing runs, and nothing outside its arrays is reached."""

from __future__ import annotations

import io
import json
import operator
import os
import pickle
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import fuzzing
import numpy as np
import pytest
import scipy.sparse
import skops.io
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from raysel.base.adapter import ScikitLearnMethod
from raysel.base.models import foreign_nodes, load_model, save_model, trusted_types
from raysel.core.errors import DataError
from raysel.core.machine import MAX_DATA_BYTES
from raysel.data.scaling import UnitScaler

FOREST = ExtraTreesClassifier(n_estimators=3, random_state=0)


class Stranger(BaseEstimator):
    """An estimator of a user."""


class Hidden:
    """An object of no library."""

    def __init__(self, path):
        self.path = path


class _Attack:
    def __reduce__(self):
        return open, ("ran", "w")


def zipped(schema):
    with zipfile.ZipFile(content := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", schema)
    return content.getvalue()


def rewritten(content, change):
    """A model file whose schema a function has changed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members["schema.json"])
    change(schema, members)
    with zipfile.ZipFile(out := io.BytesIO(), "w") as archive:
        for name, data in (members | {"schema.json": json.dumps(schema).encode()}).items():
            archive.writestr(name, data)
    return out.getvalue()


#: Objects that skops writes, and what is said of the file.
OBJECTS = {
    "list": ([1, 2], "holds a list, not a model"),
    "mapping": ({"a": np.arange(3)}, "holds a dict, not a model"),
    "text": ("text", "holds a str, not a model"),
    "estimator": (Stranger(), r"contains .*Stranger"),
    "object": (Hidden("x"), r"contains .*Hidden"),
    "function": (os.system, r"contains .*posix\.system"),
    "function of a transformer": (FunctionTransformer(func=os.remove), r"contains .*posix\.remove"),
    "method": (UnitScaler().fit, r"contains .*UnitScaler\.fit"),
    "operator": (operator.methodcaller("unlink"), "contains .*methodcaller"),
    "built-in": ({"scaler": UnitScaler(), "deep": [(eval,)]}, r"contains .*builtins\.eval"),
}
#: Other files.
CONTENTS = {
    "pickle": (pickle.dumps(_Attack()), "not a skops file"),
    "pickle in an archive": (zipped(pickle.dumps(_Attack())), "not a skops file"),
    "no archive": (b"no zip", "not a skops file"),
    "half an archive": (b"PK\x03\x04" + bytes(100), "not a skops file"),
    "list as schema": (zipped("[]"), "damaged"),
    "empty schema": (zipped("{}"), "damaged"),
    "protocol only": (zipped('{"protocol": 2}'), "damaged"),
    "half a list": (zipped('{"protocol": 2, "__loader__": "ListNode"}'), "damaged"),
}


@pytest.mark.parametrize("name", [*OBJECTS, *CONTENTS])
def test_a_file_without_a_model_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content, message = CONTENTS.get(name) or (skops.io.dumps(OBJECTS[name][0]), OBJECTS[name][1])
    Path("model.skops").write_bytes(content)
    with pytest.raises(DataError, match=rf"model\.skops .*{message}"):
        load_model("model.skops")
    assert not Path("ran").exists()


def test_a_damaged_file_is_refused_wherever_it_is_cut(tmp_path):
    path = save_model(UnitScaler().fit(np.eye(3)), tmp_path / "model.skops")
    whole = path.read_bytes()
    for length in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match="damaged"):
            load_model(path)


def test_a_model_that_unpacks_to_any_size_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(MAX_DATA_BYTES, str(2**20))
    (tmp_path / "model.skops").write_bytes(zipped(bytes(2**21)))
    assert (tmp_path / "model.skops").stat().st_size < 2**12
    with pytest.raises(DataError, match="MiB of memory, above the limit of"):
        load_model(tmp_path / "model.skops")


def test_a_forged_type_is_refused_before_it_is_made(tmp_path):
    """The schema of an honest file is rewritten to call os.mkdir on loading."""
    path, witness = (
        save_model(UnitScaler().fit([[0.0], [4.0]]), tmp_path / "model.skops"),
        tmp_path / "witness",
    )

    def forge(schema, _):
        call = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
        call["content"] = json.dumps(str(witness))
        arguments = {
            "__class__": "tuple",
            "__module__": "builtins",
            "__loader__": "TupleNode",
            "content": [call],
        }
        made = {"__class__": "mkdir", "__module__": "os", "__loader__": "ConstructorFromReduceNode"}
        schema["content"]["content"]["offset_"] = made | {"content": arguments}

    path.write_bytes(rewritten(path.read_bytes(), forge))
    with pytest.raises(DataError, match=r"os\.mkdir"):
        load_model(path)
    assert not witness.exists()
    skops.io.load(path, trusted=["os.mkdir", *trusted_types()])  # the forgery would have worked
    assert witness.exists()


def test_a_forged_sparse_matrix_is_refused_under_the_name_that_skops_trusts(tmp_path):
    """Its indices lead out of the result, into which SciPy's product would write."""
    model = fuzzing.fitted("linear_svm")
    model.coef_ = fuzzing.forged_sparse(model.coef_.shape)

    def forge(schema, _):
        node = schema["content"]["content"]["coef_"]
        node["__class__"], node["__module__"] = (
            scipy.sparse.spmatrix.__name__,
            scipy.sparse.spmatrix.__module__,
        )

    path = tmp_path / "model.skops"
    path.write_bytes(rewritten(skops.io.dumps(model), forge))
    assert not [name for name in skops.io.get_untrusted_types(file=path) if "sparse" in name]
    assert scipy.sparse.issparse(skops.io.load(path, trusted=sorted(trusted_types())).coef_)
    with pytest.raises(DataError, match=r"its member .*\.npz is no array"):
        load_model(path)
    assert "scipy.sparse._matrix.spmatrix" in foreign_nodes(path.read_bytes(), trusted_types())


def test_a_changed_attribute_is_named(tmp_path):
    model = fuzzing.fitted("linear_svm")
    model.predict = "text"
    (tmp_path / "model.skops").write_bytes(skops.io.dumps(model))
    with pytest.raises(DataError, match="`predict` of LinearSVM"):
        load_model(tmp_path / "model.skops")


def test_a_random_state_that_reads_outside_its_numbers_is_refused(tmp_path):
    model = fuzzing.fitted("linear_svm").set_params(random_state=np.random.RandomState(0))

    def forge(schema, _):
        state = schema["content"]["content"]["random_state"]["content"]["content"]["state"]
        state["content"]["pos"]["content"] = str(10**9)

    path = tmp_path / "model.skops"
    path.write_bytes(rewritten(skops.io.dumps(model), forge))
    # Before version 2.5 NumPy takes any position; from then on reading fails.
    with pytest.raises(
        DataError, match=r"invalid state of a random number generator|damaged \(ValueError\)"
    ):
        load_model(path)


def _forge_tree(index, **changes):
    def forge(forest):
        tree = forest.estimators_[index].tree_
        state = tree.__getstate__()
        nodes = state["nodes"].copy()
        if "child" in changes:
            nodes["left_child"][0] = changes["child"](tree)
        tree.__setstate__(
            {**state, "nodes": nodes, "max_depth": changes.get("max_depth", state["max_depth"])}
        )

    return forge


def _owner_features(forest):
    forest.estimators_[1] = DecisionTreeClassifier(max_depth=2, random_state=0).fit(
        np.eye(9), np.arange(9) % 3
    )


def _no_owner(forest):
    forest.spare_ = [DecisionTreeClassifier().fit(np.eye(3), [0, 1, 2]).tree_]


#: Forged forests, whose trees scikit-learn would follow without looking; `decision_path` allocates by their depth.
FORESTS = {
    "child outside": (_forge_tree(1, child=lambda tree: tree.node_count), "invalid nodes"),
    "child that is its parent": (_forge_tree(1, child=lambda _: 0), "invalid nodes"),
    "child nowhere": (_forge_tree(1, child=lambda _: -7), "invalid nodes"),
    "deeper than it says": (_forge_tree(0, max_depth=1), "invalid nodes"),
    "ensemble": (_owner_features, "does not fit its estimator"),
    "no owner": (_no_owner, "does not fit its estimator"),
    "outputs": (
        lambda f: vars(f.estimators_[0]).update(n_outputs_=2),
        "does not fit its estimator",
    ),
    "classes": (
        lambda f: vars(f.estimators_[0]).update(n_classes_=2),
        "does not fit its estimator",
    ),
    "no features": (
        lambda f: vars(f.estimators_[0]).pop("n_features_in_"),
        "does not fit its estimator",
    ),
    "no features of the ensemble": (
        lambda f: vars(f).pop("n_features_in_"),
        "does not fit its estimator",
    ),
}


@pytest.mark.parametrize("name", FORESTS)
def test_a_forged_tree_is_refused(name, tmp_path):
    forge, message = FORESTS[name]
    forest = clone(FOREST).fit(*load_iris(return_X_y=True))
    forge(forest)
    with pytest.raises(DataError, match=message):
        load_model(save_model(forest, tmp_path / "model.skops"))


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=3),
        ScikitLearnMethod(DecisionTreeClassifier(max_depth=3)),
        ScikitLearnMethod(FOREST),
        Pipeline([("scaler", UnitScaler()), ("solver", ScikitLearnMethod(FOREST))]),
    ],
    ids=["tree", "wrapped", "forest", "pipeline"],
)
def test_a_tree_with_more_features_than_its_estimator_is_refused(model, tmp_path):
    """Predicting by the file would read far outside the samples."""
    path = save_model(clone(model).fit(*load_iris(return_X_y=True)), tmp_path / "model.skops")

    def forge(part, members=None):
        if isinstance(part, dict) and part.get("__class__") == "Tree":
            arguments = part["__reduce__"]["args"]["content"]
            first = (arguments["content"] if isinstance(arguments, dict) else arguments)[0]
            first.update(content=str(10**9), __id__=12345)
        elif isinstance(part, dict | list):
            for inner in part.values() if isinstance(part, dict) else part:
                forge(inner)
        for name, content in (members or {}).items():
            if (
                name.endswith(".npy")
                and (array := np.load(io.BytesIO(content), allow_pickle=False)).dtype.names
            ):
                array["feature"][:] = 10**9 - 1
                np.save(stream := io.BytesIO(), array)
                members[name] = stream.getvalue()

    path.write_bytes(rewritten(path.read_bytes(), forge))
    with pytest.raises(DataError, match="does not fit its estimator"):
        load_model(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "n_refused", "n_taken"),
    [
        (("linear_svm", "KNeighborsClassifier", "1"), 5, 0),
        pytest.param(
            ("SVC", "DecisionTreeClassifier", "12"),
            50,
            200,
            marks=pytest.mark.slow,
            id="compiled code",
        ),
        pytest.param((*fuzzing.MODELS, "1"), 100, 1000, marks=pytest.mark.slow, id="every class"),
    ],
)
def test_changed_attributes_crash_nothing(arguments, n_refused, n_taken):
    script = Path(fuzzing.__file__)
    paths = os.pathsep.join([str(script.parents[1]), *filter(None, sys.path)])
    environment = os.environ | {
        "PYTHONPATH": paths,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        MAX_DATA_BYTES: "1e9",
    }
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.splitlines()[-1:]  # what was changed, if the process crashed
    assert done.returncode == 0, f"{done.returncode} at {last}: {done.stderr[-2000:]}"
    refused, taken = map(int, re.findall(r"\d+", last[0]))
    assert refused > n_refused
    assert taken > n_taken
