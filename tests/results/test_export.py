"""The command of the manifest: it repeats the study from any directory, with the data that were
found.
"""

from __future__ import annotations

import shlex

import pytest
from small_studies import raw_config, run_offline, write_digits

from raysel import tune
from raysel.results.export import manifest

SMALL = {"solver": {"name": "fisher_score"}, "cv": {"outer": 2, "inner": 2}}


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A store of data with a space in its name, known by RAYSEL_DATA while a study runs, and a
    directory beside it.
    """
    for name in ("my data", "here", "elsewhere"):
        (tmp_path / name).mkdir()
    write_digits(tmp_path / "my data/few.npz")
    monkeypatch.setenv("RAYSEL_DATA", str(tmp_path / "my data"))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "elsewhere"


def repeated(described, folder, monkeypatch, capsys):
    """What a dry run of the command says in a folder from which the data are not found by their
    name.
    """
    monkeypatch.delenv("RAYSEL_DATA")
    monkeypatch.chdir(folder)
    words = shlex.split(described["command"])
    assert words[:2] == ["raysel", "tune"]
    assert tune.main([*words[2:], "--dry-run"]) == 0
    return capsys.readouterr().out


TASKS = {"tasks": [{"name": "a", "path": "few.npz"}, {"name": "b", "source": "iris"}]}
BLOCKS = {"outer": 2, "inner": 2, "blocks": {"size": 4, "gap": 1}}


@pytest.mark.parametrize(
    ("raw", "key", "size"),
    [
        (raw_config("few.npz", **SMALL, output="study"), "path", "80 samples x 64 features"),
        pytest.param(
            raw_config("few.npz", **{**SMALL, "cv": BLOCKS}, output="study"),
            "path",
            "2 outer x 2 inner",
            marks=pytest.mark.slow,
        ),
        (
            {
                **raw_config(dataset=TASKS, solver={"name": "lda"}, cv=SMALL["cv"]),
                "evaluation": {"classifier": "native", "references": False},
            },
            "tasks.a.path",
            "230 samples x 68 features",
        ),
    ],
    ids=["file", "blocks", "tasks"],
)
def test_it_names_the_data_and_the_folds_that_were_used(
    elsewhere, monkeypatch, capsys, raw, key, size
):
    described = manifest(run_offline(raw, elsewhere.parent / "here/study"))
    assert described["data"] == {key: str(elsewhere.parent / "my data/few.npz")}
    assert size in repeated(described, elsewhere, monkeypatch, capsys)
