"""Methods, metrics and readers of another package that do not keep their contract are refused
before any compute.
"""

from __future__ import annotations

import io
import sys
import textwrap

import numpy as np
import pytest
from rich.console import Console
from small_studies import make_study, write_digits

from raysel.cli.reference import print_solver_reference
from raysel.core.errors import ConfigError, DataError
from raysel.data.loading import load_dataset

MODULE = """
    import numpy as np
    from dataclasses import replace
    from sklearn.base import BaseEstimator, ClassifierMixin
    from raysel.base.estimator import Capabilities
    from raysel.base.estimator import IterativeEstimator
    from raysel.base.estimator import OneShotEstimator
    from raysel.data.formats.files import RawData

    class Whole(OneShotEstimator):
        def prepare(self, X, y):
            return (X.var(axis=0),)
        def _updates(self, X, y, prepared):
            (self.scores_,) = prepared
            yield 0.0
    class WithoutUpdates(OneShotEstimator):
        def prepare(self, X, y):
            return ()
    class WithoutPredict(Whole):
        capabilities = Capabilities(predicts=True)
    class WithoutScores(Whole):
        def _updates(self, X, y, prepared):
            yield 0.0
    class WithScores(Whole):
        capabilities = Capabilities(ranks=False, predicts=True)
        def predict(self, X):
            return np.zeros(len(X), dtype=int)
    class WithOneScore(Whole):
        def _updates(self, X, y, prepared):
            self.scores_ = np.ones(1)
            yield 0.0
    class Failing(Whole):
        def prepare(self, X, y):
            raise KeyError("no licence")
    class Slow(IterativeEstimator):
        iterations = []
        def __init__(self, max_iter=10**9, tol=0.0):
            self.max_iter, self.tol = max_iter, tol
        def prepare(self, X, y):
            return (X.var(axis=0),)
        def _updates(self, X, y, prepared):
            while True:
                (self.scores_,) = prepared
                self.iterations.append(len(X))
                yield -1.0 / len(self.iterations)
    class Nearest(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            return self
        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    def raises(y, predicted): raise RuntimeError("out of order")
    def nothing(y, predicted): pass
    def hits(y, predicted): return y == predicted
    def undefined(y, predicted): return np.nan
    def leaves(y, predicted): raise SystemExit(3)
    def right(y, predicted): return int((y == predicted).sum())
    NUMBER = 3

    def value(path, options): raise ValueError("no groups")
    def pair(path, options): return np.eye(4), [0, 1, 0, 1]
    def lists(path, options): return RawData([[1, 2], [3, 4], [5, 7], [7, 8]], [0, 1, 0, 1])
"""
METHODS = [
    "Whole",
    "WithoutUpdates",
    "WithoutPredict",
    "WithoutScores",
    "WithScores",
    "WithOneScore",
    "Failing",
]
METRICS = ["raises", "nothing", "hits", "undefined", "leaves", "right", "NUMBER"]
READERS = ["value", "pair", "lists", "leaves", "NUMBER"]


@pytest.fixture
def digits(tmp_path, monkeypatch):
    """Data beside an installed package, whose entry points have the names of its objects in
    lower case.
    """
    groups = {"estimators": [*METHODS, "Slow", "Nearest"], "metrics": METRICS, "readers": READERS}
    points = "".join(
        f"[raysel.{group}]\n"
        + "".join(f"{name.lower()} = faulty_plugin:{name}\n" for name in names)
        for group, names in groups.items()
    )
    info = tmp_path / "faulty_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)
    (tmp_path / "faulty_plugin.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(tmp_path)
    write_digits(tmp_path / "few.npz")
    yield tmp_path / "few.npz"
    sys.modules.pop("faulty_plugin", None)


@pytest.mark.parametrize(
    ("name", "classifier", "message"),
    [
        (
            "withoutupdates",
            "knn",
            "withoutupdates derives from raysel's Estimator and lacks _updates; implement",
        ),
        (
            "withoutpredict",
            "knn",
            "declares capabilities.predicts, but has no `predict`; implement it",
        ),
        (
            "withoutscores",
            "knn",
            "declares capabilities.ranks=True, but its fit has no `scores_`; set it in",
        ),
        (
            "withonescore",
            "knn",
            r"`scores_` of withonescore has the shape \(1,\); set one score for each of the 64",
        ),
        ("failing", "knn", "cannot be fitted to the .* KeyError: 'no licence'"),
        (
            "withscores",
            "native",
            r"ranks=False, but its fit has a `scores_`; .* or declare ranks=True",
        ),
    ],
)
def test_a_method_that_is_not_what_it_declares_is_refused(name, classifier, message, digits):
    with pytest.raises(ConfigError, match=message):
        make_study(digits, solver={"name": name}, evaluation__classifier=classifier)


def test_a_method_as_it_declares_is_tried_on_one_iteration(digits):
    study = make_study(digits, solver={"name": "slow"})
    assert study.findings.ranks
    assert len(sys.modules["faulty_plugin"].Slow.iterations) == 1
    assert make_study(digits, solver={"name": "whole"}).findings.untrusted == ()


def test_a_metric_that_is_no_number_is_refused_and_one_may_count(digits):
    for name, message in (
        ("raises", "gives no number .*: RuntimeError: out of order"),
        ("nothing", "gives no number .*: TypeError"),
        ("hits", "gives no number .*: TypeError"),
        ("number", "is no function but int; write the dotted name of a function"),
        ("leaves", "gives no number .*: SystemExit: 3"),
        ("undefined", "is nan for y itself"),
    ):
        for key, value in (("metric", name), ("report", [name])):
            refused = f"evaluation.{key}: {name} {message}"
            with pytest.raises(ConfigError, match=refused):
                make_study(digits, **{f"evaluation__{key}": value})
    assert make_study(digits, evaluation__metric="right").evaluation.metric == "right"


def test_what_a_reader_raises_or_returns_is_named_with_its_suffix_and_it_may_return_lists(digits):
    for suffix, message in (
        ("value", "ValueError: no groups"),
        ("pair", "it returned a tuple, not a RawData"),
        ("leaves", "SystemExit: 3"),
        ("number", "TypeError: 'int' object is not callable"),
    ):
        path = digits.with_name(f"few.{suffix}")
        path.touch()
        refused = rf"few.{suffix} cannot be read by what .* registers for \.{suffix}: {message}"
        with pytest.raises(DataError, match=refused):
            load_dataset(path)
    path = digits.with_name("few.lists")
    path.touch()
    np.testing.assert_array_equal(load_dataset(path).X, [[1, 2], [3, 4], [5, 7], [7, 8]])


@pytest.mark.usefixtures("digits")
def test_the_list_of_methods_does_not_say_that_a_class_ranks_which_only_a_fit_tells():
    printed = io.StringIO()
    print_solver_reference(Console(file=printed, width=100))
    lines = printed.getvalue().splitlines()
    facts = {line.split()[0]: line for line in lines if line and line[0] != " "}
    assert "may rank features; predicts" in facts["nearest"]
    assert facts["whole"].split(maxsplit=1)[1].startswith("ranks features; one step")
    assert "rank" not in facts["kernel_svm"]
    assert facts["withoutupdates"].split(maxsplit=1)[1].strip() == "cannot be used"
    assert "raysel's Estimator and lacks _updates" in " ".join(printed.getvalue().split())
