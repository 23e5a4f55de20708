"""References of a refit, against plain scikit-learn calls."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import f_classif
from sklearn.metrics import accuracy_score, average_precision_score, f1_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from small_studies import run_serially

from raysel.config import config_from_dict
from raysel.cv.model.references import CHANCE_DRAWS, REFERENCES, reference_scores
from raysel.cv.scoring import Evaluation
from raysel.data.task_blocks import TaskBlocks
from raysel.study.definition import Study

SEED = 12345
SIZES = (3, 10, 30)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True, n_class=4)
    X = X[:160] / 16 + np.random.default_rng(0).normal(scale=1e-3, size=(160, 64))  # no ties, no constant pixel
    return X[:100], y[:100], X[100:], y[100:160]


def chance_by_hand(y_train, y_test, score):
    found = []
    for seed in np.random.SeedSequence(SEED).generate_state(CHANCE_DRAWS):
        dummy = DummyClassifier(strategy="stratified", random_state=int(seed)).fit(np.zeros(len(y_train)), y_train)
        found.append(score(y_test, dummy.predict(np.zeros(len(y_test)))))
    return np.mean(found)


def best(values, n):
    return np.argsort(-values, kind="stable")[:n]


@pytest.mark.parametrize(
    ("evaluation", "classifier"),
    [
        (Evaluation("knn", SIZES, 1), KNeighborsClassifier(1)),
        (Evaluation("knn", SIZES, 5, choose_n="one_se"), KNeighborsClassifier(5)),
        (Evaluation("linear_svm", SIZES), LinearSVC(random_state=SEED, max_iter=10_000)),
    ],
)
def test_they_are_scikit_learns_classifiers_on_scikit_learns_rankings(digits, evaluation, classifier):
    X, y, X_test, y_test = digits

    def score(columns):
        return accuracy_score(y_test, classifier.fit(X[:, columns], y).predict(X_test[:, columns]))

    found = reference_scores(*digits, evaluation=evaluation, random_state=SEED)
    assert list(found) == list(REFERENCES)
    # scikit-learn gives a tied vote of five neighbours to the nearest of them, so a sample may differ.
    slack = 2.1 / len(y_test) if evaluation.n_neighbors > 1 else 1e-12
    assert found["all features"] == pytest.approx([score(np.arange(64))], abs=slack)
    assert found["variance"] == pytest.approx([score(best(X.var(axis=0), n)) for n in SIZES], abs=slack)
    assert found["f_test"] == pytest.approx([score(best(f_classif(X, y)[0], n)) for n in SIZES], abs=slack)
    assert found["chance"] == pytest.approx([chance_by_hand(y, y_test, accuracy_score)])
    assert found == reference_scores(*digits, evaluation=evaluation, random_state=SEED)


def test_labels_of_an_indicator_are_ranked_by_their_mean_f(digits):
    X, y, X_test, y_test = digits
    Y, Y_test = (np.stack([c == 0, c > 1, np.zeros_like(c) == 1], axis=1).astype(int) for c in (y, y_test))

    def macro_f1(true, predicted):
        return f1_score(true, predicted, average="macro", zero_division=0)

    evaluation = Evaluation("knn", SIZES, 1, metric="macro_f1")
    found = reference_scores(X, Y, X_test, Y_test, evaluation=evaluation, random_state=SEED)
    F = np.mean([f_classif(X, column)[0] for column in Y.T[:2]], axis=0)  # no sample has the third label
    knn = KNeighborsClassifier(1)
    expected = [macro_f1(Y_test, knn.fit(X[:, b], Y).predict(X_test[:, b])) for b in (best(F, n) for n in SIZES)]
    assert found["f_test"] == pytest.approx(expected)
    assert found["chance"] == pytest.approx([chance_by_hand(Y, Y_test, macro_f1)])


def test_metrics_of_scores_have_references_too(digits):
    X, y, X_test, y_test = digits
    evaluation = Evaluation("knn", (10,), 1, metric="mean_average_precision")
    found = reference_scores(*digits, evaluation=evaluation, random_state=SEED)
    D = np.sqrt(((X_test[:, None] - X[None]) ** 2).sum(axis=2))
    margins = np.stack([D[:, y != c].min(axis=1) - D[:, y == c].min(axis=1) for c in range(4)], axis=1)
    expected = np.mean([average_precision_score(y_test == c, margins[:, c]) for c in range(4)])
    assert found["all features"] == pytest.approx([expected], rel=1e-6)
    prior = np.mean([(y_test == c).mean() for c in range(4)])
    assert found["chance"][0] == pytest.approx(prior, abs=0.03)  # the precision of a random order is the prevalence


def test_chance_is_close_to_its_expectation():
    rng = np.random.default_rng(1)
    y, y_test = rng.permutation(np.repeat([0, 1], [70, 30])), rng.permutation(np.repeat([0, 1], [140, 60]))
    sets = np.zeros((100, 1)), y, np.zeros((200, 1)), y_test
    (found,) = reference_scores(*sets, evaluation=Evaluation("native"), random_state=SEED)["chance"]
    assert found == pytest.approx(0.7**2 + 0.3**2, abs=4 * np.sqrt(0.25 / 200 / CHANCE_DRAWS))


def test_a_models_own_predictions_are_compared_with_the_nearest_neighbour(digits):
    X, y, X_test, y_test = digits
    found = reference_scores(*digits, evaluation=Evaluation("native"), random_state=SEED)
    expected = accuracy_score(y_test, KNeighborsClassifier(1).fit(X, y).predict(X_test))
    assert found == {"all features": [expected], "chance": [pytest.approx(chance_by_hand(y, y_test, accuracy_score))]}


def test_each_task_has_its_own_references(digits):
    X, y, X_test, y_test = digits
    tasks, tasks_test = np.arange(100) % 2, np.arange(60) % 2
    blocks = (
        TaskBlocks((X[::2, :40], X[1::2, 40:]), tasks),
        TaskBlocks((X_test[::2, :40], X_test[1::2, 40:]), tasks_test),
    )
    evaluation = Evaluation("native", tasks=("a", "b"))
    found = reference_scores(blocks[0], y, blocks[1], y_test, evaluation=evaluation, random_state=SEED)
    for task, columns in enumerate((slice(0, 40), slice(40, 64))):
        own = X[task::2, columns], y[task::2], X_test[task::2, columns], y_test[task::2]
        alone = reference_scores(*own, evaluation=Evaluation("native"), random_state=SEED)
        assert {name: values[task] for name, values in found.items()} == {name: v[0] for name, v in alone.items()}


def test_what_is_undefined_is_left_out(digits):
    X, y, X_test, y_test = digits
    scaled = (X - X.mean(axis=0)) / X.std(axis=0), y, X_test, y_test
    found = reference_scores(*scaled, evaluation=Evaluation("knn", SIZES), random_state=SEED)
    assert list(found) == ["all features", "f_test", "chance"]  # by variance all are equal
    unlabelled = X, np.stack([y == 0, y == 1], 1).astype(int), X_test, np.zeros((60, 2), dtype=int)
    evaluation = Evaluation("knn", SIZES, metric="mean_average_precision")
    assert reference_scores(*unlabelled, evaluation=evaluation, random_state=SEED) == {}


@pytest.mark.parametrize("classifier", ["knn", "native"])
def test_a_reference_learns_nothing_from_the_test_samples(digits, classifier):
    """A test sample's label changes no other sample's prediction."""
    X, y, X_test, y_test = digits
    evaluation = Evaluation(classifier, SIZES if classifier == "knn" else ())
    whole = reference_scores(*digits, evaluation=evaluation, random_state=SEED)
    parts = [
        reference_scores(X, y, X_test[rows], y_test[rows], evaluation=evaluation, random_state=SEED)
        for rows in (slice(0, 30), slice(30, 60))
    ]
    for name in set(whole) - {"chance"}:
        assert np.mean([part[name] for part in parts], axis=0) == pytest.approx(whole[name])


@pytest.mark.parametrize("value", [0.1, 123.456])
def test_a_constant_feature_is_never_selected_whatever_rounding_makes_of_its_f_value(tmp_path, value):
    """f_classif gives a column of equal values an F value that can be large or infinite."""
    y = np.arange(114) % 3
    X = np.column_stack([np.full(114, value), y + np.random.default_rng(0).normal(scale=4.0, size=114)])
    np.savez(tmp_path / "data.npz", X=X, y=y)
    config = {
        "name": "few",
        "dataset": {"path": str(tmp_path / "data.npz"), "scaling": "none"},
        "solver": {"name": "fisher_score"},
        "evaluation": {"classifier": "knn", "n_features": [1]},
        "cv": {"outer": 2, "inner": 2, "final": False},
    }
    _, refits, _ = run_serially(Study.prepare(config_from_dict(config)), tmp_path / "run")
    for refit in refits:  # Fisher's score orders the features as F does
        assert refit.record.references["f_test"] == refit.record.test_scores
        assert refit.record.references.get("variance", refit.record.test_scores) == refit.record.test_scores
