"""Models come back as they were; those of others are in ``tests/attacks/test_models.py``."""

from __future__ import annotations

import importlib
import io
import pkgutil
import zipfile
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.callback import ProgressBar
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import raysel.base.adapter
import raysel.base.importance
import raysel.base.label_codes
import raysel.baselines
import raysel.data
import raysel.evaluation
import raysel.results
import raysel.solvers
from raysel.base.adapter import ScikitLearnMethod
from raysel.base.estimator import Estimator
from raysel.base.models import load_model, save_model, trusted_types, untrusted_types
from raysel.base.registry import OWN, build_solver, solver_class
from raysel.core.errors import DataError, StudyError
from raysel.data.layouts import Matrix
from raysel.data.scaling import ModalityScaler, UnitScaler, make_scaler
from raysel.evaluation.selectors import ScoredSelector


class Stranger(BaseEstimator):
    """A user's own estimator."""


def test_the_directory_of_a_study_stands_for_its_model(tmp_path):
    save_model(UnitScaler().fit([[0], [4]]), tmp_path / "model.skops")
    assert load_model(tmp_path).range_ == 4.0
    assert load_model(str(tmp_path)).range_ == 4.0
    (tmp_path / "model.skops").unlink()
    with pytest.raises(DataError, match=r"has no model\.skops; give the directory of a finished"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("name", "scaling"), zip(OWN, cycle(["unit", "zscore", "none"]), strict=False)
)
def test_a_study_s_model_comes_back_to_the_last_bit(name, scaling, tmp_path):
    X, y = load_digits(return_X_y=True)
    X, y = X[:120], y[:120]
    few = {"max_iter": 3} if "max_iter" in solver_class(name)().get_params() else {}
    solver = build_solver(name, Matrix(8, 8), few, random_state=0)
    model = Pipeline([("scaler", make_scaler(scaling)), ("solver", solver)]).fit(X, y)
    loaded = load_model(save_model(model, tmp_path / "model.skops"))
    again = loaded.named_steps["solver"]
    assert type(again) is type(solver)
    assert again.get_params() == solver.get_params()
    if solver.capabilities.ranks:
        np.testing.assert_array_equal(again.scores_, solver.scores_)
    np.testing.assert_array_equal(again.objective_path_, solver.objective_path_)
    if solver.capabilities.predicts:
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    if hasattr(solver, "transform"):
        np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


OLD_MODELS = Path(__file__).parent / "data"


def test_every_estimator_of_raysel_is_trusted_under_its_own_name():
    found = set()
    own_packages = (
        raysel.solvers,
        raysel.baselines,
        raysel.data,
        raysel.evaluation,
        raysel.results,
        raysel.base.adapter,
        raysel.base.importance,
        raysel.base.label_codes,
    )
    for package in own_packages:
        path = getattr(package, "__path__", None)
        modules = (
            [m.name for m in pkgutil.walk_packages(path, f"{package.__name__}.")]
            if path
            else [package.__name__]
        )
        for name in modules:
            classes = [
                value
                for value in vars(importlib.import_module(name)).values()
                if isinstance(value, type)
            ]
            own = [c for c in classes if issubclass(c, BaseEstimator) and c.__module__ == name]
            found |= {
                c for c in own if c._get_param_names() or not issubclass(c, Estimator)
            }  # no base class
            found = {c for c in found if not c.__name__.startswith("_")}
    assert {f"{c.__module__}.{c.__qualname__}" for c in found - {ScoredSelector}} == {
        t for t in trusted_types() if t.startswith("raysel.")
    }
    assert all(name.startswith(("raysel.", "sklearn.", "numpy.dtype")) for name in trusted_types())


@pytest.mark.parametrize(
    "name", sorted(path.name.partition("-")[0] for path in OLD_MODELS.glob("*.skops"))
)
def test_a_model_of_version_0_1_is_read_under_its_present_name(name):
    """The files were written by version 0.1 from every fifth iris, scaled."""
    model = load_model(OLD_MODELS / f"{name}-0.1.skops", trust=True)
    X, y = load_iris(return_X_y=True)
    assert type(model.named_steps["solver"]) is solver_class(name)
    again = Pipeline(
        [("scaler", UnitScaler()), ("solver", build_solver(name, Matrix(2, 2), {}, random_state=0))]
    )
    again.fit(X[::5], y[::5])
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    np.testing.assert_allclose(model[-1].scores_, again[-1].scores_, rtol=1e-9)


#: Modules of some classes in model files of versions 0.2 to 0.7 and 0.8.0; the classes' names have stayed.
FORMER_MODULES = {
    "pca": ["raysel.baselines.projections.pca", "raysel.baselines.pca"],
    "t_test": ["raysel.baselines.filters.t_test", "raysel.baselines.t_test"],
    "mrmr": ["raysel.baselines.filters.mrmr", "raysel.baselines.mrmr"],
    "gbr": ["raysel.baselines.embedded.gbr", "raysel.baselines.gbr"],
    "kernel_svm": ["raysel.baselines.classifiers.kernel_svm", "raysel.baselines.kernel_svm"],
    "ml_knn": ["raysel.baselines.multilabel.ml_knn", "raysel.baselines.ml_knn"],
    "rfs": ["raysel.baselines.embedded.rfs"],
}


