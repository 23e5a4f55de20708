"""Classifiers that take 0 to k - 1 only, in files of studies: they give what they give for
labels coded by hand.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from small_studies import streams_of

from raysel import load_model, open_comparison, open_study

STRICT = {"name": "strict_labels.StrictClassifier", "params": {}}
UNTAGGED = {"name": "strict_labels.UntaggedStrict", "params": {}}
X, CODES = (values[::2] for values in load_iris(return_X_y=True))
#: The second class is the one to leave out.
NAMES = {
    "text": ("virginica", "left out", "setosa"),
    "numbers": (30, 10, 20),
    "codes": (1, 7, 0),
}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("raysel.results.page.report.write_final_report", lambda _: None)


def write(name: str, names, **keys) -> str:
    """Write data with such labels, and a study of them without the second class."""
    frame = pd.DataFrame(X - X.mean(axis=0), columns=list("abcd"))
    frame.assign(y=np.array(names)[CODES]).to_csv(f"{name}.csv", index=False)
    study = {
        "name": "flowers",
        "pictures": [],
        "dataset": {"path": f"{name}.csv", "exclude_classes": [names[1]]},
        "evaluation": {"estimator": "native", "references": False},
        "cv": {"outer": 3, "inner": 2},
        "search": {"executor": "serial"},
        "tracking": {"mlflow": False},
    }
    text = json.dumps(study | keys)  # which is YAML, too, without aliases
    Path(f"{name}.yaml").write_text(text, encoding="utf-8")
    return f"{name}.yaml"


def tuned(name: str, **keys):
    status, _, err = streams_of("tune", write(name, NAMES[name], **keys), "--output", name)
    assert status == 0, err
    return open_study(name)


SCORED = {"estimator": STRICT, "n_features": [2], "references": True}
BY_ESTIMATOR = {"solver": {"name": "fisher_score"}, "evaluation": SCORED}


@pytest.mark.parametrize(
    ("labels", "keys"),
    [
        ("text", {"solver": STRICT}),
        pytest.param("numbers", {"solver": UNTAGGED}, marks=pytest.mark.slow),
        pytest.param("text", BY_ESTIMATOR, marks=pytest.mark.slow),
    ],
    ids=["solver", "untagged", "scoring"],
)
def test_a_study_without_a_class_gives_what_it_gives_for_codes(labels, keys):
    found, expected = tuned(labels, **keys), tuned("codes", **keys)
    assert found.test_scores == expected.test_scores
    predicted = load_model(labels).predict(X)
    by_codes = load_model("codes").predict(X)
    of_code = {1: NAMES[labels][0], 0: NAMES[labels][2]}
    assert predicted.tolist() == [of_code[int(code)] for code in by_codes]


def printed(*words: str) -> str:
    status, out, err = streams_of(*words)
    assert status == 0, err
    return out


@pytest.mark.slow
def test_a_comparison_an_audit_and_a_selection_are_those_of_codes():
    solver = {"solver": STRICT | {"space": {"C": [0.1, 1.0]}}}
    evaluation = {"evaluation": SCORED | {"references": False}}
    members = {"itself": solver | {"evaluation": {"estimator": "native"}}, "scored": solver}
    texts = {}
    for labels in ("text", "codes"):
        study = write(labels, NAMES[labels], **solver, **evaluation)
        audited = printed("audit", study, "--permutations", "1")
        printed("tune", study, "--output", f"{labels}-study")
        selected = printed("select", f"{labels}-study", "--top", "2")
        write(labels, NAMES[labels], **evaluation, compare=members)
        printed("tune", study, "--output", f"{labels}-compared")
        compared = open_comparison(f"{labels}-compared")
        scores = {name: member.test_scores for name, member in compared.studies.items()}
        for text, code in ((f"{labels}-", ""), ("virginica", "1"), ("setosa", "0")):
            selected = selected.replace(text, code)
        texts[labels] = (audited, selected.split(), scores)
    assert texts["text"] == texts["codes"]
