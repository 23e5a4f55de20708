"""Mark of tests in which a warning is an error."""

from __future__ import annotations

import pytest

# What another test left open may be closed, and warn, while the marked test runs: pytest reports
# that by its own class.
no_warnings = pytest.mark.filterwarnings(
    "error", "default::pytest.PytestUnraisableExceptionWarning"
)
