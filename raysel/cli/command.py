"""Commands and the options that they share; nothing heavy is imported, so that ``--help`` answers at once."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from raysel.cli.arguments import words_of

#: Study that ``tune`` runs by default.
BUILTIN = "digits-smr"


@dataclass(frozen=True)
class Command:
    """One command: its arguments, and a function that imports what it needs after they are parsed."""

    name: str
    #: Line of the command in ``raysel --help``.
    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    #: Description in the command's own help; by default the summary.
    description: str = ""
    examples: str = ""

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Run this command alone, as ``python -m raysel.NAME`` does."""
        words = words_of(argv)
        parser = argparse.ArgumentParser(prog=f"python -m raysel.{self.name}")
        self.fill(parser)
        return self.call(parser.parse_args(words), words)

    def fill(self, parser: argparse.ArgumentParser) -> None:
        """Give a parser the description and the arguments of the command."""
        parser.description = self.description or f"{self.summary[0].upper()}{self.summary[1:]}."
        if self.examples:
            parser.epilog, parser.formatter_class = self.examples, argparse.RawDescriptionHelpFormatter
        self.add_arguments(parser)

    def call(self, arguments: argparse.Namespace, words: Sequence[str]) -> int:
        """Run the command with arguments, which were parsed from words, and return the exit status."""
        from raysel.cli.messages import print_error
        from raysel.core.errors import RayselError

        arguments.words = words
        try:
            return self.run(arguments)
        except RayselError as error:
            print_error(error, getattr(arguments, "study", None) or "")
            return 2


def add_study(parser: argparse.ArgumentParser, *, newest: bool = False) -> None:
    """Add the directory of a finished study, by default the newest."""
    if newest:
        text = "directory or URI (default: the newest below this directory)"
        parser.add_argument("study", nargs="?", metavar="STUDY_DIR", help=text)
    else:
        parser.add_argument("study", metavar="STUDY_DIR", help="directory or URI of a finished study")


def add_overrides(parser: argparse.ArgumentParser, text: str) -> None:
    """Add the option that overrides keys of the configuration."""
    parser.add_argument("--set", action="append", default=[], metavar="A.B=VALUE", help=text)


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add the option that prints nothing but where the result is."""
    text = "print only the study's directory, once it has finished, and errors"
    parser.add_argument("--quiet", action="store_true", help=text)


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where Ray runs."""
    parser.add_argument("--address", metavar="RAY_ADDRESS", help="join this Ray cluster instead of starting Ray here")
    parser.add_argument(
        "--allow-mixed-versions",
        action="store_true",
        help="use nodes of the cluster whose versions may change the last bits of numbers; it is recorded",
    )


def add_resampling_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of what is computed again for a finished study."""
    parser.add_argument("--executor", choices=["serial", "ray"], help="where to compute (default: as the study)")
    add_cluster_options(parser)
    parser.add_argument("--config", metavar="FILE", help="the study's configuration, if its solver imports code")
    add_overrides(parser, "override a key, e.g. dataset.path=moved.npz")
    add_quiet(parser)
