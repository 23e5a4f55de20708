"""End of a process whose main thread cannot be interrupted, with a text on how to resume."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

#: Texts of the commands that run in this process; that of the innermost one is printed.
_WORDS: list[Callable[[], str]] = []


@contextmanager
def last_words(words: Callable[[], str]) -> Iterator[None]:
    """Let `end_process` print a text, which says how to resume what runs inside the context."""
    _WORDS.append(words)
    try:
        yield
    finally:
        _WORDS.remove(words)


def end_process(error: Exception) -> NoReturn:
    """Print an error and the text of `last_words`, and end this process with exit status 1 without any clean-up."""
    with suppress(Exception):  # the process ends in any case
        sys.stderr.write(f"error: {error}\n")
        for words in _WORDS[-1:]:
            sys.stderr.write(f"{words()}\n")
        sys.stderr.flush()
    os._exit(1)
