"""References of a refit, against plain scikit-learn calls."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import f_classif
from sklearn.metrics import accuracy_score, average_precision_score, f1_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from small_studies import make_study, run_serially, write_digits
from splits import scaled_split

from raysel.config import config_from_dict
from raysel.data.targets.guesses import MOST_FREQUENT, STRATIFIED
from raysel.data.task_blocks import TaskBlocks
from raysel.evaluation import references
from raysel.evaluation.guesses import CHANCE_DRAWS
from raysel.evaluation.references import (
    RANKINGS,
    f_values,
    noise_stability,
    reference_scores,
)
from raysel.evaluation.scoring import Evaluation
from raysel.study.definition import Study

SEED = 12345
SIZES = (3, 10, 30)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True, n_class=4)
    X = X[:160] / 16 + np.random.default_rng(0).normal(
        scale=1e-3, size=(160, 64)
    )  # no ties, no constant pixel
    return X[:100], y[:100], X[100:], y[100:160]


def scored(*sets, evaluation, inner=()):
    """Scores of the references by name."""
    outer = scaled_split(*sets, random_state=SEED)
    return reference_scores(outer, inner, evaluation=evaluation).scores


def chance_by_hand(y_train, y_test, score):
    actual = []
    for seed in np.random.SeedSequence(SEED).generate_state(CHANCE_DRAWS):
        dummy = DummyClassifier(strategy="stratified", random_state=int(seed)).fit(
            np.zeros(len(y_train)), y_train
        )
        actual.append(score(y_test, dummy.predict(np.zeros(len(y_test)))))
    return np.mean(actual)


def best(values, n):
    return np.argsort(-values, kind="stable")[:n]


@pytest.mark.parametrize(
    ("evaluation", "classifier"),
    [
        (Evaluation("knn", SIZES, 1), KNeighborsClassifier(1)),
        (Evaluation("knn", SIZES, 5, choose_n="mean"), KNeighborsClassifier(5)),
        (Evaluation("linear_svm", SIZES), LinearSVC(random_state=SEED, max_iter=10_000)),
    ],
)
def test_they_are_scikit_learns_classifiers_on_scikit_learns_rankings(
    digits, evaluation, classifier
):
    X, y, X_test, y_test = digits

    def score(columns):
        return accuracy_score(y_test, classifier.fit(X[:, columns], y).predict(X_test[:, columns]))

    actual = scored(*digits, evaluation=evaluation)
    assert list(actual) == [*RANKINGS, MOST_FREQUENT, STRATIFIED]
    # scikit-learn gives a tied vote of five neighbours to the nearest of them, so a sample may
    # differ.
    slack = 2.1 / len(y_test) if evaluation.n_neighbors > 1 else 1e-12
    assert actual["all features"] == pytest.approx([score(np.arange(64))], abs=slack)
    assert actual["variance"] == pytest.approx(
        [score(best(X.var(axis=0), n)) for n in SIZES], abs=slack
    )
    assert actual["f_test"] == pytest.approx(
        [score(best(f_classif(X, y)[0], n)) for n in SIZES], abs=slack
    )
    assert actual["stratified guess"] == pytest.approx([chance_by_hand(y, y_test, accuracy_score)])
    assert actual == scored(*digits, evaluation=evaluation)


def test_labels_of_an_indicator_are_ranked_by_their_mean_f(digits):
    X, y, X_test, y_test = digits
    Y, Y_test = (
        np.stack([c == 0, c > 1, np.zeros_like(c) == 1], axis=1).astype(int) for c in (y, y_test)
    )

    def macro_f1(true, predicted):
        return f1_score(true, predicted, average="macro", zero_division=0)

    evaluation = Evaluation("knn", SIZES, 1, metric="macro_f1")
    actual = scored(X, Y, X_test, Y_test, evaluation=evaluation)
    F = np.mean(
        [f_classif(X, column)[0] for column in Y.T[:2]], axis=0
    )  # no sample has the third label
    knn = KNeighborsClassifier(1)
    expected = [
        macro_f1(Y_test, knn.fit(X[:, b], Y).predict(X_test[:, b]))
        for b in (best(F, n) for n in SIZES)
    ]
    assert actual["f_test"] == pytest.approx(expected)
    constants = [np.array(labels) for labels in itertools.product((0, 1), repeat=3)]
    constant = max(constants, key=lambda labels: macro_f1(Y, np.tile(labels, (len(Y), 1))))
    assert constant[:2].tolist() == [
        1,
        1,
    ]  # though more than half of the samples have neither label
    assert actual["best constant class"] == [macro_f1(Y_test, np.tile(constant, (len(Y_test), 1)))]
    assert actual["stratified guess"] == pytest.approx([chance_by_hand(Y, Y_test, macro_f1)])


def test_metrics_of_scores_have_references_too(digits):
    X, y, X_test, y_test = digits
    evaluation = Evaluation("knn", (10,), 1, metric="mean_average_precision")
    actual = scored(*digits, evaluation=evaluation)
    D = np.sqrt(((X_test[:, None] - X[None]) ** 2).sum(axis=2))
    margins = np.stack(
        [D[:, y != c].min(axis=1) - D[:, y == c].min(axis=1) for c in range(4)], axis=1
    )
    expected = np.mean([average_precision_score(y_test == c, margins[:, c]) for c in range(4)])
    assert actual["all features"] == pytest.approx([expected], rel=1e-6)
    prior = np.mean([(y_test == c).mean() for c in range(4)])
    assert actual["class shares"] == pytest.approx([prior])  # all samples count as one group
    assert actual["random order"][0] > prior + 0.02


def test_chance_is_close_to_its_expectation():
    rng = np.random.default_rng(1)
    y, y_test = (
        rng.permutation(np.repeat([0, 1], [70, 30])),
        rng.permutation(np.repeat([0, 1], [140, 60])),
    )
    sets = np.zeros((100, 1)), y, np.zeros((200, 1)), y_test
    (actual,) = scored(*sets, evaluation=Evaluation("native"))["stratified guess"]
    assert actual == pytest.approx(0.7**2 + 0.3**2, abs=4 * np.sqrt(0.25 / 200 / CHANCE_DRAWS))


def test_a_models_own_predictions_are_compared_with_the_nearest_neighbour(digits):
    X, y, X_test, y_test = digits
    actual = scored(*digits, evaluation=Evaluation("native"))
    expected = accuracy_score(y_test, KNeighborsClassifier(1).fit(X, y).predict(X_test))
    assert actual == {
        "all features": [expected],
        "most frequent class": [np.mean(y_test == np.bincount(y).argmax())],
        "stratified guess": [pytest.approx(chance_by_hand(y, y_test, accuracy_score))],
    }


def test_each_task_has_its_own_references(digits):
    X, y, X_test, y_test = digits
    tasks, tasks_test = np.arange(100) % 2, np.arange(60) % 2
    blocks = (
        TaskBlocks((X[::2, :40], X[1::2, 40:]), tasks),
        TaskBlocks((X_test[::2, :40], X_test[1::2, 40:]), tasks_test),
    )
    evaluation = Evaluation("native", tasks=("a", "b"))
    actual = scored(blocks[0], y, blocks[1], y_test, evaluation=evaluation)
    for task, columns in enumerate((slice(0, 40), slice(40, 64))):
        sets = X[task::2, columns], y[task::2], X_test[task::2, columns], y_test[task::2]
        alone = scored(*sets, evaluation=Evaluation("native"))
        assert {name: values[task] for name, values in actual.items()} == {
            name: v[0] for name, v in alone.items()
        }


def test_what_is_undefined_is_left_out(digits):
    X, y, X_test, y_test = digits
    scaled = (X - X.mean(axis=0)) / X.std(axis=0), y, X_test, y_test
    actual = scored(*scaled, evaluation=Evaluation("knn", SIZES))
    assert set(RANKINGS) - set(actual) == {"variance"}  # by variance all are equal
    unlabelled = X, np.stack([y == 0, y == 1], 1).astype(int), X_test, np.zeros((60, 2), dtype=int)
    evaluation = Evaluation("knn", SIZES, metric="mean_average_precision")
    assert scored(*unlabelled, evaluation=evaluation) == {}


def test_a_ranking_that_only_the_inner_folds_define_is_left_out():
    rng = np.random.default_rng(0)
    X = np.stack(
        [rng.permutation(np.repeat([0.0, 1.0], 20)) for _ in range(6)], axis=1
    )  # of equal variance
    y = rng.permutation(np.repeat([0, 1], 20))
    inner = [
        scaled_split(X[a], y[a], X[b], y[b], random_state=SEED)
        for a, b in ((slice(25), slice(25, 40)), (slice(15, 40), slice(15)))
    ]
    evaluation = Evaluation("linear_svm", (2, 4), settings=((("C", 0.1),), (("C", 1.0),)))
    outer = scaled_split(X, y, X, y, random_state=SEED)
    actual = reference_scores(outer, inner, evaluation=evaluation)
    assert set(RANKINGS) - set(actual.scores) == {"variance"}
    assert set(actual.settings) == {"all features", "f_test"}


@pytest.mark.parametrize("classifier", ["knn", "native"])
def test_a_reference_learns_nothing_from_the_test_samples(digits, classifier):
    """A test sample's label changes no other sample's prediction."""
    X, y, X_test, y_test = digits
    evaluation = Evaluation(classifier, SIZES if classifier == "knn" else ())
    whole = scored(*digits, evaluation=evaluation)
    parts = [
        scored(X, y, X_test[rows], y_test[rows], evaluation=evaluation)
        for rows in (slice(0, 30), slice(30, 60))
    ]
    for name in set(whole) - {"stratified guess"}:
        assert np.mean([part[name] for part in parts], axis=0) == pytest.approx(whole[name])


@pytest.mark.parametrize("value", [0.1, 123.456])
def test_a_constant_feature_is_never_selected_whatever_rounding_makes_of_its_f_value(
    tmp_path, value
):
    """f_classif gives a column of equal values an F value that can be large or infinite."""
    y = np.arange(114) % 3
    X = np.column_stack(
        [np.full(114, value), y + np.random.default_rng(0).normal(scale=4.0, size=114)]
    )
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
        assert (
            refit.record.references.get("variance", refit.record.test_scores)
            == refit.record.test_scores
        )


def few_digits(folder, **sections):
    """A study of four digits whose values lie far below the range of C, so that C matters."""
    X, y = load_digits(return_X_y=True, n_class=4)
    X = X[:120] / 160 + np.random.default_rng(0).normal(scale=1e-2, size=(120, 64))
    np.savez(folder / "data.npz", X=X, y=y[:120])
    raw = {
        "name": "few",
        "dataset": {"path": str(folder / "data.npz"), "scaling": "none"},
        "cv": {"outer": 2, "inner": 3, "final": False},
    }
    return X, y[:120], Study.prepare(config_from_dict({**raw, **sections}))


def test_a_reference_chooses_n_and_c_by_the_inner_folds_of_its_outer_fold(tmp_path):
    """All by scikit-learn, on the study's own folds."""
    grid, sizes = [0.1, 1.0, 10.0], (2, 6, 20)
    evaluation = {"classifier": "linear_svm", "n_features": sizes, "C": grid, "choose_n": "best"}
    X, y, study = few_digits(tmp_path, solver={"name": "random_ranking"}, evaluation=evaluation)
    _, refits, _ = run_serially(study, tmp_path / "run")

    def score(train, test, columns, C, state):
        svm = LinearSVC(C=C, random_state=state, max_iter=10_000).fit(
            X[train][:, columns], y[train]
        )
        return svm.score(X[test][:, columns], y[test])

    def first(values):
        return int(np.argmax(np.round(values, 12)))

    for fold, refit in zip(study.plan.outer, refits, strict=True):
        record = refit.record
        for name, rank in (
            ("variance", lambda A, _: A.var(axis=0)),
            ("f_test", lambda A, b: f_classif(A, b)[0]),
        ):
            values = np.zeros((len(fold.inner), len(grid), len(sizes)))
            for i, inner in enumerate(fold.inner):
                order = rank(X[inner.train], y[inner.train])
                state = fold.random_state(study.config.seed, i)
                for j, C in enumerate(grid):
                    for k, n in enumerate(sizes):
                        values[i, j, k] = score(
                            inner.train, inner.validation, np.sort(best(order, n)), C, state
                        )
            means = values.mean(axis=0)
            chosen = [grid[first(means[:, k])] for k in range(len(sizes))]
            assert record.reference_settings[name] == [{"C": C} for C in chosen]
            assert record.reference_positions[name] == first(means.max(axis=0))
            order, state = rank(X[fold.train], y[fold.train]), fold.random_state(study.config.seed)
            expected = [
                score(fold.train, fold.test, np.sort(best(order, n)), C, state)
                for n, C in zip(sizes, chosen, strict=True)
            ]
            assert record.references[name] == pytest.approx(expected)
            assert record.reference(name) == pytest.approx(expected[first(means.max(axis=0))])
        assert len(record.reference_settings["all features"]) == 1
    chosen = [
        setting
        for refit in refits
        for each in refit.record.reference_settings.values()
        for setting in each
    ]
    assert {setting["C"] for setting in chosen} != {1.0}


