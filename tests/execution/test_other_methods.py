"""Studies of other people's methods: scikit-learn's by their dotted names, an installed
package's by entry points.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import recall_score
from small_studies import Watcher, make_study, raw_config, run_offline, run_serially, write_digits

import raysel
from raysel.base.models import load_model
from raysel.core.errors import ConfigError, DataError
from raysel.data.loading import load_dataset
from raysel.numerics.metrics import metric as named_metric
from raysel.select import main as select_main
from raysel.tune import main as tune_main

NATIVE = {"classifier": "native"}


@pytest.fixture
def digits(tmp_path):
    write_digits(tmp_path / "few.npz")
    return tmp_path / "few.npz"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder that pip has installed the sample package into."""
    folder, source = (
        tmp_path_factory.mktemp("site"),
        Path(__file__).parent.parent / "base/sample_package",
    )
    options = [
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "--disable-pip-version-check",
    ]
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        *options,
        "--target",
        str(folder),
        str(source),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def installed(site, monkeypatch):
    monkeypatch.syspath_prepend(site)
    yield site
    sys.modules.pop("raysel_sample", None)


STUDIES = {
    "sklearn.svm.LinearSVC": {"space": {"C": [0.001]}},
    "sklearn.ensemble.ExtraTreesClassifier": {
        "params": {"n_estimators": 5},
        "space": {"max_depth": [2, None]},
    },
    "sklearn.neighbors.KNeighborsClassifier": {"space": {"n_neighbors": [1, 3]}},
    "sklearn.feature_selection.SelectKBest": {"params": {"k": 4}},
    "class_spread": {"space": {"floor": [0.1, 1.0]}},
    "nearest_mean": {"space": {"order": [1, 2]}},
}
RANKS_NOTHING = {"sklearn.neighbors.KNeighborsClassifier", "nearest_mean"}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if "Trees" in name else name for name in STUDIES],
)
def test_a_study_scores_what_the_method_itself_gives(name, digits, tmp_path):
    evaluation = {"classifier": "knn", "n_features": [4, 8]}
    native = name in RANKS_NOTHING or "Trees" in name
    study = make_study(
        digits, solver={"name": name, **STUDIES[name]}, evaluation=NATIVE if native else evaluation
    )
    records, refits, _ = run_serially(study, tmp_path / "run")
    assert [record["status"] for record in records.values()] == ["finished"] * len(
        study.configurations
    )
    X, y = study.dataset.X, study.dataset.y
    for (record, model), fold in zip(refits, study.plan.folds, strict=True):
        assert (
            (record.feature_scores is None) == (name in RANKS_NOTHING) == (not study.findings.ranks)
        )
        if native and len(fold.test):
            alone = clone(model).fit(X[fold.train], y[fold.train])
            assert record.test_scores == [
                pytest.approx(np.mean(alone.predict(X[fold.test]) == y[fold.test]))
            ]


@pytest.mark.usefixtures("installed")
def test_another_package_s_metric_is_used_by_name():
    y, predicted = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 0])
    assert (
        named_metric("worst_recall")(y, predicted) == recall_score(y, predicted, average=None).min()
    )
    with pytest.raises(ConfigError):
        named_metric("worst_recal")


@pytest.mark.usefixtures("installed")
def test_another_package_s_reader_is_used_by_suffix(tmp_path):
    X, y = load_digits(return_X_y=True)
    np.savetxt(tmp_path / "digits.tab", np.column_stack([X, y]), delimiter="\t")
    data = load_dataset(tmp_path / "digits.tab", shape=[8, 8])
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    with pytest.raises(DataError, match=r"nor a file of a known format \(\.npz, .*\.tab\)"):
        load_dataset("digits.xls")


def command(folder, site, *arguments):
    paths = [str(site), str(Path(__file__).parents[2])]
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )


def results(study: Path) -> list:
    """What the refits found."""
    lines = [json.loads(line) for line in (study / "journal.jsonl").read_text().splitlines()]
    keys = ("fold", "params", "inner_score", "test_scores", "feature_scores")
    return sorted([line[key] for key in keys] for line in lines if line["kind"] == "refit")


@pytest.fixture
def tab(tmp_path, monkeypatch):
    """A working directory with a few digits in a file that the installed package reads."""
    monkeypatch.chdir(tmp_path)
    X, y = load_digits(return_X_y=True)
    np.savetxt(tmp_path / "few.tab", np.column_stack([X, y])[:150], delimiter="\t")
    return tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow", "without_report")
def test_an_interrupted_study_of_another_package_s_method_is_resumed_exported_and_loaded(
    tab, installed, capsys
):
    raw = raw_config(
        "few.tab", dataset__shape=[8, 8], solver={"name": "class_spread", **STUDIES["class_spread"]}
    )
    raw["evaluation"]["metric"] = "worst_recall"
    with pytest.raises(KeyboardInterrupt):
        raysel.run_study(raw, output="study", progress=Watcher(2))
    assert tune_main(["--resume", "study"]) == 0
    assert "worst recall" in capsys.readouterr().out
    run_offline(raw, tab / "undisturbed")
    assert results(tab / "study") == results(tab / "undisturbed")

    assert select_main(["study", "--output", "kept", "--top", "5"]) == 0
    files = {"manifest.json", "model.skops", "model.skops.hmac", "ranking.csv", "ranking.parquet"}
    assert {path.name for path in (tab / "kept").iterdir()} == files
    (tab / "load.py").write_text(
        "from raysel import load_model; print(load_model('kept/model.skops').method.ranking_.min()"
        " == 1)"
    )
    done = command(tab, installed, "load")
    assert done.stdout.strip() == "True", done.stderr
    done = command(tab, tab, "load")  # where the package is not installed, its class is a stranger
    assert "names raysel_sample.ClassSpread, and loading imports no module" in done.stderr
    assert "import raysel_sample first" in done.stderr


@pytest.mark.usefixtures("installed")
def test_a_method_that_ranks_nothing_is_exported_without_a_ranking(tab, capsys):
    solver = {"name": "sklearn.neighbors.KNeighborsClassifier", "space": {"n_neighbors": [1, 3]}}
    run_offline(
        raw_config("few.tab", dataset__shape=[8, 8], solver=solver, evaluation=NATIVE),
        tab / "study",
    )
    assert select_main(["study", "--output", "kept"]) == 0
    names = {path.name for path in (tab / "kept").iterdir()}
    assert names == {"manifest.json", "model.skops", "model.skops.hmac"}
    assert "so there is no ranking" in capsys.readouterr().out
    data = load_dataset("few.tab", shape=[8, 8])
    assert (load_model("kept/model.skops").predict(data.X) == data.y).mean() > 0.7
