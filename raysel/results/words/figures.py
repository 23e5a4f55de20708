"""Figures as text, in the same digits wherever they are shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raysel.results.scores import Reference

_MOST_LISTED = 8


def mean_and_sd(mean: float, sd: float) -> str:
    """Return a mean and its standard deviation as text."""
    if np.isnan(mean):
        return "undefined"
    return f"{mean:.3f}" if np.isnan(sd) else f"{mean:.3f} ± {sd:.3f}"


def difference_in_words(reference: Reference) -> str:
    """Return the method's mean difference to a reference with its 95 % interval, or why there is no interval."""
    test, paired = reference.test, reference.paired
    if test is None:
        return f"{paired.mean:+z.3f} (no interval: {paired.reason})"
    kind = "95 % interval" if reference.of_draws else "corrected 95 % interval"
    pool = ", for this pool of samples" if reference.of_draws else ""
    return f"{paired.mean:+z.3f} ({kind} {test.lower:+z.3f} to {test.upper:+z.3f}{pool})"


def bracketed_difference(reference: Reference) -> str:
    """Return the method's mean difference to a reference with its 95 % interval in the short form of a table."""
    test, paired = reference.test, reference.paired
    reason = paired.reason.removeprefix("the difference is ")
    return f"{paired.mean:+z.3f} " + (f"[{test.lower:+z.3f}, {test.upper:+z.3f}]" if test else f"({reason})")


def number_range(numbers: Sequence[int]) -> str:
    """Numbers as a range, e.g. ``"8-16"``, or as one number where all are equal."""
    return str(min(numbers)) if min(numbers) == max(numbers) else f"{min(numbers)}-{max(numbers)}"


def values_in_words(values: Sequence[float | None]) -> str:
    """Return mean and standard deviation over the outer folds as text."""
    known = np.array([value for value in values if value is not None])
    if len(known) < len(values):
        return "undefined on an outer fold"
    return f"{mean_and_sd(known.mean(), known.std(ddof=1))} (SD)"


def listed(numbers: Sequence[int]) -> str:
    """Return numbers as text: all of a few, the first and the last of many."""
    if len(numbers) > _MOST_LISTED:
        return f"{len(numbers)} numbers from {numbers[0]} to {numbers[-1]}"
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
