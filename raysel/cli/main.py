"""The command ``raysel``, with a subcommand for each task, each of which ``python -m`` also runs alone."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from importlib import import_module

from raysel.cli.commands import COMMANDS
from raysel.cli.terminal import print_error, words_of
from raysel.core import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run the subcommand that the arguments name."""
    words = words_of(argv)
    parser = ArgumentParser(prog="raysel", description="Which features matter, and how far to trust the answer.")
    parser.add_argument("--version", action="version", version=f"raysel {__version__}")
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        command.fill(parsers.add_parser(name, help=command.summary))
    arguments = parser.parse_args(words)
    return _call(arguments.command, arguments, words[1:])


def main_of(name: str) -> Callable[..., int]:
    """Return the function that runs one command alone, as ``python -m raysel.NAME`` does."""

    def run(argv: Sequence[str] | None = None) -> int:
        words = words_of(argv)
        parser = ArgumentParser(prog=f"python -m raysel.{name}")
        COMMANDS[name].fill(parser)
        return _call(name, parser.parse_args(words), words)

    return run


def _call(name: str, arguments: Namespace, words: Sequence[str]) -> int:
    """Run a command with arguments, which were parsed from words, and return the exit status."""
    from raysel.core.errors import RayselError

    arguments.words = words
    module, _, function = COMMANDS[name].work.partition(":")
    try:
        return getattr(import_module(f"raysel.cli.{module}"), function)(arguments)
    except RayselError as error:
        status = print_error(error, getattr(arguments, "study", None) or "")
        return status if COMMANDS[name].computes else 2
