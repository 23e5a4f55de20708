"""Command ``python -m raysel.init``, which looks at a data file and writes a study that fits it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence

from raysel.cli.arguments import print_error
from raysel.core.errors import RayselError
from raysel.core.printing import Terminal
from raysel.study.draft.draft import default_output, init_study

_EXAMPLES = """\
examples:
  python -m raysel.init table.csv                      writes table-study.yaml
  python -m raysel.init table.csv --label diagnosis    the labels are in the column diagnosis
  python -m raysel.init faces.mat -o faces.yaml
  python -m raysel.init images/                        a folder with one folder of images for each class
  python -m raysel.init X.npy --labels y.npy
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    arguments = _parser().parse_args(argv)
    output = arguments.output or default_output(arguments.file)
    try:
        draft = init_study(arguments.file, arguments.label, labels=arguments.labels, mask=arguments.mask, output=output)
    except RayselError as error:
        print_error(error)
        return 2
    out = Terminal()
    for name, found in draft.findings.items():
        out.print(f"{name:<12}{found}", markup=False)
    for doubt in draft.doubts:
        out.print(f"{'to check':<12}{doubt}", markup=False, style="yellow")
    command = f"python -m raysel.tune {shlex.quote(output)}"
    out.print(f"{'written':<12}{output}; next: {command} --dry-run, then {command}", markup=False)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m raysel.init",
        description="Look at a data file and write a commented study that fits it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="data file or folder, its URI, or the name of one of scikit-learn's data sets")
    add("--label", metavar="NAME", help="column or array of the labels (default: recognised by its name or values)")
    add("--labels", metavar="FILE", help="file of the labels, where FILE holds the samples only")
    add("--mask", metavar="FILE", help="mask of the volumes, where FILE is a table of NIfTI files (default: beside it)")
    add("-o", "--output", metavar="STUDY.yaml", help="file to write (default: <name of FILE>-study.yaml, here)")
    return parser
