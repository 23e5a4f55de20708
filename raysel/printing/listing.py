"""Names in messages: lists of them, and the one that a wrong name may stand for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches


def listed(names: Iterable[object], most: int = 12) -> str:
    """Return names as text, the first of many with their number."""
    every = [str(name) for name in names]
    shown = [name if name.isprintable() and name else repr(name) for name in every[:most]]
    return (", ".join(shown) or "nothing") + (f", ... ({len(every)} in all)" if len(every) > most else "")


def suggestion(wanted: str, known: Collection[str]) -> str:
    """Return what to give instead of an unknown name: a similar one, or else one of those there are."""
    close = get_close_matches(wanted, known, n=1)
    return f"did you mean {close[0]}?" if close else f"it has {listed(known)}."
