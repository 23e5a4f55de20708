"""Claims of features that tell the labels of a finished study beside all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from raysel.core.arrays import IntArray
from raysel.core.errors import ConfigError, DataError
from raysel.evaluation.records import FINAL
from raysel.numerics.correlations import correlated_groups
from raysel.results.coefficients import linear_coefficients
from raysel.results.feature_claims import FOLDER, METHODS, ErrorRate, FeatureClaims, Method
from raysel.results.maps import claim_maps, write_maps
from raysel.results.region_claims import RegionClaims, remove_regions
from raysel.results.result import StudyResult
from raysel.run.claim_groups import FeatureGrouping, GroupTests
from raysel.run.claim_samples import Samples
from raysel.run.held_out_claims import held_out_tests
from raysel.run.lasso_claims import covariance_tests, desparsified_tests
from raysel.run.options import RunOptions
from raysel.run.pieces import FinishedStudy, finished_study
from raysel.run.region_claims import claim_regions
from raysel.study.definition import Study
from raysel.tracking.log import Listener

#: Level, and correlation of a group, where none is given.
_LEVEL, _CORRELATED = 0.1, 0.5

_TESTS: Mapping[Method, Callable[[FinishedStudy, Samples, FeatureGrouping], GroupTests]] = {
    "covariance": covariance_tests,
    "desparsified": desparsified_tests,
    "held-out": held_out_tests,
}


def claim_features(
    path: str | Path,
    config: str | Path | Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    fdr: float | None = None,
    fwer: float | None = None,
    correlated: float | None = None,
    regions: int | None = None,
    method: Method | None = None,
    executor: Literal["serial", "ray"] | None = None,
    address: str | None = None,
    allow_mixed_versions: bool = False,
    progress: bool | Listener = True,
) -> FeatureClaims | RegionClaims:
    r"""Claim features that tell the labels beside all other features, with bounded false claims.

    Features that correlate strongly form a group, which is claimed as one. For each group the
    hypothesis is that it is independent of the labels given all other columns, also confounds.
    Three methods test it:

    ``covariance`` takes all samples, and neither the study's method nor its configurations. A lasso
    of the other columns is fitted to the labels and to each column of the group; the mean product
    of the residuals is compared with 0 by the generalised covariance measure [1]_, as in distilled
    conditional randomisation [2]_. Classes count as an indicator of their values. Penalties are
    chosen by cross-validation, groups and blocks of samples kept whole. With the sums of these
    products within each of m independent samples, groups or blocks, q of them, their mean
    :math:`\bar v` and covariance S,

    .. math:: \frac{m - q}{q (m - 1)} \, m \bar v^T S^{-1} \bar v \sim F(q, m - q)

    Only groups that the lasso of all columns gives weight are tested. It sees what is linear in the
    prepared columns.

    ``desparsified`` is that test of quantities of independent samples whose noise has one variance
    in all samples, the desparsified lasso [6]_. The variance of a product is then that of the noise
    by that of the column's residual, which is known better: of skewed columns it claims more.

    ``held-out`` takes the model of each outer fold, which the inner folds chose, and the samples
    that it has not seen: a model of any kind, also one without coefficients. The group's columns
    are redrawn given all others, 20 times: by a ridge regression fitted to the training samples,
    with the residuals of held-out samples in random orders. With the prediction f of a sample, the
    mean :math:`\bar f` and variance :math:`s^2` of those of its redrawn copies, and the label y,

    .. math:: v = h r - s^2 / 20, \quad h = f - \bar f, \quad r = y - \bar f

    has the mean 0 under the hypothesis: v is half the increase of the squared error by redrawn
    columns, the conditional importance [3]_, less what the draws alone decide. What a ridge
    regression of the other columns still tells of h and r is taken from both, so that only an error
    in both matters, as in the projected covariance measure [4]_. The sums of v within samples,
    groups or blocks are tested by a one-sided t test. Classes have their probabilities as f, else a
    logistic function of decision values, else the predicted class. Only groups that a model uses
    are tested. What no model has learned is not claimed.

    Groups that are not tested have the p value 1. P values are adjusted for all groups: by
    Benjamini and Hochberg for a false discovery rate, by Holm for a family-wise error rate.

    Of images and volumes, regions of neighbouring cells are claimed in place of features, by the
    covariance. Random subsets of the samples form them by Ward's method, without the labels,
    several times. The mean of each region is tested given all other regions, and adjusted for
    them. The p value of a cell is twice the median of those of its regions [5]_. Connected claimed
    cells are a claimed region; where it ends is known up to the size of the regions that were
    tested.

    Finished tests are kept in the folder ``claims`` of the study's directory: an interrupted call
    continues there, and another level computes nothing again. The result is written to
    ``claims.csv``, ``claims.parquet`` and ``result.json`` there, claimed regions also to
    ``regions.csv``, and the study's ranking table gets a column ``p_value_claim_METHOD``. Of
    volumes, NIfTI files hold the maps of claims and p values.

    Parameters
    ----------
    path : str or Path
        Directory of the finished study.
    config : str, Path or mapping, optional
        Configuration of the study; that in the directory by default. Needed only if its solver
        imports code.
    overrides : mapping of str to object, or iterable of str, default=()
        Values that replace those of the configuration and cannot change a number, e.g.
        ``dataset.path`` if the data have moved.
    fdr : float, optional
        Expected share of false claims among all claims, at most; 0.1 by default.
    fwer : float, optional
        Probability of one or more false claims, at most, in place of ``fdr``.
    correlated : float, optional
        Absolute correlation, above 0 and at most 1, from which on features form a group; by default
        the groups are those of ``dataset.feature_groups``, else of features that correlate by 0.5.
    regions : int, optional
        Number of regions of each clustering, of images and volumes; 0 claims single features or
        groups. By default one for two independent samples or groups, at most 200 and one for four
        cells; 0 if ``correlated`` or ``dataset.feature_groups`` is given.
    method : {"covariance", "desparsified", "held-out"}, optional
        How groups are tested. By default ``held-out`` where the study's method predicts by itself
        and has no coefficients, e.g. boosted trees or a kernel; else ``covariance``.
    executor : {"serial", "ray"}, optional
        Where to compute; ``search.executor`` of the configuration by default. The numbers are the
        same.
    address : str, optional
        HOST:PORT of the Ray cluster to use; by default Ray is started on this machine.
    allow_mixed_versions : bool, default=False
        Whether nodes of the cluster may compute whose versions can change numbers; the result names
        them.
    progress : bool or Listener, default=True
        Whether to print a progress line, or an object that shows the progress.

    Returns
    -------
    FeatureClaims or RegionClaims
        P values, claims, and what they assume.

    Raises
    ------
    ConfigError
        If a level is not between 0 and 1, or both are given, the method is not known, or regions
        are asked for by another one than the covariance, or where no cell has neighbours.
    DataError
        If samples are of several tasks, or prepared samples have empty cells.
    DirectoryError
        If the directory holds no study or is in use, cannot be written, or holds tests of another
        state of the study, or of another version.
    UnfinishedStudyError
        If the study has not finished.
    StudyError
        If the study has no final model, fewer than 20 independent samples or groups, a transductive
        method whose models are to be tested, classes or groups of samples for the desparsified
        lasso, or a preparation that joins features.

    References
    ----------
    .. [1] R. D. Shah, J. Peters, "The Hardness of Conditional Independence Testing and the
       Generalised Covariance Measure", Annals of Statistics 48(3), 2020.
    .. [2] M. Liu, E. Katsevich, L. Janson, A. Ramdas, "Fast and Powerful Conditional Randomization
       Testing via Distillation", Biometrika 109(2), 2022.
    .. [3] A. Chamma, D. A. Engemann, B. Thirion, "Statistically Valid Variable Importance
       Assessment through Conditional Permutations", NeurIPS 36, 2023.
    .. [4] A. R. Lundborg, I. Kim, R. D. Shah, R. J. Samworth, "The Projected Covariance Measure for
       Assumption-Lean Variable Significance Testing", Annals of Statistics 52(6), 2024.
    .. [5] J.-A. Chevalier, T.-B. Nguyen, B. Thirion, J. Salmon, "Spatially Relaxed Inference on
       High-Dimensional Linear Models", Statistics and Computing 32, 2022.
    .. [6] S. van de Geer, P. Bühlmann, Y. Ritov, R. Dezeure, "On Asymptotically Optimal Confidence
       Regions and Tests for High-Dimensional Models", Annals of Statistics 42(3), 2014.

    Examples
    --------
    >>> import tempfile
    >>> from raysel import run_study
    >>> small = {
    ...     "solver.space": {"alpha": [0.1]}, "cv.outer": 2, "cv.inner": 2, "pictures": [],
    ...     "search.executor": "serial", "tracking.mlflow": False,
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = run_study("wine", small, output=f"{folder}/study", progress=False)
    ...     found = claim_features(study.path, fwer=0.01, progress=False)
    >>> "proline" in [name for names in found.claimed_names() for name in names]
    True
    """
    rate, level = _level(fdr, fwer)
    _check_tests(correlated, method)
    if regions is not None:
        _check_regions(regions, correlated, method)
    options = RunOptions.of(address, allow_mixed_versions, progress)
    with finished_study(path, config, overrides, executor=executor, options=options) as finished:
        layout, folder = finished.result.layout, finished.result.path / FOLDER
        claims: FeatureClaims | RegionClaims
        if _by_regions(finished, regions, correlated, method):
            claims = claim_regions(finished, regions, rate, level)
            claims.write(folder)
        else:
            claims = claim_groups(
                finished, fdr=fdr, fwer=fwer, correlated=correlated, method=method
            )
            n, places = len(claims.feature_names), layout.coordinates().items()
            claims.write(folder, {axis: values[:n] for axis, values in places})
            remove_regions(folder)
        write_maps(claim_maps(claims), layout, folder)
        finished.export()
    return claims


def _check_tests(correlated: float | None, method: Method | None) -> None:
    """Check the correlation of a group and the method that are asked for."""
    if correlated is not None and not 0 < correlated <= 1:
        raise ConfigError(f"correlated={correlated!r} must be above 0 and at most 1, e.g. 0.5.")
    if method is not None and method not in METHODS:
        raise ConfigError(f"method={method!r} is not known; give one of {', '.join(METHODS)}.")


def _check_regions(regions: int, correlated: float | None, method: Method | None) -> None:
    """Check the number of regions that is asked for."""
    if isinstance(regions, bool) or not isinstance(regions, int) or regions < 0 or regions == 1:
        raise ConfigError(f"regions={regions!r} must be a whole number of 2 or more, or 0.")
    if regions and correlated is not None:
        raise ConfigError("regions and correlated are both given; give one of them.")
    if regions and method not in (None, "covariance"):
        raise ConfigError(f"method={method!r} tests no regions; leave regions out, or set 0.")


def _by_regions(
    finished: FinishedStudy,
    regions: int | None,
    correlated: float | None,
    method: Method | None,
) -> bool:
    """Return whether regions are claimed in place of features or groups."""
    layout = finished.result.layout
    has_neighbours = layout.has_axes or layout.is_image
    if regions and not has_neighbours:
        raise ConfigError(
            f"regions={regions}: {finished.study.dataset.name} is no set of images or volumes, so"
            " that no feature has neighbours; leave regions out, or set dataset.shape."
        )
    if method not in (None, "covariance"):
        return False
    if regions is None:
        return has_neighbours and correlated is None and not finished.study.feature_groups
    return regions > 0


def claim_groups(
    finished: FinishedStudy,
    *,
    fdr: float | None,
    fwer: float | None,
    correlated: float | None,
    method: Method | None,
) -> FeatureClaims:
    """Claim features, or groups of them, as `claim_features` does; nothing is written."""
    rate, level = _level(fdr, fwer)
    _check_tests(correlated, method)
    result, samples = finished.result, Samples.of(finished.study)
    n_features = result.recorded.n_candidates
    grouping = _group_features(finished.study, samples, n_features, correlated)
    chosen, reason = _choose_method(method, finished.study, result)
    tests = _TESTS[chosen](finished, samples, grouping)
    return FeatureClaims(
        feature_names=tuple(result.feature_names[:n_features]),
        group=grouping.group,
        p_value=tests.p_value,
        share=tests.share,
        rate=rate,
        level=level,
        correlated=grouping.correlated,
        method=chosen,
        reason=reason,
        unit=f"{samples.units.noun}s" if finished.study.block_numbers is None else "blocks",
        n_units=tests.n_units,
        errors=tests.errors,
        identity={"data_hash": finished.record.data_hash},
        mixed=tests.mixed,
    )


def _choose_method(
    asked_for: Method | None, study: Study, result: StudyResult
) -> tuple[Method, str]:
    """Choose how to test by what the study's models are, and say why."""
    if asked_for is not None:
        return asked_for, ""
    name = study.config.solver.name
    if not study.evaluation.is_native:
        return "covariance", f"{name} ranks the features for another estimator"
    if _has_coefficients(result):
        return "covariance", f"the model of {name} is linear"
    return "held-out", f"the model of {name} has no coefficients"


def _has_coefficients(result: StudyResult) -> bool:
    """Return whether the final model is linear, as far as its file tells."""
    if not result.recorded.has_model:
        return False
    try:
        method = result.recorded.fold_model(FINAL).method
    except DataError:  # the model file is not trusted, or damaged
        return False
    n_columns = getattr(method, "n_features_in_", len(result.feature_names))
    return linear_coefficients(method, n_columns) is not None


def _level(fdr: float | None, fwer: float | None) -> tuple[ErrorRate, float]:
    """Return the error rate that is asked for, and its level."""
    if fdr is not None and fwer is not None:
        raise ConfigError("fdr and fwer are both given; give one of them.")
    rate: ErrorRate = "fdr" if fwer is None else "fwer"
    level = {"fdr": _LEVEL if fdr is None else fdr, "fwer": fwer}[rate]
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise ConfigError(f"{rate}={level!r} must be between 0 and 1, e.g. {_LEVEL}.")
    return rate, float(level)


def _group_features(
    study: Study, samples: Samples, n_features: int, correlated: float | None
) -> FeatureGrouping:
    """Group the features as asked for, else as the study does, else by their correlation."""
    given = study.feature_groups
    if correlated is None and given:
        return FeatureGrouping(_given_groups(given, n_features), None)
    if correlated is None:
        correlated = _CORRELATED
    return FeatureGrouping(_correlated_groups(samples, n_features, correlated), correlated)


def _given_groups(given: Mapping[str, Sequence[int]], n_features: int) -> IntArray:
    """Number the group of each feature by its first member; one in no group is alone."""
    group = np.arange(n_features)
    for members in given.values():
        group[list(members)] = min(members)
    return np.unique(group, return_inverse=True)[1]


def _correlated_groups(samples: Samples, n_features: int, correlated: float) -> IntArray:
    """Number the group of each feature: those of one column each that correlate."""
    counts = np.bincount(samples.origin, minlength=n_features)[:n_features]
    group = np.arange(n_features)
    alone = np.flatnonzero(counts == 1)
    columns = np.flatnonzero(np.isin(samples.origin, alone))
    number = correlated_groups(samples.X[:, columns], correlated)
    first = np.unique(number, return_index=True)[1]
    group[alone] = alone[first[number]]
    return np.unique(group, return_inverse=True)[1]
