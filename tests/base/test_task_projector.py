"""The two faces of every projection: tasks given one by one, and one X with NaN outside a sample's
own task.

What scikit-learn's own checks cannot ask, for they know of no NaN that means something, is asked
here.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from task_sets import concatenate, make_tasks

from raysel.baselines.aggregate import Aggregate
from raysel.baselines.linear_projections import LDA, PCA, TraceRatioLDA
from raysel.core.errors import ConfigError, DataError
from raysel.data.layouts import Tasks
from raysel.data.scaling import make_scaler
from raysel.data.task_blocks import TaskBlocks
from raysel.solvers.mtda.mtda import MTDA

METHODS = [MTDA, PCA, LDA, TraceRatioLDA, Aggregate]
WIDTHS = {"t0": 12, "t1": 9, "t2": 14}
STARTS, STOPS = np.array([0, 12, 21]), np.array([12, 21, 35])


@pytest.fixture(scope="module")
def tasks():
    """60, 80 and 50 samples of 12, 9 and 14 features in 4, 3 and 5 classes, each feature in
    units of its own.
    """
    made = make_tasks(3, sizes=((60, 12, 4), (80, 9, 3), (50, 14, 5)), noise=0.7)
    return [(X * (1 + np.arange(X.shape[1])) ** 2, y) for X, y in made]


@pytest.fixture(scope="module")
def mixed(tasks):
    """The same samples as X, y and the task of each, in an order that mixes the tasks; labels as
    words.
    """
    X, y, _ = concatenate(tasks)
    owners = np.repeat([0, 1, 2], [60, 80, 50])
    y = np.array([f"t{i}/{label}" for i, label in zip(owners, y, strict=True)])
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order], owners[order]


def apart(X, y, owners):
    """The tasks of mixed samples, one by one, in the samples' order."""
    return [(X[owners == i, STARTS[i] : STOPS[i]], y[owners == i]) for i in range(3)]


def by_task(fitted, X, owners):
    """Predictions sample by sample through the native face."""
    predicted = np.empty(len(X), dtype=fitted.classes_.dtype)
    for i, (start, stop) in enumerate(zip(STARTS, STOPS, strict=True)):
        own = owners == i
        if own.any():
            predicted[own] = fitted.predict_task(i, X[own, start:stop])
    return predicted


# --- both faces are one method ---------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_fit_and_fit_tasks_agree_whatever_the_order_of_the_samples(method, tasks, mixed):
    X, y, owners = mixed
    native, face = method().fit_tasks(apart(*mixed)), method(tasks=WIDTHS).fit(X, y)
    np.testing.assert_array_equal(face.objective_path_, native.objective_path_)
    np.testing.assert_array_equal(face.scores_, native.scores_)
    assert face.scores_.shape == face.ranking_.shape == (35,)
    assert face.task_names_ == ["t0", "t1", "t2"]
    projected, widest = face.transform(X), max(U.shape[1] for U in face.projections_)
    assert projected.shape == (190, widest)
    for i, (own, labels) in enumerate(apart(*mixed)):
        d = native.projections_[i].shape[1]
        rows = projected[owners == i]
        np.testing.assert_allclose(rows[:, :d], native.transform_task(i, own), atol=1e-9)
        np.testing.assert_allclose(
            rows[:, :d], (own - own.mean(axis=0)) @ native.projections_[i], atol=1e-9
        )
        assert np.isnan(rows[:, d:]).all()
        np.testing.assert_array_equal(face.predict(X[owners == i]), native.predict_task(i, own))
        np.testing.assert_array_equal(face.embedded_labels_[i], labels)
    unmixed = method().fit_tasks(tasks)
    for mine, theirs in zip(native.projections_, unmixed.projections_, strict=True):
        np.testing.assert_allclose(
            mine @ mine.T, theirs @ theirs.T, rtol=1e-6, atol=1e-9 * np.abs(mine).max() ** 2
        )


