"""Studies of other people's methods: scikit-learn's by their dotted names, an installed package's by entry points."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import recall_score
from small_studies import make_study, raw_config, run_serially, write_digits

from raysel.data.loading import load_dataset
from raysel.errors import ConfigError, DataError
from raysel.metrics.classification import classification_metric

NATIVE = {"classifier": "native"}


@pytest.fixture
def digits(tmp_path):
    write_digits(tmp_path / "few.npz")
    return tmp_path / "few.npz"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder that pip has installed the sample package into."""
    folder, source = tmp_path_factory.mktemp("site"), Path(__file__).parent.parent / "base/sample_package"
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def installed(site, monkeypatch):
    monkeypatch.syspath_prepend(site)
    yield site
    sys.modules.pop("raysel_sample", None)


STUDIES = {
    "sklearn.svm.LinearSVC": {"space": {"C": [0.001, 0.1]}},
    "sklearn.ensemble.ExtraTreesClassifier": {"params": {"n_estimators": 5}, "space": {"max_depth": [2, None]}},
    "sklearn.neighbors.KNeighborsClassifier": {"space": {"n_neighbors": [1, 3]}},
    "sklearn.feature_selection.SelectKBest": {"params": {"k": 4}},
    "class_spread": {"space": {"floor": [0.1, 1.0]}},
    "nearest_mean": {"space": {"order": [1, 2]}},
}
RANKS_NOTHING = {"sklearn.neighbors.KNeighborsClassifier", "nearest_mean"}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", STUDIES)
def test_a_study_scores_what_the_method_itself_gives(name, digits, tmp_path):
    evaluation = {"classifier": "knn", "n_features": [4, 8]}
    native = name in RANKS_NOTHING or "Trees" in name
    study = make_study(digits, solver={"name": name, **STUDIES[name]}, evaluation=NATIVE if native else evaluation)
    records, refits, _ = run_serially(study, tmp_path / "run")
    assert [record["status"] for record in records.values()] == ["finished"] * len(study.configurations)
    X, y = study.dataset.X, study.dataset.y
    for (record, model), fold in zip(refits, study.plan.folds, strict=True):
        assert (record.feature_scores is None) == (name in RANKS_NOTHING) == (not study.findings.ranks)
        if native and len(fold.test):
            alone = clone(model).fit(X[fold.train], y[fold.train])
            assert record.test_scores == [pytest.approx(np.mean(alone.predict(X[fold.test]) == y[fold.test]))]


@pytest.mark.usefixtures("installed")
def test_another_package_s_metric_is_used_by_name():
    y, predicted = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 0])
    assert classification_metric("worst_recall")(y, predicted) == recall_score(y, predicted, average=None).min()
    with pytest.raises(ConfigError, match=r"unknown metric 'worst_recal'; did you mean `worst_recall`"):
        classification_metric("worst_recal")


@pytest.mark.usefixtures("installed")
def test_another_package_s_reader_is_used_by_suffix(tmp_path):
    X, y = load_digits(return_X_y=True)
    np.savetxt(tmp_path / "digits.tsv", np.column_stack([X, y]), delimiter="\t")
    data = load_dataset(tmp_path / "digits.tsv", shape=[8, 8])
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    with pytest.raises(DataError, match=r"nor a file that raysel reads \(\.npz, .*\.tsv\)"):
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


@pytest.mark.slow
def test_an_installed_method_is_searched_exported_and_loaded_again(site, tmp_path):
    X, y = load_digits(return_X_y=True)
    np.savetxt(tmp_path / "few.tsv", np.column_stack([X, y])[:150], delimiter="\t")
    config = raw_config(
        "few.tsv",
        dataset__shape=[8, 8],
        solver={"name": "class_spread", "space": {"floor": [0.1, 1.0]}},
        evaluation__metric="worst_recall",
    )
    (tmp_path / "few.yaml").write_text(yaml.safe_dump(config))
    done = command(tmp_path, site, "raysel.tune", "few.yaml", "--output", "study")
    assert done.returncode == 0, done.stderr
    assert "worst_recall" in done.stdout
    (tmp_path / "load.py").write_text(
        "from raysel import load_model; model = load_model('study/ranking/model.skops'); "
        "print(type(model[-1]).__module__, model[-1].ranking_.min())"
    )
    done = command(tmp_path, site, "load")
    assert done.stdout.split() == ["raysel_sample", "1"], done.stderr
    done = command(tmp_path, tmp_path, "load")  # where the package is not installed, its class is a stranger
    assert "names raysel_sample.ClassSpread" in done.stderr
