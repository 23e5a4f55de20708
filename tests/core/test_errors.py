"""The line of an error that says what happened."""

from __future__ import annotations

import traceback

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from raysel.core.errors import headline


def caught(function) -> str:
    try:
        function()
    except Exception:  # noqa: BLE001 - of any kind
        return traceback.format_exc()
    raise AssertionError("nothing was raised")


def raised(message: str):
    raise ValueError(message)


def from_another():
    try:
        raised("first")
    except ValueError as error:
        raise KeyError("b\nc") from error


def test_an_error_that_ends_with_advice_is_told_by_its_first_line():
    X = np.full((4, 2), np.nan)
    text = caught(lambda: LinearSVC().fit(X, [0, 1, 0, 1]))
    assert len(text.rpartition("Input X contains NaN.")[2].splitlines()) > 1
    assert headline(text) == "ValueError: Input X contains NaN."


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (caught(lambda: raised("one line")), "ValueError: one line"),
        (caught(lambda: raised("\nAll 5 fits failed.\nSee below")), "ValueError: All 5 fits failed."),
        (caught(lambda: raised("")), "ValueError"),
        (caught(from_another), "KeyError: 'b\\nc'"),
        (caught(lambda: eval("1 +", {})), "SyntaxError: invalid syntax"),
        ("no traceback\nbut two lines\n", "but two lines"),
        ("", ""),
    ],
)
def test_the_last_exception_is_told(text, line):
    assert headline(text) == line
