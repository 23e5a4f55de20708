"""Command ``init``, which looks at a data file and writes a study that fits it."""

from __future__ import annotations

import argparse

from raysel.cli.command import Command

_EXAMPLES = """\
examples:
  python -m raysel.init table.csv                      writes table-study.yaml
  python -m raysel.init table.csv --label diagnosis    the labels are in the column diagnosis
  python -m raysel.init faces.mat -o faces.yaml
  python -m raysel.init images/                        a folder with one folder of images for each class
  python -m raysel.init X.npy --labels y.npy
"""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help="data file or folder, its URI, or the name of one of scikit-learn's data sets")
    add("--label", metavar="NAME", help="column or array of the labels (default: recognised by its name or values)")
    add("--labels", metavar="FILE", help="file of the labels, where FILE holds the samples only")
    add("--mask", metavar="FILE", help="mask of the volumes, where FILE is a table of NIfTI files (default: beside it)")
    add("-o", "--output", metavar="STUDY.yaml", help="file to write (default: <name of FILE>-study.yaml, here)")


def _run(arguments: argparse.Namespace) -> int:
    import shlex

    from raysel.core.printing import Terminal
    from raysel.study.draft.draft import default_output, init_study

    output = arguments.output or default_output(arguments.file)
    draft = init_study(arguments.file, arguments.label, labels=arguments.labels, mask=arguments.mask, output=output)
    out = Terminal()
    for name, finding in draft.findings.items():
        out.print(f"{name:<12}{finding}", markup=False)
    for doubt in draft.doubts:
        out.print(f"{'to check':<12}{doubt}", markup=False, style="yellow")
    command = f"python -m raysel.tune {shlex.quote(output)}"
    out.print(f"{'written':<12}{output}; next: {command} --dry-run, then {command}", markup=False)
    return 0


COMMAND = Command(
    "init",
    "look at a data file and write a commented study that fits it",
    _add_arguments,
    _run,
    examples=_EXAMPLES,
)
main = COMMAND.main
