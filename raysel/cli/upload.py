"""Command ``upload``, which copies the directory of a study to a URI."""

from __future__ import annotations

import argparse

from raysel.cli.command import Command


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="STUDY_DIR", help="directory to copy")
    parser.add_argument("uri", metavar="URI", help="folder to write: s3://BUCKET/KEY, gs://BUCKET/KEY or file:///PATH")


def _run(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from raysel.core.printing import Terminal
    from raysel.core.storage.working_copy import copy_folder, shown_place
    from raysel.results.progress import counted

    names = copy_folder(Path(arguments.directory), arguments.uri)
    Terminal().print(f"{counted(len(names), 'file')} copied to {shown_place(arguments.uri)}", markup=False)
    return 0


COMMAND = Command(
    "upload",
    "copy the directory of a study or of a comparison to a URI",
    _add_arguments,
    _run,
    "Copy the directory of a study or of a comparison to a URI, e.g. because the store could not be written while the "
    "study ran.",
)
main = COMMAND.main
