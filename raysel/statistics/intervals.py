"""Confidence interval of a mean score over the folds of a cross-validation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from raysel.errors import ConfigError, DataError

#: A range of scores up to this size is a rounding error.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class MeanInterval:
    """A mean score with its standard deviation and its corrected confidence interval."""

    #: Mean and sample standard deviation of the scores; ``sd`` is NaN for one score.
    mean: float
    sd: float
    #: Number of test samples divided by the number of training samples of a run.
    ratio: float
    #: Coverage that the interval is computed for.
    confidence: float
    #: Ends of the interval, which is symmetric about the mean and cut at the range of the metric; None if there is no
    #: interval.
    lower: float | None
    upper: float | None
    #: Why there is no interval; empty if there is one.
    reason: str = ""
    #: Whether the runs are independent draws of the training set from one pool of samples, for which the interval is
    #: the plain one.
    of_draws: bool = False


def corrected_interval(
    scores: ArrayLike,
    ratio: float,
    confidence: float = 0.95,
    *,
    limits: tuple[float, float] = (-np.inf, np.inf),
    of_draws: bool = False,
) -> MeanInterval:
    r"""Compute the corrected interval of a mean score over the runs of a resampling.

    With J runs, their scores s_j and t the quantile of Student's distribution with J - 1 degrees of freedom,

        mean(s) -+ t sqrt((1/J + r) var(s)),

    where var has the divisor J - 1 and r = n_test / n_train. The term r corrects for the training sets that the runs
    share, after Nadeau and Bengio, who derive it for random splits; for (repeated) cross-validation it is an
    approximation in use. ``experiments/corrected-interval`` measures its coverage.

    C. Nadeau, Y. Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003; R. Bouckaert, E. Frank,
    "Evaluating the Replicability of Significance Tests for Comparing Learning Algorithms", PAKDD 2004.

    `scores` is (n_runs,).
    """
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence={confidence!r} must lie between 0 and 1, e.g. 0.95.")
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise DataError(f"the scores have shape {values.shape}; give one number a run.")
    if not np.isfinite(values).all():
        raise DataError("the scores contain NaN or infinity; leave out the runs without a score.")
    if not ratio >= 0:
        raise DataError(f"ratio={ratio!r} must not be negative; give n_test / n_train.")
    n_runs, mean = len(values), float(values.mean())
    if n_runs == 1:
        reason = "there is one run only"
        return MeanInterval(mean, float("nan"), ratio, confidence, None, None, reason, of_draws)
    if np.ptp(values) <= _ROUNDING:
        return MeanInterval(mean, 0.0, ratio, confidence, None, None, "the score is equal in all runs", of_draws)
    sd = float(values.std(ddof=1))
    error = sd * np.sqrt(1 / n_runs + (0.0 if of_draws else ratio))
    margin = float(stdtrit(n_runs - 1, (1 + confidence) / 2) * error)
    lower, upper = max(mean - margin, limits[0]), min(mean + margin, limits[1])
    return MeanInterval(mean, sd, ratio, confidence, lower, upper, of_draws=of_draws)
