"""``python -m raysel.select``: export the ranking of a finished study's best model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from raysel.errors import RayselError
from raysel.study.result import Outcome
from raysel.tracking.directory import StudyDirectory, newest_study


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        0, or 2 when there is nothing to export.
    """
    arguments = _parser().parse_args(argv)
    try:
        path = Path(arguments.study) if arguments.study else newest_study(Path())
        outcome = Outcome.read(StudyDirectory(path))
        folder = Path(arguments.output) if arguments.output else outcome.directory.ranking
        written = outcome.export(folder, arguments.top)
    except RayselError as error:
        Console(stderr=True, soft_wrap=True).print(f"error: {error}", markup=False, highlight=False, style="red")
        return 2
    out = Console(soft_wrap=True, highlight=False)
    ranking = outcome.ranking(arguments.top)
    summary = outcome.result.summary()
    names = [ranking.feature_names[i] for i in ranking.top()]
    found = outcome.winner_convergence
    out.print(f"{outcome.study.name} in {path}: {outcome.result.final.name}", markup=False)
    out.print(
        f"test {outcome.result.metric} {summary['test_mean']:.3f} ± {summary['test_std']:.3f} (SD) "
        f"over {ranking.n_folds} outer folds",
        markup=False,
    )
    out.print(f"stability {outcome.stability_in_words(arguments.top)}", markup=False)
    if found.n_fits:  # not recorded by version 0.1
        out.print(f"{found.n_converged} of {found.n_fits} winners converged, the model among them", markup=False)
    for remark in outcome.remarks(arguments.top):
        out.print(remark, markup=False, style="yellow")
    if names:
        out.print(f"best first: {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}", markup=False)
    for file in written:
        out.print(str(file), markup=False)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m raysel.select", description="Export the ranking of a finished study's best model."
    )
    parser.add_argument("study", nargs="?", metavar="STUDY_DIR", help="default: the newest study below this directory")
    parser.add_argument("--top", type=int, metavar="N", help="how many features count as selected")
    parser.add_argument("--output", metavar="DIR", help="where to (default: the study's folder `ranking`)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
