"""Figures as text, in the same digits wherever they are shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raysel.results.scores import Reference

_MOST_LISTED = 8


def mean_and_sd(mean: float, sd: float) -> str:
    """Return a mean and its standard deviation as text.

    Parameters
    ----------
    mean, sd : float
        Mean and standard deviation; NaN where one is undefined.

    Returns
    -------
    str
        E.g. ``"0.968 ± 0.004"``.

    Examples
    --------
    >>> mean_and_sd(0.9684, 0.004), mean_and_sd(0.5, float("nan"))
    ('0.968 ± 0.004', '0.500')
    """
    if np.isnan(mean):
        return "undefined"
    return f"{mean:.3f}" if np.isnan(sd) else f"{mean:.3f} ± {sd:.3f}"


def difference_in_words(reference: Reference) -> str:
    """Return the method's mean difference to a reference with its 95 % interval, or why there is no interval.

    Parameters
    ----------
    reference : Reference
        Scores of the reference.

    Returns
    -------
    str
        E.g. ``"-0.019 (corrected 95 % interval -0.034 to -0.004)"``.
    """
    test, paired = reference.test, reference.paired
    if test is None:
        return f"{paired.mean:+z.3f} (no interval: {paired.reason})"
    kind = "95 % interval" if reference.of_draws else "corrected 95 % interval"
    pool = ", for this pool of samples" if reference.of_draws else ""
    return f"{paired.mean:+z.3f} ({kind} {test.lower:+z.3f} to {test.upper:+z.3f}{pool})"


def bracketed_difference(reference: Reference) -> str:
    """Return the method's mean difference to a reference with its 95 % interval in the short form of a table.

    Parameters
    ----------
    reference : Reference
        Scores of the reference.

    Returns
    -------
    str
        E.g. ``"-0.019 [-0.034, -0.004]"``, or ``"-0.025 (equal in all runs)"`` where there is no interval.
    """
    test, paired = reference.test, reference.paired
    reason = paired.reason.removeprefix("the difference is ")
    return f"{paired.mean:+z.3f} " + (f"[{test.lower:+z.3f}, {test.upper:+z.3f}]" if test else f"({reason})")


def number_range(numbers: Sequence[int]) -> str:
    """Numbers as a range, e.g. ``"8-16"``, or as one number where all are equal."""
    return str(min(numbers)) if min(numbers) == max(numbers) else f"{min(numbers)}-{max(numbers)}"


def values_in_words(values: Sequence[float | None]) -> str:
    """Return mean and standard deviation over the outer folds as text.

    Parameters
    ----------
    values : sequence of float or None
        Value of each outer fold, None where it is undefined.

    Returns
    -------
    str
        E.g. ``"0.873 ± 0.021 (SD)"``.

    Examples
    --------
    >>> values_in_words([0.5, 0.7]), values_in_words([0.5, None])
    ('0.600 ± 0.141 (SD)', 'undefined on an outer fold')
    """
    known = np.array([value for value in values if value is not None])
    if len(known) < len(values):
        return "undefined on an outer fold"
    return f"{mean_and_sd(known.mean(), known.std(ddof=1))} (SD)"


def listed(numbers: Sequence[int]) -> str:
    """Return numbers as text: all of a few, the first and the last of many.

    Parameters
    ----------
    numbers : sequence of int
        Two numbers or more.

    Returns
    -------
    str
        E.g. ``"4, 8 and 16"``.

    Examples
    --------
    >>> listed([4, 8, 16]), listed(list(range(10, 101, 10)))
    ('4, 8 and 16', '10 numbers from 10 to 100')
    """
    if len(numbers) > _MOST_LISTED:
        return f"{len(numbers)} numbers from {numbers[0]} to {numbers[-1]}"
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
