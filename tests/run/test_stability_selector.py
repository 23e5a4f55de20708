"""StabilitySelection: selections counted on halves, beside scikit-learn's own estimators."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import Lasso, LogisticRegression, MultiTaskLasso
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from small_studies import raw_config, run_offline

from raysel import NestedSearch, StabilitySelection, stability_selection
from raysel.base.registry import solver_class
from raysel.core.errors import ConfigError, DataError
from raysel.evaluation.plan import derived_seed
from raysel.run.stability import draw_halves

SVM = LinearSVC(penalty="l1", dual=False, C=0.2)


def labelled_samples(n=80, d=20, shift=1.0, seed=0):
    """Two classes that differ in the first three features; the eighth is constant."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 2)
    X = rng.standard_normal((n, d))
    X[:, :3] += shift * y[:, None]
    X[:, 7] = 1.0
    return X, y


def quantities(n_outputs=1):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 12))
    Y = X[:, :2] @ rng.standard_normal((2, n_outputs)) + 0.1 * rng.standard_normal((60, n_outputs))
    return X, (Y[:, 0] if n_outputs == 1 else Y)


def halves_of(y, n_halves, seed, groups=None):
    for pair in range(n_halves // 2):
        yield from draw_halves(y, groups, derived_seed(seed, "halves", pair))


def largest(coefficients, top):
    """Mask of the features with the largest norms of their coefficients, none with norm 0."""
    norms = np.linalg.norm(np.atleast_2d(coefficients), axis=0)
    mask = np.zeros(len(norms), dtype=bool)
    mask[np.argsort(-norms, kind="stable")[:top]] = True
    return mask & (norms > 0)


@pytest.mark.parametrize(
    ("estimator", "samples"),
    [
        (SVM, labelled_samples()),
        (Lasso(0.1), quantities()),
        (MultiTaskLasso(0.1), quantities(3)),
    ],
)
def test_selections_are_those_of_the_estimator_fitted_to_each_half(estimator, samples):
    X, y = samples
    found = StabilitySelection(estimator, n_halves=12, top=4, random_state=5).fit(X, y)
    varies = np.ptp(X, axis=0) > 0  # a constant feature is never selected
    counts = sum(
        largest(clone(estimator).fit(X[half], y[half]).coef_ * varies, 4).astype(int)
        for half in halves_of(y, 12, 5)
    )
    np.testing.assert_array_equal(found.scores_, counts / 12)
    np.testing.assert_array_equal(found.get_support(), counts / 12 >= found.threshold_ - 1e-12)


@pytest.mark.parametrize(
    ("solver", "estimator"),
    [
        (
            {"name": "fisher_score", "params": {}, "space": {}},
            solver_class("fisher_score")(),
        ),
        (
            {
                "name": "sklearn.ensemble.ExtraTreesClassifier",
                "params": {"n_estimators": 10},
                "space": {},
            },
            ExtraTreesClassifier(n_estimators=10),
        ),
    ],
)
def test_a_finished_study_gives_the_same_numbers(tmp_path, solver, estimator):
    X, y = labelled_samples()
    np.savez(tmp_path / "samples.npz", X=X, y=y)
    config = raw_config(
        tmp_path / "samples.npz",
        solver=solver,
        dataset__scaling="none",
        evaluation__n_features=[5],
    )
    path = run_offline(config, tmp_path / "study").path
    told = stability_selection(path, subsamples=20, top=5, progress=False)
    found = StabilitySelection(estimator, n_halves=20, top=5, random_state=config["seed"])
    found = found.fit(X, y).selection_
    for name in ("counts", "pair_counts", "n_selected"):
        np.testing.assert_array_equal(getattr(found, name), getattr(told, name))
    assert (found.threshold, found.bound) == (told.threshold, told.bound)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_step_of_a_pipeline_has_the_numbers_of_a_finished_study(tmp_path, grouped):
    X, y = labelled_samples()
    groups = np.repeat(np.arange(40), 2)
    y = y[groups]  # one class a group
    X[:, 0] += 2 * y
    own = {"groups": groups} if grouped else {}
    np.savez(tmp_path / "samples.npz", X=X, y=y, **own)
    config = raw_config(
        tmp_path / "samples.npz",
        solver={"name": "fisher_score", "params": {}, "space": {}},
        dataset__scaling="none",
        evaluation__n_features=[3],
        **{"cv__groups": "groups"} if grouped else {},
    )
    path = run_offline(config, tmp_path / "study").path
    told = stability_selection(path, subsamples=20, top=3, progress=False)
    selector = StabilitySelection(solver_class("fisher_score")(), n_halves=20, top=3)
    selector.set_params(random_state=config["seed"])
    pipeline = make_pipeline(selector, LogisticRegression())
    given = {f"stabilityselection__{name}": each for name, each in own.items()}
    found = pipeline.fit(X, y, **given)[0].selection_
    for name in ("counts", "pair_counts", "n_selected"):
        np.testing.assert_array_equal(getattr(found, name), getattr(told, name))
    assert (found.bound, found.unit) == (told.bound, told.unit)
    assert found.unit == ("groups" if grouped else "samples")


def test_a_step_of_a_searched_pipeline_has_the_numbers_of_its_samples():
    X, y = labelled_samples(shift=2.0)
    selector = StabilitySelection(solver_class("fisher_score")(), n_halves=20, top=3)
    search = NestedSearch(make_pipeline(selector, LogisticRegression()), outer=2, inner=2)
    search.fit(X, y)
    for model, rows in zip(
        search.fold_results_["estimator"], search.fold_results_["train"], strict=True
    ):
        step = model[0]
        alone = clone(selector).set_params(random_state=step.random_state).fit(X[rows], y[rows])
        np.testing.assert_array_equal(step.scores_, alone.scores_)


def test_each_half_chooses_its_parameters_by_its_own_samples():
    X, y = labelled_samples()
    grid = {"C": [0.05, 0.1, 1.0]}
    selector = StabilitySelection(SVM, grid, n_halves=8, top=3, random_state=2)
    found = selector.fit(X, y)
    first, second = next(zip(*[halves_of(y, 2, 2)] * 2, strict=True))
    assert {params["C"] for params in found.best_params_} <= set(grid["C"])
    changed = X.copy()
    changed[second] = np.random.default_rng(3).standard_normal((len(second), X.shape[1]))
    again = clone(selector).fit(changed, y)
    assert again.best_params_[0] == found.best_params_[0]
    assert len(set(first) & set(second)) == 0


def test_groups_stay_whole():
    X, y = quantities()
    groups = np.repeat(np.arange(15), 4)
    found = StabilitySelection(Lasso(0.1), n_halves=8, top=3).fit(X, y, groups=groups)
    halves = list(halves_of(y, 8, 0, groups))
    counts = sum(largest(Lasso(0.1).fit(X[half], y[half]).coef_, 3).astype(int) for half in halves)
    np.testing.assert_array_equal(found.scores_, counts / 8)
    assert not set(groups[halves[0]]) & set(groups[halves[1]])
    assert "groups are taken to be independent" in found.selection_.assumptions


def test_the_bound_is_that_of_its_formula():
    X, y = labelled_samples()
    selector = StabilitySelection(SVM, n_halves=40, top=3, expected_false=0.5)
    found = selector.fit(X, y)
    q, p, tau, step = 3, 19, found.threshold_, 1 / 40
    lower = 1 / (2 * (2 * tau - 1 - step))
    upper = 4 * (1 - tau + step) / (1 + 2 * step)
    assert found.bound_ == pytest.approx((lower if tau <= 0.75 else upper) * q**2 / p)
    assert found.bound_ <= 0.5
    assert clone(selector).set_params(threshold=tau - step).fit(X, y).bound_ > 0.5


def test_the_default_top_has_a_threshold_that_bounds_the_false_ones():
    X, y = labelled_samples()
    many = StabilitySelection(SVM, n_halves=20, expected_false=2.0).fit(X, y)
    few = StabilitySelection(SVM, n_halves=20, expected_false=0.5).fit(X, y)
    assert few.top_ < many.top_
    assert few.bound_ <= 0.5
    assert many.bound_ <= 2.0


def test_decoys_choose_the_threshold():
    """Brute force: ranks of features and decoys on each half, then every threshold."""
    X, y = labelled_samples(shift=2.0)
    found = StabilitySelection(SVM, n_halves=20, top=6, threshold="decoys", random_state=4)
    found.fit(X, y)
    varying = np.flatnonzero(np.ptp(X, axis=0) > 0)
    rng = np.random.default_rng(derived_seed(4, "decoys"))
    both = np.hstack([X, rng.permuted(X[:, varying], axis=0)])
    weighs = np.ptp(both, axis=0) > 0
    counts = sum(
        largest(clone(SVM).fit(both[half], y[half]).coef_ * weighs, 6).astype(int)
        for half in halves_of(y, 20, 4)
    )
    real, decoys = counts[: X.shape[1]], counts[X.shape[1] :]
    shares = {n / 20: (1 + np.sum(decoys >= n)) / max(1, np.sum(real >= n)) for n in range(11, 21)}
    np.testing.assert_array_equal(found.scores_, real / 20)
    assert found.threshold_ == min(shares, key=lambda level: (shares[level], level))
    assert found.false_share_ == shares[found.threshold_]
    assert set(np.flatnonzero(found.get_support())) >= {0, 1, 2}
    again = found.set_params(threshold=0.6).fit(X, y)
    assert not hasattr(again, "false_share_")


def test_decoys_are_refused_with_groups():
    X, y = quantities()
    selector = StabilitySelection(Lasso(0.1), n_halves=4, threshold="decoys")
    with pytest.raises(ConfigError, match="leave out groups, or give a number"):
        selector.fit(X, y, groups=np.repeat(np.arange(15), 4))


def test_names_and_columns_of_a_table_are_kept():
    X, y = labelled_samples(shift=2.0)
    table = pd.DataFrame(X, columns=[f"gene {i}" for i in range(X.shape[1])])
    selector = StabilitySelection(SVM, n_halves=20, top=3).set_output(transform="pandas")
    selected = selector.fit(table, np.where(y, "case", "control")).transform(table)
    pd.testing.assert_frame_equal(selected, table[selector.get_feature_names_out()])
    assert set(selected) == {"gene 0", "gene 1", "gene 2"}


@pytest.mark.slow
def test_the_number_of_processes_changes_nothing():
    X, y = labelled_samples()
    trees = ExtraTreesClassifier(n_estimators=5)
    one, two = (
        StabilitySelection(trees, n_halves=6, top=3, n_jobs=n).fit(X, y).scores_ for n in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


@pytest.mark.slow
def test_a_pipeline_is_searched_and_nested():
    X, y = labelled_samples(n=120, shift=2.0)
    selector = StabilitySelection(SVM, n_halves=8, top=3, threshold=0.51)
    pipeline = make_pipeline(selector, LogisticRegression())
    space = {"stabilityselection__top": [2, 3]}
    searched = GridSearchCV(pipeline, space, cv=3).fit(X, y)
    assert searched.score(X, y) > 0.7
    nested = NestedSearch(pipeline, space, outer=3, inner=2).fit(X, y)
    assert nested.score_ > 0.7
    assert set(nested.get_support(indices=True)) <= {0, 1, 2}


def test_permuted_labels_are_predicted_by_chance():
    """And above it where the features were selected on all samples before."""
    scores, careless = [], []
    for seed in range(4):
        X, y = labelled_samples(n=90, d=40, seed=seed)
        y = np.random.default_rng(seed + 50).permutation(y)
        ranks = solver_class("fisher_score")()
        selector = StabilitySelection(ranks, n_halves=4, top=20, threshold=0.6)
        pipeline = make_pipeline(selector, LogisticRegression())
        scores.append(NestedSearch(pipeline, outer=3, inner=2).fit(X, y).score_)
        chosen = clone(selector).fit_transform(X, y)
        careless.append(NestedSearch(LogisticRegression(), outer=3, inner=2).fit(chosen, y).score_)
    assert abs(np.mean(scores) - 0.5) < 0.09
    assert np.mean(careless) > np.mean(scores) + 0.09


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"n_halves": 7}, "n_halves=7 must be an even whole number from 4"),
        ({"threshold": 0.5}, "threshold=0.5 must be above 0.5"),
        ({"estimator": LinearSVC}, "is no estimator: give an object"),
        (
            {"estimator": solver_class("fisher_score")(), "param_grid": {"C": [1]}},
            "has no score to choose by; leave param_grid out",
        ),
    ],
)
def test_bad_parameters_are_refused(change, told):
    settings = {"estimator": SVM, "n_halves": 4, **change}
    with pytest.raises(ConfigError, match=told):
        StabilitySelection(**settings).fit(*labelled_samples())


def test_an_estimator_that_does_not_rank_is_refused():
    with pytest.raises(DataError, match="KNeighborsClassifier gives no feature scores"):
        StabilitySelection(KNeighborsClassifier(), n_halves=4).fit(*labelled_samples())
    X, y = labelled_samples()
    with pytest.raises(DataError, match="every feature is constant"):
        StabilitySelection(SVM, n_halves=4).fit(np.ones_like(X), y)


def expected_failures(estimator):
    """Ten samples, or one value of the quantity, are too few for inner folds of their halves."""
    if estimator.param_grid is None:
        return {}
    failing = ("check_estimators_nan_inf", "check_fit2d_1feature")
    return dict.fromkeys(failing, expected_failures.__doc__)


@pytest.mark.slow
@parametrize_with_checks(
    [
        StabilitySelection(LogisticRegression(), n_halves=4),
        StabilitySelection(Lasso(0.01), {"alpha": [0.01, 0.1]}, n_halves=4, inner=2),
    ],
    expected_failed_checks=expected_failures,
)
def test_it_follows_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)
