"""Command ``python -m raysel.stability``, which runs stability selection on a finished study."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.console import Console

from raysel.cli.arguments import add_cluster_options, print_error
from raysel.core.errors import RayselError
from raysel.core.printing import Terminal, print_path
from raysel.core.storage.working_copy import shown_place
from raysel.execution.signals import interrupt_status, sigterm_as_interrupt
from raysel.results.progress import ProgressLine
from raysel.results.result import StudyResult
from raysel.results.stability import FOLDER, StabilitySelection
from raysel.run.launch import working_folder
from raysel.run.resampling.stability import stability_selection

_MOST_LINES = 20


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    arguments = _parser().parse_args(argv)
    console = Terminal(stderr=True)
    out = Terminal(quiet=arguments.quiet)
    progress = ProgressLine(out)
    with sigterm_as_interrupt():
        try:
            with working_folder(arguments.study, [progress], new=False) as path:
                found = stability_selection(
                    path,
                    arguments.config,
                    arguments.set,
                    subsamples=arguments.subsamples,
                    top=arguments.top,
                    threshold=arguments.threshold,
                    executor=arguments.executor,
                    address=arguments.address,
                    allow_mixed_versions=arguments.allow_mixed_versions,
                    progress=progress,
                )
        except KeyboardInterrupt:
            console.print("stopped. The halves that had ended are kept; the same command continues.", markup=False)
            return interrupt_status()
        except RayselError as error:
            return print_error(error, arguments.study)
    _print(StudyResult.open(path), found, out)
    if arguments.quiet:
        print_path(shown_place(path))
    return 0


def _print(result: StudyResult, found: StabilitySelection, out: Console) -> None:
    """Print the set with its probabilities and bounds."""
    out.print(f"{result.name} in {shown_place(result.path)}: {result.final.name}", markup=False)
    out.print(found.sentence(), markup=False)
    if found.is_default and found.bound <= 1:
        out.print(
            f"threshold {found.threshold:.3g}: the smallest whose bound is at most 1; q/p = {found.q}/{found.p}",
            markup=False,
        )
    for remark in found.remarks():
        out.print(remark, markup=False, style="yellow")
    chosen = [i for i in found.order() if found.selected[i]]
    width = max((len(result.feature_names[i]) for i in chosen[:_MOST_LINES]), default=0)
    ranking = result.ranking()
    for i in chosen[:_MOST_LINES]:
        rank = f"rank {ranking.ranks[i]:g} in the final model"
        out.print(f"  {result.feature_names[i]:<{width}}  {found.probability[i]:.2f}  {rank}", markup=False)
    if len(chosen) > _MOST_LINES:
        out.print(f"  and {len(chosen) - _MOST_LINES} more, in selection.csv", markup=False)
    out.print(ranking.what_to_print, markup=False)
    folder = result.path / FOLDER
    for file in (folder / "selection.csv", folder / "selection.parquet", folder / "result.json"):
        out.print(shown_place(file), markup=False)
    out.print(f"{shown_place(result.directory.ranking / 'ranking.csv')} (column selection_probability)", markup=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m raysel.stability",
        description="Complementary-pairs stability selection (Shah & Samworth 2013) of a finished study's winning "
        "configuration: how often each feature is selected on halves of the samples, and a set of features with a "
        "bound on the expected number of false selections. An interrupted run continues where it stopped.",
    )
    parser.add_argument("study", metavar="STUDY_DIR", help="directory or URI of a finished study")
    parser.add_argument(
        "--subsamples", type=int, default=100, metavar="N", help="number of halves, two for each pair (default: 100)"
    )
    parser.add_argument(
        "--top", type=int, metavar="N", help="number of features that a half selects (default: that of the final model)"
    )
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="T",
        help="selection probability of the set, above 0.5 (default: the smallest whose unimodal bound is at most 1)",
    )
    parser.add_argument("--executor", choices=["serial", "ray"], help="where to compute (default: as the study did)")
    add_cluster_options(parser)
    parser.add_argument("--config", metavar="FILE", help="the study's configuration, if its solver imports code")
    parser.add_argument(
        "--set", action="append", default=[], metavar="A.B=VALUE", help="override a key, e.g. dataset.path=FILE"
    )
    parser.add_argument(
        "--quiet", action="store_true", help="print only the study's directory, once it has ended, and errors"
    )
    return parser
