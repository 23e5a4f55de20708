"""Tests of groups of features by the generalised covariance measure of all samples."""

from __future__ import annotations

from functools import partial

import numpy as np

from raysel.numerics.conditional_tests import conditional_test, distil_labels
from raysel.results.feature_claims import FOLDER
from raysel.run.claim_groups import FeatureGrouping, GroupTests
from raysel.run.claim_samples import Samples
from raysel.run.pieces import FinishedStudy, Work, run_pieces
from raysel.study.definition import Study


def covariance_tests(
    finished: FinishedStudy, samples: Samples, grouping: FeatureGrouping
) -> GroupTests:
    """Test the groups of features to which a lasso of all columns gives weight."""
    distilled = distil_labels(samples.X, samples.Y, samples.folds)
    work = Work(
        finished.result.path / FOLDER / f"covariance-{grouping.name}",
        partial(compute_test, grouping, distilled.alpha),
        code=(compute_test, conditional_test),
        settings=grouping.settings,
        unit="tests",
    )
    tested = grouping.numbers(samples.origin[distilled.has_weight])
    pieces = run_pieces(finished, work, tested)
    p_value, share = np.ones(grouping.n_groups), np.full(grouping.n_groups, np.nan)
    for number, found in pieces.values.items():
        p_value[number], share[number] = found["p_value"], found["share"]
    return GroupTests(
        p_value=p_value,
        share=share,
        n_units=samples.units.n,
        errors=pieces.errors,
        mixed=pieces.mixed,
    )


def compute_test(
    grouping: FeatureGrouping, alpha: float, study: Study, number: int
) -> dict[str, float]:
    """Test the group of features with a number."""
    samples = Samples.of(study)
    found = conditional_test(
        samples.X,
        samples.Y,
        grouping.columns(number, samples.origin),
        samples.units.member,
        alpha=alpha,
        folds=samples.folds,
    )
    return {"p_value": found.p_value, "share": found.share}
