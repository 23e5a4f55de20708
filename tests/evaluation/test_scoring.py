"""Scores of a ranking, or of a model, against a few straightforward lines of scikit-learn."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import Ridge
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from splits import scaled_split

from raysel.baselines.linear_projections import LDA
from raysel.baselines.linear_svm import LinearSVM
from raysel.data.dataset import join_tasks
from raysel.data.loading import load_dataset
from raysel.evaluation.scoring import Evaluation
from raysel.evaluation.scoring_estimators import ALPHAS, RidgePath
from raysel.numerics import metrics
from raysel.solvers.mtda.mtda import MTDA
from raysel.solvers.mtda.semisupervised_mtda import SemiSupervisedMTDA
from raysel.solvers.smr.smr import SMR

METRICS = {"accuracy": accuracy_score, "balanced_accuracy": balanced_accuracy_score}


@pytest.mark.parametrize("n_quantities", [None, 1, 3])
@pytest.mark.parametrize("n_features", [4, 40])  # fewer and more than samples
def test_ridge_regressions_that_share_a_fit_are_scikit_learns(n_features, n_quantities):
    drawn = np.random.default_rng(0)
    X = 5 + drawn.standard_normal((20, n_features)) * drawn.uniform(0.1, 10, n_features)
    y = X[:, :3].sum(axis=1) + drawn.standard_normal(20)
    if n_quantities is not None:
        y = np.stack([y + number for number in range(n_quantities)], axis=1)
    path = RidgePath(ALPHAS)
    for alpha in reversed(ALPHAS):
        shared, alone = path.fit(Ridge(alpha=alpha), X, y), Ridge(alpha=alpha).fit(X, y)
        assert shared.coef_.shape == alone.coef_.shape
        np.testing.assert_allclose(shared.predict(X), alone.predict(X), rtol=1e-9)


def test_a_ranking_is_scored_with_all_penalties_at_once():
    drawn = np.random.default_rng(1)
    X, y = drawn.standard_normal((40, 6)), drawn.standard_normal(40)
    split = replace(scaled_split(X[:30], y[:30], X[30:], y[30:]), known={})
    settings = tuple((("alpha", alpha),) for alpha in ALPHAS)
    evaluation = Evaluation("ridge", (2, 6), metric="neg_rmse", settings=settings)
    method = SimpleNamespace(scores_=np.arange(6.0) + 1)
    evaluation.scorer(split, settings[:1])(method)
    assert len(split.known) == 2 * len(settings)
    found = [evaluation.scorer(split, [setting])(method) for setting in settings]
    assert len(split.known) == 2 * len(settings)
    for alpha, scores in zip(ALPHAS, found, strict=True):
        for n, score in zip((2, 6), scores, strict=True):
            columns = np.argsort(-method.scores_)[:n]
            model = Ridge(alpha=alpha).fit(X[:30, columns], y[:30])
            errors = y[30:] - model.predict(X[30:, columns])
            assert score == pytest.approx(-np.sqrt((errors**2).mean()), rel=1e-9)


def test_scores_of_ridge_do_not_depend_on_what_is_known():
    drawn = np.random.default_rng(2)
    X, y = drawn.standard_normal((60, 40)) * 1e3, drawn.standard_normal(60)
    settings = tuple((("alpha", alpha),) for alpha in ALPHAS)
    evaluation = Evaluation("ridge", (20, 40), metric="neg_rmse", settings=settings)
    method = SimpleNamespace(scores_=drawn.random(40))

    def scored(known, asked):
        split = replace(scaled_split(X[:30], y[:30], X[30:], y[30:]), known=known)
        return {each: evaluation.scorer(split, [each])(method).tolist() for each in asked}

    known = {}
    whole = scored(known, settings)
    for key in list(known)[::3]:
        del known[key]
    assert scored(known, settings[::-1]) == whole
    assert scored({}, settings[::-1]) == whole


@pytest.fixture(scope="module")
def sets():
    generator = np.random.default_rng(0)
    y = np.repeat(np.array(["a", "b", "c"]), [40, 30, 20])
    X = generator.standard_normal((90, 12)) + 2.0 * (
        np.unique(y, return_inverse=True)[1][:, None] == np.arange(12) % 3
    )
    mixed = generator.permutation(90)
    return X[mixed[:60]], y[mixed[:60]], X[mixed[60:]], y[mixed[60:]]


def classifiers(name: str, state: int):
    return (
        KNeighborsClassifier(3) if name == "knn" else LinearSVC(random_state=state, max_iter=10_000)
    )


def expected(sets, scores, name, n_features, metric, state=7):
    X, y, X_test, y_test = sets
    values = []
    for n in n_features:
        best = [
            f for f in sorted(range(len(scores)), key=lambda f: (-scores[f], f)) if scores[f] > 0
        ][:n]
        model = classifiers(name, state).fit(X[:, best], y)
        values.append(METRICS[metric](y_test, model.predict(X_test[:, best])))
    return values


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ["knn", "linear_svm"])
def test_a_ranking_is_scored_at_every_number_of_features(sets, name, metric):
    evaluation = Evaluation(name, (1, 4, 12), 3, metric)
    scores = (
        np.random.default_rng(1).integers(0, 5, 12).astype(float)
    )  # with ties, which go to the lower index
    actual = evaluation.scorer(scaled_split(*sets, random_state=7))(SimpleNamespace(scores_=scores))
    np.testing.assert_allclose(
        actual, expected(sets, scores, name, (1, 4, 12), metric), rtol=0, atol=1e-12
    )
    assert evaluation.labels == ("n1", "n4", "n12")
    assert evaluation.every_iteration == (name == "knn")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("name", "k"), [("knn", 3), ("linear_svm", 1)])
def test_a_table_of_known_scores_changes_no_score(sets, name, k, metric, monkeypatch):
    monkeypatch.setattr("raysel.evaluation.scoring._KEPT", 8)
    evaluation, other, known = (
        Evaluation(name, (2, 5, 8), k, metric),
        Evaluation(name, (2, 5), k, "accuracy"),
        {},
    )
    generator = np.random.default_rng(4)
    rankings = [
        generator.permutation(12) * generator.choice([0.0, 1.0], 12, p=[0.3, 0.7]) for _ in range(6)
    ]
    for scores in [*rankings, *rankings[::-1]]:
        model = SimpleNamespace(scores_=scores)
        for settings, state in ((evaluation, 7), (other, 7), (evaluation, 8)):
            split = scaled_split(*sets, random_state=state)
            actual = settings.scorer(replace(split, known=known))(model)
            np.testing.assert_array_equal(actual, settings.scorer(split)(model))
        assert len(known) <= 8


def test_a_known_set_of_features_is_not_scored_again(sets, monkeypatch):
    scores, split = np.arange(12.0), scaled_split(*sets, known={})
    first = Evaluation("knn", (3, 6)).scorer(split)(SimpleNamespace(scores_=scores))
    monkeypatch.setattr("raysel.evaluation.scoring.knn_path", None)
    scores[[9, 10, 11]], scores[[6, 7, 8]] = (
        [11, 9, 10],
        [8, 6, 7],
    )  # the same three and six best ones
    again = Evaluation("knn", (3, 6)).scorer(split)(SimpleNamespace(scores_=scores))
    assert again.tolist() == first.tolist()
    scores[0] = 20.0
    with pytest.raises(TypeError):
        Evaluation("knn", (3, 6)).scorer(split)(SimpleNamespace(scores_=scores))


@pytest.mark.parametrize("name", ["knn", "linear_svm"])
def test_a_constant_feature_is_not_selected_whatever_its_score(sets, name):
    scores = np.arange(12.0, 0.0, -1.0)
    constant = np.isin(np.arange(12), (0, 3))
    evaluation = Evaluation(name, (1, 4, 12))
    actual = evaluation.scorer(scaled_split(*sets, constant=constant))(
        SimpleNamespace(scores_=scores)
    )
    unscored = evaluation.scorer(scaled_split(*sets))(
        SimpleNamespace(scores_=np.where(constant, 0.0, scores))
    )
    np.testing.assert_array_equal(actual, unscored)


@pytest.mark.parametrize("name", ["knn", "linear_svm"])
def test_without_a_scored_feature_the_most_frequent_class_is_predicted(sets, name):
    X, y, X_test, y_test = sets
    actual = Evaluation(name, (1, 4)).scorer(scaled_split(*sets, random_state=7))(
        SimpleNamespace(scores_=np.zeros(12))
    )
    majority = DummyClassifier(strategy="most_frequent").fit(X, y).score(X_test, y_test)
    assert actual.tolist() == [majority] * 2


@pytest.mark.parametrize("name", ["knn", "linear_svm"])
def test_the_order_of_the_columns_does_not_matter_to_a_sparse_ranking(sets, name):
    X, y, X_test, y_test = sets
    scores = np.array([0.0, 0, 3, 0, 1, 0, 0, 2, 0, 0, 0, 0])
    order = np.random.default_rng(0).permutation(12)
    evaluation = Evaluation(name, (2, 6, 12))
    here = evaluation.scorer(scaled_split(*sets, random_state=7))(SimpleNamespace(scores_=scores))
    split = scaled_split(X[:, order], y, X_test[:, order], y_test, random_state=7)
    moved = evaluation.scorer(split)
    np.testing.assert_array_equal(moved(SimpleNamespace(scores_=scores[order])), here)


@pytest.mark.parametrize("metric", METRICS)
def test_a_model_is_scored_by_its_own_predictions(sets, metric):
    X, y, X_test, y_test = sets
    model = SMR(shape=(3, 4), alpha=0.05, rank=3).fit(X, y)
    for n_features in ((), (2, 5)):
        evaluation = Evaluation("native", n_features, 1, metric)
        actual = evaluation.scorer(scaled_split(*sets))(model)
        assert actual.shape == (1,)
        assert actual[0] == pytest.approx(METRICS[metric](y_test, model.predict(X_test)), abs=1e-12)
        assert evaluation.labels == ()  # one score, whatever n_features says: it is not used
        assert evaluation.every_iteration


@pytest.mark.parametrize("metric", METRICS)
def test_each_task_is_scored_by_its_own_samples(metric):
    tasks = {"iris": load_dataset("iris"), "wine": load_dataset("wine")}
    joined = join_tasks(tasks)
    # Odd numbers of test samples a task, so that the mean over tasks is not that over samples.
    train, test = (
        np.flatnonzero(np.arange(joined.n_samples) % 3 == 0),
        np.flatnonzero(np.arange(328) % 3 != 0),
    )
    model = MTDA(tasks=dict(joined.layout.tasks)).fit(joined.X[train], joined.y[train])
    sets = joined.X[train], joined.y[train], joined.X[test], joined.y[test]
    evaluation = Evaluation("native", metric=metric, tasks=tuple(tasks))
    assert evaluation.labels == ("iris", "wine")
    expected, start = [], 0
    for i, data in enumerate(tasks.values()):
        rows = np.arange(start, start + data.n_samples)
        seen, unseen = (np.flatnonzero(np.isin(rows, part)) for part in (train, test))
        nearest = KNeighborsClassifier(1).fit(model.transform_task(i, data.X[seen]), data.y[seen])
        expected.append(
            METRICS[metric](
                data.y[unseen], nearest.predict(model.transform_task(i, data.X[unseen]))
            )
        )
        start += data.n_samples
    assert evaluation.scorer(scaled_split(*sets))(model) == pytest.approx(expected, abs=1e-12)
    assert expected[0] != expected[1]


def test_a_score_kept_from_the_last_iteration_is_the_one_that_would_be_computed(sets):
    """Orders that stay, change below the cut, change above it, and come back."""
    generator = np.random.default_rng(2)
    base = np.arange(12.0)[::-1].copy()
    below, above = base.copy(), base.copy()
    below[[8, 11]] = below[[11, 8]]
    above[[0, 3]] = above[[3, 0]]
    sequence = [
        base,
        base * 2,
        below,
        base,
        above,
        above + 1,
        base,
        *generator.standard_normal((6, 12)),
    ]
    scorer = Evaluation("knn", (1, 3, 5), 3).scorer(scaled_split(*sets))
    seen = set()
    for scores in sequence:
        actual = scorer(SimpleNamespace(scores_=scores)).tolist()
        np.testing.assert_allclose(
            actual, expected(sets, scores, "knn", (1, 3, 5), "accuracy"), rtol=0, atol=1e-12
        )
        seen.add(tuple(actual))
    assert len(seen) > 3


def test_a_metric_that_is_not_finite_is_named(monkeypatch):
    monkeypatch.setitem(
        metrics.METRICS, "broken", metrics.Metric("broken", lambda *_: float("nan"))
    )
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    score = Evaluation("native", metric="broken").scorer(scaled_split(X, y, X, y))
    with pytest.raises(FloatingPointError, match="the metric broken gave nan for 4 samples"):
        score(LDA().fit(X, y))


# --- metrics of scores, and reported metrics ------------------------------------------------------


def mean_ap(having, scores):
    """Mean over the classes or labels that a sample has, by scikit-learn."""
    return np.mean(
        [
            average_precision_score(has, s)
            for has, s in zip(having.T, scores.T, strict=True)
            if has.any()
        ]
    )


def nearest_differences(X, having, test):
    D = np.sqrt(((test[:, None] - X[None]) ** 2).sum(axis=2))
    return np.stack(
        [D[:, ~members].min(axis=1) - D[:, members].min(axis=1) for members in having.T], axis=1
    )


@pytest.mark.parametrize("kind", ["two classes", "three classes", "labels"])
@pytest.mark.parametrize("name", ["knn", "linear_svm", "native"])
def test_mean_average_precision_is_scikit_learns_of_each_class(sets, name, kind):
    X, y, X_test, y_test = sets
    if kind == "labels":
        y, y_test = (np.stack([v == "a", v != "c"], axis=1).astype(int) for v in (y, y_test))
    elif kind == "two classes":
        y, y_test = (np.where(v == "a", "a", "b") for v in (y, y_test))
    classes = np.unique(y)
    having, having_test = (
        v == 1 if kind == "labels" else v[:, None] == classes for v in (y, y_test)
    )
    evaluation = Evaluation(name, () if name == "native" else (2, 12), 1, "mean_average_precision")
    model = LinearSVM(random_state=0).fit(X, y)
    actual = evaluation.scorer(scaled_split(X, y, X_test, y_test, random_state=7))(model)
    expected = []
    for n in (12,) if name == "native" else (2, 12):
        best = model.ranking_ <= n
        if name == "knn":
            scores = nearest_differences(X[:, best], having, X_test[:, best])
        else:
            one = LinearSVC(random_state=7, max_iter=10_000)
            svm = (
                model
                if name == "native"
                else (OneVsRestClassifier(one) if y.ndim == 2 else one).fit(X[:, best], y)
            )
            scores = svm.decision_function(X_test[:, best])
            scores = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
        expected.append(mean_ap(having_test, scores))
    np.testing.assert_allclose(actual, expected, rtol=1e-6 if name == "linear_svm" else 1e-12)
    assert 0.5 < actual.min() < actual.max() + 1e-9 <= 1 + 1e-9


def test_reported_metrics_are_those_that_each_would_score(sets):
    report = ("mean_average_precision", "macro_f1", "balanced_accuracy")
    model = SMR(shape=(3, 4), alpha=0.05, rank=3).fit(sets[0], sets[1])
    actual = Evaluation("native", report=report).outcome(model, *sets[2:]).report
    assert list(actual) == list(report)
    for metric, values in actual.items():
        alone = Evaluation("native", metric=metric).scorer(scaled_split(*sets, random_state=7))(
            model
        )
        np.testing.assert_array_equal(values, alone)


@pytest.mark.parametrize("name", ["knn", "linear_svm"])
def test_without_a_scored_feature_every_order_is_chance(sets, name):
    y_test = sets[3]
    evaluation = Evaluation(name, (1, 4), metric="mean_average_precision")
    actual = evaluation.scorer(scaled_split(*sets, random_state=7))(
        SimpleNamespace(scores_=np.zeros(12))
    )
    shares = np.unique(y_test, return_counts=True)[1] / len(y_test)
    assert actual == pytest.approx([shares.mean()] * 2)


def test_each_task_has_the_average_precision_of_its_own_classes_and_labelled_samples():
    joined = join_tasks({"iris": load_dataset("iris"), "wine": load_dataset("wine")})
    unlabelled = np.random.default_rng(0).random(joined.n_samples) < 0.2
    y = np.where(unlabelled, np.array(["iris/-1", "wine/-1"])[joined.tasks], joined.y)
    train, test = np.arange(328) % 2 == 0, np.arange(328) % 2 == 1
    model = SemiSupervisedMTDA(tasks=dict(joined.layout.tasks), unlabelled=-1).fit(
        joined.X[train], y[train]
    )
    evaluation = Evaluation(
        "native", tasks=("iris", "wine"), report=("mean_average_precision", "macro_f1")
    )
    actual = evaluation.outcome(model, joined.X[test], y[test]).report
    for i in range(2):
        known = test & ~unlabelled & (joined.tasks == i)
        X = joined.X[known].blocks[i]
        classes = np.unique(model.embedded_labels_[i])
        having = model.embedded_labels_[i][:, None] == classes
        scores = nearest_differences(model.embeddings_[i], having, model.transform_task(i, X))
        assert actual["mean_average_precision"][i] == pytest.approx(
            mean_ap(y[known][:, None] == classes, scores)
        )
        assert actual["macro_f1"][i] == pytest.approx(
            f1_score(y[known], model.predict_task(i, X), average="macro")
        )


def test_an_undefined_reported_metric_is_no_number(sets):
    X, y, X_test, _ = sets
    Y = np.stack([y == "a", y == "b"], axis=1).astype(int)
    model = LinearSVM().fit(X, Y)
    none = np.zeros((len(X_test), 2), dtype=int)
    evaluation = Evaluation(
        "native", metric="mean_average_precision", report=("mean_average_precision",)
    )
    assert np.isnan(evaluation.outcome(model, X_test, none).report["mean_average_precision"])
    with pytest.raises(FloatingPointError, match="mean_average_precision gave nan for 30 samples"):
        evaluation.scorer(scaled_split(X, Y, X_test, none))(model)
