"""Tests of groups of features by lassos of all samples."""

from __future__ import annotations

from functools import partial

import numpy as np

from raysel.core.errors import StudyError
from raysel.numerics.conditional_tests import (
    Distilled,
    conditional_test,
    desparsified_test,
    distil_labels,
)
from raysel.results.feature_claims import FOLDER, Method
from raysel.run.claim_groups import FeatureGrouping, GroupTests
from raysel.run.claim_samples import Samples
from raysel.run.pieces import FinishedStudy, Work, run_pieces
from raysel.study.definition import Study


def covariance_tests(
    finished: FinishedStudy, samples: Samples, grouping: FeatureGrouping
) -> GroupTests:
    """Test groups of features by the generalised covariance measure."""
    return _tests(finished, samples, grouping, "covariance")


def desparsified_tests(
    finished: FinishedStudy, samples: Samples, grouping: FeatureGrouping
) -> GroupTests:
    """Test groups of features by the desparsified lasso."""
    dataset, units = finished.study.dataset, samples.units
    if dataset.target.is_of_classes:
        raise StudyError(
            f"{dataset.name} has classes, whose noise is not of one variance; claim by the method"
            " covariance."
        )
    if units.n < dataset.n_samples:
        raise StudyError(
            f"the samples of {dataset.name} depend on each other within {units.noun}s; claim by the"
            " method covariance."
        )
    return _tests(finished, samples, grouping, "desparsified")


def _tests(
    finished: FinishedStudy, samples: Samples, grouping: FeatureGrouping, method: Method
) -> GroupTests:
    """Test the groups of features to which a lasso of all columns gives weight."""
    distilled = distil_labels(samples.X, samples.Y, samples.folds)
    work = Work(
        f"{FOLDER}/{method}-{grouping.name}",
        partial(compute_test, grouping, distilled, method),
        code=(compute_test, conditional_test, desparsified_test),
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
    grouping: FeatureGrouping, distilled: Distilled, method: Method, study: Study, number: int
) -> dict[str, float]:
    """Test the group of features with a number."""
    samples = Samples.of(study)
    X, Y, folds = samples.X, samples.Y, samples.folds
    columns = grouping.columns(number, samples.origin)
    if method == "desparsified":
        found = desparsified_test(X, Y, columns, distilled=distilled, folds=folds)
    else:
        units, alpha = samples.units.member, distilled.alpha
        found = conditional_test(X, Y, columns, units, alpha=alpha, folds=folds)
    return {"p_value": found.p_value, "share": found.share}