@pytest.mark.parametrize("method", METHODS)
def test_equal_labels_of_two_tasks_are_different_classes(method, tasks):
    X, y, widths = concatenate(tasks)
    renamed = y + np.repeat([0, 100, 200], [60, 80, 50])
    same, told = method(tasks=widths).fit(X, y), method(tasks=widths).fit(X, renamed)
    np.testing.assert_array_equal(same.scores_, told.scores_)
    np.testing.assert_array_equal(same.predict(X), told.predict(X) % 100)
    assert [
        set(told.predict(X[own]) // 100) for own in (slice(60), slice(60, 140), slice(140, 190))
    ] == [{0}, {1}, {2}]


@pytest.mark.parametrize("scaling", ["unit", "zscore", "none"])
@pytest.mark.parametrize("method", METHODS)
def test_blocks_are_fitted_and_predicted_as_the_padded_array(method, scaling, mixed):
    """A pipeline as a study exports it, fitted on either, serves both."""
    X, y, _ = mixed
    layout = Tasks(WIDTHS)
    blocks = TaskBlocks.from_dense(X, layout)
    by_blocks, by_array = (
        make_pipeline(make_scaler(scaling, layout), method(tasks=WIDTHS)).fit(samples, y)
        for samples in (blocks, X)
    )
    assert by_blocks[-1].n_features_in_ == 35
    np.testing.assert_array_equal(by_blocks[-1].scores_, by_array[-1].scores_)
    for model in (by_blocks, by_array):
        np.testing.assert_array_equal(model.predict(blocks), by_array.predict(X))
        np.testing.assert_array_equal(model.transform(blocks), by_array.transform(X))
        np.testing.assert_array_equal(model.predict(X), by_array.predict(X))
        assert model.score(blocks, y) == by_array.score(X, y)
    solver, prepared = method(tasks=WIDTHS), method(tasks=WIDTHS).prepare(blocks, y)
    list(solver.iterate(blocks, y, prepared))
    np.testing.assert_array_equal(solver.scores_, method(tasks=WIDTHS).fit(X, y).scores_)


def test_blocks_of_other_tasks_are_refused(mixed):
    X, y, _ = mixed
    blocks = TaskBlocks.from_dense(X, Tasks(WIDTHS))
    fewer = TaskBlocks(blocks.blocks[:2], blocks.tasks[blocks.tasks < 2])
    alone = MTDA().fit(np.nan_to_num(X), y)
    named = MTDA(tasks=WIDTHS).fit(blocks, y)
    for ask, given, message in (
        (MTDA().fit, (blocks, y), "tasks=None is for one task, but X holds 3"),
        (MTDA(tasks=WIDTHS).fit, (blocks, y[:-1]), "inconsistent numbers of samples"),
        (alone.predict, (blocks,), "MTDA was fitted on one task, but X holds 3"),
        (named.predict, (fewer,), "expecting 35 features"),
    ):
        with pytest.raises(ValueError, match=message):
            ask(*given)
    with pytest.raises(DataError):
        MTDA(tasks={"t0": 9, "t1": 12, "t2": 14}).fit(blocks, y)


# --- scikit-learn's tools --------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_scaling_in_a_pipeline_is_scaling_each_task_by_itself(method, mixed):
    X, y, owners = mixed
    pipeline = make_pipeline(StandardScaler(), method(tasks=WIDTHS)).fit(X, y)
    scaled = [(StandardScaler().fit_transform(own), labels) for own, labels in apart(*mixed)]
    alone = method().fit_tasks(scaled)
    np.testing.assert_allclose(pipeline[-1].scores_, alone.scores_, atol=1e-9)
    for i, (own, labels) in enumerate(scaled):
        np.testing.assert_allclose(
            pipeline.transform(X[owners == i])[:, : alone.projections_[i].shape[1]],
            alone.transform_task(i, own),
            1e-9,
        )
        assert (
            pipeline.predict(X[owners == i]) == labels
        ).all()  # each is its own nearest neighbour
    # The scale of the features does enter where nobody takes it out.
    assert not np.allclose(method(tasks=WIDTHS).fit(X, y).scores_, alone.scores_, atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_stratified_cross_validation_sees_every_class_of_every_task(method, mixed):
    X, y, owners = mixed
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    pipeline = make_pipeline(StandardScaler(), method(tasks=WIDTHS))
    scoring = ["accuracy", "balanced_accuracy", "f1_macro"]
    found = cross_validate(
        pipeline, X, y, cv=folds, scoring=scoring, error_score="raise", return_estimator=True
    )
    expected = []
    for (train, test), fitted in zip(folds.split(X, y), found["estimator"], strict=True):
        assert set(y[train]) == set(y[test]) == set(fitted.classes_)
        X_train, X_test = (fitted[0].transform(X[part]) for part in (train, test))
        native = method().fit_tasks(apart(X_train, y[train], owners[train]))
        predicted = by_task(native, X_test, owners[test])
        truth = y[test]
        scores = accuracy_score(truth, predicted), balanced_accuracy_score(truth, predicted)
        expected.append((*scores, f1_score(truth, predicted, average="macro")))
    np.testing.assert_allclose(
        np.transpose([found[f"test_{name}"] for name in scoring]), expected, atol=1e-12
    )
    assert min(found["test_accuracy"]) > (0.35 if method is PCA else 0.7)  # chance is 1/3 at best
    assert cross_val_predict(pipeline, X, y, cv=folds).shape == y.shape


def test_only_named_tasks_allow_nan(mixed):
    X, y, _ = mixed
    assert MTDA(tasks=WIDTHS).__sklearn_tags__().input_tags.allow_nan
    assert not MTDA().__sklearn_tags__().input_tags.allow_nan
    one = MTDA().fit(X[np.isfinite(X[:, 0]), :12], y[np.isfinite(X[:, 0])])
    for ask in (lambda: MTDA().fit(X, y), lambda: one.predict(X[:, :12])):
        with pytest.raises(ValueError, match="NaN"):
            ask()


# --- bad input -------------------------------------------------------------------------------


def test_samples_of_no_task_or_of_several_are_refused(mixed):
    X, y, owners = mixed
    first, second = np.flatnonzero(owners == 0)[0], np.flatnonzero(owners == 1)[0]
    for sample, columns, value, message in (
        (
            first,
            slice(12, 21),
            0.0,
            rf"sample {first} has values in the columns of 2 tasks \['t0', 't1'\]",
        ),
        (first, slice(0, 12), np.nan, rf"sample {first} has values in the columns of 0 tasks"),
        (
            second,
            slice(14, 15),
            np.nan,
            rf"sample {second} of task 't1' has NaN in the columns of its own task",
        ),
    ):
        spoilt = X.copy()
        spoilt[sample, columns] = value
        with pytest.raises(DataError, match=message):
            MTDA(tasks=WIDTHS).fit(spoilt, y)
        with pytest.raises(DataError):
            MTDA(tasks=WIDTHS).fit(X, y).predict(spoilt)
    infinite = X.copy()
    infinite[first, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        MTDA(tasks=WIDTHS).fit(infinite, y)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"t0": 12, "t1": 9, "t2": 15},
            r"t0: 12, t1: 9, t2: 15\) have 36 columns in total, but X has 35",
        ),  # overlap
        (
            {"t0": 12, "t1": 9},
            r"21 columns in total, but X has 35: every column must belong to exactly one task",
        ),  # gap
        ({"all": 35}, "one task: give tasks=None for one task, or name at least two"),
        ({}, "name each task with its number of columns"),
        ({"t0": 12, "t1": 0, "t2": 23}, "task 't1' has 0 columns"),
        (
            {"t0": 9, "t1": 12, "t2": 14},
            r"has values in the columns of 2 tasks \['t0', 't1'\]",
        ),  # the right number of columns, wrongly parted
    ],
)
def test_columns_that_do_not_part_the_data_are_refused(columns, message, mixed):
    X, y, _ = mixed
    with pytest.raises((ConfigError, DataError), match=message):
        MTDA(tasks=columns).fit(X, y)


