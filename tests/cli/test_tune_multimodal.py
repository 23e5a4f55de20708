"""``raysel tune`` on several modalities and labels: what it notes, what it scores by."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import sklearn.metrics
import yaml

from raysel.data.loading import load_dataset
from raysel.data.scaling import ModalityScaler
from raysel.data.synthetic import make_multimodal_classification
from raysel.evaluation.plan import NestedPlan
from raysel.solvers.smml.smml import SMML
from raysel.tune import main

WIDTHS = {"image": 6, "sound": 5}
LABELS = ["sky", "cow", "car"]
STUDY = {
    "name": "views",
    "dataset": {"path": "views.npz", "scaling": "zscore_sqrt_width"},
    "solver": {
        "name": "smml",
        "params": {"tol": 1e-6},
        "space": {"gamma1": [0.02, 0.2], "gamma2": [0.02, 0.2]},
    },
    "evaluation": {"classifier": "native", "metric": "macro_f1"},
    "cv": {"outer": 2, "inner": 2},
    "search": {"method": "path", "executor": "serial"},
    "pictures": [],
    "tracking": {"uri": "sqlite:///mlflow.db"},
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a study of two modalities and three labels; in rare.npz few have
    one of them.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAYSEL_DATA", raising=False)
    data, _ = make_multimodal_classification(
        WIDTHS, {"image": 3, "sound": 2}, 80, noise=1.2, multilabel=True, random_state=0
    )
    X, Y = data.X, data.y
    (tmp_path / "views.yaml").write_text(yaml.safe_dump(STUDY, sort_keys=False))

    def save(name, Y):
        np.savez(
            name, view_0=X[:, :6], view_1=X[:, 6:], view_names=list(WIDTHS), Y=Y, label_names=LABELS
        )

    save("views.npz", Y)
    rare = Y.copy()
    rare[:, 1] = 0
    rare[:3, 1] = 1
    save("rare.npz", rare)
    return tmp_path


def tune(*changes, arguments=()):
    return main(
        ["views.yaml", *arguments, *(part for change in changes for part in ("--set", change))]
    )


@pytest.mark.usefixtures("here")
def test_labels_that_a_fold_lacks_are_noted(capsys):
    assert tune("dataset.path=rare.npz", arguments=["--dry-run"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^  labels +3, 3 to \d+ samples each: sky \(", out, re.MULTILINE)
    (note,) = [line for line in out.splitlines() if line.startswith("  note ")]
    assert "cow has no positives in" in note
    assert "counts as 0" in note
    assert (
        tune("dataset.path=rare.npz", "dataset.exclude_labels=[cow]", arguments=["--dry-run"]) == 0
    )
    assert re.search("^checks +nothing to note$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.usefixtures("here", "without_mlflow", "without_report")
def test_a_study_selects_and_scores_by_the_metric_it_is_given(here, capsys):
    metric = "macro_precision"
    assert tune(f"evaluation.metric={metric}", arguments=["--output", "study"]) == 0
    assert f"test {metric.replace('_', ' ')}" in capsys.readouterr().out
    data = load_dataset("views.npz")
    plan = NestedPlan.load(here / "study" / "plan.json", data.y, None)
    manifest = json.loads((here / "study" / "ranking" / "manifest.json").read_text())
    assert manifest["metric"] == metric

    def score(params, train, test):
        scaler = ModalityScaler(WIDTHS).fit(data.X[train])
        model = SMML(WIDTHS, **params).fit(scaler.transform(data.X[train]), data.y[train])
        predicted = model.predict(scaler.transform(data.X[test]))
        return sklearn.metrics.precision_score(
            data.y[test], predicted, average="macro", zero_division=0
        )

    space = STUDY["solver"]["space"]
    grid = [
        {"tol": 1e-6, "gamma1": a, "gamma2": b} for a in space["gamma1"] for b in space["gamma2"]
    ]
    for number, fold in enumerate(plan.outer):
        winner = manifest["winners"][fold.name]
        assert manifest["scores"]["test"][number] == pytest.approx(
            score(winner, fold.train, fold.test), abs=1e-12
        )
        inner = {
            str(sorted(p.items())): np.mean([score(p, i.train, i.validation) for i in fold.inner])
            for p in grid
        }
        assert manifest["scores"]["inner"][number] == pytest.approx(max(inner.values()), abs=1e-12)
        assert inner[str(sorted(winner.items()))] == max(inner.values())
