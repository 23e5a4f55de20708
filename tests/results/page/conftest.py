"""Small studies with their reports, each run once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from report_pages import run_kind

from raysel.results.result import StudyResult


@pytest.fixture(scope="session")
def study_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], StudyResult]:
    """Give the finished study of a kind."""
    return cache(lambda kind: run_kind(kind, tmp_path_factory.mktemp("report")))


@pytest.fixture(scope="session")
def matrix(study_of: Callable[[str], StudyResult]) -> StudyResult:
    """The study of digits as matrices."""
    return study_of("matrix")