def test_a_task_without_samples_or_with_one_class_is_refused(mixed):
    X, y, owners = mixed
    of_one_class = np.where(owners == 1, "t1/0", y)
    by_array = MTDA(tasks=WIDTHS).fit
    for fit, given, message in (
        (by_array, (X[owners != 1], y[owners != 1]), "task 't1' has no samples"),
        (by_array, (X, of_one_class), r"the samples are all of one class \(t1/0\)"),
        (
            MTDA().fit_tasks,
            (apart(X, of_one_class, owners),),
            r"task 'task1': the samples are all of one class \(t1/0\)",
        ),
    ):
        with pytest.raises(DataError, match=message):
            fit(*given)


def test_invalid_lists_of_tasks_are_refused(mixed):
    one, other, _ = apart(*mixed)
    for tasks, given, message in (
        (None, [], r"got 0 task\(s\) and needs at least two"),
        (None, [one], r"got 1 task\(s\) and needs at least two; use fit\(X, y\) for one"),
        (
            None,
            [one, other[0]],
            r"task 'task1': fit_tasks needs a pair \(X, y\) for each task, but got ndarray",
        ),
        (None, {"a": one, "b": other}, r"task 'task0': fit_tasks needs a pair"),
        (
            None,
            [one, (other[0], other[1][:5])],
            r"task 'task1': .*inconsistent numbers of samples",
        ),
        (None, [one, (other[0][:, 0], other[1])], r"task 'task1': Expected 2D array"),
        (None, [one, (np.where(other[0] > 0, np.nan, 1.0), other[1])], r"task 'task1': .*NaN"),
        (
            None,
            [one, (np.ones((4, 2)), [0, 1, 0, 1])],
            r"task 'task1': all features are constant",
        ),
        (
            WIDTHS,
            [one, other],
            r"got 2 tasks, but the parameter tasks names 3: \['t0', 't1', 't2'\]",
        ),
        (
            {"t0": 12, "t1": 8},
            [one, other],
            "task 't1' has 9 features, but the parameter tasks gives 8",
        ),
    ):
        with pytest.raises((ConfigError, DataError), match=message) as refused:
            MTDA(tasks=tasks).fit_tasks(given)
        assert "\n" not in str(refused.value)
    with pytest.raises(DataError):
        MTDA(tasks=[12, 9]).fit_tasks([one, other])


