"""The API reference is made without a warning, and lists every key, method and public name."""

from __future__ import annotations

import re

import pytest

import raysel
from experiments.guide import reference
from raysel.base.registry import OWN
from raysel.config.keys import comparison_reference, config_reference


@pytest.fixture(scope="module")
def made():
    return {page.__name__: page for page in reference.pages()}


def test_the_keys_are_those_of_the_configuration(made):
    listed = re.findall(r"^\| `([\w.\[\]]+)` \|", made["keys"].__doc__, re.MULTILINE)
    entries = [*config_reference(), *comparison_reference()]
    assert sorted(listed) == sorted(entry.key for entry in entries)


def test_every_public_name_and_method_has_a_place(made):
    assert {*made["raysel"].__all__, "__version__"} == set(raysel.__all__)
    listed = re.findall(r"^\| `(\w+)` \| `(\w+)` \|$", made["methods"].__doc__, re.MULTILINE)
    assert [name for name, _ in listed] == list(OWN)
    assert {cls for _, cls in listed} == set(made["methods"].__all__)


def test_pages_are_written_without_a_warning(made, tmp_path, monkeypatch, recwarn):
    pytest.importorskip("pdoc")
    # The large pages, which take 20 s, are made by the workflow, where a warning is an error.
    few = [made[name] for name in ("index", "keys", "results")]
    monkeypatch.setattr(reference, "pages", lambda: few)
    reference.write(tmp_path)
    assert [str(warning.message) for warning in recwarn] == []
    assert {path.stem for path in tmp_path.iterdir()} == {"index", "keys", "results"}
    assert "StudyResult" in (tmp_path / "results.html").read_text(encoding="utf-8")
