"""Commands ``permute``, ``stability`` and ``claims``, which compute with a finished study."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from raysel.cli.summary import print_path, print_table
from raysel.core.printing import Terminal, first_line, program
from raysel.core.storage.working_copy import shown_place
from raysel.execution.signals import interrupt_status, sigterm_as_interrupt
from raysel.results.feature_claims import FOLDER as CLAIMS
from raysel.results.feature_claims import FeatureClaims
from raysel.results.permutation import FEATURES, PermutationTest
from raysel.results.permutation import FOLDER as PERMUTATION
from raysel.results.progress import ProgressLine
from raysel.results.region_claims import REGIONS, RegionClaims
from raysel.results.result import StudyResult
from raysel.results.stability import FOLDER as STABILITY
from raysel.results.stability import StabilitySelectionResult
from raysel.run.claims import claim_features
from raysel.run.launch import working_folder
from raysel.run.options import RunOptions
from raysel.run.permutation import permutation_test
from raysel.run.stability import stability_selection

Result = TypeVar("Result")
_MOST_LINES = 20


def permute(arguments: Namespace) -> int:
    """Test a finished study by permuted labels, and return the exit status."""
    options = ("permutations", "retune", "seed")
    return _run(arguments, "permute", "permutations", permutation_test, options, _print_test)


def stability(arguments: Namespace) -> int:
    """Run stability selection on a finished study, and return the exit status."""
    options = ("subsamples", "top", "threshold")
    return _run(arguments, "stability", "halves", stability_selection, options, _print_selection)


def claims(arguments: Namespace) -> int:
    """Claim features of a finished study, and return the exit status."""
    options = ("fdr", "fwer", "correlated", "regions", "method")
    return _run(arguments, "claims", "tests", claim_features, options, _print_claims)


def _run(
    arguments: Namespace,
    command: str,
    unit: str,
    compute: Callable[..., Result],
    options: Sequence[str],
    show: Callable[[Path, Result, Console], None],
) -> int:
    """Compute something for a study, with options of its own, and print it."""
    out = Terminal(quiet=arguments.quiet)
    options = (*options, "config", "executor", "address", "allow_mixed_versions")
    given = {name: getattr(arguments, name) for name in options}
    progress = ProgressLine(out)
    with sigterm_as_interrupt():
        try:
            with working_folder(
                arguments.study, RunOptions(listeners=[progress]), new=False
            ) as path:
                result = compute(path, overrides=arguments.set, progress=progress, **given)
        except KeyboardInterrupt:
            again = f"{program()} {command} {shlex.join(arguments.words)}"
            Terminal(stderr=True).print(
                f"stopped. The {unit} that had ended are kept; resume with: {again}"
            )
            return interrupt_status()
    show(path, result, out)
    if arguments.quiet:
        print_path(shown_place(path), Terminal())
    return 0


def _print_test(path: Path, test: PermutationTest, out: Console) -> None:
    answer, *others = test.sentences()
    out.print(answer, markup=False)
    out.print()
    print_table(test.figures(), out)
    if test.claimed().rows:
        out.print()
        print_table(test.claimed(), out)
    out.print()
    for sentence in others:
        out.print(sentence, markup=False)
    if test.features:
        out.print(shown_place(path / FEATURES))
    out.print(shown_place(path / PERMUTATION / "result.json"))


def _print_claims(path: Path, claims: FeatureClaims | RegionClaims, out: Console) -> None:
    answer, *others = claims.sentences()
    out.print(answer, markup=False)
    if claims.figures().rows:
        out.print()
        print_table(claims.figures(), out)
    out.print()
    for sentence in others:
        out.print(sentence, markup=False)
    if isinstance(claims, RegionClaims):
        out.print(shown_place(path / CLAIMS / f"{REGIONS}.csv"))
    out.print(shown_place(path / CLAIMS / "claims.csv"))


def _print_selection(path: Path, selection: StabilitySelectionResult, out: Console) -> None:
    """Print the set with its probabilities and bounds."""
    result = StudyResult.open(path)
    out.print(f"{result.name} in {shown_place(result.path)}: {result.final.name}")
    out.print(selection.short_sentence())
    if selection.is_default and selection.bound <= 1:
        out.print(
            f"threshold {selection.threshold:.3g}: the smallest whose bound is at most 1; q/p = "
            f"{selection.q}/{selection.p}",
            markup=False,
        )
    out.print(selection.assumptions, style="dim", markup=False)
    for remark in map(first_line, selection.remarks()):
        out.print(remark, style="yellow")
    chosen = [i for i in selection.order() if selection.selected[i]]
    width = max((len(result.feature_names[i]) for i in chosen[:_MOST_LINES]), default=0)
    ranking = result.ranking()
    for i in chosen[:_MOST_LINES]:
        rank = f"rank {ranking.ranks[i]:g} in the final model"
        out.print(f"  {result.feature_names[i]:<{width}}  {selection.probability[i]:.2f}  {rank}")
    if len(chosen) > _MOST_LINES:
        out.print(f"  and {len(chosen) - _MOST_LINES} more, in selection.csv")
    if result.group_selection is not None:
        out.print(result.group_selection.short_sentence())
    out.print(ranking.what_to_print)
    folder = result.path / STABILITY
    for file in (folder / "selection.csv", folder / "selection.parquet", folder / "result.json"):
        out.print(shown_place(file))
    out.print(
        f"{shown_place(result.directory.ranking / 'ranking.csv')} (column selection_probability)"
    )
