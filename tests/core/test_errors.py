"""The line of an error that says what happened."""

from __future__ import annotations

import traceback

import numpy as np
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


def test_the_line_of_an_error_says_what_happened():
    advice = caught(lambda: LinearSVC().fit(np.full((4, 2), np.nan), [0, 1, 0, 1]))
    assert len(advice.rpartition("Input X contains NaN.")[2].splitlines()) > 1
    for text, line in (
        (advice, "ValueError: Input X contains NaN."),
        (caught(lambda: raised("one line")), "ValueError: one line"),
        (
            caught(lambda: raised("\nAll 5 fits failed.\nSee below")),
            "ValueError: All 5 fits failed.",
        ),
        (caught(lambda: raised("")), "ValueError"),
        (caught(from_another), "KeyError: 'b\\nc'"),
        (caught(lambda: eval("1 +", {})), "SyntaxError: invalid syntax"),
        ("no traceback\nbut two lines\n", "but two lines"),
        ("", ""),
    ):
        assert headline(text) == line