@pytest.mark.parametrize("task", [3, -1, "t0", 0.0, None])
def test_a_task_that_is_not_there_is_refused(task, mixed):
    X, y, _ = mixed
    fitted = MTDA(tasks=WIDTHS).fit(X, y)
    for ask in (fitted.transform_task, fitted.predict_task):
        with pytest.raises(
            ConfigError, match=r"not one of the fitted tasks: give 0 for task 't0', 1 for task 't1'"
        ):
            ask(task, np.zeros((1, 12)))
    with pytest.raises(DataError, match="task 't0' has 12 features, but X has 9"):
        fitted.transform_task(0, np.zeros((1, 9)))


@pytest.mark.parametrize(
    ("n_components", "message"),
    [
        (10, r"n_components=10 does not fit task 't1' of 9 features: give at most 9"),
        ([2, 3], r"n_components=\[2, 3\] has 2 entries for 3 tasks"),
        ([2, 2, 15], r"n_components=15 does not fit task 't2' of 14 features: give at most 14"),
        ([2, 2.5, 2], r"2\.5 is not a positive whole number"),
        ([2, 0, 2], r"0 is not a positive whole number"),
        ([2, "two", 2], r"'two' is not a positive whole number"),
        (0, "n_components"),
    ],
)
def test_impossible_numbers_of_components_are_refused_before_the_fit(n_components, message):
    for method in (MTDA, PCA, LDA, TraceRatioLDA):
        with pytest.raises(ConfigError, match=message):
            method(tasks=WIDTHS, n_components=n_components).check(35)


@pytest.mark.parametrize("method", [MTDA, PCA, LDA, TraceRatioLDA])
def test_more_components_than_a_training_set_allows_are_refused_before_the_fit(method):
    """Six samples of three classes have rank 5 at most, two classes one direction that tells
    them apart.
    """
    y, owners = (
        np.r_[np.arange(18) % 2, np.arange(6) % 3, np.arange(18) % 2],
        np.repeat([0, 1, 2], [18, 6, 18]),
    )
    for wanted in (None, 1, [1, 2, 1]):
        method(tasks=WIDTHS, n_components=wanted).check_training(y, owners)
    largest = 2 if method is LDA else 5
    method(tasks=WIDTHS, n_components=[1, largest, 1]).check_training(y, owners)
    message = (
        rf"task 't1', of which a training set has 6 samples of 3 classes: give at most {largest}"
    )
    with pytest.raises(ConfigError, match=message):
        method(tasks=WIDTHS, n_components=[1, largest + 1, 1]).check_training(y, owners)
    alone = np.arange(6) % 3
    method(n_components=largest).check_training(alone)
    with pytest.raises(
        ConfigError, match="the data, of which a training set has 6 samples of 3 classes"
    ):
        method(n_components=largest + 1).check_training(alone)


@pytest.mark.parametrize("method", [MTDA, PCA, LDA, TraceRatioLDA])
def test_components_above_a_tasks_rank_are_refused_with_the_largest(method, tasks):
    copied = [
        tasks[0],
        (np.repeat(tasks[1][0][:, :4], 2, axis=1), tasks[1][1]),
    ]  # 8 features, rank 4
    largest = 2 if method is LDA else 4  # LDA has no direction beyond c - 1
    message = rf"task 'task1' of rank 4 and 3 classes: give at most {largest}"
    with pytest.raises(ConfigError, match=message):
        method(n_components=largest + 1 if method is not LDA else 3).fit_tasks(copied)
    assert method(n_components=[3, largest]).fit_tasks(copied).projections_[1].shape == (8, largest)


def test_components_above_the_pooled_rank_are_refused():
    with pytest.raises(ConfigError, match="n_components=15 does not fit task 't2' of 14 features"):
        Aggregate(tasks=WIDTHS, n_components=15).check(35)
    y, owners = np.arange(12) % 2, np.repeat([0, 1, 2], 4)
    Aggregate(tasks=WIDTHS, n_components=9).check_training(
        y, owners
    )  # 12 samples, each task centred by itself
    with pytest.raises(ConfigError, match="the pooled training sets of 12 samples: give at most 9"):
        Aggregate(tasks=WIDTHS, n_components=10).check_training(y, owners)
    X = np.random.default_rng(0).standard_normal((12, 35))
    tasks = [
        (X[i::3, start:stop], ["a", "b"] * 2)
        for i, (start, stop) in enumerate(zip(STARTS, STOPS, strict=True))
    ]
    assert Aggregate(n_components=9).fit_tasks(tasks).projections_[0].shape == (12, 9)
    with pytest.raises(ConfigError, match="the pooled data of rank 9: give at most 9"):
        Aggregate(n_components=10).fit_tasks(tasks)
