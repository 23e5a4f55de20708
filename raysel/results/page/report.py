"""Report of a finished study as one HTML file."""

from __future__ import annotations

import time
from pathlib import Path

from raysel.base.registry import OWN, papers, solver_class
from raysel.config.plain_data import dump_yaml
from raysel.core import __version__
from raysel.core.errors import StudyError
from raysel.core.files import write_result
from raysel.core.printing import mean_and_sd, short
from raysel.results import texts
from raysel.results.description import Preview
from raysel.results.export import command_again
from raysel.results.page import contents, findings, procedure
from raysel.results.page.contents import Block, CodeBlock, Page, Section, Text
from raysel.results.result import StudyResult

_LONGEST_REMARK = 600
#: What stands for keys of the versions that are no names of libraries.
_NAMED = {
    "blas": "BLAS, the library of linear algebra",
    "libc": "C library",
    "numbers": "hash of the source code that computes the numbers",
    "simd": "processor, with its instructions that NumPy uses",
}
_NO_REMARK = (
    "Nothing failed, all fits of winners met their tolerance, and every fold selects features."
)


def write_report(result: StudyResult, path: str | Path | None = None) -> Path:
    """Write the report of a finished study as one HTML file that needs no network."""
    target = result.directory.report if path is None else Path(path)
    folder = target.absolute().parent
    if not folder.is_dir():  # before the figures are drawn
        raise StudyError(f"{path} cannot be written: there is no folder {folder}; create it first.")
    html = contents.render_page(make_page(result))
    return write_result(target, html.encode("utf-8", "replace"))


def write_final_report(result: StudyResult) -> None:
    """Write the report at the end of a study, or of later work on it, if it asks for pictures.

    A report that is there already is always written again.
    """
    if result.config.get("pictures", True) or result.directory.report.exists():
        write_report(result)


def make_page(result: StudyResult) -> Page:
    """Return the contents of a study's report."""
    _ = result.refits  # raises if the study has not finished
    sections = [
        findings.answer(result),
        findings.scores(result),
        findings.features(result),
        findings.stability(result),
        findings.disagreement(result),
        findings.claims(result),
        remarks(result),
        procedure.asked(result, Preview.read(result.directory.preview)),
        procedure.tried(result),
        procedure.convergence(result),
        findings.optimism(result),
        findings.confusion(result),
        cite(result),
        contents.glossary(),
    ]
    study, config = result.stored.study, result.config
    name = short(study.data_name, 80)
    size = f"{study.n_samples} samples, {result.facts.n_features} features"
    started = time.strftime("%Y-%m-%d", time.gmtime(study.started))
    made = f"a study of {started} made by raysel {study.versions.get('raysel', '')}"
    return Page(
        title=short(result.name, 120),
        subtitle=f"{name}: {size}; method {config['solver']['name']}",
        sections=list(filter(None, sections)),
        footer=f"Written by raysel {__version__} from {made}.",
        tiles=tiles(result),
    )


def tiles(result: StudyResult) -> list[tuple[str, str, str]]:
    """Return the figures at the top of the report: value, what it is, and a line below."""
    mean, spread = texts.score_tile(result.facts)
    figures = [(mean, f"test {texts.spaced(result.metric)}", spread)]
    if (chance := result.references.get("chance")) is not None:
        guess = texts.reference_name(result.facts, "chance").removeprefix("chance").strip(" ()")
        figures.append((mean_and_sd(chance.mean), "chance", guess))
    if result.recorded.n_features and result.facts.has_chosen_n:
        outer = [refit.n_features for refit in result.outer if refit.n_features is not None]
        whose = "chosen on the outer folds by inner scores"
        if result.recorded.has_final:
            whose += f"; final model: {result.recorded.n_features[result.final.fold]}"
        best = f"best of {result.facts.n_features} features"
        figures.append((texts.number_range(outer, " to "), best, whose))
    if (agreement := result.facts.agreement) is not None:
        value, of = texts.stability_figure(agreement)
        figures.append((value.partition(" (")[0], "stability", of))
    return figures


def remarks(result: StudyResult) -> Section:
    """Return the section on the limitations of the result."""
    sentences = [short(remark, _LONGEST_REMARK) for remark in result.remarks()]
    found: Block = contents.Remarks(sentences) if sentences else Text([_NO_REMARK])
    return Section("remarks", "Remarks", [found])


def cite(result: StudyResult) -> Section:
    """Return the section on how to cite the result and how to run the study again."""
    study, command = result.stored.study, command_again(result, contents.named)
    name, version = result.config["solver"]["name"], study.versions.get("raysel", __version__)
    facts = result.facts
    sentences = [f"{texts.capitalized(texts.headline(facts))}.", *texts.headline_notes(facts)]
    text = (
        f"Features were ranked by the method {name} as implemented in raysel {version}, with its"
        f" hyperparameters chosen by nested cross-validation (seed {study.config['seed']})."
        f" {' '.join(sentences)} {texts.short_verdict(facts)}"
    )
    paragraphs = [text]
    if name in OWN and (cited := papers(solver_class(name))):
        paragraphs.append(f"Method: {cited}")
    again: Block = Text(["A search that its time budget ended cannot be repeated exactly."], "note")
    if command:
        how = "To run the study again, with the configuration and the folds of its directory,"
        again = CodeBlock(command, f"{how} {contents.where_to_run(command)}:")
    ran_with = sorted((_NAMED.get(key, key), value) for key, value in study.versions.items())
    heads = ["software or machine", "version"]
    versions = contents.Table("What the study ran with.", heads, ran_with, (0, 1))
    config = CodeBlock(dump_yaml(contents.without_folders(study.config)))
    hashes = f"Hash of the configuration {study.config_hash}, of the data {study.data_hash}."
    blocks = [
        Text(paragraphs),
        Text([hashes], "note"),
        again,
        contents.Folded("Versions", [versions]),
        contents.Folded("Configuration (config.yaml)", [config]),
    ]
    return Section("again", "How to cite and run it again", blocks)
