"""What a study may not ask of its method is refused before anything is computed, with the
remedy.
"""

from __future__ import annotations

import json
import sys
import textwrap
import warnings

import numpy as np
import pytest
from small_studies import make_study, write_digits

from raysel.base.registry import OWN, solver_capabilities
from raysel.cli.plan import notes as plan_warnings
from raysel.core.errors import ConfigError, DataError
from raysel.results.remarks import Remark, format_remarks

NATIVE = {"classifier": "native"}
KNN = {"classifier": "knn", "n_features": [4]}
SVM = {"classifier": "linear_svm", "n_features": [4]}


@pytest.fixture
def digits(tmp_path):
    write_digits(tmp_path / "few.npz")
    return tmp_path / "few.npz"


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A user's module with a method of raysel's contract that only ranks, and one that does
    neither.
    """
    (tmp_path / "own_methods.py").write_text(
        textwrap.dedent("""
        from raysel.base.estimator import OneShotEstimator
        from raysel.base.classifiers import Selector
        from sklearn.linear_model import LogisticRegression

        class Variance(OneShotEstimator, Selector):
            def __init__(self, n_features_to_select=None):
                self.n_features_to_select = n_features_to_select

            def prepare(self, X, y):
                return (X.var(axis=0),)

            def _updates(self, X, y, prepared):
                (self.scores_,) = prepared
                yield 0.0

        class Closed(Variance):
            def _updates(self, X, y, prepared):
                self.rule_ = lambda: 0
                yield from super()._updates(X, y, prepared)

        class Scoring(LogisticRegression):
            def fit(self, X, y):
                self.rule_ = lambda: 0
                return super().fit(X, y)

        class Nothing:
            def fit(self, X, y):
                return self

            def get_params(self, deep=True):
                return {}

        class Leaving(Nothing):
            def fit(self, X, y):
                raise SystemExit("no licence")
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_methods"
    sys.modules.pop("own_methods", None)


REFUSED = [
    ("sklearn.feature_selection.SelectKBest", NATIVE, "does not predict; use knn or linear_svm"),
    ("own_methods.Variance", NATIVE, "native: own_methods.Variance does not predict; use knn"),
    ("sklearn.neighbors.KNeighborsClassifier", KNN, "knn: .* does not rank features; use native"),
    ("sklearn.neighbors.KNeighborsClassifier", SVM, "linear_svm: .* does not rank features"),
    ("sklearn.feature_selection.VarianceThreshold", NATIVE, "does not predict; use knn"),
    ("sklearn.decomposition.PCA", NATIVE, "neither predicts nor ranks features"),
    ("sklearn.feature_selection.SelectFromModel", NATIVE, "requires the parameter `estimator`"),
    ("own_methods.Leaving", KNN, "cannot be fitted to the .* SystemExit: no licence"),
    ("own_methods.Nothing", NATIVE, "neither predicts nor ranks features"),
    ("own_methods.Nothing", KNN, "neither predicts nor ranks features"),
    (
        "sklearn.linear_model.Lasso",
        KNN,
        "Lasso takes quantities, and the label of .* is a class; smr, .* take classes",
    ),
    ("f_test", KNN, r"f_test takes quantities, .* set dataset\.task: regression"),
    (
        "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis",
        NATIVE,
        "cannot be fitted to the .* samples",
    ),
]


@pytest.mark.usefixtures("own_module")
def test_what_the_method_cannot_do_is_refused_with_the_remedy(digits):
    early, path = {"search": {"early_stopping": "asha"}}, {"search": {"method": "path"}}
    views, wrong = {"dataset__modalities": {"a": 32, "b": 32}}, {"dataset__scaling": "zscore"}
    for solver, changes, message in (
        *((solver, {"evaluation": evaluation}, message) for solver, evaluation, message in REFUSED),
        ("lda", early, "lda is solved in one step: .*use one of smr, smml"),
        ("sklearn.svm.LinearSVC", early, "solved in one step"),
        ("lda", path, r"lda has no path \(smml has\)"),
        ("sklearn.svm.LinearSVC", path, r"LinearSVC has no path \(smml has\)"),
        ("smr", views, "smr does not take the layout modalities.*smml, .*linear_svm.* do"),
        ("sklearn.svm.LinearSVC", {**wrong, "solver__params": {"C": -1.0}}, "'C' parameter of Lin"),
    ):
        params = changes.get("solver__params", {})
        others = {key: value for key, value in changes.items() if key != "solver__params"}
        with pytest.raises(ConfigError, match=message):
            make_study(digits, solver={"name": solver, "params": params}, **others)


