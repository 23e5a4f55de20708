"""What is claimed of a study: only what its method and the commands that were run allow."""

from __future__ import annotations

import numpy as np
import pytest
from report_pages import page_of
from small_studies import raw_config, run_offline

import raysel
from raysel.numerics.permutation import permutation_p_value
from raysel.results.claims import claims_of_features, find_claims
from raysel.results.page import findings
from raysel.results.permutation import PermutationTest

PLANTED = {"x0", "x1", "x2"}


def ran(folder, solver, **cv):
    """A study of which three of 30 features tell the class, in 24 groups of four samples, with
    its permutation test and its stability selection.
    """
    rng = np.random.default_rng(0)
    groups, y = np.repeat(np.arange(24), 4), np.repeat(np.arange(24) % 2, 4)
    X = rng.standard_normal((96, 30))
    X[:, :3] += 2.0 * y[:, None]
    own = {"groups": groups} if cv else {}
    np.savez(folder / "data.npz", X=X, y=y, **own)
    raw = raw_config(
        folder / "data.npz",
        solver={"name": solver},
        cv={"outer": 2, "inner": 2, **cv},
        evaluation={"classifier": "knn", "n_features": [3], "references": False},
    )
    path = run_offline(raw, folder / "study").path
    options = {"progress": False, "executor": "serial"}
    raysel.permutation_test(path, permutations=39, **options)
    raysel.stability_selection(path, subsamples=20, **options)
    return raysel.open_study(path)


def section(result):
    """The text of the section on claims."""
    return page_of(findings.claims(result)).text


@pytest.mark.parametrize(
    ("solver", "by", "said"),
    [
        ("fisher_score", ["permute", "stability"], "may tell the labels only because"),
        ("linear_svm", ["stability"], "hold only if no feature tells the labels"),
        ("mrmr", ["stability"], "The features have no p values"),
    ],
)
def test_single_features_are_claimed_as_the_method_allows(solver, by, said, tmp_path):
    result = ran(tmp_path, solver)
    claims = claims_of_features(result.facts)
    assert [claim.command for claim in claims] == by
    for claim in claims:
        assert claim.features
        assert set(claim.features) <= PLANTED
    (score,) = [claim for claim in find_claims(result.facts) if claim.features is None]
    assert score.level == f"p = {result.permutation_test.p_value:.3g}"
    shown = section(result)
    assert said in shown
    for claim in find_claims(result.facts):
        assert claim.level in shown
        assert claim.assumption in shown


def test_of_groups_nothing_is_said_of_single_samples(tmp_path):
    result = ran(tmp_path, "fisher_score", groups="groups")
    for claim in find_claims(result.facts):
        assert "groups" in claim.assumption
        assert "samples" not in claim.assumption
    told = [*result.permutation_test.sentences(), result.stability_selection.sentence()]
    for text in (section(result), *told):
        assert "samples are" not in text
        assert "halves of the samples" not in text


@pytest.mark.parametrize("n", [0, 1, 2])
def test_the_number_of_claimed_features_is_said(n, finished):
    """By a test of which n adjusted p values are small."""
    names = tuple(finished.feature_names)
    adjusted = np.where(np.arange(len(names)) < n, 0.01, 1.0)
    test = PermutationTest(
        metric="accuracy",
        test_mean=0.5,
        permuted=(0.5,) * 99,
        p=permutation_p_value(0.5, np.full(99, 0.5)),
        retune=True,
        seed=0,
        exchanged="blocks",
        n_movable=10,
        log10_arrangements=5.0,
        recomputed=0.5,
        features={"p_value": adjusted, "p_value_fwer": adjusted},
        feature_names=names,
        shares=False,
        univariate=True,
        places=False,
    )
    result = raysel.open_study(finished.path)
    vars(result.recorded)["permutation_test"] = test
    (claim,) = find_claims(result.facts)
    assert claim.features == list(names[:n])
    assert claim.what.startswith(("no single feature", "1 feature tells", "2 features tell")[n])
    assert claim.assumption == "blocks are exchangeable"
    assert claim.what in section(result)


def test_without_a_command_nothing_is_claimed_and_the_commands_are_named(finished):
    assert find_claims(finished.facts) == []
    shown = section(finished)
    assert "Nothing is claimed yet" in shown
    for command in ("raysel stability", "raysel permute"):
        assert command in shown
