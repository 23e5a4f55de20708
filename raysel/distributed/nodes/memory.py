"""Worker processes that Ray ends because memory runs short on their node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ray.air.execution._internal import RayActorManager
from ray.exceptions import OutOfMemoryError, RayActorError


class MemoryShortError(RayActorError):
    """Ray ended a worker process because memory ran short on its node.

    It stands for Ray's `OutOfMemoryError`, whose text is a page on Ray's settings.
    """

    def __init__(self) -> None:
        super().__init__(
            error_msg="Ray ended the worker process because memory ran short on its node: run fewer at once "
            "(search.max_concurrent), or ask for the memory that each needs (search.resources)"
        )


@contextmanager
def memory_ends_for_tune() -> Iterator[None]:
    """Let Tune treat a worker that Ray ended because memory ran short like one that died.

    Tune knows no `OutOfMemoryError` of an actor and raises at the first, which would end the study.
    """
    handle = RayActorManager._actor_task_failed  # noqa: SLF001 - Tune has no public place for it

    def failed(self: Any, tracked_actor_task: Any, exception: Exception) -> None:
        handle(self, tracked_actor_task, MemoryShortError() if isinstance(exception, OutOfMemoryError) else exception)

    RayActorManager._actor_task_failed = failed  # noqa: SLF001
    try:
        yield
    finally:
        RayActorManager._actor_task_failed = handle  # noqa: SLF001