def test_whether_a_wrapped_class_ranks_can_depend_on_its_words(digits):
    solver = {"name": "sklearn.svm.SVC", "space": {"kernel": ["linear", "rbf"], "C": [0.1, 1.0]}}
    with pytest.raises(
        ConfigError,
        match=r"knn: sklearn.svm.SVC \(kernel=rbf .*\) does not rank features; use native",
    ):
        make_study(digits, solver=solver, evaluation=KNN)
    assert not make_study(digits, solver=solver, evaluation=NATIVE).findings.ranks
    solver["space"]["kernel"] = ["linear"]
    assert make_study(digits, solver=solver, evaluation=KNN).findings.ranks


def test_a_model_that_cannot_be_saved_is_announced_and_the_study_may_run(digits, own_module):
    study = make_study(digits, solver={"name": f"{own_module}.Closed"}, evaluation=KNN)
    (untrusted,) = study.findings.untrusted
    assert "own_methods" in untrusted
    (note,) = (text for text in plan_warnings(study) if "model.skops" in text)
    assert "model.skops will lack the fitted method, because a file cannot hold own_methods" in note
    (missing,) = format_remarks([Remark("no_model_file", {"untrusted": study.findings.untrusted})])
    for remark in (note, missing):
        assert "use run_study's result in its process" in remark
    scored = {"name": f"{own_module}.Scoring"}
    native = make_study(digits, solver=scored, evaluation=NATIVE)
    assert any("model.skops will not be written" in note for note in plan_warnings(native))
    boosted = {"name": "sklearn.ensemble.HistGradientBoostingClassifier", "params": {"max_iter": 2}}
    assert make_study(digits, solver=boosted, evaluation=NATIVE).findings.untrusted == ()
    for name in ("smr", "sklearn.svm.LinearSVC", f"{own_module}.Variance"):
        found = make_study(digits, solver={"name": name}, evaluation=KNN).findings
        assert found.untrusted == ()
        assert found.unlisted == ((name,) if own_module in name else ())


def test_a_model_that_cannot_be_saved_cannot_be_registered(digits, own_module):
    scored = {"name": f"{own_module}.Scoring"}
    with pytest.raises(ConfigError, match=r"tracking\.register: .* register as own: .*; leave"):
        make_study(digits, solver=scored, evaluation=NATIVE, tracking={"register": "own"})
    own = {"name": f"{own_module}.Variance"}
    with pytest.raises(ConfigError, match="whose code no server has; leave it out"):
        make_study(digits, solver=own, evaluation=KNN, tracking={"register": "own"})


def test_a_method_for_one_label_says_which_take_several(tmp_path):
    X = np.random.default_rng(0).random((40, 6))
    np.savez(tmp_path / "labels.npz", X=X, Y=(X[:, :3] > 0.5).astype(int))
    for name, can in ((name, solver_capabilities(name)) for name in OWN):
        if can.multilabel or "classes" not in can.targets:
            continue
        evaluation = NATIVE if can.predicts else KNN
        with pytest.raises(
            ConfigError,
            match=f"{name} takes one label per sample.*smml, .*linear_svm.* take several",
        ):
            make_study(tmp_path / "labels.npz", solver={"name": name}, evaluation=evaluation)


