"""Each way to take a batch into account that a draft names is one that the drafted study takes
as it is written.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from raysel.config import load_config
from raysel.config.plain_data import parse_yaml
from raysel.core.errors import DataError
from raysel.study.definition import Study
from raysel.study.draft.draft import init_study

N = 80


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table of 80 samples in 4 batches, which shift and scale its columns, as text and as
    numbers.
    """
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    batch = rng.permutation(np.arange(N) % 4)
    X = rng.normal(size=(N, 6)) * (1 + batch[:, None] / 4) + np.outer(batch, rng.normal(size=6))
    frame = pd.DataFrame(X, columns=[f"gene{i}" for i in range(6)])
    return frame.assign(y=np.array(["a", "b"])[np.arange(N) % 2], batch=batch)


def drafted(frame, form) -> tuple[dict, str]:
    """The configuration of a draft, and its doubt on the batch."""
    words = np.array([f"b{i}" for i in range(4)])
    frame = frame.assign(batch=words[frame.batch]) if form == "text" else frame
    frame.to_csv("table.csv", index=False)
    draft = init_study("table.csv", output="study.yaml")
    (doubt,) = [text for text in draft.doubts if "measured together" in text]
    assert ("drop" in doubt) == ("batch" in draft.config.dataset.drop) == (form == "text")
    raw = load_config("study.yaml").to_dict()
    raw["evaluation"]["n_features"] = [1, 2]
    return raw, doubt


def prepared(study: Study) -> np.ndarray:
    """Columns of all samples, prepared by themselves."""
    return study.preparation().fit_transform(study.dataset.X)


@pytest.mark.parametrize("form", ["text", "number"])
def test_every_way_that_a_draft_names_can_be_taken(table, form):
    raw, doubt = drafted(table, form)
    batches = np.asarray(table.batch)
    order = [doubt.index(word) for word in ("residualise", "harmonise", "cv.groups")]
    assert order == sorted(order)

    confounds = re.search(r"dataset.confounds: (\[\w+\])", doubt)[1]
    steps = re.search(r"dataset.prepare: (\[.*residualise\])", doubt)[1]
    keys = {"confounds": parse_yaml(confounds, ""), "prepare": parse_yaml(steps, "")}
    study = Study.prepare(load_config({**raw, "dataset": raw["dataset"] | keys}))
    centred = prepared(study)
    assert centred.shape == (N, 6)
    for value in range(4):
        assert np.abs(centred[batches == value].mean(axis=0)).max() < 1e-10

    step = parse_yaml(re.search(r"\{harmonise: \w+\}", doubt)[0], "")
    study = Study.prepare(load_config({**raw, "dataset": raw["dataset"] | {"prepare": [step]}}))
    assert prepared(study).shape == (N, 6)

    outer, inner = map(int, re.search(r"batch, cv.outer: (\d), cv.inner: (\d)", doubt).groups())
    cv = raw["cv"] | {"groups": "batch", "outer": outer, "inner": inner}
    study = Study.prepare(load_config({**raw, "cv": cv}))
    assert study.dataset.n_features == 6
    for fold in study.plan.outer:
        assert not set(batches[fold.train]) & set(batches[fold.test])


@pytest.mark.parametrize("form", ["text", "number"])
def test_a_doubt_is_one_short_sentence_with_the_ways_as_a_list_below(table, form):
    few = np.where(np.arange(N) < 25, 1, 0)
    for frame in (table, table.assign(batch=few), table.assign(y=table.gene0 + 1.0)):
        _, doubt = drafted(frame, form)
        first, *ways = doubt.splitlines()
        assert len(ways) >= 2
        assert max(len(line.split()) for line in (first, *ways)) <= 25
        text = Path("study.yaml").read_text(encoding="utf-8")
        comment = " ".join(text[text.index("# To check:") :].replace("#", "").split())
        assert all(f"- {way}" in comment for way in ways)
        Path("study.yaml").unlink()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_numbers_of_batches_with_an_empty_cell_are_not_taken_in_silence(table, suffix):
    batch = np.asarray(table.batch, dtype=np.float64)
    batch[[3, 17]] = np.nan
    frame = table.assign(batch=batch)
    path = f"table.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    draft = init_study(path, output="study.yaml")
    assert any("batch is taken for a feature" in doubt for doubt in draft.doubts)
    (doubt,) = [text for text in draft.doubts if "measured together" in text]
    assert "cv.groups need a value of batch in each row" in doubt
    raw = load_config("study.yaml").to_dict()
    raw["evaluation"]["n_features"] = [1, 2]
    steps = parse_yaml(re.search(r"dataset.prepare: (\[.*residualise\])", doubt)[1], "")
    keys = {"confounds": ["batch"], "prepare": steps}
    centred = prepared(Study.prepare(load_config({**raw, "dataset": raw["dataset"] | keys})))
    for value in range(4):
        assert np.abs(centred[batch == value].mean(axis=0)).max() < 1e-10
    assert np.abs(centred[np.isnan(batch)].mean(axis=0)).max() < 1e-10  # an empty cell is a value


def test_ways_that_the_batches_do_not_allow_are_not_offered(table):
    few = table.assign(batch=np.where(np.arange(N) < 5, 1, 0))
    _, doubt = drafted(few, "text")
    assert "residualise" in doubt
    assert "harmonise" not in doubt
    assert "cv.groups needs each class in 4 values of batch, and one is in 2" in doubt


def test_nothing_is_said_of_classes_beside_a_quantity(table):
    quantity = table.assign(batch=np.where(np.arange(N) < 40, 1, 0), y=table.gene0 + 1.0)
    _, doubt = drafted(quantity, "number")
    assert "cv.groups needs 4 values of batch, and there are 2" in doubt
    assert "class" not in doubt


def test_a_label_in_drop_is_refused_as_before(table):
    table.to_csv("table.csv", index=False)
    raw, _ = drafted(table, "text")
    with pytest.raises(DataError, match="take it out of drop"):
        Study.prepare(load_config({**raw, "dataset": raw["dataset"] | {"drop": ["y"]}}))
