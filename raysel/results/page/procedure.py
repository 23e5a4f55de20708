"""Sections of a report on what was asked and what was tried: data, method, search and
convergence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from raysel.config.searches import PATH
from raysel.core.errors import headline
from raysel.core.printing import short
from raysel.results import description, texts
from raysel.results.description import Preview
from raysel.results.page.contents import (
    Block,
    Facts,
    Folded,
    Pictures,
    Remarks,
    Section,
    Table,
    Text,
    csv_download,
)
from raysel.results.page.pictures import pictures
from raysel.results.progress import counted, duration
from raysel.results.result import StudyResult

_MOST_ROWS, _MOST_FAILURES = 10, 5
_LONGEST = 48  # letters of a configuration


def asked(result: StudyResult, preview: Preview | None) -> Section:
    """Return the section on what was asked."""
    blocks: list[Block] = [Facts([*_data_facts(result, preview), *_study_facts(result)])]
    if drawn := pictures(result, "asked"):
        blocks.append(Pictures(drawn))
    if closer := pictures(result, "closer"):
        blocks.append(Folded("A closer look at the data, before scaling", closer))
    return Section("asked", "What was asked", blocks)


def _data_facts(result: StudyResult, preview: Preview | None) -> Iterator[tuple[str, str]]:
    study, dataset, names = result.stored.study, result.config["dataset"], result.feature_names
    name = short(study.data_name, 120)
    yield "Data", f"{name}: {study.n_samples} samples x {len(names)} features"
    groups = result.config["cv"].get("groups")
    for term, text in description.data_facts(preview, dataset, result.layout, names, groups):
        yield texts.capitalized(term), text


def _study_facts(result: StudyResult) -> Iterator[tuple[str, str]]:
    config = result.config
    search, cv = config["search"], config["cv"]
    yield "Method", config["solver"]["name"]
    for term, text in description.method_facts(config):
        yield texts.capitalized(term), text
    test = f"{len(result.outer)} outer folds"
    test += f" ({cv['repeats']} repeats)" if cv.get("repeats", 1) > 1 else ""
    if cv.get("train_per_class"):
        test = (
            f"{cv['train_per_class']} training samples of each class, drawn {len(result.outer)}"
            " times"
        )
    final = "; a final model is fitted on all samples" if result.has_final else ""
    nested = f"nested: {test} for the test scores, {cv['inner']} inner folds in each for the search"
    yield "Validation", f"{nested}{description.format_blocks(cv)}{final}"
    early = (
        f", early stopping by {search['early_stopping']}" if search.get("early_stopping") else ""
    )
    planned = result.stored.study.n_trials
    tried = f"one path on each of {counted(planned, 'inner training set')}"
    if search["method"] != PATH:
        tried = f"at most {counted(planned, 'trial')}"
    yield "Search", f"{search['method']}{early}, {tried}; seed {config['seed']}"


def tried(result: StudyResult) -> Section:
    """Return the section on the configurations that were tried and the budget."""
    blocks: list[Block] = [Text([" ".join(_budget(result))])]
    blocks += [*pictures(result, "tried"), _winners_table(result), _best_table(result)]
    if failures := _failures(result):
        blocks.append(
            Folded(f"Errors of the failed trials ({len(failures)} different)", [Remarks(failures)])
        )
    return Section("tried", "What was tried", blocks)


def _budget(result: StudyResult) -> Iterator[str]:
    """Sentences on the number of trials by status, the time they took and convergence."""
    counts, study, search = result.n_trials, result.stored.study, result.config["search"]
    total, paths = sum(counts.values()), result.stored.paths
    each = ", each on one outer fold" if any(record.fold for record in result.records) else ""
    if paths:
        sets = counted(result.stored.n_trials, "training set")
        yield (
            f"The search {search['method']} solved {counted(total, 'configuration')} along a path"
            f" on {sets}."
        )
    else:
        made, planned = counted(total, "trial"), study.n_trials
        yield f"The search {search['method']} made {made}{each}, of at most {planned} planned."
    ends = {
        "null": "gave the zero solution",
        "stopped": "stopped early, so that they cannot win",
        "failed": "failed",
    }
    yield from (f"{counts[status]} {what}." for status, what in ends.items() if counts[status])
    if result.cut:
        yield "The time budget search.time_budget ended the search before all were made."
    if (fits := result.facts.inner_fits).n_fits:
        which = "inner fits that were not stopped" if counts["stopped"] else "inner fits"
        yield f"{fits.n_converged} of {fits.n_fits} {which} reached the solver's tolerance."
    seconds = sum(max(record.ended - record.started, 0.0) for record in paths or result.records)
    if seconds > 0:
        yield f"The trials took {duration(seconds)} in sum."


def _winners_table(result: StudyResult) -> Table:
    metric, ranked, chooses = (
        texts.spaced(result.metric),
        result.ranks_features,
        result.facts.has_chosen_n,
    )
    rows = []
    for refit in result.refits:
        row = [
            refit.fold,
            short(refit.name, _LONGEST),
            *([str(refit.n_features)] if chooses else []),
        ]
        row += [str(result.n_scored[refit.fold])] if ranked else []
        row += [
            f"{refit.inner_score:.3f}",
            "" if refit.test_score is None else f"{refit.test_score:.3f}",
        ]
        reached = "local optimum" if refit.local_optimum else "yes"
        rows.append([*row, {True: reached, False: "no", None: "not recorded"}[refit.converged]])
    heads = [
        "fold",
        "winner",
        *(["N"] if chooses else []),
        *(["features with a score"] if ranked else []),
    ]
    heads += [f"inner {metric}", f"test {metric}", "converged"]
    caption = "The configuration that wins each outer fold"
    caption += ", and the final model." if result.has_final else "."
    if chooses:
        caption += " N: number of best features chosen by the inner scores."
    return Table(caption, heads, rows, (0, 1))


def _best_table(result: StudyResult) -> Table:
    table, score = result.trials(), f"val_{result.metric}"
    names = {record.id: record.name for record in result.records}
    adaptive = "outer_fold" in table
    rows = []
    for row in table.head(_MOST_ROWS).to_dict("records"):
        cells = [
            short(names[row["trial"]], _LONGEST),
            *([str(row["outer_fold"])] if adaptive else []),
            row["status"],
        ]
        cells += [_number(row.get(score), ".3f"), _number(row.get("objective"), ".4g")]
        cells.append(_number(row.get("converged"), ".0%"))
        rows.append(
            [*cells, *([] if result.stored.paths else [duration(max(row["seconds"], 0.0))])]
        )
    heads = ["configuration", *(["outer fold"] if adaptive else []), "status"]
    heads += [f"validation {texts.spaced(result.metric)}", "objective", "inner fits converged"]
    heads += (
        [] if result.stored.paths else ["time"]
    )  # configurations of a path have no time of their own
    columns = table.columns.drop(
        ["error", *(["seconds"] if result.stored.paths else [])], errors="ignore"
    ).tolist()
    data = csv_download(
        "trials.csv", columns, table[columns].itertuples(index=False), rest="journal.jsonl"
    )
    caption = f"The {len(rows)} best of {len(table)} trials by mean validation score."
    return Table(caption, heads, rows, tuple(range(3 if adaptive else 2)), download=data)


def _number(value: float | None, form: str) -> str:
    return "" if value is None or not np.isfinite(value) else format(value, form)


def _failures(result: StudyResult) -> list[str]:
    """The different errors of failed trials with their numbers, the most frequent first."""
    errors = Counter(headline(record.failure) for record in result.records if record.failure)
    told = [
        f"{counted(n, 'trial')}: {short(error, 300)}"
        for error, n in errors.most_common(_MOST_FAILURES)
    ]
    more = len(errors) - len(told)
    return [*told, *([f"{more} more in journal.jsonl"] if more > 0 else [])]


def convergence(result: StudyResult) -> Section:
    """Return the section on the objective of the configurations by iteration."""
    sentence, drawn = texts.convergence(result.facts), pictures(result, "convergence")
    sentences = [f"{sentence}."] if sentence else []
    if not drawn:
        sentences.append("The method records its objective at the end of a fit only, or has none.")
    return Section(
        "convergence", "Convergence", [*([Text(sentences)] if sentences else []), *drawn]
    )
