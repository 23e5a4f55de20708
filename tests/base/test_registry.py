"""Methods by name: raysel's own, other packages', and dotted ones; what is refused and with
which remedy.
"""

from __future__ import annotations

import pkgutil

import pytest

from raysel.base.adapter import ScikitLearnMethod
from raysel.base.estimator import Estimator
from raysel.base.registry import (
    GROUP,
    OWN,
    build_solver,
    imports_code,
    registered_method,
    solver_capabilities,
    solver_class,
    solver_names,
    warn_of_name_clash,
)
from raysel.core.errors import ConfigError
from raysel.data.layouts import Matrix


def register(folder, package, **points):
    """Make a folder hold an installed package with entry points, and nothing else of it."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{GROUP}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items())
    )


def test_what_a_class_declares_is_what_it_has():
    for name in OWN:
        cls, can = solver_class(name), solver_capabilities(name)
        assert issubclass(cls, Estimator), name
        assert can.predicts == hasattr(cls, "predict"), name
        assert can.iterates == (
            {"max_iter", "tol"} <= set(cls().get_params()) and cls().max_steps > 1
        ), name
        tags = cls().__sklearn_tags__().classifier_tags
        assert can.multilabel == (tags is not None and tags.multi_label), name
        assert can.path == (cls.fit_path.__func__ is not Estimator.fit_path.__func__), name
        assert can.prepare_parameters <= set(cls().get_params()), name
        assert bool(cls.score_meaning) == bool(can.ranks), name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("smrr", r"unknown solver 'smrr'; did you mean `smr`"),
        ("sklearn.svm.LinearSVCs", r"sklearn.svm has no 'LinearSVCs'; did you mean `LinearSVC`"),
        (
            "no_such_package.Forest",
            r"no_such_package, the module of .*cannot be imported \(ModuleNotFoundError",
        ),
        (
            "no_such_package.part.Forest",
            r"no_such_package.part, the module of .*cannot be imported",
        ),
        (
            "sklearn.svmm.LinearSVC",
            r"sklearn.svmm, the module of .*cannot be imported \(ModuleNotFoundError",
        ),
        ("sklearn..svm.SVC", r"write a dotted name such as sklearn.svm.LinearSVC"),
        ("sklearn.svm.", r"write a dotted name such as sklearn.svm.LinearSVC"),
        (".svm.SVC", r"write a dotted name such as sklearn.svm.LinearSVC"),
        ("raysel.solvers.smr.smr:SMR", r"write a dotted name such as sklearn.svm.LinearSVC"),
        (
            "keyword.Forest",
            r"keyword has no 'Forest'; write a dotted name such as sklearn.svm.LinearSVC",
        ),
        ("sklearn.svm.l1_min_c", r"is a function, not a class"),
        ("collections.OrderedDict", r"has no fit and no get_params"),
    ],
)
def test_a_name_without_a_method_is_refused(name, message):
    with pytest.raises(ConfigError, match=f"solver.name: .*{message}"):
        solver_class(name)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("smr", {"alhpa": 1}, "no parameter `alhpa`; did you mean `alpha`"),
        ("smr", {"shape": (8, 8)}, "`shape` is set from the data set"),
        (
            "sklearn.svm.LinearSVC",
            {"CC": 1},
            "sklearn.svm.LinearSVC has no parameter `CC`; did you mean `C`",
        ),
        (
            "sklearn.svm.LinearSVC",
            {"random_state": 1},
            "`random_state` is set from the study's seed",
        ),
        ("sklearn.multiclass.OneVsRestClassifier", {}, "requires the parameter `estimator`"),
    ],
)
def test_parameters_are_checked_by_the_class_s_signature(name, params, message):
    with pytest.raises(ConfigError, match=message):
        build_solver(name, Matrix(8, 8), params)


def test_a_value_that_scikit_learn_refuses_is_refused_before_a_fit():
    solver = build_solver("sklearn.svm.LinearSVC", Matrix(8, 8), {"C": -1})
    with pytest.raises(
        ConfigError, match="'C' parameter of LinearSVC must be a float in the range"
    ):
        solver.check(64)


def test_a_dotted_name_is_wrapped_and_given_the_study_s_seed():
    solver = build_solver(
        "sklearn.ensemble.ExtraTreesClassifier", Matrix(8, 8), {"max_depth": 3}, random_state=7
    )
    assert isinstance(solver, ScikitLearnMethod)
    assert (solver.estimator.max_depth, solver.estimator.random_state) == (3, 7)
    assert (
        build_solver(
            "sklearn.neighbors.KNeighborsClassifier", Matrix(8, 8), {}, random_state=7
        ).max_steps
        == 1
    )


def test_only_foreign_dotted_names_import_code(tmp_path, monkeypatch):
    register(tmp_path, "other", forest="other.methods:Forest")
    monkeypatch.syspath_prepend(tmp_path)
    assert not any(
        imports_code(name) for name in [*OWN, "forest", "sklearn.svm.SVC", "raysel.SMR", "unknown"]
    )
    assert all(
        imports_code(name)
        for name in ["other.methods.Forest", "sklearn_x.SVC", "os.system", "raysel_x.Y"]
    )


def test_another_package_s_method_is_listed_even_if_it_cannot_be_imported(tmp_path, monkeypatch):
    register(tmp_path, "other", forest="other_methods:Forest")
    monkeypatch.syspath_prepend(tmp_path)
    assert solver_names() == [*OWN, "forest"]
    with pytest.raises(
        ConfigError,
        match=r"forest of other \(other_methods:Forest\) cannot be imported: ModuleNotFou",
    ):
        solver_class("forest")
    (tmp_path / "other_methods.py").write_text("raise RuntimeError('out of order')")
    with pytest.raises(ConfigError, match="RuntimeError: out of order"):
        solver_class("forest")


def test_a_registered_method_is_found_by_name_wherever_its_package_is(tmp_path, monkeypatch):
    register(tmp_path, "other", spread="spread_methods:Spread", forest="sklearn.ensemble:Forest")
    (tmp_path / "spread_methods.py").write_text(
        "from raysel.baselines.univariate_filters import Variance\n"
        "class Spread(Variance): score_meaning = 'spread of the feature'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert registered_method("spread").score_meaning == "spread of the feature"
    assert registered_method("smr") is solver_class("smr")
    for name in ("forest", "unknown", "sklearn.svm.SVC", "spread_methods.Spread"):
        assert registered_method(name) is None


def test_raysel_s_name_wins_over_another_package_s_with_a_warning(tmp_path, monkeypatch):
    register(tmp_path, "other", smr="other_methods:Forest")
    monkeypatch.syspath_prepend(tmp_path)
    assert solver_class("smr").__module__ == "raysel.solvers.smr.smr"
    assert solver_names() == list(OWN)
    with pytest.warns(
        UserWarning, match=r"other registers 'smr' \(other_methods:Forest\).*raysel's own"
    ):
        warn_of_name_clash("smr")


def test_a_name_that_two_packages_register_is_refused(tmp_path, monkeypatch):
    register(tmp_path, "one", forest="one_methods:Forest")
    register(tmp_path, "two", forest="two_methods:Forest")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ConfigError, match=r"(one|two) \(.*\) and (one|two) \(.*\) register the name 'forest'"
    ):
        solver_class("forest")


def test_a_nested_class_is_found_as_pkgutil_finds_it(tmp_path, monkeypatch):
    (tmp_path / "nested_mine").mkdir()
    (tmp_path / "nested_mine/__init__.py").write_text(
        "from sklearn.svm import SVC\nclass Outer:\n    class Inner(SVC):\n        class"
        " Core(SVC):\n            pass\n"
    )
    (tmp_path / "nested_mine/broken.py").write_text("import no_such_package")
    (tmp_path / "nested_mine/leaving.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("nested_mine.Outer.Inner", "nested_mine.Outer.Inner.Core"):
        assert solver_class(name) is pkgutil.resolve_name(name)
    with pytest.raises(ConfigError, match=r"nested_mine.Outer has no 'Iner'; did you mean `Inner`"):
        solver_class("nested_mine.Outer.Iner")
    for module, message in (
        ("broken", "No module named 'no_such_package'"),
        ("leaving", "SystemExit: 3"),
    ):
        with pytest.raises(ConfigError, match=f"nested_mine.{module}.*, the module of .*{message}"):
            solver_class(f"nested_mine.{module}.Outer.Inner")
