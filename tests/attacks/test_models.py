"""A model file of a stranger is not opened; one that the user trusts, whatever it says, runs no
code when it is loaded.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import operator
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import skops.io
from attack_studies import copied
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.svm import SVR

import raysel
from raysel.base.model_types import trusted_types
from raysel.base.models import foreign_nodes, load_model, save_model
from raysel.cli.main import main as run_command
from raysel.core.errors import DataError
from raysel.core.trust import hash_file, is_trusted
from raysel.data.scaling import UnitScaler


class Stranger(BaseEstimator):
    """An estimator of a user."""


def _nowhere():
    """An estimator of a module that is not imported."""
    return type("Stranger", (BaseEstimator,), {"__module__": "nowhere"})()


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
    change(schema)
    with zipfile.ZipFile(out := io.BytesIO(), "w") as archive:
        for name, data in (members | {"schema.json": json.dumps(schema).encode()}).items():
            archive.writestr(name, data)
    return out.getvalue()


def one_vs_rest():
    model = OneVsRestClassifier(LogisticRegression()).fit(*load_iris(return_X_y=True))
    model.estimators_[0].coef_ = np.zeros((100_000, 4))
    model.estimators_[0].intercept_ = np.zeros(100_000)
    return model


def machine():
    model = SVR().fit(*load_iris(return_X_y=True))
    model._n_support = np.full_like(model._n_support, 2**30)
    return model


def encoder():
    model = OneHotEncoder().fit(np.array([[0.0], [1.0]]))
    model.categories_ = [np.arange(100_000.0)]
    return model


def forest():
    return RandomForestClassifier(2, n_jobs=200).fit(*load_iris(return_X_y=True))


#: Models whose compiled code leaves its arrays, or that take any number of threads: no list of
#: checks finds them all.
FORGED = (one_vs_rest, machine, encoder, forest)


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """What has been opened: model files by skops, and archives."""
    names = []

    def watch(owner, name):
        original = getattr(owner, name)

        def watched(*arguments, **options):
            names.append(name)
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, watched)

    for owner, name in (
        (skops.io, "loads"),
        (skops.io, "get_untrusted_types"),
        (zipfile.ZipFile, "__init__"),
        (np.lib.format, "read_array"),
    ):
        watch(owner, name)
    return names


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_model_in_a_study_is_not_opened(forged, stranger, opened):
    """Its hash is that of the honest model, which a stranger may have seen."""
    (stranger / "model.skops").write_bytes(skops.io.dumps(forged()))
    opened.clear()
    for load in (load_model, lambda path: raysel.open_study(path).model):
        with pytest.raises(DataError):
            load(stranger)
    assert opened == []
    assert isinstance(load_model(stranger, trust=True), BaseEstimator)
    assert "loads" in opened


def changed(content, random):
    """Other bytes: some changed, cut off, added or moved."""
    kind, place = random.integers(4), int(random.integers(1, len(content)))
    if kind == 0:
        return content[:place]
    if kind == 1:
        return content + random.bytes(place)
    if kind == 2:
        return content[place:] + content[:place]
    other = bytearray(content)
    for position in random.integers(len(content), size=random.integers(1, 9)):
        other[position] ^= int(random.integers(1, 256))
    return bytes(other)


def strange_hash(content, signed, random):
    """A hash that this account has not written for the bytes, or none."""
    kind = random.integers(6)
    if kind == 0:
        return signed[
            : int(random.integers(0, len(signed) - 1))
        ]  # the end of the line stands alone
    if kind == 1:
        digits = bytearray(signed.strip())
        digits[int(random.integers(len(digits)))] ^= 1
        return bytes(digits)
    if kind == 2:
        return random.bytes(int(random.integers(200)))
    if kind == 3:
        return hashlib.sha256(content).hexdigest().encode()
    if kind == 4:
        return hmac.digest(random.bytes(32), content, "sha256").hex().encode()
    return signed.strip() + random.bytes(200)


def test_no_changed_model_file_of_hundreds_is_opened(stranger, honest, opened, capsys):
    random = np.random.default_rng(0)
    model, hashed = stranger / "model.skops", hash_file(stranger / "model.skops")
    content, signed = model.read_bytes(), hashed.read_bytes()
    assert is_trusted(model)
    refused = 0
    for number in range(210):
        other = changed(content, random) if number % 3 != 1 else content
        mark = strange_hash(other, signed, random) if number % 3 != 0 else signed
        if (other, mark.strip()) == (content, signed.strip()):
            continue
        model.write_bytes(other)
        hashed.write_bytes(mark)
        with pytest.raises(DataError):
            load_model(stranger)
        refused += 1
    assert (refused > 200, opened) == (True, [])
    study, expected = raysel.open_study(stranger), raysel.open_study(honest)
    assert study.summary().equals(expected.summary())
    assert study.test_scores == expected.test_scores
    opened.clear()  # the plan's and the report's own arrays
    for command in ("select", "report"):
        assert run_command([command, str(stranger)]) == 0
        out, err = capsys.readouterr()
        assert "this account has not signed it" in out + err
        assert "raysel trust STUDY_DIR" in " ".join((out + err).split())
    assert "loads" not in opened


def test_a_study_that_its_own_account_has_moved_is_trusted_and_another_account_s_is_not(
    stranger, honest, tmp_path, monkeypatch
):
    moved = stranger.rename(tmp_path / "moved")
    X = np.zeros((1, 64))
    expected = raysel.open_study(honest).model.predict(X)
    assert raysel.open_study(moved).model.predict(X) == expected
    assert is_trusted(copied(moved, tmp_path / "again") / "ranking/model.skops")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another account"))
    with pytest.raises(DataError):
        raysel.open_study(moved).fold_model("outer0")
    assert raysel.open_study(moved, trust=True).model.predict(X) == expected
    assert not (tmp_path / "another account").exists()  # reading makes no key


#: Objects that skops writes, and what is said of the file.
OBJECTS = {
    "list": ([1, 2], "holds a list, not a model"),
    "mapping": ({"a": np.arange(3)}, "holds a dict, not a model"),
    "text": ("text", "holds a str, not a model"),
    "estimator that is nowhere": (_nowhere(), r"names nowhere\.Stranger, .*: import nowhere first"),
    "object": (Hidden("x"), r"holds .*Hidden"),
    "function": (os.system, r"holds .*posix\.system"),
    "function of a transformer": (FunctionTransformer(func=os.remove), r"holds .*posix\.remove"),
    "method": (UnitScaler().fit, r"holds .*UnitScaler\.fit"),
    "operator": (operator.methodcaller("unlink"), "holds .*methodcaller"),
    "built-in": ({"scaler": UnitScaler(), "deep": [(eval,)]}, r"holds .*builtins\.eval"),
}
#: Other files.
CONTENTS = {
    "pickle": (pickle.dumps(_Attack()), "not a skops file"),
    "pickle in an archive": (zipped(pickle.dumps(_Attack())), "not a skops file"),
    "no archive": (b"no zip", "not a skops file"),
    "half an archive": (b"PK\x03\x04" + bytes(100), "not a skops file"),
    "list as schema": (zipped("[]"), "damaged"),
    "deep schema": (zipped("[" * 10**5), r"damaged \(RecursionError\)"),
    "empty schema": (zipped("{}"), "damaged"),
    "protocol only": (zipped('{"protocol": 2}'), "damaged"),
    "half a list": (zipped('{"protocol": 2, "__loader__": "ListNode"}'), "damaged"),
}


@pytest.mark.parametrize("name", [*OBJECTS, *CONTENTS])
def test_a_trusted_file_without_a_model_is_refused_and_runs_nothing(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content, message = CONTENTS.get(name) or (skops.io.dumps(OBJECTS[name][0]), OBJECTS[name][1])
    Path("model.skops").write_bytes(content)
    with pytest.raises(DataError, match=rf"model\.skops .*{message}"):
        load_model("model.skops", trust=True)
    assert not Path("ran").exists()


def test_a_damaged_file_is_refused_wherever_it_is_cut(tmp_path):
    path = save_model(UnitScaler().fit(np.eye(3)), tmp_path / "model.skops")
    whole = path.read_bytes()
    for length in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            load_model(path, trust=True)


def test_a_forged_type_is_refused_before_it_is_made(tmp_path):
    """The schema of an honest file is rewritten to call os.mkdir on loading."""
    path = save_model(UnitScaler().fit([[0.0], [4.0]]), tmp_path / "model.skops")
    witness = tmp_path / "witness"

    def forge(schema):
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
        load_model(path, trust=True)
    assert not witness.exists()
    skops.io.load(path, trusted=["os.mkdir", *trusted_types()])  # the forgery would have worked
    assert witness.exists()


def test_a_sparse_matrix_is_refused_under_the_name_that_skops_trusts(tmp_path):
    model = UnitScaler().fit(np.eye(3))
    model.offset_ = scipy.sparse.csr_matrix((1, 3))

    def forge(schema):
        node = schema["content"]["content"]["offset_"]
        node["__class__"], node["__module__"] = (
            scipy.sparse.spmatrix.__name__,
            scipy.sparse.spmatrix.__module__,
        )

    path = tmp_path / "model.skops"
    path.write_bytes(rewritten(skops.io.dumps(model), forge))
    assert not [name for name in skops.io.get_untrusted_types(file=path) if "sparse" in name]
    assert scipy.sparse.issparse(skops.io.load(path, trusted=sorted(trusted_types())).offset_)
    with pytest.raises(DataError, match=r"holds scipy\.sparse\._matrix\.spmatrix"):
        load_model(path, trust=True)
    assert "scipy.sparse._matrix.spmatrix" in foreign_nodes(path.read_bytes(), trusted_types())
