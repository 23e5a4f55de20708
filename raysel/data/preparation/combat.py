"""Removal of each site's location and scale, by empirical Bayes estimates (ComBat)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.core.arrays import FloatArray, LabelArray
from raysel.data.preparation.steps import name_inputs

#: Largest relative change of an estimate at which the iterations end, and most iterations.
_CHANGE, _MOST = 1e-4, 1000


class SiteHarmoniser(TransformerMixin, BaseEstimator):
    r"""Remove a site's location :math:`\gamma` and scale :math:`\delta` from all columns but it.

    Standardised by the mean over the sites and the variance within them, the values of site i have
    the mean
    :math:`\hat\gamma_{ig}` and the variance :math:`\hat\delta^2_{ig}` in column g. Over the columns
    these have a
    normal and an inverse gamma prior, whose posterior means are removed. New samples of the same
    sites are transformed by the estimates of the training samples.

    W. E. Johnson, C. Li and A. Rabinovic, "Adjusting batch effects in microarray expression data
    using empirical Bayes methods", Biostatistics 8, 2007, equations 3.1 and 3.2, without
    covariates: where sites differ in their classes, a part of the difference between the classes is
    taken out with that between the sites. A posterior mean lies between the site's estimate and the
    mean of the prior: where few columns are shifted, a part of their shift stays.
    """

    sites_: FloatArray
    location_: FloatArray
    scale_: FloatArray
    mean_: FloatArray
    deviation_: FloatArray

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Estimate location and scale of each site, a number, from the training samples."""
        values, sites = self._checked(X, reset=True)
        self.sites_, code = np.unique(sites, return_inverse=True)
        counts = np.bincount(code)
        if counts.min() < 2:
            what = f"site {self.sites_[counts.argmin()]:g} has one training sample"
            raise ValueError(f"{what}, and the scale of a site needs two samples")
        means = np.array([values[code == i].mean(axis=0) for i in range(len(counts))])
        self.mean_ = counts @ means / len(values)
        self.deviation_ = np.sqrt(((values - means[code]) ** 2).mean(axis=0))
        varies = self.deviation_ > 0
        self.deviation_[~varies] = 1.0
        standard = (values - self.mean_) / self.deviation_
        self.location_, self.scale_ = np.zeros_like(means), np.ones_like(means)
        for i in range(len(counts)):
            self.location_[i, varies], self.scale_[i, varies] = _posterior(
                standard[code == i][:, varies]
            )
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Remove location and scale of each sample's site."""
        check_is_fitted(self)
        values, sites = self._checked(X, reset=False)
        code = np.minimum(np.searchsorted(self.sites_, sites), len(self.sites_) - 1)
        if (unknown := np.flatnonzero(self.sites_[code] != sites)).size:
            raise ValueError(
                f"{len(unknown)} samples are of a site without training samples: give each training"
                " set samples of every site, or leave harmonise out"
            )
        standard = (values - self.mean_) / self.deviation_
        return (standard - self.location_[code]) / self.scale_[code] * self.deviation_ + self.mean_

    def _checked(self, X: ArrayLike, *, reset: bool) -> tuple[FloatArray, FloatArray]:
        values: FloatArray = validate_data(
            self, X, dtype=np.float64, reset=reset, ensure_min_features=2
        )
        return values[:, :-1], values[:, -1]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> LabelArray:
        """Return the names of all but the site."""
        return name_inputs(self, input_features)[:-1]


def _posterior(standard: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Posterior means of one site's location and scale, each of shape (n_columns,)."""
    n, location, variance = len(standard), standard.mean(axis=0), standard.var(axis=0, ddof=1)
    if standard.shape[1] < 2 or np.ptp(variance) == 0:  # no prior can be estimated
        return location, np.sqrt(np.where(variance > 0, variance, 1.0))
    centre, spread = location.mean(), location.var(ddof=1)
    m, s2 = variance.mean(), variance.var(ddof=1)
    shape, rate = (2 * s2 + m**2) / s2, (m * s2 + m**3) / s2
    g, d = location.copy(), variance.copy()
    for _ in range(_MOST):
        g_new = (spread * n * location + d * centre) / (spread * n + d)
        squares = (n - 1) * variance + n * (location - g_new) ** 2
        d_new = (squares / 2 + rate) / (n / 2 + shape - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            change = max(np.nanmax(np.abs(g_new - g) / np.abs(g)), np.nanmax(np.abs(d_new - d) / d))
        g, d = g_new, d_new
        if change < _CHANGE:
            break
    return g, np.sqrt(d)