def test_rare_classes_and_labels_are_among_the_samples_tried(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((60, 5))
    Y = (X[:, :3] > [0.2, 0.5, 0.8]).astype(int)
    np.savez(tmp_path / "labels.npz", X=X, Y=Y)
    study = make_study(
        tmp_path / "labels.npz",
        solver={"name": "sklearn.tree.DecisionTreeClassifier"},
        evaluation={"classifier": "native", "metric": "micro_f1"},
    )
    assert study.findings.ranks
    # The second takes an indicator, and predicts one label.
    for name in ("svm.LinearSVC", "naive_bayes.MultinomialNB"):
        with pytest.raises(ConfigError, match=rf"{name} takes one label .*MultiOutputClassifier"):
            make_study(
                tmp_path / "labels.npz", solver={"name": f"sklearn.{name}"}, evaluation=NATIVE
            )


def test_configurations_that_prepare_alike_have_one_key(digits):
    plain = make_study(digits)
    assert {plain.prepare_key(c.params) for c in plain.configurations} == {"{}"}
    assert len(plain.prepared_examples) == 1
    solver = {
        "name": "semisupervised_mtda",
        "space": {"unlabelled": [None, 3], "shrinkage": [0.1, 0.2]},
    }
    study = make_study(digits, solver=solver, evaluation=NATIVE)
    keys = [study.prepare_key(c.params) for c in study.configurations]
    assert [json.loads(key)["unlabelled"] for key in keys] == [
        c.params["unlabelled"] for c in study.configurations
    ]
    assert list(study.prepared_examples) == list(dict.fromkeys(keys))
    assert len(study.prepared_examples) == 2


def test_the_mark_of_unlabelled_samples_is_no_class_of_a_classifier(digits):
    solver = {"name": "semisupervised_mtda", "space": {"unlabelled": [3]}}
    for classifier in ("knn", "linear_svm"):
        with pytest.raises(
            ConfigError, match=f"estimator={classifier} would take.*unlabelled.*estimator=native"
        ):
            make_study(
                digits, solver=solver, evaluation={"classifier": classifier, "n_features": [4]}
            )
    make_study(digits, solver=solver, evaluation=NATIVE)


@pytest.mark.parametrize("scaling", ["unit", "zscore"])
def test_constant_features_and_values_whose_squares_overflow_are_refused(scaling, tmp_path):
    X, y = np.random.default_rng(0).normal(size=(24, 4)), np.arange(24) % 2
    dataset = {"path": str(tmp_path / "own.npz"), "scaling": scaling}
    np.savez(tmp_path / "own.npz", X=np.ones((24, 4)), y=y)
    with pytest.raises(DataError, match="all 4 features are constant"):
        make_study(tmp_path / "own.npz", dataset=dataset, solver={"name": "fisher_score"})
    X[:, 2] = np.where(np.arange(24) % 3, 1e308, -1e308)
    np.savez(tmp_path / "own.npz", X=X, y=y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            DataError, match=r"column 'x2' holds values up to 1e\+308.*dataset.drop"
        ):
            make_study(tmp_path / "own.npz", dataset=dataset, solver={"name": "fisher_score"})


@pytest.mark.parametrize("what", ["column 'x1'", "the values of the label"])
def test_values_whose_squares_vanish_are_refused_and_those_just_above_are_not(what, tmp_path):
    rng, of_label = np.random.default_rng(0), "label" in what
    X = rng.normal(size=(24, 4))
    y = rng.normal(size=24) if of_label else np.arange(24) % 2
    for unit in (1e-99, 1e-101, 1e-170, 1e-310):
        scaled = X if of_label else X * [1, unit, 1, 1]
        np.savez(tmp_path / "own.npz", X=scaled, y=y * unit if of_label else y)
        settings = {"solver": {"name": "fisher_score"}, "cv": {"outer": 3, "inner": 2}}
        settings |= {"evaluation": {"n_features": [2]}}
        if of_label:
            settings |= {"solver": {"name": "f_test"}}
            settings |= {"dataset": {"path": str(tmp_path / "own.npz"), "task": "regression"}}
            settings |= {"evaluation": {"estimator": "ridge", "n_features": [2]}}
        if unit > 1e-100:
            make_study(tmp_path / "own.npz", **settings)
            continue
        with pytest.raises(DataError, match=f"{what} .*squares vanish: give it in another unit"):
            make_study(tmp_path / "own.npz", **settings)


def test_equal_samples_stay_together_where_groups_say_so(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(40, 9)), np.arange(40) % 2
    X[20:] = X[:20]
    np.savez(tmp_path / "own.npz", X=X, y=y)
    plan = make_study(
        tmp_path / "own.npz",
        solver={"name": "fisher_score"},
        cv={"outer": 3, "inner": 2, "groups": "equal samples"},
    ).plan
    for train, held_out in [
        *plan.training_sets(),
        *((fold.train, fold.test) for fold in plan.outer),
    ]:
        assert not np.intersect1d(train % 20, held_out % 20).size
