"""Command ``python -m raysel.select``, which exports the ranking of a finished study's model."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from raysel.api import open_study
from raysel.errors import RayselError, UnfinishedStudyError
from raysel.results import words
from raysel.results.export import export_result
from raysel.results.page.assemble import write_report
from raysel.tracking.directory import newest_study


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments of the command; ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        Exit status: 0 if the files are written, 2 after an error.
    """
    arguments = _parser().parse_args(argv)
    console = Console(stderr=True, soft_wrap=True)
    try:
        path = Path(arguments.study) if arguments.study else newest_study(Path())
        result = open_study(path)
        written = export_result(result, arguments.output or result.directory.ranking, arguments.top)
        if not arguments.output:
            written.append(write_report(result))
    except RayselError as error:
        hint = ""
        if isinstance(error, UnfinishedStudyError):
            hint = f" To resume it: python -m raysel.tune --resume {shlex.quote(str(path))}"
        console.print(f"error: {error}{hint}", markup=False, highlight=False, style="red")
        return 2
    out = Console(soft_wrap=True, highlight=False)
    found = result.winner_convergence
    model = result.final.name if result.has_final else "no final model"
    out.print(f"{result.name} in {path}: {model}", markup=False)
    out.print(words.headline(result), markup=False)
    for sentence in (*words.reference_sentences(result), *words.verdict_sentences(result)):
        out.print(sentence, markup=False)
    if result.report:
        out.print(f"test {words.report_in_words(result)}", markup=False)
    if result.ranks_features:
        out.print(f"stability {words.stability_in_words(result, arguments.top)}", markup=False)
    if redundancy := words.redundancy_in_words(result, arguments.top):
        out.print(f"redundancy {redundancy}", markup=False)
    if found.n_fits:  # not recorded by version 0.1
        among = ", the model among them" if result.has_final else ""
        out.print(f"{found.n_converged} of {found.n_fits} winners converged{among}", markup=False)
    for remark in result.remarks(arguments.top):
        out.print(remark, markup=False, style="yellow")
    if result.is_ranked:
        ranking = result.ranking(arguments.top)
        names = [ranking.feature_names[i] for i in ranking.top()[:10]]
        if names:
            more = ", ..." if len(ranking.top()) > 10 else ""
            out.print(f"best first: {', '.join(names)}{more}", markup=False)
    for file in written:
        out.print(str(file), markup=False)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m raysel.select", description="Export the ranking of a finished study's model."
    )
    parser.add_argument("study", nargs="?", metavar="STUDY_DIR", help="default: the newest study below this directory")
    parser.add_argument("--top", type=int, metavar="N", help="number of features that count as selected")
    parser.add_argument("--output", metavar="DIR", help="folder to write to (default: the study's folder `ranking`)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
