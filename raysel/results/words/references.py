"""Sentences on a study's references: their scores, and where the method does not beat them."""

from __future__ import annotations

from typing import NamedTuple

from raysel.results.numbers import StudyNumbers
from raysel.results.scores import Reference
from raysel.results.words.answer import (
    bracketed_difference,
    classifier_in_words,
    difference_in_words,
    mean_and_sd,
    number_range,
)

#: References that a method has to beat, with their names within a sentence.
_RIVALS = {"f_test": "the F-test", "variance": "the largest variance", "all features": "all features"}


def reference_in_words(result: StudyNumbers, name: str) -> str:
    """Return the name of a reference, with the classifier where it is not that of the method."""
    if name == "all features":
        evaluation = result.config["evaluation"]
        by = f" ({classifier_in_words(evaluation)})" if evaluation["classifier"] == "native" else ""
        return (
            f"all {len(result.feature_names)} features" if not result.task_scores else "all of a task's features"
        ) + by
    if name == "chance":
        guess = result.references[name].recorded if name in result.references else ""
        return f"chance ({'stratified guess' if guess == 'chance' else guess})" if guess else "chance"
    return {"variance": "largest variance", "f_test": "F-test"}.get(name, name)


def short_reference(result: StudyNumbers, name: str) -> str:
    """Return the name of a reference for the head of a narrow column."""
    return {"all features": f"all {len(result.feature_names)}", "f_test": "F-test"}.get(name, name)


def reference_sentences(result: StudyNumbers) -> list[str]:
    """Return each reference's score and the method's difference to it, one sentence a reference."""
    return [
        f"{_capital(reference_in_words(result, name))}: {mean_and_sd(found.mean, found.sd)} (SD); the method's "
        f"difference to it is {difference_in_words(found)}."
        for name, found in result.references.items()
    ]


def references_line(result: StudyNumbers) -> str:
    """Return the mean scores of the references as one short line."""
    shown = ", ".join(
        f"{reference_in_words(result, name)} {found.mean:.3f}" for name, found in result.references.items()
    )
    return f"for comparison: {shown}" if shown else ""


def verdict_sentences(result: StudyNumbers) -> list[str]:
    """Return which references score higher than the method, and which of the others it does not beat by the
    interval.
    """
    found = [result.references[name] for name in (*_RIVALS, "chance") if name in result.references]
    found.sort(key=lambda reference: -max(reference.mean, result.test_mean))
    return [_verdict_sentence(result, reference) for reference in found if reference.verdict != "better"]


def verdict_in_short(result: StudyNumbers) -> str:
    """Return how the method compares with the best reference, and with chance if it does not beat it."""
    said, references = verdict_sentences(result), result.references
    if not references:
        return ""
    if not said:
        best = max(references.values(), key=lambda reference: reference.mean)
        named = f"{reference_in_words(result, best.name)}, {best.mean:.3f}"
        return (
            f"The method is better than every reference; the best is {named}: difference {difference_in_words(best)}."
        )
    chance = references.get("chance")
    return " ".join(
        dict.fromkeys([said[0], *([said[-1]] if chance is not None and chance.verdict != "better" else [])])
    )


def _verdict_sentence(result: StudyNumbers, reference: Reference) -> str:
    name, difference = reference.name, difference_in_words(reference)
    words = _RIVALS.get(name) or reference_in_words(result, name)
    if reference.verdict == "worse" or round(reference.paired.mean, 3) < 0:  # as it is shown
        method = result.config["solver"]["name"]
        so = {"worse": f"{method} is worse"}.get(reference.verdict, "the two are not distinguishable")
        verb = "score" if name == "all features" else "scores"
        return (
            f"{_capital(words)} {verb} higher than {method}, {reference.mean:.3f} against {result.test_mean:.3f}: "
            f"difference {difference}; {so}."
        )
    said = {
        "not distinguishable": "The method is not distinguishable from {}",
        "equal": "On every outer fold the method has the same score as {}",
    }
    return f"{said[reference.verdict].format(words)}: difference {difference}."


def missing_references_sentence(result: StudyNumbers) -> str:
    """Return which references have no score, and why."""
    if not any(refit.references for refit in result.outer):
        return ""
    native = result.config["evaluation"]["classifier"] == "native"
    expected = ["all features", *([] if native else ["variance", "f_test"]), "chance"]
    missing = [name for name in expected if name not in result.references]
    if not missing:
        return ""
    why = f"{result.metric.replace('_', ' ')} is undefined for them on an outer fold"
    if missing == ["variance"]:
        why = f"after the scaling {result.config['dataset'].get('scaling', 'unit')} all features have the same variance"
    return f"References without a score: {', '.join(reference_in_words(result, name) for name in missing)} ({why})."


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


class ScoreRow(NamedTuple):
    """Row of the table of a method and its references."""

    name: str
    n_features: str
    score: str
    difference: str


def score_rows(result: StudyNumbers) -> list[ScoreRow]:
    """Return the method and its references as rows of a table."""
    score = mean_and_sd(result.test_mean, result.interval.sd)
    rows = [ScoreRow(result.config["solver"]["name"], _numbers(result), score, "")]
    for name, found in result.references.items():
        numbers = result.reference_n_features(name)
        own = number_range(numbers) if numbers else _numbers(result)
        own = {"all features": "all" if result.task_scores else str(len(result.feature_names)), "chance": ""}.get(
            name, own
        )
        shown = mean_and_sd(found.mean, found.sd)
        rows.append(ScoreRow(reference_in_words(result, name), own, shown, bracketed_difference(found)))
    return rows


def curve_rows(result: StudyNumbers) -> tuple[list[str], list[list[str]]]:
    """Return inner and test score and the references' means for each number of features as a table."""
    table = result.score_curves()
    names = list(result.references)
    rows = []
    for row in table.itertuples(index=False):
        n, inner, inner_sd, test, test_sd, *others = row
        rows.append([str(n), mean_and_sd(inner, inner_sd), mean_and_sd(test, test_sd), *(f"{v:.3f}" for v in others)])
    return ["features", "inner", "test", *(reference_in_words(result, name) for name in names)], rows


def optimism_rows(result: StudyNumbers) -> list[tuple[str, str, str]]:
    """Return resubstitution, best inner and honest score as rows of a table."""
    told = {
        "training": ("training", "resubstitution: on the samples of the fit itself"),
        "inner": ("best inner", "validation score by which the winner was chosen"),
        "test": ("test", "on outer samples that neither fit nor choice has seen"),
    }
    return [(told[key][0], f"{value:.3f}", told[key][1]) for key, value in result.optimism.items()]


def optimism_sentence(result: StudyNumbers) -> str:
    """Return resubstitution, best inner and honest score as one sentence."""
    parts = ", ".join(f"{name} {value}" for name, value, _ in optimism_rows(result))
    return f"Optimism: {parts} (mean {result.metric.replace('_', ' ')} over {len(result.outer)} outer folds)."


def _numbers(result: StudyNumbers) -> str:
    """Number of features of the score, short: ``16``, ``8-16``, ``mean`` or empty for the classifier native."""
    if result.config["evaluation"]["classifier"] == "native":
        return ""
    if result.stored.study.choose_n == "mean" and len(result.config["evaluation"]["n_features"]) > 1:
        return "mean"
    return number_range([n for refit in result.outer if (n := refit.n_features) is not None])
