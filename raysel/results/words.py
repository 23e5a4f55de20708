"""Sentences and table rows that tell a study's answer: all that shows a figure takes its text from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from raysel.statistics.paired import PairedComparison

if TYPE_CHECKING:
    from raysel.results.result import StudyResult

#: References that a method has to beat, with their names within a sentence.
_RIVALS = {"f_test": "the F-test with the same numbers of features", "all features": "all features", "chance": "chance"}
_RULES = {
    "one_se": "the smallest of {} within one standard error of the best inner mean",
    "best": "that of {} with the best inner mean",
}
_MOST_LISTED = 8


class ScoreRow(NamedTuple):
    """Row of the table of a method and its references.

    Parameters
    ----------
    name : str
        Study's method, or the reference.
    n_features : str
        Number of features that the score is of.
    score : str
        Mean and SD over the outer folds.
    difference : str
        Difference of the method to the reference with its corrected 95 % interval; empty for the method.
    """

    name: str
    n_features: str
    score: str
    difference: str


def headline(result: StudyResult) -> str:
    """Return the honest score of a finished study as one line: of what, over what, with how many features.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    str
        E.g. ``"test accuracy 0.968 ± 0.004 (SD over 3 outer folds; corrected 95 % interval 0.951 to 0.985) with the
        16 best of 64 features"``.
    """
    return f"test {result.metric} {score_in_words(result)} {n_features_in_words(result)}"


def score_in_words(result: StudyResult) -> str:
    """Return the mean test score with SD, number of outer folds and corrected interval, or why there is none.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    str
        E.g. ``"0.968 ± 0.004 (SD over 3 outer folds; corrected 95 % interval 0.951 to 0.985)"``.
    """
    found = result.interval
    if found.lower is None or found.upper is None:
        interval = f"no interval: {found.reason}"
    else:
        interval = f"corrected 95 % interval {found.lower:.3f} to {found.upper:.3f}"
    return f"{mean_and_sd(found.mean, found.sd)} (SD over {len(result.outer)} outer folds; {interval})"


def n_features_in_words(result: StudyResult) -> str:
    """Return the numbers of features that the score is of.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    str
        E.g. ``"with the 16 best of 64 features"``; the range and how it is chosen if it differs between the outer
        folds, and the numbers that are averaged if ``evaluation.choose_n`` is ``mean``.
    """
    evaluation, d = result.config["evaluation"], len(result.feature_names)
    if evaluation["classifier"] == "native":
        tasks = len(result.stored.study.labels)
        return (f"as the mean over {tasks} tasks, " if tasks else "") + "by the model's own predictions"
    if result.stored.study.choose_n == "mean" and len(evaluation["n_features"]) > 1:
        return f"as the mean over the best {_listed(evaluation['n_features'])} of {d} features"
    found = [refit.n_features or evaluation["n_features"][0] for refit in result.outer]
    if min(found) == max(found):
        return f"with the {found[0]} best of {d} features"
    return f"with the {min(found)} to {max(found)} best of {d} features, chosen on each outer fold by its inner scores"


def rule_sentence(result: StudyResult) -> str:
    """Return how the number of features is chosen, and which classifier gives the score.

    Parameters
    ----------
    result : StudyResult
        Result of a study.

    Returns
    -------
    str
        One sentence or two.
    """
    evaluation, rule = result.config["evaluation"], result.stored.study.choose_n
    if evaluation["classifier"] == "native":
        return "The model's own predictions are scored; no number of features is chosen."
    scored = f"Scored by {classifier_in_words(evaluation)} on the best features."
    if len(evaluation["n_features"]) == 1:
        return scored
    if rule == "mean":
        return f"{scored} The score is the mean over all {len(evaluation['n_features'])} numbers of features."
    chosen = _RULES[rule].format(_listed(evaluation["n_features"]))
    return (
        f"{scored} Their number is chosen on each outer fold by its inner scores: {chosen} "
        f"(evaluation.choose_n: {rule})."
    )


def classifier_in_words(evaluation: Mapping[str, Any]) -> str:
    """Return the classifier that scores the best features, and the references.

    Parameters
    ----------
    evaluation : mapping
        Section ``evaluation`` of the configuration.

    Returns
    -------
    str
        E.g. ``"1-nearest neighbour"``; for ``native``, the classifier of the reference ``all features``.
    """
    if evaluation["classifier"] == "linear_svm":
        return "linear SVM"
    k = 1 if evaluation["classifier"] == "native" else evaluation.get("n_neighbors", 1)
    return "1-nearest neighbour" if k == 1 else f"{k} nearest neighbours"


def reference_in_words(result: StudyResult, name: str) -> str:
    """Return the name of a reference, with the classifier where it is not that of the method.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.
    name : str
        Name of the reference.

    Returns
    -------
    str
        E.g. ``"all 64 features"``.
    """
    if name == "all features":
        evaluation = result.config["evaluation"]
        by = f" ({classifier_in_words(evaluation)})" if evaluation["classifier"] == "native" else ""
        return (
            f"all {len(result.feature_names)} features" if not result.task_scores else "all of a task's features"
        ) + by
    known = {"variance": "largest variance", "f_test": "F-test", "chance": "chance (stratified)"}
    return known.get(name, name)


def reference_sentences(result: StudyResult) -> list[str]:
    """Return each reference's score and the method's difference to it, one sentence a reference.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    list of str
        Empty if the study has no references.
    """
    return [
        f"{_capital(reference_in_words(result, name))}: {mean_and_sd(found.mean, found.sd)} (SD); the method's "
        f"difference to it is {difference_in_words(found.paired)}."
        for name, found in result.references.items()
    ]


def verdict_sentences(result: StudyResult) -> list[str]:
    """Return where the method does not beat the F-test, all features or chance, by the corrected interval.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    list of str
        One sentence for each of these references that the method is not better than.
    """
    said = {
        "worse": "The method is worse than {}",
        "not distinguishable": "The method is not distinguishable from {}",
        "equal": "On every outer fold the method has the same score as {}",
    }
    return [
        f"{said[found.verdict].format(words)}: difference {difference_in_words(found.paired)}."
        for name, words in _RIVALS.items()
        if (found := result.references.get(name)) is not None and found.verdict != "better"
    ]


def missing_references_sentence(result: StudyResult) -> str:
    """Return which references have no score, and why.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    str
        Empty if none is missing, or ``evaluation.references`` is false.
    """
    if not any(refit.references for refit in result.outer):
        return ""
    native = result.config["evaluation"]["classifier"] == "native"
    expected = ["all features", *([] if native else ["variance", "f_test"]), "chance"]
    missing = [name for name in expected if name not in result.references]
    if not missing:
        return ""
    why = f"{result.metric} is undefined for them on an outer fold"
    if missing == ["variance"]:
        why = f"after the scaling {result.config['dataset'].get('scaling', 'unit')} all features have the same variance"
    return f"References without a score: {', '.join(reference_in_words(result, name) for name in missing)} ({why})."


def score_rows(result: StudyResult) -> list[ScoreRow]:
    """Return the method and its references as rows of a table.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    list of ScoreRow
        The method first.
    """
    n = _numbers(result)
    rows = [ScoreRow(result.config["solver"]["name"], n, mean_and_sd(result.test_mean, result.interval.sd), "")]
    for name, found in result.references.items():
        own = {"all features": str(len(result.feature_names)), "chance": ""}.get(name, n)
        shown = mean_and_sd(found.mean, found.sd)
        rows.append(ScoreRow(reference_in_words(result, name), own, shown, difference_in_words(found.paired)))
    return rows


def curve_rows(result: StudyResult) -> tuple[list[str], list[list[str]]]:
    """Return inner and test score and the references' means for each number of features as a table.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    header : list of str
        Names of the columns; the first is the number of features.
    rows : list of list of str
        Cells; empty for the classifier ``native``.
    """
    table = result.score_curves()
    names = list(result.references)
    rows = []
    for row in table.itertuples(index=False):
        n, inner, inner_sd, test, test_sd, *others = row
        rows.append([str(n), mean_and_sd(inner, inner_sd), mean_and_sd(test, test_sd), *(f"{v:.3f}" for v in others)])
    return ["features", "inner", "test", *(reference_in_words(result, name) for name in names)], rows


def optimism_rows(result: StudyResult) -> list[tuple[str, str, str]]:
    """Return resubstitution, best inner and honest score as rows of a table.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    list of (name, score, what it is)
        From the most to the least optimistic kind of score.
    """
    told = {
        "training": ("training", "resubstitution: on the samples of the fit itself"),
        "inner": ("best inner", "validation score by which the winner was chosen"),
        "test": ("test", "on outer samples that neither fit nor choice has seen"),
    }
    return [(told[key][0], f"{value:.3f}", told[key][1]) for key, value in result.optimism.items()]


def optimism_sentence(result: StudyResult) -> str:
    """Return resubstitution, best inner and honest score as one sentence.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    str
        E.g. ``"Optimism: training 1.000, best inner 0.972, test 0.968 (means over 3 outer folds)."``.
    """
    parts = ", ".join(f"{name} {value}" for name, value, _ in optimism_rows(result))
    return f"Optimism: {parts} (mean {result.metric} over {len(result.outer)} outer folds)."


def interval_footnote(result: StudyResult) -> str:
    """Return what the corrected interval means, as one footnote.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    str
        Empty if there is no interval.
    """
    found = result.interval
    if found.lower is None:
        return ""
    return (
        "Corrected 95 % interval (Nadeau & Bengio 2003): mean ± t SD sqrt(1/J + n_test/n_train) over J = "
        f"{len(result.outer)} outer folds, n_test/n_train = {found.ratio:.3g}, because their training sets overlap; "
        "approximate, for the method trained on that many samples, and not limited to the metric's range."
    )


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


def difference_in_words(paired: PairedComparison) -> str:
    """Return a mean difference with its corrected 95 % interval as text, or why there is no interval.

    Parameters
    ----------
    paired : PairedComparison
        Differences of the method to a reference.

    Returns
    -------
    str
        E.g. ``"-0.019 (corrected 95 % interval -0.034 to -0.004)"``.
    """
    test = paired.corrected
    if test is None:
        return f"{paired.mean:+.3f} (no interval: {paired.reason})"
    return f"{paired.mean:+.3f} (corrected 95 % interval {test.lower:+.3f} to {test.upper:+.3f})"


def _numbers(result: StudyResult) -> str:
    """Number of features of the score, short: ``16``, ``8-16``, ``mean`` or empty for the classifier native."""
    if result.config["evaluation"]["classifier"] == "native":
        return ""
    if result.stored.study.choose_n == "mean":
        return "mean"
    found = [n for refit in result.outer if (n := refit.n_features) is not None]
    return str(found[0]) if min(found) == max(found) else f"{min(found)}-{max(found)}"


def _listed(numbers: Sequence[int]) -> str:
    """Numbers as text: all of a few, the first and the last of many."""
    if len(numbers) > _MOST_LISTED:
        return f"{len(numbers)} numbers from {numbers[0]} to {numbers[-1]}"
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
