"""Figures as text, in the same digits wherever they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from raysel.evaluation.records import ChooseN
from raysel.results.numbers import StudyNumbers
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


_RULES = {
    "one_se": "the smallest of {} within one standard error of the best inner mean",
    "best": "that of {} with the best inner mean",
}


def headline(result: StudyNumbers) -> str:
    """Return the honest score of a finished study as one line: of what, over what, with how many features."""
    return f"test {result.metric.replace('_', ' ')} {score_in_words(result)} {n_features_in_words(result)}"


def score_in_words(result: StudyNumbers) -> str:
    """Return the mean test score with SD, number of outer folds and interval, or why there is none."""
    found = result.interval
    if found.lower is None or found.upper is None:
        interval = f"no interval: {found.reason}"
    else:
        pool = ", for this pool of samples" if found.of_draws else ""
        interval = f"{interval_name(result)} {found.lower:.3f} to {found.upper:.3f}{pool}"
    over = "draws of the training set" if found.of_draws else "outer folds"
    return f"{mean_and_sd(found.mean, found.sd)} (SD over {len(result.outer)} {over}; {interval})"


def interval_name(result: StudyNumbers) -> str:
    """Name of the intervals of a study: corrected over folds, plain over draws of the training set."""
    return "95 % interval" if result.interval.of_draws else "corrected 95 % interval"


def n_features_in_words(result: StudyNumbers) -> str:
    """Return the numbers of features that the score is of."""
    evaluation, d = result.config["evaluation"], len(result.feature_names)
    if evaluation["classifier"] == "native":
        tasks = len(result.stored.study.labels)
        return (f"as the mean over {tasks} tasks, " if tasks else "") + "by the model's own predictions"
    if result.stored.study.choose_n == "mean" and len(evaluation["n_features"]) > 1:
        return f"as the mean over the best {listed(evaluation['n_features'])} of {d} features"
    found = [refit.n_features or evaluation["n_features"][0] for refit in result.outer]
    final = result.final.n_features if result.has_final else None
    model = f"; the final model uses {final}" if final and {final} != set(found) else ""
    if min(found) == max(found):
        return f"with the {found[0]} best of {d} features{' on the outer folds' if model else ''}{model}"
    how = "chosen on each outer fold by its inner scores"
    return f"with the {min(found)} to {max(found)} best of {d} features, {how}{model}"


def shows_n_features(result: StudyNumbers) -> bool:
    """Return whether each outer fold has a number of features that its score is of."""
    return result.stored.study.choose_n != "mean" and all(refit.n_features is not None for refit in result.outer)


def rule_sentence(result: StudyNumbers) -> str:
    """Return how the number of features is chosen, and which classifier gives the score."""
    return rule_in_words(result.config["evaluation"], result.stored.study.choose_n)


def rule_in_words(evaluation: Mapping[str, Any], rule: ChooseN) -> str:
    """Return how the number of features is chosen, and which classifier gives the score."""
    if evaluation["classifier"] == "native":
        return "The model's own predictions are scored; no number of features is chosen."
    scored = f"Scored by {classifier_in_words(evaluation)} on the best features."
    if evaluation["classifier"] == "linear_svm" and len(evaluation.get("C", ())) > 1:
        scored += " C is chosen by the inner scores."
    if len(evaluation["n_features"]) == 1:
        return scored
    if rule == "mean":
        return f"{scored} The score is the mean over all {len(evaluation['n_features'])} numbers of features."
    chosen = _RULES[rule].format(listed(evaluation["n_features"]))
    return (
        f"{scored} Their number is chosen on each outer fold by its inner scores: {chosen} "
        f"(evaluation.choose_n: {rule})."
    )


def classifier_in_words(evaluation: Mapping[str, Any]) -> str:
    """Return the classifier that scores the best features, and the references."""
    if evaluation["classifier"] == "linear_svm":
        values = [f"{C:g}" for C in evaluation.get("C", [1.0])]
        return f"linear SVM (C = {values[0]})" if len(values) == 1 else f"linear SVM (C of {_and(values)})"
    k = 1 if evaluation["classifier"] == "native" else evaluation.get("n_neighbors", 1)
    return "1-nearest neighbour" if k == 1 else f"{k} nearest neighbours"


def _and(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def interval_footnote(result: StudyNumbers) -> str:
    """Return what the interval means, as one footnote."""
    found = result.interval
    if found.lower is None:
        return ""
    if found.of_draws:
        return (
            f"95 % interval: mean ± t SD / sqrt(J) over J = {len(result.outer)} draws of the training set. It holds "
            "for this pool of samples, which it takes as the whole population, and for the method trained on that many "
            "of them; it ends at the metric's bounds."
        )
    return (
        "Corrected 95 % interval (Nadeau & Bengio 2003): mean ± t SD sqrt(1/J + n_test/n_train) over J = "
        f"{len(result.outer)} outer folds, n_test/n_train = {found.ratio:.3g}, because their training sets overlap; "
        "approximate, for the method trained on that many samples; it ends at the metric's bounds."
    )


def tasks_in_words(result: StudyNumbers) -> str:
    """Return each task's mean test score with its standard deviation as one line."""
    return ", ".join(f"{name} {values_in_words(own)}" for name, own in result.task_scores.items())


def report_in_words(result: StudyNumbers) -> str:
    """Return the mean and the standard deviation over the outer folds of each metric of ``evaluation.report``."""
    return ", ".join(f"{name} {values_in_words(own)}" for name, own in result.report.items())
