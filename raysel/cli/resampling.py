"""Permutation test and stability selection of a finished study, computed and printed."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from raysel.cli.messages import print_error
from raysel.core.errors import RayselError
from raysel.core.printing import Terminal, print_path
from raysel.core.storage.working_copy import shown_place
from raysel.execution.signals import interrupt_status, sigterm_as_interrupt
from raysel.results import permutation, stability
from raysel.results.progress import ProgressLine
from raysel.results.result import StudyResult
from raysel.results.stability import StabilitySelection
from raysel.run.launch import working_folder
from raysel.run.resampling.permutation import permutation_test
from raysel.run.resampling.stability import stability_selection

Result = TypeVar("Result")
_MOST_LINES = 20


def permute(arguments: argparse.Namespace) -> int:
    """Test a finished study by permuted labels, and return the exit status."""
    out = Terminal(quiet=arguments.quiet)
    done = _computed(
        arguments,
        out,
        permutation_test,
        {name: getattr(arguments, name) for name in ("permutations", "retune", "seed")},
        "The permutations that had ended are kept; resume with: python -m raysel.permute "
        f"{shlex.join(arguments.words)}",
    )
    if isinstance(done, int):
        return done
    path, test = done
    for sentence in test.sentences():
        out.print(sentence, markup=False)
    out.print(shown_place(path / permutation.FOLDER / "result.json"), markup=False)
    if arguments.quiet:
        print_path(shown_place(arguments.study))
    return 0


def select_stably(arguments: argparse.Namespace) -> int:
    """Run stability selection on a finished study, and return the exit status."""
    out = Terminal(quiet=arguments.quiet)
    done = _computed(
        arguments,
        out,
        stability_selection,
        {name: getattr(arguments, name) for name in ("subsamples", "top", "threshold")},
        "The halves that had ended are kept; the same command continues.",
    )
    if isinstance(done, int):
        return done
    path, selection = done
    _print_selection(StudyResult.open(path), selection, out)
    if arguments.quiet:
        print_path(shown_place(path))
    return 0


def _computed(
    arguments: argparse.Namespace, out: Terminal, compute: Callable[..., Result], options: Mapping[str, Any], kept: str
) -> tuple[Path, Result] | int:
    """Compute something for the study that the arguments name; return its folder and the result, or an exit status."""
    progress = ProgressLine(out)
    with sigterm_as_interrupt():
        try:
            with working_folder(arguments.study, [progress], new=False) as path:
                return path, compute(
                    path,
                    config=arguments.config,
                    overrides=arguments.set,
                    executor=arguments.executor,
                    address=arguments.address,
                    allow_mixed_versions=arguments.allow_mixed_versions,
                    progress=progress,
                    **options,
                )
        except KeyboardInterrupt:
            Terminal(stderr=True).print(f"stopped. {kept}", markup=False, highlight=False)
            return interrupt_status()
        except RayselError as error:
            return print_error(error, arguments.study)


def _print_selection(result: StudyResult, selection: StabilitySelection, out: Console) -> None:
    """Print the set with its probabilities and bounds."""
    out.print(f"{result.name} in {shown_place(result.path)}: {result.final.name}", markup=False)
    out.print(selection.sentence(), markup=False)
    if selection.is_default and selection.bound <= 1:
        out.print(
            f"threshold {selection.threshold:.3g}: the smallest whose bound is at most 1; q/p = "
            f"{selection.q}/{selection.p}",
            markup=False,
        )
    for remark in selection.remarks():
        out.print(remark, markup=False, style="yellow")
    chosen = [i for i in selection.order() if selection.selected[i]]
    width = max((len(result.feature_names[i]) for i in chosen[:_MOST_LINES]), default=0)
    ranking = result.ranking()
    for i in chosen[:_MOST_LINES]:
        rank = f"rank {ranking.ranks[i]:g} in the final model"
        out.print(f"  {result.feature_names[i]:<{width}}  {selection.probability[i]:.2f}  {rank}", markup=False)
    if len(chosen) > _MOST_LINES:
        out.print(f"  and {len(chosen) - _MOST_LINES} more, in selection.csv", markup=False)
    out.print(ranking.what_to_print, markup=False)
    folder = result.path / stability.FOLDER
    for file in (folder / "selection.csv", folder / "selection.parquet", folder / "result.json"):
        out.print(shown_place(file), markup=False)
    out.print(f"{shown_place(result.directory.ranking / 'ranking.csv')} (column selection_probability)", markup=False)
