"""A study is read only where the versions are the driver's; the error of a worker is found in Ray's text."""

from __future__ import annotations

import pickle

import pytest

from raysel.execution.ray.versions import MixedVersionsError, NodeCheck, other_versions, versions_here
from raysel.study.identity import machine_versions

STUDY = {"any": "object"}


def test_a_study_is_restored_where_the_versions_are_the_same():
    check = NodeCheck(("raysel",), allowed=False)
    assert pickle.loads(pickle.dumps(check.guard(STUDY))) == STUDY


def test_elsewhere_it_is_not_and_both_versions_are_named():
    check = NodeCheck(("raysel",), allowed=False)
    check.expected = {**check.expected, "numpy": "1.0", "simd": "x86_64 X86_V9"}
    stored = pickle.dumps(check.guard(STUDY))
    here = machine_versions()
    with pytest.raises(MixedVersionsError, match=f"numpy {here['numpy']} instead of 1.0, simd .*NPY_DISABLE") as caught:
        pickle.loads(stored)
    text = (
        "ray.exceptions.RaySystemError: System error\n"
        f"raysel.execution.ray.versions.MixedVersionsError: {caught.value}\nend"
    )
    found = other_versions(RuntimeError(text))
    assert isinstance(found, MixedVersionsError)
    assert str(found).startswith("the node ")
    assert other_versions(RuntimeError("the node died")) is None


def test_it_is_restored_everywhere_if_mixed_versions_are_allowed():
    check = NodeCheck(("raysel",), allowed=True)
    check.expected = {"numpy": "1.0"}
    assert pickle.loads(pickle.dumps(check.guard(STUDY))) == STUDY


def test_the_code_of_a_module_is_compared(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "one_file.py").write_text("a = 1")
    before = versions_here(("raysel", "one_file", "nowhere"))
    (tmp_path / "one_file.py").write_text("a = 2")
    after = versions_here(("raysel", "one_file", "nowhere"))
    assert before["code of raysel"] == after["code of raysel"]
    assert before["code of one_file"] != after["code of one_file"]
    assert after["code of nowhere"] == "missing"