@pytest.mark.parametrize("name", FORMER_MODULES)
def test_a_model_is_read_whose_classes_have_moved(name, tmp_path):
    X, y = load_iris(return_X_y=True)
    scaler = ModalityScaler({"a": 2, "b": 2}).fit(X)
    model = Pipeline(
        [
            ("scaler", scaler),
            ("solver", build_solver(name, Matrix(2, 2), {}).fit(scaler.transform(X), y)),
        ]
    )
    content = save_model(model, tmp_path / "present.skops").read_bytes()
    for former in FORMER_MODULES[name]:
        places = {
            solver_class(name).__module__: former,
            "raysel.data.scaling": "raysel.data.modality_scaler",
        }
        with (
            zipfile.ZipFile(io.BytesIO(content)) as whole,
            zipfile.ZipFile(tmp_path / "former.skops", "w") as changed,
        ):
            for member in whole.namelist():
                data = whole.read(member)
                if member == "schema.json":
                    for present, place in places.items():
                        assert present.encode() in data
                        data = data.replace(present.encode(), place.encode())
                changed.writestr(member, data)
        loaded = load_model(tmp_path / "former.skops", trust=True)
        assert [type(step) for _, step in loaded.steps] == [ModalityScaler, solver_class(name)]
        if hasattr(model[-1], "predict"):
            np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        if hasattr(model[-1], "scores_"):
            np.testing.assert_array_equal(loaded[-1].scores_, model[-1].scores_)


FOREST = ExtraTreesClassifier(n_estimators=3, random_state=0)


@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVC(random_state=0),
        FOREST,
        KNeighborsClassifier(),
        SelectKBest(k=5),
        RandomForestClassifier(3),
        SVC(),
        ColumnTransformer(
            [("scaled", StandardScaler(), [0, 20]), ("others", "passthrough", slice(40, None))]
        ),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_wrapped_model_comes_back(estimator, tmp_path):
    X, y = load_digits(return_X_y=True)
    model = ScikitLearnMethod(estimator).fit(X[:200], y[:200])
    assert untrusted_types(model) == []
    loaded = load_model(save_model(model, tmp_path / "model.skops"))
    method = "predict" if hasattr(model, "predict") else "transform"
    np.testing.assert_array_equal(getattr(loaded, method)(X), getattr(model, method)(X))


def test_what_could_not_be_loaded_is_known_beforehand():
    X, y = load_digits(return_X_y=True)
    assert [name.rpartition(".")[2] for name in untrusted_types(ScikitLearnMethod(Stranger()))] == [
        "Stranger"
    ]
    boosted = ScikitLearnMethod(HistGradientBoostingClassifier(max_iter=2)).fit(X[:100], y[:100])
    assert any("TreePredictor" in name for name in untrusted_types(boosted))


@pytest.mark.parametrize(
    "model",
    [
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=3, random_state=0),
        BaggingClassifier(DecisionTreeClassifier(), n_estimators=3, max_features=2, random_state=0),
        Pipeline([("projection", PCA(2)), ("forest", FOREST)]),
        RandomForestClassifier(3, random_state=0),
    ],
    ids=["AdaBoost", "bagging", "pipeline", "labels"],
)
def test_ensembles_of_trees_come_back(model, tmp_path):
    X, y = load_iris(return_X_y=True)
    if isinstance(model, RandomForestClassifier):
        y = np.eye(3, dtype=int)[y][:, :2]
    fitted = clone(model).fit(X, y)
    loaded = load_model(save_model(fitted, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


@pytest.mark.parametrize(
    "wrap", [lambda solver: solver, lambda solver: Pipeline([("solver", solver)])]
)
def test_callbacks_stay_with_the_model_and_out_of_the_file(wrap, tmp_path):
    callback = ProgressBar()
    solver = build_solver("smr", Matrix(8, 8), {"max_iter": 2}).set_callbacks(callback)
    X, y = load_digits(return_X_y=True)
    model = wrap(solver.fit(X[:60], y[:60]))
    loaded = load_model(save_model(model, tmp_path / "model.skops"))
    again = loaded.named_steps["solver"] if isinstance(loaded, Pipeline) else loaded
    assert not hasattr(again, "_skl_callbacks")
    assert solver._skl_callbacks == [callback]
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_saving_and_loading_name_what_cannot_be(tmp_path):
    with pytest.raises(DataError, match="Stranger"):
        save_model(
            Pipeline([("scaler", UnitScaler()), ("own", Stranger())]), tmp_path / "model.skops"
        )
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StudyError, match="nowhere"):
        save_model(UnitScaler().fit(np.eye(2)), tmp_path / "nowhere" / "model.skops")
    with pytest.raises(DataError, match=r"absent\.skops cannot be read: No such file"):
        load_model(tmp_path / "absent.skops")
