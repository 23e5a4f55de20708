"""Start of Ray without the line that it prints on its own log level."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_note_on_logs() -> Iterator[None]:
    """Leave out the line that Ray's core prints where RAY_BACKEND_LOG_LEVEL is set; the rest is printed at the end."""
    sys.stderr.flush()
    before = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            for line in file:
                if b"RAY_BACKEND_LOG_LEVEL" not in line:
                    os.write(2, line)
