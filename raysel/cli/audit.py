"""Command ``audit``: careless and honest scores on a data file."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from raysel.core.errors import ConfigError, DataError
from raysel.core.files import write_result
from raysel.core.printing import Terminal
from raysel.data.loading import load_dataset
from raysel.execution.signals import interrupt_status, sigterm_as_interrupt
from raysel.results.audit import Audit
from raysel.run.audit import audit

_SIZES, _C = (10, 50, 200, 1000), (0.01, 0.1, 1.0)
_UNPREPARED = (
    "An audit is no study and prepares no columns: leave them out by --drop NAME, once for each, or let raysel.audit "
    "in Python take a Pipeline that fills and encodes them."
)
_SUFFIXES = (".png", ".svg", ".pdf", ".csv")


def run(arguments: Namespace) -> int:
    """Audit the tuned pipeline of filter and linear SVM on a data file, print the result, and return the status."""
    out = Terminal()
    if arguments.output and Path(arguments.output).suffix not in _SUFFIXES:
        raise ConfigError(
            f"--output {arguments.output}: name a file with one of the suffixes {', '.join(_SUFFIXES)}."
        )
    read = {name: getattr(arguments, name) for name in ("label", "labels", "groups", "drop")}
    try:
        data = load_dataset(arguments.file, **read)
    except DataError as error:
        if "dataset.prepare" in str(error):
            error.add_note(_UNPREPARED)
        raise
    if data.is_multilabel or data.layout.is_multitask:
        raise DataError(f"{data.name}: an audit is of one task with one label a sample.")
    steps = [
        ("scale", StandardScaler()),
        ("select", SelectKBest()),
        ("svm", LinearSVC(max_iter=10_000)),
    ]
    sizes = [n for n in _SIZES if n < data.n_features] or [data.n_features]
    out.print(
        f"{data!r}: scaling, the F-test's best {', '.join(map(str, sizes))} features, linear SVM"
    )
    for note in data.notes:
        out.print(note)
    with sigterm_as_interrupt():
        try:
            found = audit(
                Pipeline(steps),
                pd.DataFrame(np.asarray(data.X), columns=list(data.feature_names)),
                data.y,
                data.groups,
                {"select__k": sizes, "svm__C": list(_C)},
                metric=arguments.metric,
                n_permutations=arguments.permutations,
                n_jobs=arguments.processes,
                verbose=True,
            )
        except KeyboardInterrupt:
            return interrupt_status()
    out.print(repr(found))
    if arguments.output:
        _write(found, Path(arguments.output))
        out.print(arguments.output)
    return 0


def _write(found: Audit, path: Path) -> None:
    """Write the table or the picture of an audit."""
    if path.suffix == ".csv":
        write_result(path, found.frame().to_csv(index=False).encode())
        return
    from raysel.results.displays.display import write_figure

    write_figure(found.display().headed_figure(), path)
