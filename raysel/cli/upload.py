"""Command ``python -m raysel.upload``, which copies the directory of a study to a URI."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from raysel.cli.arguments import print_error
from raysel.core.errors import RayselError
from raysel.core.printing import Terminal
from raysel.core.storage.working_copy import copy_folder, shown_place
from raysel.results.progress import counted


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    arguments = _parser().parse_args(argv)
    try:
        names = copy_folder(Path(arguments.directory), arguments.uri)
    except RayselError as error:
        print_error(error)
        return 2
    out = Terminal()
    out.print(f"{counted(len(names), 'file')} copied to {shown_place(arguments.uri)}", markup=False)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m raysel.upload",
        description="Copy the directory of a study or of a comparison to a URI, e.g. because the store could not be "
        "written while the study ran.",
    )
    parser.add_argument("directory", metavar="STUDY_DIR", help="directory to copy")
    parser.add_argument("uri", metavar="URI", help="folder to write: s3://BUCKET/KEY, gs://BUCKET/KEY or file:///PATH")
    return parser
