"""Imported by a process that a test starts: it uploads nothing to MLflow and writes no report,
for they take 10 s.
"""

import sys
from types import SimpleNamespace

import pytest
from small_studies import upload_nothing

sys.modules["raysel.results.page.report"] = SimpleNamespace(
    write_final_report=lambda _: None
)  # and no matplotlib
upload_nothing(pytest.MonkeyPatch())
