"""Section of a report on what was asked: the data as understood, the method, the folds and the search."""

from __future__ import annotations

from collections.abc import Iterator

from raysel.core.printing import short
from raysel.results import description
from raysel.results.page.contents import Block, Facts, Folded, Pictures, Section
from raysel.results.page.pictures import pictures
from raysel.results.preview import Preview
from raysel.results.progress import counted
from raysel.results.result import StudyResult


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
    name = short(description.data_name(dataset, result.name), 120)
    yield "Data", f"{name}: {study.n_samples} samples x {len(names)} features"
    groups = result.config["cv"].get("groups")
    for term, text in description.data_facts(preview, dataset, result.layout, names, groups):
        yield f"{term[0].upper()}{term[1:]}", text


def _study_facts(result: StudyResult) -> Iterator[tuple[str, str]]:
    config = result.config
    search, cv = config["search"], config["cv"]
    yield "Method", config["solver"]["name"]
    for term, text in description.method_facts(config):
        yield f"{term[0].upper()}{term[1:]}", text
    test = (
        f"{cv['train_per_class']} training samples of each class, drawn {len(result.outer)} times"
        if cv.get("train_per_class")
        else f"{len(result.outer)} outer folds"
    )
    repeats = f" ({cv['repeats']} repeats)" if cv.get("repeats", 1) > 1 and not cv.get("train_per_class") else ""
    final = "; a final model is fitted on all samples" if result.has_final else ""
    yield (
        "Validation",
        (
            f"nested: {test}{repeats} for the test scores, {cv['inner']} inner folds in each for the search"
            f"{description.format_blocks(cv)}{final}"
        ),
    )
    early = f", early stopping by {search['early_stopping']}" if search.get("early_stopping") else ""
    planned = result.stored.study.n_trials
    tried = f"one path on each of {counted(planned, 'inner training set')}"
    if search["method"] != "path":
        tried = f"at most {counted(planned, 'trial')}"
    yield "Search", f"{search['method']}{early}, {tried}; seed {config['seed']}"
