"""Audit: known leaks lift the careless score only, clean data agree, permuted labels give
chance.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import raysel
from raysel.config import config_from_dict
from raysel.core.errors import ConfigError
from raysel.evaluation.plan import derived_seed
from raysel.evaluation.splitters import split
from raysel.run.audit import audit_study
from raysel.study.definition import Study

TWO = np.arange(80) % 2


def selection(rng):
    """Labels that no feature tells; the best of many features by all labels."""
    return (
        make_pipeline(SelectKBest(k=10), KNeighborsClassifier()),
        rng.standard_normal((80, 1000)),
        TWO,
        {},
    )


def scaling(rng):
    """An outlier in a column of its own for each sample.

    Scaled by all samples, the columns are one indicator each, equally far from all samples; by the
    training samples, the noise of the others in the column of a test sample's outlier decides who
    is near.
    """
    noise = rng.standard_normal((80, 80))
    np.fill_diagonal(noise, 1e4)
    informative = 2.0 * TWO + 0.1 * rng.standard_normal(80)
    return (
        make_pipeline(StandardScaler(), KNeighborsClassifier(1)),
        np.column_stack([informative, noise]),
        TWO,
        {},
    )


def tuning(rng):
    """Labels that no feature tells, and many configurations of equal worth.

    The accuracy of one has the SD .079 over 40 samples, and the best of 40 lies about 2.2 SD above
    0.5.
    """
    space = {"random_state": list(range(40))}
    return (
        DecisionTreeClassifier(max_features=1),
        rng.standard_normal((40, 5)),
        TWO[:40],
        {"space": space},
    )


def duplicates(rng):
    """Every sample twice, with labels that no feature tells."""
    X, y = rng.standard_normal((50, 10)), rng.permutation(TWO[:50])
    groups = np.tile(np.arange(50), 2)
    return KNeighborsClassifier(1), np.vstack([X, X]), np.tile(y, 2), {"groups": groups}


def index(rng):
    """A column that numbers the samples of a file that stands class by class."""
    X = np.column_stack([np.arange(80.0), rng.standard_normal((80, 5))])
    return DecisionTreeClassifier(random_state=0), X, np.sort(TWO), {}


def group(rng):
    """Subjects that look like themselves, with labels that no feature tells."""
    groups = np.repeat(np.arange(30), 5)
    X = 3 * rng.standard_normal((30, 10))[groups] + rng.standard_normal((150, 10))
    return (
        KNeighborsClassifier(1),
        X,
        rng.permutation(np.arange(30) % 2)[groups],
        {"groups": groups},
    )


@pytest.mark.parametrize(
    "leak",
    [
        selection,
        group,
        *(pytest.param(leak, marks=pytest.mark.slow) for leak in (scaling, duplicates, index)),
    ],
)
def test_a_leak_lifts_the_careless_score_only(leak):
    estimator, X, y, settings = leak(np.random.default_rng(1))
    found = raysel.audit(estimator, X, y, **settings, n_permutations=3, outer=3, inner=2)
    assert found.difference > 0.2
    assert found.honest.mean == pytest.approx(
        0.5, abs=0.15
    )  # 80 to 150 samples, SD of a guess up to .056
    assert np.mean(found.honest_permuted) == pytest.approx(0.5, abs=0.15)
    assert found.honest.lower <= 0.5 + 0.15
    if leak in (selection, duplicates, group):  # there it needs no true label
        assert np.mean(found.careless_permuted) > np.mean(found.honest_permuted) + 0.1
        assert found.harms
        assert found.verdict() in repr(found)
    assert ("do not report its score" in found.verdict()) == found.harms
    assert max(len(sentence.split()) for sentence in found.sentences()) <= 25
    if leak is index:
        assert "numbers the samples" in found.left_out[0]
    else:
        assert not found.left_out


@pytest.mark.slow
def test_tuning_on_the_test_samples_lifts_the_careless_score_only():
    estimator, X, y, settings = tuning(np.random.default_rng(1))
    found = raysel.audit(estimator, X, y, **settings, n_permutations=5, outer=4, inner=2)
    # No feature tells the true labels either, so that there are six labellings.
    honest = np.mean([found.honest.mean, *found.honest_permuted])
    assert honest == pytest.approx(0.5, abs=0.1)
    assert np.mean([found.careless, *found.careless_permuted]) > honest + 0.08


def test_a_protocol_that_learns_nothing_from_the_test_samples_does_no_harm():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((90, 3)) + TWO[:1], rng.permutation(np.arange(90) % 2)
    X[:, 0] += 2 * y
    estimator = LinearDiscriminantAnalysis()
    found = raysel.audit(estimator, X, y, n_permutations=5, outer=3, inner=2)
    paired = ttest_rel(found.careless_permuted, found.honest_permuted, alternative="greater")
    if np.ptp(found.invented):
        assert found.p_value == pytest.approx(paired.pvalue)
    assert found.harms is False
    assert "no clear difference" in found.verdict()
    search = raysel.NestedSearch(estimator, outer=3, inner=2).fit(X, y)
    assert found.honest.mean == search.score_


def test_one_permutation_cannot_tell_harm():
    estimator, X, y, settings = selection(np.random.default_rng(0))
    found = raysel.audit(estimator, X, y, **settings, n_permutations=1, outer=2, inner=2)
    assert found.harms is None
    assert "set n_permutations to 5" in repr(found)


def test_harm_is_found_where_the_marginal_interval_hides_it():
    """Of weak features among many, the careless score lies within the honest one's interval;
    pairs tell.
    """
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((50, 400)), np.arange(50) % 2
    X[:, :3] += 0.9 * y[:, None]
    pipeline = make_pipeline(SelectKBest(k=5), KNeighborsClassifier(5))
    found = raysel.audit(pipeline, X, y, n_permutations=5, outer=3, inner=2)
    paired = ttest_rel(found.careless_permuted, found.honest_permuted, alternative="greater")
    assert found.p_value == pytest.approx(paired.pvalue)
    assert found.harms
    assert np.mean(found.invented) > 0.2


def test_a_study_that_prepares_its_columns_is_audited_as_it_prepares_them(tmp_path):
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((60, 8)), np.arange(60) % 2
    X[:, 0] += y
    X[::7, 3] = np.nan
    frame = pd.DataFrame(X, columns=[f"g{i}" for i in range(8)]).assign(
        sex=rng.choice(["f", "m"], 60), y=y
    )
    frame.to_csv(tmp_path / "table.csv", index=False)
    config = {
        "name": "prepared",
        "dataset": {
            "path": str(tmp_path / "table.csv"),
            "prepare": [{"impute": "median"}, "encode"],
            "scaling": "zscore",
        },
        "solver": {"name": "fisher_score"},
        "evaluation": {"estimator": "knn", "n_features": [9]},
        "cv": {"outer": 3, "inner": 2},
        "search": {"executor": "serial"},
    }
    study = Study.prepare(config_from_dict(config))
    found = audit_study(study, 2)
    first = ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median"), [f"g{i}" for i in range(8)]),
            ("text", OneHotEncoder(drop=None), ["sex"]),
        ]
    )
    prepared = StandardScaler().fit_transform(first.fit_transform(frame))
    folds = split(y, 3, groups=None, random_state=derived_seed(0, "outer split", 0), where="outer")
    by_hand = [
        KNeighborsClassifier(1).fit(prepared[train], y[train]).score(prepared[test], y[test])
        for train, test in folds
    ]
    assert found.careless == pytest.approx(np.mean(by_hand))


def test_selection_by_all_samples_lifts_the_careless_score_of_a_quantity_only():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 400)), rng.standard_normal(60)
    found = raysel.audit(
        make_pipeline(SelectKBest(f_regression, k=5), Ridge()),
        X,
        y,
        metric="r2",
        n_permutations=1,
        outer=3,
        inner=2,
    )
    assert min(found.careless, *found.careless_permuted) > 0.1
    assert max(found.honest.mean, *found.honest_permuted) < 0


def test_the_careless_score_is_that_of_the_few_lines_that_make_the_mistake():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 200)), np.arange(60) % 2
    pipeline = make_pipeline(StandardScaler(), SelectKBest(), LinearSVC(random_state=0))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)

    def careless(k, C):
        chosen = SelectKBest(k=k).fit_transform(StandardScaler().fit_transform(X), y)
        return cross_val_score(LinearSVC(C=C, random_state=0), chosen, y, cv=folds).mean()

    by_hand = max(careless(k, C) for k in (5, 20) for C in (0.1, 1.0))
    space = {"selectkbest__k": [5, 20], "linearsvc__C": [0.1, 1.0]}
    found = raysel.audit(pipeline, X, y, space=space, n_permutations=0, outer=3, inner=2)
    assert found.n_careless == 4
    assert found.careless == pytest.approx(by_hand, abs=0.1)  # of other folds
    assert found.careless_permuted == ()


def test_a_ranking_by_all_samples_with_a_scoring_estimator_is_careless_too():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((60, 300)), np.arange(60) % 2
    found = raysel.audit(
        SelectKBest(),
        X,
        y,
        n_features=[5, 20],
        scoring_estimator="knn",
        n_permutations=1,
        outer=3,
        inner=2,
    )
    assert found.n_careless == 2
    assert found.difference > 0.15


def test_the_result_is_shown_as_a_table_a_sentence_and_a_picture():
    estimator, X, y, settings = group(np.random.default_rng(0))
    found = raysel.audit(estimator, X, y, **settings, n_permutations=3, outer=3, inner=2)
    frame = found.frame()
    assert frame["protocol"].tolist() == ["careless", "honest"]
    assert frame["accuracy"].tolist() == [found.careless, found.honest.mean]
    assert found.verdict() in repr(found)
    assert ("do not report its score" in found.verdict()) == found.harms
    assert max(len(sentence.split()) for sentence in found.sentences()) <= 25
    assert "Give groups if" not in repr(found)
    assert "<table" in found._repr_html_()
    drawn = {tuple(np.atleast_1d(line.get_xdata()).tolist()) for line in found.plot().get_lines()}
    assert {(found.careless,), (found.honest.mean,), tuple(found.honest_permuted)} <= drawn


@pytest.mark.slow
def test_the_numbers_do_not_depend_on_the_number_of_processes():
    estimator, X, y, settings = selection(np.random.default_rng(0))
    one, two = (
        raysel.audit(
            estimator, X[:, :50], y, **settings, n_permutations=2, outer=2, inner=2, n_jobs=n
        )
        for n in (1, 2)
    )
    assert one.frame().equals(two.frame())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cv": {"train_per_class": 5, "repeats": 2, "inner": 2}}, "train_per_class"),
        ({"search": {"method": "tpe", "num_samples": 3, "executor": "serial"}}, "search.method"),
    ],
)
def test_a_study_without_folds_or_a_list_of_configurations_is_refused(change, words):
    config = {
        "name": "refused",
        "dataset": {"source": "wine", "scaling": "zscore"},
        "solver": {"name": "linear_svm", "space": {"C": {"loguniform": [0.01, 1.0]}}},
        "evaluation": {"estimator": "knn", "n_features": [2]},
        "cv": {"outer": 3, "inner": 2},
        "search": {"method": "random", "num_samples": 3, "executor": "serial"},
    }
    study = Study.prepare(config_from_dict({**config, **change}))
    with pytest.raises(ConfigError, match=words):
        audit_study(study)


def test_several_labels_a_sample_and_wrong_numbers_are_refused():
    with pytest.raises(ConfigError):
        raysel.audit(LinearSVC(), np.eye(4), [0, 1, 0, 1], n_permutations=-1)


def test_text_and_gaps_are_audited_as_the_numbers_that_the_first_step_makes_of_them():
    rng = np.random.default_rng(3)
    sex, numbers = (
        rng.choice(["f", "m"], 80),
        rng.standard_normal((80, 6)) + TWO[:, None] * (np.arange(6) < 2),
    )
    table = pd.DataFrame(numbers).rename(columns=str).assign(sex=sex)
    table.loc[::9, "3"] = np.nan
    code = OrdinalEncoder(categories=[["f", "m"]])
    fill = SimpleImputer(strategy="constant", fill_value=0.0)
    first = ColumnTransformer(
        [("numbers", fill, [str(i) for i in range(6)]), ("text", code, ["sex"])]
    )
    coded = np.column_stack(
        [np.where(np.arange(6) == 3, table[list("012345")].fillna(0.0), numbers), sex == "m"]
    )
    settings = {"outer": 2, "inner": 2, "n_permutations": 1}
    rest = (SelectKBest(), KNeighborsClassifier())
    of_table = raysel.audit(make_pipeline(first, *rest), table, TWO, **settings)
    of_numbers = raysel.audit(make_pipeline(*rest), coded, TWO, **settings)
    pd.testing.assert_frame_equal(of_table.frame(), of_numbers.frame())


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("n_permutations", n) for n in (-1, 10**12, 0.5)),
        *(("n_jobs", n) for n in (0, 10**12, 1.5)),
    ],
)
def test_a_number_that_cannot_be_is_refused_before_memory_is_taken(option, value):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    with pytest.raises(ConfigError, match=f"{value!r}.*(from 0 to|give 1 to)"):
        raysel.audit(LinearSVC(), X, y, **{"n_permutations": 0, option: value}, outer=2, inner=2)