@pytest.mark.parametrize(("classifier", "rule"), [("knn", "mean"), ("linear_svm", "one_se")])
def test_a_reference_scores_what_a_study_of_its_method_does(tmp_path, classifier, rule):
    evaluation = {"classifier": classifier, "n_features": [2, 6, 20], "choose_n": rule}
    _, _, study = few_digits(tmp_path, solver={"name": "variance"}, evaluation=evaluation)
    for refit in run_serially(study, tmp_path / "run")[1]:
        record = refit.record
        assert record.references["variance"] == record.test_scores
        assert record.reference_positions.get("variance") == record.position
        assert record.reference_settings.get("variance", []) == record.settings
        model = refit.model.named_steps["classifier"]
        if classifier == "linear_svm":
            position = study.evaluation.n_features.index(record.n_features)
            assert record.settings[position] == {"C": model.C}


def test_along_a_path_c_is_chosen_once_all_inner_training_sets_have_ended(tmp_path):
    write_digits(tmp_path / "few.npz")
    evaluation = {"classifier": "linear_svm", "n_features": [2, 6], "C": [0.01, 1.0, 100.0]}
    solver = {
        "name": "smml",
        "params": {"gamma2": 0.01, "max_iter": 50},
        "space": {"gamma1": [0.02, 0.1]},
    }
    search = {"method": "path", "executor": "serial"}
    study = make_study(tmp_path / "few.npz", solver=solver, evaluation=evaluation, search=search)
    trials, refits, journal = run_serially(study, tmp_path / "run")
    paths = {(r["fold"], r["inner"]): r["fits"] for r in journal if r["kind"] == "path"}
    for id_, trial in trials.items():
        for fold, trace in trial["folds"].items():
            every = np.array(
                [paths[fold, i][id_]["scores"] for i in range(2)]
            )  # (n_inner, n_C, n_sizes)
            chosen = every.mean(axis=0).round(12).argmax(axis=0)
            assert trace["settings"] == [{"C": evaluation["C"][i]} for i in chosen]
            expected = [[[float(every[i, j, k]) for k, j in enumerate(chosen)]] for i in range(2)]
            assert [fit["scores"] for fit in trace["inner"]] == expected
    for refit in refits:
        assert (
            trials[refit.record.trial]["folds"][refit.record.fold]["settings"]
            == refit.record.settings
        )


