"""Claims of features: their numbers, levels, groups, files, and what is refused."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from report_pages import Page
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import LinearSVC
from small_studies import raw_config, run_offline

import raysel
from raysel.cli.main import main as run_command
from raysel.core.errors import ConfigError, DataError, DirectoryError, StudyError
from raysel.numerics.conditional_tests import adjust_for_fdr, adjust_for_fwer
from raysel.results.page.contents import render_page
from raysel.results.page.report import make_page

QUIET = {"progress": False, "executor": "serial"}


def study(folder, X, y, groups=None, **changes):
    """A small finished study of a table."""
    own = {} if groups is None else {"groups": groups}
    np.savez(folder / "data.npz", X=X, y=y, **own)
    raw = raw_config(
        folder / "data.npz",
        solver={"name": "fisher_score"},
        cv={"outer": 2, "inner": 2, **({"groups": "groups"} if own else {})},
        evaluation={"classifier": "knn", "n_features": [3], "references": False},
        **changes,
    )
    return run_offline(raw, folder / "study")


def planted(n=160, d=40, seed=0):
    """Two classes that columns 0 to 2 tell; columns 3 to 5 are noisy copies of column 0."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.standard_normal((n, d))
    X[:, :3] += y[:, None]
    X[:, 3:6] = X[:, [0]] + 0.3 * rng.standard_normal((n, 3))
    return X, y


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study of planted columns, with its claims."""
    result = study(tmp_path_factory.mktemp("claims"), *planted())
    return result.path, raysel.claim_features(result.path, **QUIET)


def test_planted_columns_are_claimed_and_copies_as_one_group(made):
    _, claims = made
    assert claims.claimed_names()
    named = {name for names in claims.claimed_names() for name in names}
    assert named == {f"x{j}" for j in range(6)}
    assert [f"x{j}" for j in (0, 3, 4, 5)] in claims.claimed_names()
    assert (claims.p_value[~claims.tested] == 1).all()


def test_another_level_computes_nothing_again_and_decides_by_its_procedure(made):
    path, claims = made
    journal = path / "claims" / "covariance-correlated-0.5" / "journal.jsonl"
    before = journal.read_bytes()
    strict = raysel.claim_features(path, fwer=0.01, **QUIET)
    assert journal.read_bytes() == before
    np.testing.assert_array_equal(strict.p_value, claims.p_value)
    np.testing.assert_allclose(strict.adjusted, adjust_for_fwer(claims.p_value))
    np.testing.assert_allclose(claims.adjusted, adjust_for_fdr(claims.p_value))
    assert "family-wise error rate of 0.01" in strict.short_sentence()


def test_the_files_hold_what_is_returned(made):
    path, _ = made
    claims = raysel.claim_features(path, fdr=0.2, **QUIET)
    read = raysel.open_study(path).claims
    for name in ("group", "p_value", "share", "claimed"):
        np.testing.assert_array_equal(getattr(read, name), getattr(claims, name))
    assert read.sentences() == claims.sentences()
    table = pyarrow.parquet.read_table(path / "claims" / "claims.parquet").to_pydict()
    by_name = dict(zip(table["feature"], table["p_value_adjusted"], strict=True))
    assert by_name["x4"] == by_name["x0"] == claims.adjusted[claims.group[0]]
    ranking = pyarrow.parquet.read_table(path / "ranking" / "ranking.parquet").to_pydict()
    for name, p_value in zip(ranking["feature"], ranking["p_value_claim_covariance"], strict=True):
        assert p_value == by_name[name]


def test_the_command_prints_the_claimed_names_and_the_assumption(made, capsys):
    path, claims = made
    assert run_command(["claims", str(path), "--executor", "serial"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert claims.short_sentence() in printed
    for names in claims.claimed_names():
        assert ", ".join(names) in printed
    assert "160 samples are independent" in printed


def test_an_interrupted_call_goes_on_with_the_same_numbers(made, tmp_path):
    path, claims = made
    copy = tmp_path / "study"
    shutil.copytree(path, copy)
    journal = copy / "claims" / "covariance-correlated-0.5" / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:2]))
    again = raysel.claim_features(copy, **QUIET)
    np.testing.assert_array_equal(again.p_value, claims.p_value)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_ray_computes_the_same(made, tmp_path):
    path, claims = made
    copy = tmp_path / "study"
    shutil.copytree(path, copy)
    shutil.rmtree(copy / "claims")
    by_ray = raysel.claim_features(copy, executor="ray", progress=False)
    np.testing.assert_array_equal(by_ray.p_value, claims.p_value)
    np.testing.assert_array_equal(by_ray.share, claims.share)


def test_labels_without_meaning_are_claimed_by_nothing(tmp_path):
    X, y = planted()
    result = study(tmp_path, X, np.random.default_rng(3).permutation(y))
    claims = raysel.claim_features(result.path, fwer=0.01, **QUIET)
    assert not claims.claimed.any()
    assert claims.short_sentence().startswith("No feature is claimed")


@pytest.mark.slow
def test_groups_of_samples_are_the_independent_units(tmp_path):
    """Each sample five times, with nearly the same values: far fewer are independent."""
    X, y = planted(n=60, d=12)
    repeated = np.repeat(X, 5, axis=0) + 1e-3 * np.random.default_rng(1).standard_normal((300, 12))
    groups = np.repeat(np.arange(60), 5)
    result = study(tmp_path, repeated, np.repeat(y, 5), groups)
    claims = raysel.claim_features(result.path, **QUIET)
    assert (claims.n_units, claims.unit) == (60, "groups")
    assert "the 60 groups are independent" in claims.assumption
    (alone := tmp_path / "alone").mkdir()
    careless = raysel.claim_features(study(alone, repeated, np.repeat(y, 5)).path, **QUIET)
    assert careless.p_value.min() < claims.p_value.min() ** 2


def test_given_groups_are_claimed_as_they_are(tmp_path):
    X, y = planted()
    groups = {"dataset__feature_groups": {"pathway": ["x1", "x2", "x30"], "other": ["x7", "x8"]}}
    result = study(tmp_path, X, y, **groups)
    claims = raysel.claim_features(result.path, **QUIET)
    assert ["x1", "x2", "x30"] in claims.claimed_names()
    assert len(claims.p_value) == 40 - 3
    assert "dataset.feature_groups forms 2 groups" in " ".join(claims.sentences())


@pytest.mark.parametrize("named", [False, True])
def test_what_tells_the_label_through_a_confound_only_is_not_claimed(named, tmp_path):
    """x0 follows age, and so does the class; x1 tells the class beside age."""
    rng = np.random.default_rng(2)
    age, X = rng.standard_normal(200), rng.standard_normal((200, 12))
    X[:, 0] += 2 * age
    y = 2 * age + X[:, 1] + 0.5 * rng.standard_normal(200) > 0
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(12)])
    beside = {"age": age} if named else {}
    table = table.assign(**beside, y=np.where(y, "ill", "well"))
    table.to_csv(tmp_path / "table.csv", index=False)
    raw = raw_config(
        tmp_path / "table.csv",
        solver={"name": "fisher_score"},
        cv={"outer": 2, "inner": 2},
        evaluation={"classifier": "knn", "n_features": [3], "references": False},
        dataset__label="y",
        dataset__confounds=list(beside),
    )
    claims = raysel.claim_features(run_offline(raw, tmp_path / "study").path, **QUIET)
    assert (["x0"] in claims.claimed_names()) != named
    assert ["x1"] in claims.claimed_names()


def test_damaged_files_are_refused_by_name(made, tmp_path):
    copy = tmp_path / "study"
    shutil.copytree(made[0], copy)
    (copy / "claims" / "result.json").write_text('{"rate": "fdr"}')
    with pytest.raises(DirectoryError, match="cannot be read as claims"):
        _ = raysel.open_study(copy).claims


@pytest.mark.parametrize(
    "given", [{"fdr": 0.1, "fwer": 0.1}, {"fdr": 0}, {"fwer": 1}, {"fdr": "x"}, {"correlated": 0}]
)
def test_levels_are_checked_before_anything_is_read(given, tmp_path):
    with pytest.raises(ConfigError, match=next(reversed(given))):
        raysel.claim_features(tmp_path / "no study", **given, **QUIET)


def test_too_few_independent_groups_are_refused(tmp_path):
    X, y = planted(n=60, d=12)
    groups = np.arange(60) // 6
    result = study(tmp_path, X, (groups % 2), groups)
    with pytest.raises(StudyError, match="10 independent groups"):
        raysel.claim_features(result.path, **QUIET)
    assert len(y) == 60


def test_samples_of_several_tasks_are_refused(tmp_path):
    X, y = planted(n=60, d=12)
    parts = {
        name: raysel.Dataset(X + shift, y, raysel.Matrix(3, 4), name=name)
        for name, shift in (("a", 0.0), ("b", 1.0))
    }
    raysel.save_dataset(raysel.join_tasks(parts), tmp_path / "tasks.parquet")
    changes = {"solver": {"name": "mtda", "params": {"max_iter": 2}}, "evaluation": {}}
    result = run_offline(raw_config(tmp_path / "tasks.parquet", **changes), tmp_path / "study")
    with pytest.raises(DataError, match="several tasks"):
        raysel.claim_features(result.path, **QUIET)


def boosted(folder, X, y, **changes):
    """A small finished study of boosted trees, whose predictions are scored themselves."""
    np.savez(folder / "data.npz", X=X, y=y)
    trees = "sklearn.ensemble.HistGradientBoostingClassifier"
    raw = raw_config(
        folder / "data.npz",
        solver={"name": trees, "params": {"max_iter": 20}, "space": {"max_depth": [2, 3]}},
        cv={"outer": 3, "inner": 2},
        evaluation={"estimator": "native", "references": False},
        **changes,
    )
    return run_offline(raw, folder / "study")


def crossed(n=240, d=8):
    """Two classes that no column tells, but columns 0 and 1 together, and columns 2 and 3 copies
    of column 1.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X[:, 2:4] = X[:, [1]] + 0.05 * rng.standard_normal((n, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.fixture(scope="module")
def made_of_models(tmp_path_factory):
    """A study of boosted trees, with its claims by the method that is its default."""
    result = boosted(tmp_path_factory.mktemp("boosted"), *crossed())
    return result.path, raysel.claim_features(result.path, **QUIET)


def test_models_without_coefficients_claim_an_interaction_that_the_covariance_misses(
    made_of_models,
):
    path, claims = made_of_models
    assert claims.method == "held-out"
    assert sorted(claims.claimed_names()) == [["x0"], ["x1", "x2", "x3"]]
    (told,) = [text for text in claims.sentences() if "because" in text]
    assert "has no coefficients" in told
    assert (claims.p_value[~claims.tested] == 1).all()
    linear = raysel.claim_features(path, method="covariance", **QUIET)
    assert linear.method == "covariance"
    assert not linear.claimed.any()
    assert not any("because" in text for text in linear.sentences())


def test_files_ranking_and_report_say_which_method(made_of_models, capsys):
    path, claims = made_of_models
    assert run_command(["claims", str(path), "--method", "held-out", "--executor", "serial"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "predictions of held-out samples" in printed
    read = raysel.open_study(path)
    assert read.claims.method == "held-out"
    np.testing.assert_array_equal(read.claims.p_value, claims.p_value)
    table = pyarrow.parquet.read_table(path / "claims" / "claims.parquet").to_pydict()
    assert set(table["method"]) == {"held-out"}
    assert read.facts.claims.to_json()["method"] == "held-out"
    assert list(read.claims.ranking_columns()) == ["p_value_claim_held_out"]
    assert "raysel claims --method held-out" in Page(render_page(make_page(read))).text


def test_an_interrupted_test_of_models_goes_on_with_the_same_numbers(made_of_models, tmp_path):
    path, claims = made_of_models
    copy = tmp_path / "study"
    shutil.copytree(path, copy)
    journal = copy / "claims" / "held-out-correlated-0.5" / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    assert len(lines) == 1 + 3
    journal.write_text("".join(lines[:2]))
    again = raysel.claim_features(copy, method="held-out", **QUIET)
    np.testing.assert_array_equal(again.p_value, claims.p_value)
    np.testing.assert_array_equal(again.share, claims.share)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_ray_computes_the_same_of_models(made_of_models, tmp_path):
    path, claims = made_of_models
    copy = tmp_path / "study"
    shutil.copytree(path, copy)
    shutil.rmtree(copy / "claims")
    by_ray = raysel.claim_features(copy, method="held-out", executor="ray", progress=False)
    np.testing.assert_array_equal(by_ray.p_value, claims.p_value)
    np.testing.assert_array_equal(by_ray.share, claims.share)


def test_held_out_labels_without_meaning_are_claimed_by_nothing(tmp_path):
    X, y = crossed()
    result = boosted(tmp_path, X, np.random.default_rng(3).permutation(y))
    claims = raysel.claim_features(result.path, fwer=0.01, **QUIET)
    assert claims.method == "held-out"
    assert not claims.claimed.any()


def test_a_filter_is_tested_on_held_out_samples_by_the_features_that_it_selects(made, tmp_path):
    copy = tmp_path / "study"
    shutil.copytree(made[0], copy)
    claims = raysel.claim_features(copy, method="held-out", **QUIET)
    selected = {np.argsort(refit.feature_scores)[-3:].tobytes() for refit in claims_of(copy)}
    chosen = {int(j) for raw in selected for j in np.frombuffer(raw, dtype=np.int64)}
    assert {*np.flatnonzero(claims.tested[claims.group])} >= chosen
    assert set(np.flatnonzero(claims.tested)) == set(claims.group[sorted(chosen)])


def claims_of(path):
    """The refits of the outer folds."""
    return raysel.open_study(path).recorded.outer


def test_prepared_columns_of_one_feature_are_redrawn_together(tmp_path):
    """Text in one column, of which each value is a prepared column; cells are empty, too."""
    rng = np.random.default_rng(0)
    n = 240
    colour = rng.choice(["blue", "green", "red"], n)
    size, noise = rng.standard_normal(n), rng.standard_normal((n, 3))
    y = ((colour == "red") != (size > 0)).astype(int)
    cells = noise.astype(object)
    cells[::17, 0] = ""
    lines = ["colour,size,a,b,c,label"]
    lines += [",".join(map(str, [colour[i], size[i], *cells[i], y[i]])) for i in range(n)]
    (tmp_path / "data.csv").write_text("\n".join(lines))
    raw = raw_config(
        tmp_path / "data.csv",
        solver={
            "name": "sklearn.ensemble.HistGradientBoostingClassifier",
            "params": {"max_iter": 20},
            "space": {"max_depth": [2, 3]},
        },
        cv={"outer": 3, "inner": 2},
        evaluation={"estimator": "native", "references": False},
        dataset__prepare=["impute", "encode"],
    )
    result = run_offline(raw, tmp_path / "study")
    claims = raysel.claim_features(result.path, **QUIET)
    assert claims.method == "held-out"
    assert sorted(claims.claimed_names()) == [["colour"], ["size"]]


def test_an_unknown_method_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="method='loco' is not known; give one of covariance"):
        raysel.claim_features(tmp_path / "no study", method="loco", **QUIET)


def test_regions_are_not_tested_on_held_out_samples(tmp_path):
    with pytest.raises(ConfigError, match="method='held-out' tests no regions"):
        raysel.claim_features(tmp_path / "no study", method="held-out", regions=5, **QUIET)


def test_models_claim_nothing_that_tells_through_a_confound_only(tmp_path):
    """x0 follows age, and so does the class; the square of x1 tells the class beside age."""
    rng = np.random.default_rng(2)
    age, X = rng.standard_normal(300), rng.standard_normal((300, 6))
    X[:, 0] += age
    y = age + X[:, 1] ** 2 + 0.3 * rng.standard_normal(300) > 1
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)])
    table.assign(age=age, y=np.where(y, "ill", "well")).to_csv(tmp_path / "t.csv", index=False)
    raw = raw_config(
        tmp_path / "t.csv",
        solver={
            "name": "sklearn.ensemble.HistGradientBoostingClassifier",
            "params": {"max_iter": 20},
            "space": {"max_depth": [2, 3]},
        },
        cv={"outer": 3, "inner": 2},
        evaluation={"estimator": "native", "references": False},
        dataset__label="y",
        dataset__confounds=["age"],
    )
    claims = raysel.claim_features(run_offline(raw, tmp_path / "study").path, **QUIET)
    assert claims.method == "held-out"
    assert claims.claimed_names() == [["x1"]]


