"""Files that appear, or are renewed, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path, durable: bool = False) -> Iterator[Path]:
    """A place beside a file's own, from which it is moved there once it is written.

    A reader sees the old file or the new one, never a part; if anything fails the old one stays.

    Parameters
    ----------
    path : Path
    durable : bool, default=False
        Whether the file must outlast a power cut from then on.

    Yields
    ------
    Path
        Where to write.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole(Path(folder, "plan.json")) as beside:
    ...         _ = beside.write_text("{}")
    ...     os.listdir(folder)
    ['plan.json']
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield beside
        if durable:
            with beside.open("rb") as file:
                os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
