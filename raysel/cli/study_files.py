"""Commands ``init``, ``report`` and ``upload``, which write or copy files of a study."""

from __future__ import annotations

import shlex
from argparse import Namespace
from pathlib import Path

from raysel.core.printing import Terminal, list_doubt, program
from raysel.core.storage.working_copy import copy_folder, opened_at, shown_place
from raysel.results.progress import counted
from raysel.results.remarks import Remark, short_remarks
from raysel.run.api import open_comparison, open_study
from raysel.study.draft.draft import default_output, init_study
from raysel.tracking.directory import StudyDirectory, newest_study


def init(arguments: Namespace) -> int:
    """Look at a data file and write a study that fits it."""
    output = arguments.output or default_output(arguments.file)
    draft = init_study(
        arguments.file, arguments.label, labels=arguments.labels, mask=arguments.mask, output=output
    )
    out = Terminal()
    for name, finding in draft.findings.items():
        out.print(f"{name:<12}{finding}")
    for doubt in draft.doubts:
        out.print(list_doubt(doubt), style="yellow")
    command = f"{program()} tune {shlex.quote(output)}"
    out.print(f"{'written':<12}{output}; next: {command} --dry-run, then {command}")
    return 0


def report(arguments: Namespace) -> int:
    """Write the report of a study or of a comparison."""
    from raysel.results.comparison.export import write_comparison_report
    from raysel.results.page.report import write_report  # loads matplotlib

    arguments.study = arguments.study or newest_study(Path())
    with opened_at(arguments.study, write=not arguments.output) as path:
        notes: list[Remark] = []
        if StudyDirectory(path).members.exists():
            written = write_comparison_report(open_comparison(path), arguments.output)
        else:
            study = open_study(path)
            written = write_report(study, arguments.output)
            notes = [note for note in study.facts.remarks if note.key == "model_not_trusted"]
        shown = shown_place(written)
    Terminal().print(shown)
    for text in short_remarks(notes):
        Terminal(stderr=True).print(text, style="yellow")
    return 0


def upload(arguments: Namespace) -> int:
    """Copy the directory of a study to a URI."""
    names = copy_folder(Path(arguments.directory), arguments.uri)
    Terminal().print(f"{counted(len(names), 'file')} copied to {shown_place(arguments.uri)}")
    return 0
