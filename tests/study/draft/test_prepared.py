"""Tables as people have them, with gaps, text and batches: drafted and run without an edit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from small_studies import run_offline

from raysel.config import load_config
from raysel.study.definition import Study
from raysel.study.draft.draft import init_study


def expression(n: int = 200, d: int = 2000, planted: int = 20) -> tuple[pd.DataFrame, list[str]]:
    """Genes in three subtypes: sample ids, batch and sex as text; five empty cells, one in a
    planted gene.
    """
    rng = np.random.default_rng(0)
    subtype, X = rng.permutation(np.arange(n) % 3), rng.normal(size=(n, d))
    genes = rng.choice(d, planted, replace=False)
    shift = rng.normal(size=(3, planted))
    shift -= shift.mean(axis=0)
    X[:, genes] += 1.2 * (shift / np.abs(shift).max(axis=0))[subtype]
    batch = rng.choice(4, n)
    X += 0.1 * batch[:, None] * rng.normal(size=d)
    names = [f"gene{i:04d}" for i in range(d)]
    frame = pd.DataFrame(X.round(4), columns=names)
    frame.iloc[rng.integers(n), genes[0]] = np.nan
    for _ in range(4):
        frame.iloc[rng.integers(n), rng.integers(d)] = np.nan
    frame.insert(0, "sample_id", [f"GSM{100000 + i}" for i in range(n)])
    frame.insert(1, "batch", np.array(["b1", "b2", "b3", "b4"])[batch])
    frame.insert(2, "sex", rng.choice(["male", "female"], n))
    return frame.assign(subtype=np.array(["basal", "luminal", "her2"])[subtype]), [
        names[i] for i in genes
    ]


def passengers(n: int = 400) -> pd.DataFrame:
    """A passenger list: the sex, the class and the age tell who survived; two columns hold it in
    other words.
    """
    rng = np.random.default_rng(0)
    sex, pclass = (
        rng.choice(["male", "female"], n, p=[0.65, 0.35]),
        rng.choice([1, 2, 3], n, p=[0.25, 0.2, 0.55]),
    )
    age = rng.normal(30, 14, n).clip(0.4, 80).round(1)
    told = 2.5 * (sex == "female") - 0.9 * (pclass - 2) - 0.02 * (age - 30) - 1.2
    survived = (rng.random(n) < 1 / (1 + np.exp(-told))).astype(float)
    embarked = rng.choice(["S", "C", "Q"], n, p=[0.72, 0.19, 0.09]).astype(object)
    embarked[[5, 77]] = None
    survived[9] = np.nan
    cabins = [
        f"{deck}{number}"
        for deck, number in zip(rng.choice(list("ABC"), n), rng.integers(1, 99, n), strict=True)
    ]
    return pd.DataFrame(
        {
            "PassengerId": np.arange(1, n + 1),
            "Survived": survived,
            "Pclass": pclass,
            "Name": [f"Braund, Mr. Owen {i}" for i in range(n)],
            "Sex": sex,
            "Age": np.where(rng.random(n) < 0.2, np.nan, age),
            "SibSp": rng.integers(0, 4, n),
            "Ticket": [f"A{i}" for i in rng.integers(0, 9999, n)],
            "Fare": np.exp(rng.normal(4.5 - 0.8 * pclass, 0.5)).round(4),
            "Cabin": np.where(rng.random(n) < 0.77, None, cabins),
            "Embarked": embarked,
            "Boarded": pd.date_range("1912-04-10", periods=n, freq="min").astype(str),
            "alive": np.array(["no", "yes"])[np.nan_to_num(survived).astype(int)],
            "code": np.where(survived == 1, 7, 3),
        }
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_passenger_list_is_drafted_and_run_without_an_edit(here):
    passengers().to_csv("titanic.csv", index=False)
    draft = init_study("titanic.csv", output="study.yaml")
    section = draft.config.dataset
    assert (section.label, section.drop_unlabelled) == ("Survived", True)
    assert set(section.drop) == {
        "PassengerId",
        "Name",
        "Ticket",
        "Cabin",
        "Boarded",
        "alive",
        "code",
    }
    assert section.prepare == ({"impute": {}}, {"encode": {}})
    doubts = "\n".join(draft.doubts)
    for words in (
        "drop_unlabelled: 1 row has no label and is left out (row 9",
        "alive: the label in other words, which is no feature and not to be encoded",
        "code is the label 'Survived' in other values",
        "Cabin: too many cells are empty",
        "Boarded: tells when a sample was measured",
    ):
        assert words in doubts
    assert "encode" not in doubts.replace("not to be encoded", "")
    text = " ".join(draft.text.replace("#", "").split())
    assert "of 1 column: Age (" in text
    assert "an empty cell of text is a value of its own: in Embarked" in text
    assert "no features: PassengerId (an identifier: unique in each row), Name (" in text
    raw = load_config("study.yaml").to_dict()
    raw["search"]["executor"] = "serial"
    raw["solver"]["space"] = {"C": [0.1]}
    result = run_offline(raw | {"pictures": []}, here / "study")
    assert Study.prepare(draft.config).dataset.feature_names == (
        "Pclass",
        "Sex",
        "Age",
        "SibSp",
        "Fare",
        "Embarked",
    )
    assert result.ranking().to_frame()["feature"].iloc[0] == "Sex"
    assert np.mean(result.test_scores) > np.mean(result.references["chance"].scores) + 0.1
    row = passengers().drop(columns=["Survived", *section.drop]).iloc[[5]]
    assert result.model.predict(row)[0] in (0, 1)


@pytest.mark.slow
def test_an_expression_table_loses_no_gene_and_finds_those_that_are_planted(here):
    frame, planted = expression()
    frame.to_csv("genes.csv", index=False)
    draft = init_study("genes.csv", output="study.yaml")
    section = draft.config.dataset
    assert (section.label, section.drop) == ("subtype", ("sample_id", "batch"))
    assert any(
        "batch" in doubt and "cv.groups" in doubt and "confounds" in doubt for doubt in draft.doubts
    )
    text = " ".join(draft.text.replace("#", "").split())
    assert "fills 5 cells (0.0012 % of all) of 5 columns, most in" in text
    raw = load_config("study.yaml").to_dict()
    raw["search"]["executor"] = "serial"
    raw["cv"] |= {"outer": 2, "inner": 2}
    result = run_offline(raw | {"pictures": []}, here / "study")
    names = Study.prepare(draft.config).dataset.feature_names
    assert len(names) == 2001
    assert "sex" in names
    best = result.ranking().to_frame()["feature"].iloc[:22]
    assert len(set(best) & set(planted)) >= 18
