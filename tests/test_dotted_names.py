"""A dotted name imports code: it is taken from the user, never from a study's directory."""

from __future__ import annotations

import sys

import pytest
from small_studies import write_digits, write_yaml

from raysel.base.models import load_model
from raysel.data.loading import load_dataset
from raysel.select import main as select_main
from raysel.tune import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "few.npz")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "foreign_code.py").write_text(
        "from sklearn.svm import LinearSVC\nopen('ran', 'w').close()"
    )
    write_yaml(tmp_path / "few.yaml")
    (tmp_path / "study").mkdir()
    (tmp_path / "study/config.yaml").write_text((tmp_path / "few.yaml").read_text())
    write_yaml(tmp_path / "study/config.yaml", solver={"name": "foreign_code.LinearSVC"})
    yield tmp_path
    sys.modules.pop("foreign_code", None)


def test_the_user_may_name_it(folder):
    write_yaml(folder / "own.yaml", solver={"name": "foreign_code.LinearSVC"})
    assert main(["own.yaml", "--dry-run", "--quiet"]) == 0
    assert (folder / "ran").exists()


@pytest.mark.parametrize("name", ["sklearn.svm.LinearSVC", "linear_svm"])
def test_what_imports_nothing_of_others_is_taken_from_a_directory(name, folder, capsys):
    write_yaml(folder / "study/config.yaml", solver={"name": name})
    main(["--resume", "study", "--dry-run"])
    assert "imports code" not in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("without_mlflow", "without_report")
def test_a_class_of_ones_own_is_searched_and_the_result_says_why_its_model_lacks_it(folder, capsys):
    (folder / "own_code.py").write_text(
        "from sklearn.svm import LinearSVC\n\nclass Hidden:\n    pass\n\nclass Mine(LinearSVC):\n  "
        "  def fit(self, X, y):\n        self.hidden_ = Hidden()\n        return super().fit(X,"
        " y)\n"
    )
    write_yaml(folder / "own.yaml", solver={"name": "own_code.Mine", "space": {"C": [0.01, 0.1]}})
    why = "A model file cannot hold own_code.Hidden"
    assert main(["own.yaml", "--dry-run"]) == 0
    assert "model.skops will lack the fitted method" in capsys.readouterr().out
    assert main(["own.yaml", "--output", "own", "--verbose"]) == 0
    assert why in " ".join(capsys.readouterr().out.split())
    names = {path.name for path in (folder / "own/ranking").iterdir()}
    assert names == {
        *("model.skops", "model.skops.hmac"),
        *("ranking.csv", "ranking.parquet", "manifest.json"),
    }
    model = load_model(folder / "own/model.skops")
    assert model.method is None
    data = load_dataset("few.npz")
    assert model.score(data.X, data.y) > 0.8
    assert select_main(["own"]) == 0
    assert "lacks the fitted method: use run_study's result" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["own.yaml", "--resume", "own", "--quiet"]) == 0
    sys.modules.pop("own_code", None)


def test_a_step_that_only_the_directory_names_is_not_imported(folder, capsys):
    data = {"path": str(folder / "few.npz"), "prepare": [{"foreign_code.LinearSVC": {}}]}
    write_yaml(folder / "study/config.yaml", dataset=data)
    assert main(["--resume", "study", "--dry-run"]) == 2
    assert "dataset.prepare: foreign_code.LinearSVC imports code" in capsys.readouterr().err
    assert not (folder / "ran").exists()