def study_of_quantity(folder, groups=None):
    """A study of 120 samples whose quantity follows the skewed columns 0 and 1."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.standard_normal((120, 12)))
    own = {} if groups is None else {"groups": groups}
    np.savez(folder / "data.npz", X=X, y=X[:, 0] - X[:, 1] + rng.standard_normal(120), **own)
    raw = raw_config(
        folder / "data.npz",
        solver={"name": "sklearn.linear_model.Ridge"},
        cv={"outer": 2, "inner": 2, **({"groups": "groups"} if own else {})},
        evaluation={"n_features": [3], "references": False},
    )
    return run_offline(raw, folder / "study")


def test_the_desparsified_lasso_claims_columns_of_a_quantity(tmp_path, capsys):
    path = study_of_quantity(tmp_path).path
    claims = raysel.claim_features(path, method="desparsified", fwer=0.05, **QUIET)
    assert claims.claimed_names() == [["x1"], ["x0"]] or claims.claimed_names() == [["x0"], ["x1"]]
    assert "noise of one variance" in claims.assumption
    assert "p_value_claim_desparsified" in claims.ranking_columns()
    command = ["claims", str(path), "--method", "desparsified", "--executor", "serial"]
    assert run_command(command) == 0
    assert "by the desparsified lasso" in " ".join(capsys.readouterr().out.split())
    measured = raysel.claim_features(path, method="covariance", fwer=0.05, **QUIET)
    assert claims.p_value[:2].max() < measured.p_value[:2].min()


def test_the_desparsified_lasso_takes_independent_samples_of_a_quantity(made, tmp_path):
    with pytest.raises(StudyError, match=r"has classes, .* claim by the method covariance"):
        raysel.claim_features(made[0], method="desparsified", **QUIET)
    path = study_of_quantity(tmp_path, np.repeat(np.arange(60), 2)).path
    with pytest.raises(StudyError, match="depend on each other within groups"):
        raysel.claim_features(path, method="desparsified", **QUIET)


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        (LinearSVC(C=0.1), {"fwer": 0.05, "correlated": 0.8}),
        (HistGradientBoostingClassifier(max_iter=10), {"fdr": 0.2}),
    ],
)
def test_a_search_in_memory_claims_as_a_stored_study_of_its_seed(estimator, settings, tmp_path):
    X, y = planted(n=120, d=10)
    search = raysel.NestedSearch(estimator, outer=3, inner=2, random_state=4)
    stored = clone(search).set_params(path=tmp_path / "study").fit(X, y)
    expected = raysel.claim_features(stored.study_.path, **settings, **QUIET)
    found = search.fit(X, y).claims(X, y, **settings)
    assert found.claimed.any()
    assert found.sentences() == expected.sentences()
    for name in ("group", "p_value", "share", "adjusted"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_a_search_claims_of_the_samples_that_it_was_fitted_to():
    X, y = planted(n=60, d=8)
    search = raysel.NestedSearch(LinearSVC(), outer=2, inner=2, random_state=4).fit(X, y)
    for change, samples in (({}, X[:-1]), ({"scaling": "zscore"}, X)):
        with pytest.raises(DataError, match="not those that it was fitted with; call fit again"):
            search.set_params(**change).claims(samples, y[: len(samples)])
