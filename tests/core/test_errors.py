"""The line of an error that says what happened."""

from __future__ import annotations

import errno
import os
import pickle
import traceback

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from raysel.core.errors import StorageError, headline, raise_storage_error


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


def test_an_error_of_the_disk_is_found_below_those_that_were_raised_from_it():
    def chained(number: int) -> Exception:
        try:
            try:
                raise OSError(number, os.strerror(number), "a.bin")
            except OSError as error:
                raise ValueError("second") from error
        except ValueError:
            try:
                raised("third")
            except ValueError as error:
                return error

    for number in (errno.ENOSPC, errno.EIO, errno.ESTALE):
        with pytest.raises(StorageError, match=f"a.bin: {os.strerror(number)}") as found:
            raise_storage_error(chained(number))
        with pytest.raises(StorageError) as again:
            raise_storage_error(found.value)
        assert again.value is found.value
        assert (
            again.value.__cause__ is not again.value
        )  # or it could not be sent to another process
        assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)
    for number in (errno.ENOENT, errno.EINVAL, errno.EACCES):  # a parameter may name a file
        raise_storage_error(chained(number))
