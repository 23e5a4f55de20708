"""Command ``tune``, which runs a study, or several that are compared."""

from __future__ import annotations

import argparse

from raysel.cli.command import BUILTIN, Command, add_cluster_options, add_overrides, add_quiet


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("config", nargs="?", help=f"a YAML file, or a built-in study or comparison, see --list (default: {BUILTIN})")
    add_overrides(parser, "override a key of the configuration")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--output", metavar="DIR", help="directory or URI to write (default: raysel-studies/NAME-TIME)")
    place.add_argument(
        "--resume", metavar="DIR", help="resume the study or comparison in this directory or at this URI"
    )
    place.add_argument("--replay", metavar="DIR", help="upload this study or comparison to MLflow again")
    add_cluster_options(parser)
    add(
        "--dry-run",
        action="store_true",
        help="check everything, print data and plan as understood, and start nothing; with --output, draw the data",
    )
    add("--list", action="store_const", const="", help="print the built-in studies and comparisons and exit")
    add(
        "--help-config",
        nargs="?",
        const="",
        metavar="SECTION",
        help="print all keys of the configuration, or of a section; exit",
    )
    add(
        "--list-solvers",
        nargs="?",
        const="",
        metavar="NAME",
        help="print all methods, or one with its parameters explained; exit",
    )
    add("--verbose", action="store_true", help="print all tables, figures and remarks of the result, as in report.html")
    add_quiet(parser)


def _run(arguments: argparse.Namespace) -> int:
    if not (arguments.list is arguments.help_config is arguments.list_solvers is None):
        from raysel.cli.reference import print_references

        return print_references(arguments)
    from raysel.cli.running import run

    return run(arguments)


COMMAND = Command(
    "tune",
    "run a study, or several that are compared",
    _add_arguments,
    _run,
    "Run a study: a nested search over solver configurations, tracked and ranked; or several studies that are "
    "compared.",
)
main = COMMAND.main
