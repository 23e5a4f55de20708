"""Sections of a report on what was asked and tried: data, method, search and convergence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from raysel.config.searches import PATH
from raysel.core.errors import headline
from raysel.core.printing import short
from raysel.evaluation.records import RefitRecord
from raysel.results import description, texts
from raysel.results.description import Preview
from raysel.results.page.contents import (
    Block,
    Folded,
    Pictures,
    Remarks,
    Section,
    Table,
    TermList,
    Text,
    csv_download,
)
from raysel.results.page.pictures import pictures
from raysel.results.progress import counted, duration
from raysel.results.result import StudyResult

_MOST_ROWS, _MOST_FAILURES = 10, 5
_LONGEST = 48  # letters of a configuration
#: What trials did that did not finish, by their status.
_ENDS = {
    "null": "gave the zero solution",
    "stopped": "stopped early, so that they cannot win",
    "failed": "failed",
}


def asked(result: StudyResult, preview: Preview | None) -> Section:
    """Return the section on what was asked."""
    blocks: list[Block] = [TermList([*_data_facts(result, preview), *_study_facts(result)])]
    if drawn := pictures(result, "asked"):
        blocks.append(Pictures(drawn))
    if closer := pictures(result, "closer"):
        blocks.append(Folded("A closer look at the data, before scaling", closer))
    return Section("asked", "What was asked", blocks)


def _data_facts(result: StudyResult, preview: Preview | None) -> Iterator[tuple[str, str]]:
    study, dataset, names = result.stored.study, result.config["dataset"], result.feature_names
    name = short(study.data_name, 120)
    yield "Data", f"{name}: {study.n_samples} samples x {result.facts.n_features} features"
    groups = result.config["cv"].get("groups")
    for term, text in description.data_facts(preview, dataset, result.layout, names, groups):
        yield texts.capitalized(term), text
    if study.data_notes:
        yield "Checked", " ".join(study.data_notes)


def _study_facts(result: StudyResult) -> Iterator[tuple[str, str]]:
    config = result.config
    search, cv = config["search"], config["cv"]
    yield "Method", config["solver"]["name"]
    told = dict(description.method_facts(config))
    if missing := texts.missing_references_sentence(result.facts):
        told["references"] += f". {missing}"
    for term, text in told.items():
        yield texts.capitalized(term), text
    n_folds = len(result.outer)
    test = f"{n_folds} outer folds"
    if cv.get("repeats", 1) > 1:
        test += f" ({cv['repeats']} repeats)"
    if cv.get("train_per_class"):
        test = f"{cv['train_per_class']} training samples of each class, drawn {n_folds} times"
    nested = f"nested: {test} for the test scores, {cv['inner']} inner folds in each for the search"
    nested += description.format_blocks(cv)
    if result.recorded.has_final:
        nested += "; a final model is fitted on all samples"
    yield "Folds", nested
    course = [search["method"]]
    if search.get("early_stopping"):
        course.append(f"early stopping by {search['early_stopping']}")
    planned = result.stored.study.n_trials
    if search["method"] == PATH:
        course.append(f"one path on each of {counted(planned, 'inner training set')}")
    else:
        course.append(f"at most {counted(planned, 'trial')}")
    yield "Search", f"{', '.join(course)}; seed {config['seed']}"


def tried(result: StudyResult) -> Section:
    """Return the section on the configurations that were tried and the budget."""
    blocks: list[Block] = [Text([" ".join(_budget(result))])]
    blocks += [*pictures(result, "tried"), _winners_table(result), _best_table(result)]
    if failures := _failures(result):
        title = f"Errors of the failed trials ({len(failures)} different)"
        blocks.append(Folded(title, [Remarks(failures)]))
    return Section("tried", "What was tried", blocks)


def _budget(result: StudyResult) -> Iterator[str]:
    """Sentences on the number of trials by status, the time they took and convergence."""
    counts, paths = result.n_trials, result.stored.paths
    total, method = sum(counts.values()), result.config["search"]["method"]
    if paths:
        sets = counted(result.stored.n_trials, "training set")
        solved = counted(total, "configuration")
        yield f"The search {method} solved {solved} along a path on {sets}."
    else:
        made, planned = counted(total, "trial"), result.stored.study.n_trials
        if any(record.fold for record in result.records):
            made += ", each on one outer fold"
        yield f"The search {method} made {made}, of at most {planned} planned."
    for status, what in _ENDS.items():
        if counts[status]:
            yield f"{counts[status]} {what}."
    if result.recorded.cut:
        yield "The time budget search.time_budget ended the search before all were made."
    if (fits := result.facts.inner_fits).n_fits:
        which = "inner fits"
        if counts["stopped"]:
            which += " that were not stopped"
        yield f"{fits.n_converged} of {fits.n_fits} {which} reached the solver's tolerance."
    seconds = sum(max(record.ended - record.started, 0.0) for record in paths or result.records)
    if seconds > 0:
        yield f"The trials took {duration(seconds)} in sum."


def _winners_table(result: StudyResult) -> Table:
    """Return the winners of the outer folds and the final one, a row each."""
    facts, metric = result.facts, texts.spaced(result.metric)
    caption = "The configuration that wins each outer fold."
    if result.recorded.has_final:
        caption = "The configuration that wins each outer fold, and the final model."
    if facts.has_chosen_n:
        caption += " N: number of best features chosen by the inner scores."
    numbers = texts.winner_heads(facts, "N")
    heads = ["fold", "winner", *numbers, f"inner {metric}", f"test {metric}", "converged"]
    rows = []
    for refit in facts.winners:
        name, cells = short(refit.name, _LONGEST), texts.winner_cells(facts, refit)
        rows.append([refit.fold, name, *cells, _describe_end(refit)])
    return Table(caption, heads, rows, (0, 1))


def _describe_end(refit: RefitRecord) -> str:
    """Describe how the fit of a winner ended."""
    if refit.converged is None:
        return "not recorded"
    if not refit.converged:
        return "no"
    return "local optimum" if refit.local_optimum else "yes"


def _best_table(result: StudyResult) -> Table:
    """Return the configurations with the best inner scores, and all to download."""
    table, names = result.trials(), {record.id: record.name for record in result.records}
    # Configurations of a path have no time of their own.
    unshown = {"error", "seconds"} if result.stored.paths else {"error"}
    kept = [column for column in table.columns if column not in unshown]
    rows = table[kept].itertuples(index=False)
    data = csv_download("trials.csv", kept, rows, rest="journal.jsonl")
    best = table.head(_MOST_ROWS)
    columns = {"configuration": [short(names[trial], _LONGEST) for trial in best["trial"]]}
    if adaptive := "outer_fold" in table:
        columns["outer fold"] = [str(fold) for fold in best["outer_fold"]]
    columns["status"] = list(best["status"])
    for head, column, form in (
        (f"inner {texts.spaced(result.metric)}", f"val_{result.metric}", ".3f"),
        ("objective", "objective", ".4g"),
        ("inner fits converged", "converged", ".0%"),
    ):
        values = best.get(column, [None] * len(best))
        columns[head] = [_number(value, form) for value in values]
    if not result.stored.paths:
        columns["time"] = [duration(max(seconds, 0.0)) for seconds in best["seconds"]]
    return Table(
        caption=f"The {len(best)} best of {len(table)} trials by inner score.",
        columns=list(columns),
        rows=list(zip(*columns.values(), strict=True)),
        text_columns=range(3 if adaptive else 2),
        download=data,
    )


def _number(value: float | None, form: str) -> str:
    return "" if value is None or not np.isfinite(value) else format(value, form)


def _failures(result: StudyResult) -> list[str]:
    """The different errors of failed trials with their numbers, the most frequent first."""
    errors = Counter(headline(record.failure) for record in result.records if record.failure)
    most = errors.most_common(_MOST_FAILURES)
    told = [f"{counted(n, 'trial')}: {short(error, 300)}" for error, n in most]
    if len(errors) > len(told):
        told.append(f"{len(errors) - len(told)} more in journal.jsonl")
    return told


def convergence(result: StudyResult) -> Section:
    """Return the section on the objective of the configurations by iteration."""
    sentence, drawn = texts.convergence(result.facts), pictures(result, "convergence")
    sentences = []
    if sentence:
        sentences.append(f"{sentence}.")
    if not drawn:
        sentences.append("The method records its objective at the end of a fit only, or has none.")
    blocks: list[Block] = [*drawn]
    if sentences:
        blocks.insert(0, Text(sentences))
    return Section("convergence", "Convergence", blocks)
