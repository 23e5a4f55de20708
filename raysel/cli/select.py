"""Command ``select``: the ranking of a finished study and the features that it selects."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from raysel.cli.summary import print_features, print_table, write_for_programs
from raysel.core.errors import ConfigError, StudyError
from raysel.core.files import write_result
from raysel.core.printing import Terminal, encodable, escaped
from raysel.core.storage.working_copy import opened_at, shown_place
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.ranking_files import NIFTI, check_formats, mask_content, selection_mask
from raysel.evaluation.records import FINAL
from raysel.results import texts
from raysel.results.agreement import CONSENSUS, choose_top
from raysel.results.export import export_result
from raysel.results.facts import Facts
from raysel.results.remarks import short_remarks
from raysel.results.result import StudyResult
from raysel.run.api import open_study
from raysel.tracking.directory import newest_study


def run(arguments: Namespace) -> int:
    """Write and print the ranking of a finished study, and return the exit status."""
    _check_combination(arguments)
    arguments.study = arguments.study or newest_study(Path())
    with opened_at(arguments.study, write=not (arguments.names or arguments.output)) as path:
        return _select(arguments, path)


def _select(arguments: Namespace, path: Path) -> int:
    """Write and print the ranking of the study in a folder, and return the exit status."""
    result = open_study(path)
    by = _source(arguments, result)
    ranking = _ranking(arguments, result, by)
    mask = _mask_content(arguments.mask, result, ranking)
    names, written = [], []
    if arguments.names:
        names = _names(ranking)
    else:
        written = _export(arguments, result, by)
    if mask is not None:
        written.append(write_result(arguments.mask, mask))
    remarks = short_remarks(Facts(result.recorded, arguments.top, by).remarks)
    if arguments.names:
        for remark in remarks:
            Terminal(stderr=True).print(remark, style="yellow")
        write_for_programs("".join(f"{name}\n" for name in names))
        return 0
    _print_result(arguments, result, by, ranking, remarks)
    out = Terminal()
    affine = "of the data's mask"
    if result.layout.affine is None:
        affine = "identity; the study knows no position in space"
    for file in written:
        if file.name.endswith(NIFTI):
            out.print(f"{file} (affine: {affine})")
        else:
            out.print(shown_place(file))
    return 0


def _check_combination(arguments: Namespace) -> None:
    """Refuse options that contradict each other, before the study is read."""
    if arguments.consensus and arguments.fold is not None:
        raise ConfigError(
            "--consensus and --fold name two different rankings; leave one of them out."
        )
    if arguments.names and (arguments.output or arguments.format):
        other = "--output" if arguments.output else "--format"
        raise ConfigError(
            f"--names writes no table, so {other} has no effect; leave one of them out."
        )
    if arguments.format is not None:
        arguments.format = tuple(dict.fromkeys(",".join(arguments.format).split(",")))
        check_formats(arguments.format)


def _source(arguments: Namespace, result: StudyResult) -> str:
    """Name of the source of the ranking, for `StudyResult.ranking`."""
    outer = [refit.fold for refit in result.outer]
    if arguments.fold is not None and arguments.fold not in (*outer, FINAL):
        raise ConfigError(
            f"--fold {arguments.fold} is not a fold of the study; it has {', '.join(outer)}."
        )
    return CONSENSUS if arguments.consensus else arguments.fold or FINAL


def _ranking(arguments: Namespace, result: StudyResult, by: str) -> FeatureRanking | None:
    """Ranking of the source; None if there is none by the final model and no option needs it."""
    if result.recorded.is_ranked or (by != FINAL and result.recorded.ranks_features):
        return result.ranking(arguments.top, by)
    needs = arguments.names or arguments.mask or arguments.format or by != FINAL or arguments.fold
    if needs and result.recorded.ranks_features:
        raise StudyError(
            f"the study {result.name} has no final model, because cv.final is false; add"
            f" --consensus, or --fold {result.outer[0].fold}, to choose another ranking."
        )
    if needs or (arguments.top is not None and result.recorded.ranks_features):
        result.stability(
            arguments.top
        )  # an error where there is no ranking, or no such number of features
    return None


def _mask_content(
    path: str | None, result: StudyResult, ranking: FeatureRanking | None
) -> bytes | None:
    if path is None or ranking is None:
        return None
    content = mask_content(path, selection_mask(ranking, result.layout), result.layout)
    target = Path(path)
    if target.exists() and (not target.is_file() or target.read_bytes() != content):
        raise StudyError(
            f"{path} exists with other content; remove it or give --mask another name."
        )
    if not target.parent.is_dir():
        raise StudyError(
            f"{path} cannot be written: there is no folder {target.parent}; create it first."
        )
    return content


def _names(ranking: FeatureRanking | None) -> list[str]:
    if ranking is None:
        return []
    names = [ranking.feature_names[i] for i in ranking.recommended_top(ranking.n_selected)]
    broken = [name for name in names if name.splitlines() != [name] or escaped(name) != name]
    if broken:
        raise ConfigError(
            f"the name {broken[0]!r} does not fit on one line, or holds characters that a "
            "terminal obeys; use --format json instead of --names."
        )
    encoding = getattr(sys.stdout, "encoding", None)
    if lacking := [name for name in names if encodable(name, encoding) != name]:
        raise ConfigError(
            f"the name {lacking[0]} cannot be written in {encoding}, the encoding of the output;"
            " set PYTHONIOENCODING=utf-8, or use --format json instead of --names."
        )
    return names


def _export(arguments: Namespace, result: StudyResult, by: str) -> list[Path]:
    formats = arguments.format or ("csv", "parquet")
    export = partial(
        export_result, result, top=arguments.top, by=by, formats=formats, pictures=["png"]
    )
    if arguments.output:
        return export(arguments.output)
    folder = result.path / _folder_name(result, arguments.top, by)
    try:
        return export(folder, replace=False)
    except StudyError as error:
        raise StudyError(
            f"{error} With --output DIR you choose the folder, and files in it are replaced."
        ) from error


def _folder_name(result: StudyResult, top: int | None, by: str) -> str:
    if not result.recorded.ranks_features:
        return "selection"
    name = f"selection-top{choose_top(result.recorded, top, by).n}"
    if by == FINAL:
        return name
    return f"{name}-{by}"


def _print_result(
    arguments: Namespace,
    result: StudyResult,
    by: str,
    ranking: FeatureRanking | None,
    remarks: Sequence[str],
) -> None:
    out = Terminal()

    def line(text: str, style: str | None = None) -> None:
        out.print(text, style=style)

    facts = Facts(result.recorded, arguments.top, by)
    model = facts.final.name if facts.final else "no final model"
    line(f"{facts.study.name} in {shown_place(result.path)}: {model}")
    line(texts.headline(facts))
    if notes := " ".join(texts.headline_notes(facts)):
        line(notes)
    if verdict := texts.short_verdict(facts):
        line(verdict)
    if facts.references:
        print_table(texts.score_table(facts), out)
    if facts.report:
        line(f"test {texts.format_each(facts.report)}")
    if facts.agreement is not None:
        line(f"stability {texts.short_stability(facts)}")
        if facts.agreement.consensus:
            line(f"consensus {facts.agreement.consensus}")
    if redundancy := texts.redundancy(facts):
        line(f"redundancy {redundancy}")
    for remark in remarks:
        line(remark, "yellow")
    if ranking is not None:
        line(f"ranking of {ranking.source}, {choose_top(result.recorded, arguments.top, by)}")
        print_features(result, ranking, out)
