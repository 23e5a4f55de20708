"""Rows of text for the tables of a study's answer."""

from __future__ import annotations

from typing import NamedTuple

from raysel.results.numbers import StudyNumbers
from raysel.results.words.figures import bracketed_difference, mean_and_sd, number_range
from raysel.results.words.references import reference_in_words


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
