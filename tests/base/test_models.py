"""Models come back as they were; those of others are in ``tests/attacks/test_models.py``."""

from __future__ import annotations

import importlib
import io
import pkgutil
import sys
import zipfile
from itertools import cycle

import numpy as np
import pytest
from imblearn.ensemble import BalancedRandomForestClassifier
from imblearn.over_sampling import SMOTE
from imblearn.pipeline import make_pipeline
from imblearn.under_sampling import EditedNearestNeighbours
from sklearn.base import BaseEstimator, clone
from sklearn.callback import ProgressBar
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
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
from raysel.base.model_types import trusted_types
from raysel.base.models import load_model, save_model, unlisted_estimators, untrusted_types
from raysel.base.registry import OWN, build_solver, solver_class
from raysel.core.errors import DataError, StudyError
from raysel.data.layouts import Matrix
from raysel.data.preparation.joining import ColumnJoiner
from raysel.data.scaling import ModalityScaler, UnitScaler, make_scaler
from raysel.evaluation.selectors import ScoredSelector
from raysel.solvers.spatial.neighbour_model import (
    NeighbourClassifier,
    NeighbourModel,
    NeighbourRegressor,
)


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


OWN_FOREST = """
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier

class Own(BaseEstimator):
    def fit(self, X, y):
        self.forest_ = RandomForestClassifier(3, random_state=0).fit(X, y)
        self.said_ = {"classes": 3, "name": "iris"}
        return self

    def predict(self, X):
        return self.forest_.predict(X)
"""


class Hidden:
    """An object that is no estimator."""


#: Classes with parameters of which no model is an instance.
BASE_CLASSES = {
    *(ScoredSelector, ColumnJoiner),
    *(NeighbourModel, NeighbourClassifier, NeighbourRegressor),
}


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
    assert {f"{c.__module__}.{c.__qualname__}" for c in found - BASE_CLASSES} == {
        t for t in trusted_types() if t.startswith("raysel.")
    }
    packages = {name.partition(".")[0] for name in trusted_types()}
    plain = {"builtins", "collections", "numpy", "scipy"}
    assert packages == {"raysel", "sklearn", "imblearn", "lightgbm", "xgboost", *plain}


#: Modules of some classes in model files of versions 0.7 and 0.8.0; the classes' names have
#: stayed.
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
    stranger = ScikitLearnMethod(Stranger())
    assert untrusted_types(stranger) == []
    assert [name.rpartition(".")[2] for name in unlisted_estimators(stranger)] == ["Stranger"]
    assert unlisted_estimators(ScikitLearnMethod(FOREST)) == []
    stranger.estimator.lock_ = Hidden()
    assert [name.rpartition(".")[2] for name in untrusted_types(stranger)] == ["Hidden"]

    class Local(Stranger):
        pass

    assert len(untrusted_types(Local())) == 1


def test_an_own_estimator_comes_back_where_its_module_is_imported(tmp_path, monkeypatch):
    (tmp_path / "own_forest.py").write_text(OWN_FOREST)
    monkeypatch.syspath_prepend(tmp_path)
    own_forest = importlib.import_module("own_forest")
    X, y = load_iris(return_X_y=True)
    fitted = own_forest.Own().fit(X, y)
    path = save_model(fitted, tmp_path / "model.skops")
    loaded = load_model(path)
    assert type(loaded) is own_forest.Own
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.said_ == {"classes": 3, "name": "iris"}
    monkeypatch.delitem(sys.modules, "own_forest")
    (tmp_path / "own_forest.py").write_text("raise SystemExit('imported')")
    for trust in (False, True):
        with pytest.raises(DataError):
            load_model(path, trust=trust)
    assert "own_forest" not in sys.modules


class Holder(BaseEstimator):
    """Estimator that cannot be made again of its attributes."""

    def __deepcopy__(self, memo):
        return self

    def __setstate__(self, state):
        raise ValueError("not from a file")


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    with pytest.raises(DataError, match=r"could not be read again .*not from a file"):
        save_model(Holder(), tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "model",
    [
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=3, random_state=0),
        BaggingClassifier(DecisionTreeClassifier(), n_estimators=3, max_features=2, random_state=0),
        Pipeline([("projection", PCA(2)), ("forest", FOREST)]),
        GradientBoostingClassifier(n_estimators=3, random_state=0),
        HistGradientBoostingClassifier(max_iter=3),
        KNeighborsClassifier(algorithm="kd_tree", metric="manhattan"),
        RadiusNeighborsClassifier(10.0, algorithm="ball_tree"),
        SGDClassifier(loss="modified_huber", random_state=0),
        StackingClassifier([("tree", DecisionTreeClassifier(random_state=0))], GaussianNB()),
        BalancedRandomForestClassifier(3, random_state=0),
        make_pipeline(SMOTE(), EditedNearestNeighbours(), LogisticRegression()),
        RandomForestClassifier(3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_of_listed_classes_come_back(model, tmp_path):
    X, y = load_iris(return_X_y=True)
    if isinstance(model, RandomForestClassifier):
        y = np.eye(3, dtype=int)[y][:, :2]
    fitted = clone(model).fit(X, y)
    assert unlisted_estimators(fitted) == []
    loaded = load_model(save_model(fitted, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


@pytest.mark.parametrize("name", ["xgboost.XGBClassifier", "lightgbm.LGBMClassifier"])
@pytest.mark.parametrize("labels", [np.arange(3), np.array(["a", "b", "c"])], ids=["0-2", "text"])
def test_boosted_trees_of_other_packages_come_back(name, labels, tmp_path):
    package, _, attribute = name.partition(".")
    boosted = getattr(pytest.importorskip(package), attribute)(n_estimators=3, random_state=0)
    X, codes = load_iris(return_X_y=True)
    fitted = ScikitLearnMethod(boosted).fit(X, labels[codes])
    assert unlisted_estimators(fitted) == []
    loaded = load_model(save_model(fitted, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
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
    own = Stranger()
    own.hidden_ = Hidden()
    with pytest.raises(DataError):
        save_model(Pipeline([("scaler", UnitScaler()), ("own", own)]), tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StudyError):
        save_model(UnitScaler().fit(np.eye(2)), tmp_path / "nowhere" / "model.skops")
    with pytest.raises(DataError, match=r"absent\.skops cannot be read: No such file"):
        load_model(tmp_path / "absent.skops")
