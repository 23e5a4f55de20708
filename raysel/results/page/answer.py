"""Sections of a report on the scores: the answer, the curve over N, optimism, confusion and error control."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from raysel.results import texts
from raysel.results.page.contents import Block, Command, Folded, Section, Table, Text, csv_download
from raysel.results.page.pictures import pictures
from raysel.results.page.places import named, told
from raysel.results.result import StudyResult


def answer(result: StudyResult) -> Section:
    """Return the section with the answer: score, references and trust."""
    blocks: list[Block] = [Text(answer_sentences(result), "answer")]
    if result.references:
        rows = [[row.name, row.n_features, row.score, row.difference] for row in texts.score_rows(result.facts)]
        caption = (
            f"{result.metric.replace('_', ' ').capitalize()} on the test samples of the outer folds (mean ± SD over "
            f"{len(result.outer)} folds) beside the references on the same folds."
        )
        heads = ["", "features", "test score", "method minus reference"]
        outer = [refit.fold for refit in result.outer]
        scores = [["method", *result.test_scores], *([name, *r.scores] for name, r in result.references.items())]
        data = csv_download("references.csv", ["name", *outer], scores)
        blocks.append(Table(caption, heads, rows, (0,), (0,), data))
    else:
        blocks.append(Text(["The study has no references to compare with: evaluation.references is off."], "note"))
    notes = [texts.missing_references_sentence(result.facts), texts.interval_footnote(result.facts)]
    blocks.append(Text([note for note in notes if note], "note"))
    return Section("answer", "The answer", blocks)


def answer_sentences(result: StudyResult) -> list[str]:
    """Return the answer in three sentences: the score, how it compares, and how far to trust the selection."""
    first = texts.headline(result.facts)
    said = [f"{first[0].upper()}{first[1:]}."]
    if result.references:
        said.append(" ".join(texts.verdict_sentences(result.facts)) or texts.short_verdict(result.facts))
    if result.ranks_features:
        said.append(f"The stability {texts.short_stability(result.facts)}.")
    else:
        said.append("The method gives no scores of the features, and so no ranking.")
    return said


def scores(result: StudyResult) -> Section:
    """Return the section on the score over the number of features, or its rows where there is no such choice."""
    what = result.metric.replace("_", " ").capitalize()
    blocks: list[Block] = [*pictures(result, "scores")]
    heads, cells = texts.curve_rows(result.facts)
    if len(cells) < 2:
        return Section("scores", what, blocks)
    caption = f"Mean {what.lower()} ± SD over the outer folds; of references the mean."
    blocks.append(Folded("The figures as a table", [Table(caption, heads, cells, ())]))
    return Section("scores", f"{what} over the number of features", blocks)


def optimism(result: StudyResult) -> Section:
    """Return the section on resubstitution, best inner and honest score."""
    rows = texts.optimism_rows(result.facts)
    caption = (
        f"Mean {result.metric.replace('_', ' ')} of the winners of {len(result.outer)} outer folds. Only the test "
        "score tells what to expect for new samples; training and validation scores are usually too high."
    )
    blocks: list[Block] = [Table(caption, ["score", "mean", "measured"], rows, (0, 2), (len(rows) - 1,))]
    return Section("optimism", "Training, validation and test score", blocks)


def confusion(result: StudyResult) -> Section | None:
    """Return the section on the errors by class or label; None if the study did not record them."""
    title = "Which labels are found and missed" if result.has_labels else "Which classes are confused"
    drawn = pictures(result, "confusion")
    return Section("confusion", title, drawn) if drawn else None


def error_control(result: StudyResult) -> Section | None:
    """Return the section on false selections and chance: what was run, or the commands that run it."""
    return Section("errors", "Could it be chance?", list(_error_blocks(result)))


def _error_blocks(result: StudyResult) -> Iterator[Block]:
    if (halves := result.stability_selection) is not None:
        yield Text([halves.sentence(), *halves.remarks()])
    if (permuted := result.permutation_test) is not None:
        yield Text(permuted.sentences())
    for what, command in texts.open_checks(result.facts, shlex.quote(named(result.path))):
        yield Command(command, f"{what} has not been run for this study. To run it, {told(command)}:")
