"""Preparation within the folds: scores of nested pipelines in scikit-learn, and nothing learned
of test samples.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.feature_selection import SelectKBest
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PowerTransformer,
    StandardScaler,
)
from small_studies import run_offline

from raysel.base.models import load_model
from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, DataError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Matrix, Modalities
from raysel.execution.serial import SerialExecutor
from raysel.numerics.column_scores import OwnStatistics, joint_scores, own_statistics
from raysel.run.api import prepare_study
from raysel.study.definition import Study
from raysel.study.inputs import OwnData
from raysel.testing.checks import compute, study_log

N = 140
#: Columns of the data: positions of numbers, of text, of the site and of the confound.
NUMBERS, TEXTS, SITE, AGE = list(range(6)), [6, 7], 8, 9


def frame() -> pd.DataFrame:
    """Six measurements with gaps, of which two and the sex tell the label; a site that moves and
    stretches them.
    """
    rng = np.random.default_rng(7)
    X, sex = rng.normal(size=(N, 6)), rng.choice(["female", "male"], N)
    age, site = rng.normal(50, 10, N), rng.choice(["A", "B", "C"], N)
    y = X[:, 0] - X[:, 1] + 1.2 * (sex == "male") + 0.7 * rng.normal(size=N) > 0.4
    X += 0.05 * (age - 50)[:, None] * rng.normal(size=6)
    X = (X + np.unique(site, return_inverse=True)[1][:, None] * rng.normal(size=6)) * (
        1 + 0.5 * (site == "C")
    )[:, None]
    X = np.exp(0.3 * X)
    X[:, 5] = rng.random(N) < 0.1  # rarely another value
    X[rng.random((N, 6)) < 0.07] = np.nan
    columns = {f"g{i}": X[:, i] for i in range(6)}
    deck = rng.choice(["u", "v", "w", "rare"], N, p=[0.45, 0.3, 0.22, 0.03]).astype(object)
    deck[rng.random(N) < 0.05] = None
    return pd.DataFrame(
        {
            **columns,
            "sex": sex,
            "deck": deck,
            "site": site,
            "age": age,
            "y": np.where(y, "yes", "no"),
        }
    )


FRAME = frame()


class Literal(TransformerMixin, BaseEstimator):
    """Transformer of a function that learns from the training samples and returns a function of
    samples.
    """

    def __init__(self, learn: Any) -> None:
        self.learn = learn

    def fit(self, X: np.ndarray, y: Any = None) -> Literal:
        self.apply_ = self.learn(X)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return self.apply_(X)


def clipped(X: np.ndarray) -> Any:
    low, high = np.quantile(X, [0.1, 0.9], axis=0)
    return lambda Z: np.minimum(np.maximum(Z, low), high)


def joint(X: np.ndarray) -> Any:
    mean = X.sum() / X.size
    scale = np.sqrt(((X - mean) ** 2).sum() / X.size)
    return lambda Z: (Z - mean) / scale


def varying(X: np.ndarray) -> Any:
    kept = [
        i
        for i in range(X.shape[1])
        if np.unique(X[:, i], return_counts=True)[1].max() < 0.85 * len(X)
    ]
    return lambda Z: Z[:, kept]


def residuals(X: np.ndarray) -> Any:
    """The last column is the confound."""
    design = np.column_stack([np.ones(len(X)), X[:, -1]])
    coefficients = np.linalg.solve(design.T @ design, design.T @ X[:, :-1])
    return lambda Z: Z[:, :-1] - np.column_stack([np.ones(len(Z)), Z[:, -1]]) @ coefficients


def clustered(X: np.ndarray) -> Any:
    """Two columns that correlate by 0.15 are one, the mean of both z-scores; a third would have to
    correlate with both.
    """
    mean, scale, r = X.mean(axis=0), X.std(axis=0), np.corrcoef(X.T)
    apart = (1 - np.abs(r))[np.triu_indices(len(r), 1)]
    labels = fcluster(linkage(apart, "complete"), 0.85, "distance")
    clusters = [np.flatnonzero(labels == label) for label in np.unique(labels)]

    def apply(W: np.ndarray) -> np.ndarray:
        Z = (W - mean) / scale
        return np.column_stack(
            [np.mean([np.sign(r[own[0], i]) * Z[:, i] for i in own], axis=0) for own in clusters]
        )

    return apply


def combat(X: np.ndarray) -> Any:
    """Equations 3.1 and 3.2 of Johnson, Li and Rabinovic, a column and a site at a time; the
    last one is the site.
    """
    X, site = X[:, :-1], X[:, -1]
    sites, (n, d) = np.unique(site), X.shape
    alpha, sigma = np.empty(d), np.empty(d)
    for g in range(d):
        means = {s: X[site == s, g].mean() for s in sites}
        alpha[g] = sum((site == s).sum() / n * means[s] for s in sites)
        sigma[g] = np.sqrt(sum((X[j, g] - means[site[j]]) ** 2 for j in range(n)) / n)
    Z, found = (X - alpha) / sigma, {}
    for s in sites:
        own = Z[site == s]
        m, gamma, delta = len(own), own.mean(axis=0), own.var(axis=0, ddof=1)
        gamma_bar, tau2 = gamma.mean(), gamma.var(ddof=1)
        shape = (delta.mean() ** 2 + 2 * delta.var(ddof=1)) / delta.var(ddof=1)
        rate = delta.mean() * (delta.mean() ** 2 + delta.var(ddof=1)) / delta.var(ddof=1)
        for g in range(d):
            location, scale = gamma[g], delta[g]
            for _ in range(200):
                location = (m * tau2 * gamma[g] + scale * gamma_bar) / (m * tau2 + scale)
                scale = (rate + 0.5 * ((own[:, g] - location) ** 2).sum()) / (m / 2 + shape - 1)
            found[s, g] = location, np.sqrt(scale)

    def apply(W: np.ndarray) -> np.ndarray:
        out = np.empty((len(W), d))
        for j, g in itertools.product(range(len(W)), range(d)):
            location, scale = found[W[j, -1], g]
            out[j, g] = ((W[j, g] - alpha[g]) / sigma[g] - location) / scale * sigma[g] + alpha[g]
        return out

    return apply


def numbers_then(*steps: Any) -> Any:
    return Pipeline(
        [
            ("impute", SimpleImputer(strategy="median")),
            *((f"step{i}", s) for i, s in enumerate(steps)),
        ]
    )


ENCODER = OneHotEncoder(
    min_frequency=0.06, handle_unknown="infrequent_if_exist", drop="if_binary", sparse_output=False
)
TEXT_AND_NUMBERS = ColumnTransformer(
    [("numbers", SimpleImputer(strategy="median"), NUMBERS), ("text", ENCODER, TEXTS)]
)
#: Steps, the columns of the data that the study has, those that are no features, and what
#: scikit-learn does with them.
CASES: dict[str, tuple[list[Any], list[int], list[str], Any]] = {
    "impute median": (["impute"], NUMBERS, [], SimpleImputer(strategy="median")),
    "impute mean": ([{"impute": "mean"}], NUMBERS, [], SimpleImputer(strategy="mean")),
    "impute most frequent": (
        [{"impute": "most_frequent"}],
        NUMBERS,
        [],
        SimpleImputer(strategy="most_frequent"),
    ),
    "impute knn": (
        [{"impute": {"strategy": "knn", "n_neighbors": 3}}],
        NUMBERS,
        [],
        KNNImputer(n_neighbors=3),
    ),
    "indicator": (
        [{"impute": {"indicator": True}}],
        NUMBERS,
        [],
        SimpleImputer(strategy="median", add_indicator=True),
    ),
    "encode": (["impute", {"encode": 0.06}], NUMBERS + TEXTS, [], TEXT_AND_NUMBERS),
    "log1p": (["impute", "log1p"], NUMBERS, [], numbers_then(FunctionTransformer(np.log1p))),
    "standardise": (["impute", "standardise"], NUMBERS, [], numbers_then(Literal(joint))),
    "clip": (["impute", {"clip": [0.1, 0.9]}], NUMBERS, [], numbers_then(Literal(clipped))),
    "drop near constant": (
        ["impute", {"drop_near_constant": 0.85}],
        NUMBERS,
        [],
        numbers_then(Literal(varying)),
    ),
    "residualise": (
        ["impute", "residualise"],
        [*NUMBERS, AGE],
        ["age"],
        numbers_then(Literal(residuals)),
    ),
    "harmonise": (
        ["impute", {"harmonise": "site"}],
        [*NUMBERS[:5], SITE],
        [],
        numbers_then(Literal(combat)),
    ),
    "parcels": (
        ["impute", {"parcels": 3}],
        NUMBERS[:5],
        [],
        numbers_then(FeatureAgglomeration(3, connectivity=grid_to_graph(5, 1))),
    ),
    "clusters": (
        ["impute", {"clusters": 0.15}],
        NUMBERS[:5],
        [],
        numbers_then(Literal(clustered)),
    ),
    "power": (
        ["impute", {"sklearn.preprocessing.PowerTransformer": {}}],
        NUMBERS,
        [],
        numbers_then(PowerTransformer()),
    ),
    "selector": (
        ["impute", {"sklearn.feature_selection.SelectKBest": {"k": 3}}],
        NUMBERS,
        [],
        numbers_then(SelectKBest(k=3)),
    ),
}  # fmt: skip
C = [0.003, 1.0]
#: The imputer's other strategies are one argument of scikit-learn's.
LONG = {
    *("impute mean", "impute most frequent", "impute knn", "indicator", "clip", "log1p", "power"),
    *("standardise", "drop near constant"),
}


def study_of(
    steps: list[Any], columns: list[int], confounds: list[str], y: Any = None, **changes: Any
) -> Study:
    """A study of some columns of the data, in memory."""
    data = FRAME.iloc[:, columns].assign(y=FRAME.y if y is None else y)
    raw = {
        "name": "prepared",
        "seed": 3,
        "dataset": {"path": "data.arrow", "prepare": steps, "confounds": confounds},
        "solver": {
            "name": "sklearn.linear_model.LogisticRegression",
            "params": {"max_iter": 5000},
            "space": {"C": C},
        },
        "evaluation": {"classifier": "native", "references": False},
        "cv": {"outer": 2, "inner": 2, "final": False},
        "search": {"executor": "serial"},
        **changes,
    }
    config = config_from_dict(raw)
    return Study.prepare(config, own=OwnData(X=data, label="y").dataset(config.dataset, None))


def computed(study: Study, folder: Any) -> tuple[list[Any], list[Any]]:
    with study_log(folder, study) as log:
        return compute(SerialExecutor(study), study, log)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in CASES]
)
def test_scores_are_those_of_nested_pipelines_and_outer_test_samples_change_nothing_fitted(
    name, tmp_path
):
    steps, columns, confounds, reference = CASES[name]
    study = study_of(steps, columns, confounds)
    records, refits = computed(study, tmp_path)
    X, y = study.dataset.X, study.dataset.y
    model = Pipeline(
        [
            ("prepare", reference),
            ("scale", StandardScaler()),
            ("fit", LogisticRegression(max_iter=5000)),
        ]
    )
    for fold, refit in zip(study.plan.folds, refits, strict=True):
        place = {sample: i for i, sample in enumerate(fold.train.tolist())}
        inner = [
            tuple([place[s] for s in part.tolist()] for part in (f.train, f.validation))
            for f in fold.inner
        ]
        search = GridSearchCV(model, {"fit__C": C}, cv=inner)
        result = cross_validate(
            search, X, y, cv=[(fold.train, fold.test)], return_estimator=True, error_score="raise"
        )
        found = result["estimator"][0].cv_results_
        for record in records:
            row = [params["fit__C"] for params in found["params"]].index(record.params["C"])
            expected = [found[f"split{i}_test_score"][row] for i in range(len(inner))]
            np.testing.assert_allclose(
                [fit.scores[-1][0] for fit in record.folds[fold.name].inner], expected
            )
        best = refit.record.params["C"]
        again = cross_validate(model.set_params(fit__C=best), X, y, cv=[(fold.train, fold.test)])
        np.testing.assert_allclose(refit.record.test_scores, again["test_score"])
        assert refit.record.inner_score == pytest.approx(found["mean_test_score"].max())
        if best == search.param_grid["fit__C"][found["mean_test_score"].argmax()]:
            np.testing.assert_allclose(refit.record.test_scores, result["test_score"])

    # Other values, and other gaps, in the test samples of the first fold.
    fold = study.plan.folds[0]
    scrambled = X.copy()
    kept = [i for i, feature in enumerate(study.dataset.feature_names) if feature == "site"]
    for column in sorted(set(range(X.shape[1])) - set(kept)):
        scrambled[fold.test, column] = np.random.default_rng(column).permutation(
            X[fold.test, column]
        )
    scrambled[fold.test[::2], 0] = 3.0
    other = replace(study, dataset=replace(study.dataset, X=scrambled))
    fitted = [s.preparation() for s in (study, other)]
    for s, preparation in zip((study, other), fitted, strict=True):
        preparation.fit(s.dataset.X[fold.train], y[fold.train])
    np.testing.assert_array_equal(fitted[0].origin_, fitted[1].origin_)
    np.testing.assert_array_equal(fitted[0].transform(X), fitted[1].transform(X))
    one_fold = replace(other, plan=replace(other.plan, folds=(fold,)))
    records_again, refits_again = computed(one_fold, tmp_path / "again")
    for record, same in zip(records, records_again, strict=True):
        assert same.folds[fold.name].inner == record.folds[fold.name].inner
    assert refits_again[0].record.feature_scores == refits[0].record.feature_scores
    assert refits_again[0].record.training_scores == refits[0].record.training_scores


def test_a_feature_of_several_columns_is_one_whose_score_does_not_grow_with_their_number(tmp_path):
    study = study_of(["impute", {"encode": 0.06}], NUMBERS + TEXTS, [])
    _, (refit, _) = computed(study, tmp_path)
    model = refit.model
    origin = model.preparation.origin_
    assert origin.tolist() == [
        *range(6),
        6,
        7,
        7,
        7,
        7,
    ]  # two sexes; u, v, w with gaps, and rare joined
    scores, own = np.array(refit.record.feature_scores), model.method.scores_
    assert len(scores) == 8
    np.testing.assert_array_equal(scores[:7], own[:7])
    statistics = OwnStatistics(*model.preparation.statistics_)
    scale = study.solver({}, 0).score_scale
    joint = joint_scores(own, origin, 8, statistics=statistics, scale=scale)
    np.testing.assert_array_equal(scores, joint)
    assert scores[7] < np.linalg.norm(own[7:])
    train = study.plan.folds[0].train
    decks = model.preparation.transform(study.dataset.X[train])[:, origin == 7]
    contrasts = study.dataset.target.contrasts(study.dataset.y[train])
    alone = own_statistics(decks, contrasts, np.zeros(4, dtype=int), 1)
    assert statistics.joint[7] == pytest.approx(alone.joint[0])
    assert statistics.joint[7] > statistics.single[7] > 0
    names = model.preparation.get_feature_names_out()
    assert [name for name in names if name.startswith("deck")] == [f"deck[{i}]" for i in range(4)]


def test_a_winner_that_gives_no_feature_a_score_is_refitted_beside_columns_of_texts(tmp_path):
    svm = {"name": "linear_svm", "params": {"penalty": "l1"}, "space": {"C": [1e-6]}}
    evaluation = {"classifier": "linear_svm", "C": 0.1, "n_features": [1, 3]}
    study = study_of(["impute", "encode"], NUMBERS + TEXTS, [], solver=svm, evaluation=evaluation)
    for refit in computed(study, tmp_path)[1]:
        assert refit.record.feature_scores == [0.0] * 8
        assert refit.record.redundancy == [None] * len(study.redundancy_sizes)


@pytest.mark.parametrize(
    "scoring", [{"classifier": "knn", "n_neighbors": 3}, {"classifier": "linear_svm", "C": 0.1}]
)
def test_a_scoring_estimator_gets_all_columns_of_the_chosen_features(scoring, tmp_path):
    evaluation = {**scoring, "n_features": [1, 2, 3], "choose_n": "best"}
    study = study_of(["impute", "encode"], NUMBERS + TEXTS, [], evaluation=evaluation)
    _, refits = computed(study, tmp_path)
    for fold, refit in zip(study.plan.folds, refits, strict=True):
        model, X = refit.model, study.dataset.X
        chosen = np.argsort(-np.array(refit.record.feature_scores), kind="stable")[
            : refit.record.n_features
        ]
        used = np.isin(model.preparation.origin_, chosen)
        np.testing.assert_array_equal(model.selector.get_support(), used)
        Z = [
            model.named_steps["scaler"].transform(model.preparation.transform(X[part]))[:, used]
            for part in (fold.train, fold.test)
        ]
        evaluation = study.evaluation
        again = evaluation.scoring_estimator.make(
            study.dataset.y, fold.random_state(3), evaluation.settings[0]
        )
        accuracy = again.fit(Z[0], study.dataset.y[fold.train]).score(
            Z[1], study.dataset.y[fold.test]
        )
        position = study.evaluation.n_features.index(refit.record.n_features)
        assert refit.record.test_scores[position] == pytest.approx(accuracy)


def test_permuted_labels_give_chance(tmp_path):
    steps, means = ["impute", "encode"], []
    for seed in range(2):
        y = np.random.default_rng(seed).permutation(FRAME.y)
        study = study_of(steps, NUMBERS + TEXTS, [], y, cv={"outer": 4, "inner": 2, "final": False})
        means += [refit.record.test_scores[0] for refit in computed(study, tmp_path / str(seed))[1]]
    share = (FRAME.y == "yes").mean()
    chance = max(share, 1 - share)
    assert abs(np.mean(means) - 0.5 * (chance + 0.5)) < 4 * 0.5 / np.sqrt(
        len(means) * N / 4
    ) + 0.5 * (chance - 0.5)


def test_the_model_file_of_a_study_with_every_step_predicts_a_row_as_it_was_read(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("data.csv", index=False)
    steps = [
        {"impute": {"strategy": "knn", "indicator": True}},
        {"log1p": {}, "columns": "g[0-4]"},
        "encode",
        {"clip": [0.05, 0.95]},
        {"drop_near_constant": 0.99},
        "residualise",
        {"harmonise": "site"},
        {"sklearn.preprocessing.PowerTransformer": {}, "columns": ["g0", "g1"]},
    ]  # fmt: skip
    raw = {
        "name": "all",
        "dataset": {"path": "data.csv", "prepare": steps, "confounds": ["age"]},
        "solver": {"name": "fisher_score"},
        "evaluation": {"classifier": "linear_svm", "n_features": [3], "C": 0.1},
        "cv": {"outer": 2, "inner": 2},
        "search": {"executor": "serial"},
        "pictures": [],
    }
    result = run_offline(raw, tmp_path / "study")
    model = load_model(result.path / "model.skops")
    table = FRAME.drop(columns="y")
    predicted = model.predict(table)
    assert (predicted == FRAME.y).mean() > 0.7
    data = Study.prepare(config_from_dict(raw)).dataset
    np.testing.assert_array_equal(model.predict(data.X), predicted)
    for row in (0, int(np.flatnonzero(FRAME.deck.isna())[0])):
        assert model.predict(table.iloc[[row]])[0] == predicted[row]
    new = table.iloc[[0]].assign(deck="of no sample")
    assert model.predict(new)[0] in ("yes", "no")
    with pytest.raises(DataError):
        model.predict(table.iloc[[0]].assign(site="D"))
    with pytest.raises(ValueError, match="'g0' holds 'high' in row 0, which is no number"):
        model.predict(table.iloc[[0]].assign(g0="high"))
    again = model.fit(table, FRAME.y)  # the whole pipeline, as any of scikit-learn
    np.testing.assert_array_equal(again.predict(table), predicted)
    ranked = {
        name
        for name, score in zip(data.feature_names, result.ranking().scores, strict=True)
        if score > 0
    }
    assert not ranked & {"age", "site"}


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (["impute"], "column 'sex' holds text; add encode"),
        (["encode"], "have cells without a value that no step fills; add {impute: median}"),
        (
            ["encode", "impute", {"sklearn.decomposition.PCA": {"n_components": 2}}],
            "step 3, .*PCA: PCA mixes columns",
        ),
        (
            ["impute", {"encode": {}, "columns": "sexx"}],
            "step 2, encode: the data have no column sexx; did you mean",
        ),
        ([{"impute": "mean", "columns": ["g0", "sex"]}], "step 1, impute: column 'sex' holds text"),
        (["impute", "encode", {"harmonise": "deck"}], "'deck' has empty cells"),
        (["impute", "encode", {"sklearn.preprocessing.KBinsDiscretizer": {}}], None),
        (
            ["impute", "encode", {"sklearn.linear_model.Lasso": {}}],
            "sklearn.linear_model.Lasso is no transformer",
        ),
        (
            ["impute", "encode", {"sklearn.preprocessing.MinMaxScaler": {"high": 1}}],
            "cannot be made with these",
        ),
        (["impute", "encode", {"log1p": {}, "columns": "age"}, {"clip": [0, 1]}], None),
    ],
)
def test_steps_that_do_not_fit_are_refused_before_anything_is_computed(steps, words):
    columns = [*NUMBERS, *TEXTS, AGE]
    if words is None:
        study_of(steps, columns, [])
        return
    with pytest.raises((ConfigError, DataError), match=words):
        study_of(steps, columns, [])


def test_a_site_of_too_few_samples_is_named_and_groups_of_sites_are_refused():
    rng, y = np.random.default_rng(0), np.arange(24) % 2
    frame = pd.DataFrame(rng.normal(size=(24, 3)), columns=list("abc")).assign(
        y=y, scanner=["Rome", *["Oslo"] * 23]
    )
    data = {"label": "y", "prepare": [{"harmonise": "scanner"}]}
    raw = {
        "name": "sites",
        "dataset": data,
        "solver": {"name": "pca"},
        "cv": {"outer": 2, "inner": 2},
    }
    raw["evaluation"] = {"estimator": "knn", "n_features": [2]}
    with pytest.raises(ConfigError, match="has 0 of the 1 samples with 'scanner' Rome"):
        prepare_study(raw, X=frame)
    raw["cv"]["groups"] = "scanner"
    frame["scanner"] = np.repeat(["Rome", "Oslo", "Bonn", "Ulm"], 6)
    with pytest.raises(ConfigError):
        prepare_study(raw, X=frame)
    raw["dataset"] = {"label": "y", "prepare": ["residualise"], "confounds": ["scanner"]}
    with pytest.raises(
        ConfigError,
        match=r"residualise: .*no column scanner beside the groups.*Leave cv.groups out",
    ):
        prepare_study(raw, X=frame)


def gaps(X: np.ndarray) -> np.ndarray:
    X = np.array(X, dtype=float)
    X[np.random.default_rng(1).random(X.shape) < 0.02] = np.nan
    return X


def test_an_empty_pixel_is_filled_in_its_place_and_nothing_may_change_the_shape(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = gaps(rng.normal(size=(60, 20)) + 2 * y[:, None] * (np.arange(20) < 3))
    data = Dataset(X, y, Matrix(4, 5), unprepared=True)
    raw = {
        "name": "pixels",
        "dataset": {"path": "data.arrow", "prepare": ["impute"]},
        "solver": {"name": "smr", "params": {"max_iter": 5}, "space": {"alpha": [0.05, 0.1]}},
        "evaluation": {"classifier": "knn", "n_features": [3]},
        "cv": {"outer": 2, "inner": 2},
        "search": {"executor": "serial"},
    }
    study = Study.prepare(config_from_dict(raw), own=data)
    _, refits = computed(study, tmp_path)
    assert min(refit.record.test_scores[0] for refit in refits[:2]) > 0.8
    assert set(np.argsort(refits[-1].record.feature_scores)[-3:]) == {0, 1, 2}
    raw["dataset"]["prepare"] = [{"impute": {"indicator": True}}]
    with pytest.raises(ConfigError, match="number of cells must stay"):
        Study.prepare(config_from_dict(raw), own=data)
    raw["dataset"]["prepare"] = []
    with pytest.raises(
        DataError, match=r"cells have no value; set dataset.prepare: \[\{impute: median\}\]"
    ):
        Study.prepare(config_from_dict(raw), own=data)


def test_each_modality_is_prepared_by_its_own_steps(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 9)) + 2 * np.eye(3)[y][:, np.arange(9) % 3] * (np.arange(9) < 3)
    X[:, :4] = gaps(X[:, :4])
    X[:, 4:] = np.exp(X[:, 4:])
    data = Dataset(X, y, Modalities({"a": 4, "b": 5}), unprepared=True)
    steps = [
        {"impute": {"indicator": True}, "columns": {"modality": "a"}},
        {"log1p": {}, "columns": {"modality": "b"}},
    ]
    raw = {
        "name": "modalities",
        "dataset": {"path": "data.arrow", "prepare": steps},
        "solver": {
            "name": "smml",
            "params": {"max_iter": 20, "gamma2": 0.01},
            "space": {"gamma1": [0.0, 0.01]},
        },
        "evaluation": {"classifier": "native"},
        "cv": {"outer": 2, "inner": 2},
        "search": {"executor": "serial", "method": "path"},
    }
    study = Study.prepare(config_from_dict(raw), own=data)
    _, refits = computed(study, tmp_path)
    for refit in refits:
        origin, widths = (
            refit.model.preparation.origin_,
            refit.model.named_steps["scaler"].modalities,
        )
        assert widths == {"a": int((origin < 4).sum()), "b": 5}
        assert refit.model.method.modalities == widths
        assert widths["a"] > 4
        expected = np.log1p(X[:, 4:])
        np.testing.assert_allclose(refit.model.preparation.transform(X)[:, widths["a"] :], expected)
        assert len(refit.record.feature_scores) == 9


def test_each_task_is_prepared_by_its_own_steps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = ["g0", "g1", "g2", "deck", "y"]
    FRAME[columns].to_csv("a.csv", index=False)
    FRAME[["g0", "g1", "g2", "g3", "y"]].fillna(0).to_csv("b.csv", index=False)
    tasks = [
        {"name": "a", "path": "a.csv", "prepare": ["impute", "encode"]},
        {"name": "b", "path": "b.csv"},
    ]
    raw = {
        "name": "tasks",
        "dataset": {"tasks": tasks},
        "solver": {"name": "mtda", "params": {"n_components": 1, "max_iter": 5}},
        "evaluation": {"classifier": "native"},
        "cv": {"outer": 2, "inner": 2},
        "search": {"executor": "serial"},
        "pictures": [],
    }
    study = Study.prepare(config_from_dict(raw))
    result = run_offline(raw, tmp_path / "study")
    model = load_model(result.path / "model.skops")
    counts = np.bincount(model.preparation.origin_)
    assert (counts != 1).nonzero()[0].tolist() == [3]
    assert counts[3] == 5  # u, v, w, rare and an empty cell
    assert len(result.ranking().scores) == 8
    table = pd.DataFrame(None, index=range(4), columns=study.dataset.feature_names, dtype=object)
    table.iloc[:2, :4] = FRAME[columns[:-1]].iloc[:2].to_numpy()
    table.iloc[2:, 4:] = FRAME[["g0", "g1", "g2", "g3"]].fillna(0).iloc[:2].to_numpy()
    rows = np.array([0, 1, N, N + 1])
    np.testing.assert_array_equal(model.predict(table), model.predict(study.dataset.X[rows]))
