"""Options of a run: the machines that it computes on, and the listeners that it tells of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from raysel.core.errors import ConfigError
from raysel.results.result import StudyResult
from raysel.tracking.log import Listener

ShowResult: TypeAlias = Callable[[StudyResult], None]

#: Methods that a listener has.
_OF_LISTENERS = ("show", "message", "__enter__", "__exit__")


@dataclass(frozen=True)
class RunOptions:
    """What a caller chooses of a run that changes no number."""

    #: HOST:PORT of the Ray cluster, or "auto"; None for this machine.
    address: str | None = None
    #: Whether nodes of the cluster may have other versions than this process.
    allow_mixed_versions: bool = False
    listeners: Sequence[Listener] = ()
    #: Function that shows a study's result once its files are written, before the upload ends.
    show: ShowResult | None = None

    @classmethod
    def of(
        cls, address: str | None, allow_mixed_versions: bool, progress: bool | Listener
    ) -> RunOptions:
        """Check the options of a public function."""
        return cls(address, allow_mixed_versions, make_listeners(progress))

    def tell(self, text: str) -> None:
        """Tell all listeners."""
        for listener in self.listeners:
            listener.message(text)


#: This machine, and nobody is told.
DEFAULTS = RunOptions()


def make_listeners(progress: bool | Listener) -> Sequence[Listener]:
    """Return the objects that show the progress of a study."""
    if not isinstance(progress, bool):
        lacking = [name for name in _OF_LISTENERS if not hasattr(progress, name)]
        if lacking:
            raise ConfigError(
                f"progress={progress!r} has no {lacking[0]}; give True, False or a Listener."
            )
        return [progress]
    if not progress:
        return []
    from raysel.core.printing import Terminal  # noqa: PLC0415
    from raysel.results.progress import ProgressLine  # noqa: PLC0415 - needed only to print

    return [ProgressLine(Terminal())]
