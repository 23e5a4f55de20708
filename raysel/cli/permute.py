"""Command ``python -m raysel.permute``, which tests a finished study by permuted labels."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence

from raysel.cli.arguments import add_cluster_options, print_error
from raysel.core.errors import RayselError
from raysel.core.printing import Terminal, print_path
from raysel.core.storage.working_copy import shown_place
from raysel.execution.signals import interrupt_status, sigterm_as_interrupt
from raysel.results.permutation import FOLDER
from raysel.results.progress import ProgressLine
from raysel.run.launch import working_folder
from raysel.run.resampling.permutation import permutation_test


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = _parser().parse_args(words)
    console = Terminal(stderr=True)
    out = Terminal(quiet=arguments.quiet)
    progress = ProgressLine(out)
    with sigterm_as_interrupt():
        try:
            with working_folder(arguments.study, [progress], new=False) as path:
                found = permutation_test(
                    path,
                    permutations=arguments.permutations,
                    retune=arguments.retune,
                    seed=arguments.seed,
                    config=arguments.config,
                    overrides=arguments.set,
                    executor=arguments.executor,
                    address=arguments.address,
                    allow_mixed_versions=arguments.allow_mixed_versions,
                    progress=progress,
                )
        except KeyboardInterrupt:
            console.print(
                f"stopped. The permutations that had ended are kept; resume with: python -m raysel.permute "
                f"{shlex.join(words)}",
                markup=False,
                highlight=False,
            )
            return interrupt_status()
        except RayselError as error:
            return print_error(error, arguments.study)
    for sentence in found.sentences():
        out.print(sentence, markup=False)
    out.print(shown_place(path / FOLDER / "result.json"), markup=False)
    if arguments.quiet:
        print_path(shown_place(arguments.study))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m raysel.permute",
        description="Test a finished study by permuted labels: p value of its honest score, and of each feature's "
        "score. Permutations that were computed before are used again.",
    )
    parser.add_argument("study", metavar="STUDY_DIR", help="directory or URI of a finished study")
    parser.add_argument("--permutations", type=int, default=200, metavar="N", help="number of them (default: 200)")
    parser.add_argument(
        "--retune", action="store_true", help="repeat the whole search for each permutation, which makes p exact"
    )
    parser.add_argument("--seed", type=int, metavar="S", help="seed of the permutations (default: that of the study)")
    parser.add_argument("--executor", choices=["serial", "ray"], help="where to compute (default: as the study)")
    add_cluster_options(parser)
    parser.add_argument("--config", metavar="FILE", help="the study's configuration, if its solver imports code")
    parser.add_argument(
        "--set", action="append", default=[], metavar="A.B=VALUE", help="override a key, e.g. dataset.path=moved.npz"
    )
    parser.add_argument(
        "--quiet", action="store_true", help="print only the study's directory, once it has ended, and errors"
    )
    return parser