@pytest.fixture
def samples():
    X = np.random.default_rng(0).normal(size=(40, 11)) * np.logspace(-1, 1, 11) + 10
    X[:, 4] = 7
    return X


def plain(X, y):
    with np.errstate(all="ignore"), pytest.warns():
        return np.nan_to_num(f_classif(X, y)[0])


def test_they_are_scikit_learns_of_classes_and_of_labels(samples, monkeypatch):
    X = samples
    monkeypatch.setattr(references, "_CELLS", 3 * len(X))  # three features at once
    rng = np.random.default_rng(1)
    labels = [rng.choice(list("abc"), 40) for _ in range(3)]
    np.testing.assert_allclose(
        f_values(X, labels), [plain(X, y) for y in labels], rtol=1e-6, atol=1e-9
    )
    indicator = rng.random((40, 3)) < 0.4
    indicator[:, 1] = False  # a label that no sample has tells nothing
    wanted = (plain(X, indicator[:, 0]) + plain(X, indicator[:, 2])) / 2
    np.testing.assert_allclose(f_values(X, [indicator])[0], wanted, rtol=1e-6, atol=1e-9)


def test_those_of_a_task_are_of_its_samples(samples):
    X = samples
    rng = np.random.default_rng(2)
    y, tasks = rng.integers(0, 2, 40), np.repeat([0, 1], 20)
    blocks = TaskBlocks((X[:20, :5], X[20:, 5:]), tasks)
    wanted = [*plain(X[:20, :5], y[:20]), *f_classif(X[20:, 5:], y[20:])[0]]
    np.testing.assert_allclose(f_values(blocks, [y])[0], wanted, rtol=1e-6, atol=1e-9)


def test_labels_that_tell_the_features_apart_are_stable_and_constant_features_are_never_selected(
    samples,
):
    y = np.arange(40) % 2
    X = samples
    X[:, :2] += 1e4 * y[:, None] * X[:, :2].std(axis=0)
    sets = [np.arange(0, 30), np.arange(10, 40), np.arange(5, 35)]
    actual = noise_stability(X, [y], sets)[0]
    assert actual[1] == pytest.approx(1)  # the two that the labels move
    assert actual[9] == pytest.approx(1)  # all but the constant one
    assert actual[10] == pytest.approx(1)  # no more are ever selected
