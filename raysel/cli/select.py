"""Command ``select``, which exports the ranking of a finished study and the features it selects."""

from __future__ import annotations

import argparse

from raysel.cli.command import Command, add_study

_EXAMPLES = """\
examples:
  python -m raysel.select                            the newest study, with the number of features it chose
  python -m raysel.select STUDY_DIR --top 50         the best 50, in STUDY_DIR/selection-top50
  python -m raysel.select STUDY_DIR --consensus      by the mean rank over the outer folds
  python -m raysel.select STUDY_DIR --fold outer0    as the winner of an outer fold ranks them
  python -m raysel.select STUDY_DIR --names | head   only the names of the selected features, best first
  python -m raysel.select STUDY_DIR --mask mask.npy  a mask in the shape of a sample as well
  python -m raysel.select STUDY_DIR --format json,npz --output out
"""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_study(parser, newest=True)
    add = parser.add_argument
    add("--top", type=int, metavar="N", help="number of features that count as selected (default: the chosen one)")
    add("--consensus", action="store_true", help="rank by the mean rank over the outer folds, not by the final model")
    add("--fold", metavar="NAME", help="rank by the winner of this fold, e.g. outer0, not by the final model")
    add("--names", action="store_true", help="only print the names of the selected features, one a line")
    add(
        "--mask",
        metavar="FILE",
        help="also write a mask of the selected features in the shape of a sample, *.npy or *.nii.gz (needs nibabel); "
        "a different file of that name is never replaced",
    )
    add(
        "--format",
        action="append",
        metavar="FORMAT",
        help="format of the table: csv, parquet, json, npz; several by commas or repeated (default: csv,parquet)",
    )
    add(
        "--output",
        metavar="DIR",
        help="folder to write to, where files of the same names are replaced (default: STUDY_DIR/selection-topN, with "
        "-consensus or the fold's name, where no different file is replaced)",
    )


def _run(arguments: argparse.Namespace) -> int:
    from raysel.cli.selection import export_selection

    return export_selection(arguments)


COMMAND = Command(
    "select",
    "export the ranking of a finished study, and the features that it selects",
    _add_arguments,
    _run,
    examples=_EXAMPLES,
)
main = COMMAND.main
