"""Executor and listeners with which a study starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from raysel.errors import ConfigError
from raysel.execution.executor import Executor
from raysel.execution.serial import SerialExecutor
from raysel.launch.machines import cluster_address
from raysel.study.definition import Study
from raysel.tracking.log import Listener


def make_executor(study: Study, address: str | None, *, allow_mixed_versions: bool = False) -> Executor:
    """Return the executor that ``search.executor`` names."""
    study = replace(study, own=None)  # workers need the data set once
    if study.config.search.executor == "serial":
        return SerialExecutor(study)
    # Imported only after all checks, because importing Ray takes seconds.
    from raysel.distributed.executor import RayExecutor  # noqa: PLC0415

    place = cluster_address(study, address)
    return RayExecutor(study, place, allow_mixed_versions=allow_mixed_versions)


def make_listeners(progress: bool | Listener) -> Sequence[Listener]:
    """Return the objects that show the progress of a study."""
    if not isinstance(progress, bool):
        lacking = [name for name in ("show", "message", "__enter__", "__exit__") if not hasattr(progress, name)]
        if lacking:
            raise ConfigError(f"progress={progress!r} has no {lacking[0]}; give True, False or a Listener.")
        return [progress]
    if not progress:
        return []
    from raysel.display.progress import ProgressLine  # noqa: PLC0415 - needed only to print
    from raysel.printing.terminal import Terminal  # noqa: PLC0415

    return [ProgressLine(Terminal())]
