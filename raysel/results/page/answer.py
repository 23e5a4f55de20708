"""Sections of a report on the scores: the answer, the curve over N, optimism, confusion and error control."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import numpy as np

from raysel.results import texts
from raysel.results.displays import data as picture_data
from raysel.results.page.contents import Block, Command, Folded, Picture, Section, Table, Text, csv_download
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
    from raysel.results.displays.score_curve import plot_score_curve, plot_score_rows  # noqa: PLC0415 - matplotlib
    from raysel.results.page.figures import framed  # noqa: PLC0415
    from raysel.results.page.svg import inline_svg  # noqa: PLC0415

    metric, outer = result.metric, result.outer
    what = metric.replace("_", " ")
    table = result.score_curves()
    sizes = [int(n) for n in table["n_features"]]
    names = [refit.fold for refit in outer]
    if len(sizes) < 2:
        rows: dict[str, Any] = {"test (unseen samples)": result.test_scores, "inner validation": result.inner_scores}
        rows |= {f"test, {name}": own for name, own in result.task_scores.items()}
        rows |= {texts.reference_name(result.facts, name): own.scores for name, own in result.references.items()}
        figure = framed(plot_score_rows, 0.3 * len(rows) + 0.75, rows, metric=metric, width=5.4, xlabel=what)
        of = "; test is the mean of the tasks" if result.task_scores else ""
        caption = (
            f"{what.capitalize()} of the outer folds' winners{of}: mean (bar), SD (line) and each outer fold (circle)."
        )
        data = csv_download("scores.csv", ["name", *names], ([name, *own] for name, own in rows.items()))
        picture = Picture(inline_svg(figure, "scores", caption), caption, data)
        return Section("scores", f"{what.capitalize()}", [picture])
    found = picture_data.score_curves(result)
    if result.stored.study.choose_n == "mean":
        found["chosen"] = []
    figure = framed(plot_score_curve, 3.8, width=5.8, **found)
    caption = (
        f"{what.capitalize()} of the outer folds' winners with their N best features: on the test samples (unseen by "
        f"fit and choice) and on the inner validation samples, mean and SD over {len(outer)} outer folds."
    )
    if found["chosen"]:
        caption += " Circled: each outer fold at the N that its inner scores choose; their mean is the test score."
    data = csv_download("scores.csv", list(table.columns), table.itertuples(index=False))
    heads, cells = texts.curve_rows(result.facts)
    listed = Table(f"Mean {what} ± SD over the outer folds; of references the mean.", heads, cells, ())
    picture = Picture(inline_svg(figure, "scores", caption), caption, data)
    title = f"{what.capitalize()} over the number of features"
    return Section("scores", title, [picture, Folded("The figures as a table", [listed])])


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
    from raysel.results.displays.confusion import plot_confusion, plot_label_errors  # noqa: PLC0415 - matplotlib
    from raysel.results.page.figures import framed  # noqa: PLC0415
    from raysel.results.page.svg import inline_svg  # noqa: PLC0415

    found = picture_data.confusion(result)
    if found is None:
        return None
    numbers, classes = np.asarray(found["counts"]), [str(name) for name in found["classes"]]
    n, folds = len(classes), f"summed over the {len(result.outer)} outer folds"
    if found["multilabel"]:
        figure = framed(plot_label_errors, 0.22 * n + 0.9, numbers, classes, width=5.4)
        caption = f"Test samples with each label that are found or missed, and false alarms, {folds}."
        heads = ["label", "true_negatives", "false_positives", "false_negatives", "true_positives"]
    else:
        side = float(np.clip(0.34 * n, 1.8, 4.7))
        figure = framed(plot_confusion, side + 0.75, numbers, classes, width=side + 1.6, side=side)
        caption = (
            f"Number of test samples by true and predicted class, {folds}: {int(np.trace(numbers))} of "
            f"{int(numbers.sum())} are right. The colour is the share of a true class."
        )
        if result.n_features and not result.facts.has_chosen_n:
            caption += " The models are those of each fold's chosen N; the study's score is a mean over several N."
        heads = ["true", *classes]
    data = csv_download("confusion.csv", heads, ([a, *row] for a, row in zip(classes, numbers.tolist(), strict=True)))
    picture = Picture(inline_svg(figure, "confusion", caption), caption, data, on_white=not found["multilabel"])
    title = "Which labels are found and missed" if found["multilabel"] else "Which classes are confused"
    return Section("confusion", title, [picture])


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
