"""Blocks of several tasks against the padded array that they stand for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raysel.core.errors import DataError
from raysel.data.layouts import Tasks
from raysel.data.task_blocks import TaskBlocks, as_task_blocks

WIDTHS = st.lists(st.integers(1, 4), min_size=2, max_size=4)


def padded(owners, widths, seed=0):
    """A padded array, written value by value."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *widths])
    X = np.full((len(owners), starts[-1]), np.nan)
    for row, task in zip(X, owners, strict=True):
        row[starts[task] : starts[task + 1]] = rng.standard_normal(widths[task])
    return X


def make(owners, widths, seed=0):
    X = padded(owners, widths, seed)
    layout = Tasks({f"t{i}": width for i, width in enumerate(widths)})
    return X, layout, TaskBlocks.from_dense(X, layout)


@st.composite
def mixed(draw):
    widths = draw(WIDTHS)
    owners = draw(st.lists(st.integers(0, len(widths) - 1), min_size=1, max_size=12))
    return np.array(owners), widths


@given(mixed())
def test_a_padded_array_is_taken_apart_and_put_together(given_tasks):
    owners, widths = given_tasks
    X, layout, blocks = make(owners, widths)
    np.testing.assert_array_equal(blocks.tasks, owners)
    assert blocks.dense().tobytes() == X.tobytes()
    assert (len(blocks), blocks.shape) == (len(X), X.shape)
    assert blocks.nbytes == np.isfinite(X).sum() * 8 + owners.size * 8
    for block in blocks.blocks:
        assert block.flags.c_contiguous
        assert not block.flags.writeable
    for (rows, columns, block), own in zip(blocks.parts(), layout.slices().values(), strict=True):
        assert columns == own
        np.testing.assert_array_equal(X[rows, columns], block)


@given(mixed(), st.data())
def test_rows_are_taken_as_from_the_padded_array(given_tasks, data):
    X, _, blocks = make(*given_tasks)
    n = len(X)
    for rows in (
        np.array(
            data.draw(st.lists(st.integers(-n, n - 1), max_size=8)), dtype=int
        ),  # repeated and out of order
        np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n))),
        data.draw(st.slices(n)),
    ):
        assert blocks[rows].dense().tobytes() == X[rows].tobytes()
    with pytest.raises(TypeError, match="indexed by a slice"):
        blocks[0]


def test_a_writable_array_is_copied_and_a_protected_one_shared():
    mine, owners = np.ones((2, 3)), np.array([0, 0])
    kept = TaskBlocks((mine,), owners)
    mine[:], owners[:] = 7, 7
    assert kept.dense().tolist() == [[1.0] * 3] * 2
    mine.flags.writeable = False
    assert np.shares_memory(TaskBlocks((mine,), np.array([0, 0])).blocks[0], mine)
    with pytest.raises(ValueError, match="read-only"):
        kept.blocks[0][0] = 1
    assert repr(kept) == "TaskBlocks(2 x 3)"


def test_pickle_hands_out_the_blocks_without_a_copy():
    """As Ray's object store does: buffers stand outside the pickle and are shared by whoever
    reads it.
    """
    _, _, blocks = make(np.array([0, 1, 0, 1]), [300, 200])
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(blocks, protocol=5, buffer_callback=buffers.append)
    back = pickle.loads(stream, buffers=buffers)
    assert len(stream) < blocks.nbytes / 8
    for mine, theirs in zip(blocks.blocks, back.blocks, strict=True):
        assert np.shares_memory(mine, theirs)
    np.testing.assert_array_equal(back.dense(), blocks.dense())


def test_numpy_makes_no_padded_array_unasked():
    _, _, blocks = make(np.array([0, 1]), [1, 2])
    for convert in (np.asarray, np.isnan):
        with pytest.raises(TypeError, match=r"call dense\(\)"):
            convert(blocks)


@pytest.mark.parametrize(
    ("blocks", "tasks", "message"),
    [
        ((np.ones(3),), [0], r"block of task 0 has shape \(3,\)"),
        ((np.array([["a"]]),), [0], "dtype <U1"),
        ((np.ones((1, 2)), np.ones((1, 2))), [[0, 1]], r"tasks has shape \(1, 2\)"),
        ((np.ones((1, 2)), np.ones((1, 2))), [0.0, 1.0], "one whole number for each sample"),
        ((np.ones((1, 2)), np.ones((1, 2))), [0, 2], "runs from 0 to 2, but there are 2 blocks"),
        ((np.ones((1, 2)), np.ones((1, 2))), [-1, 0], "runs from -1"),
        (
            (np.ones((1, 2)), np.ones((2, 2))),
            [0, 0, 1],
            r"\[2, 1\] samples in each task, but the blocks have \[1, 2\]",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused(blocks, tasks, message):
    with pytest.raises(DataError, match=message):
        TaskBlocks(blocks, np.array(tasks))


def test_samples_of_no_task_or_of_several_are_refused():
    X, layout, blocks = make(np.array([0, 1, 1]), [2, 3])
    for row, columns, value, message in (
        (1, slice(0, 2), 0.0, r"sample 1 has values in the columns of 2 tasks \['t0', 't1'\]"),
        (2, slice(2, 5), np.nan, r"sample 2 has values in the columns of 0 tasks"),
        (2, slice(3, 4), np.nan, "sample 2 of task 't1' has NaN in the columns of its own task"),
    ):
        spoilt = X.copy()
        spoilt[row, columns] = value
        with pytest.raises(DataError, match=message):
            TaskBlocks.from_dense(spoilt, layout)
    assert as_task_blocks(blocks, layout) is blocks
    with pytest.raises(DataError):
        as_task_blocks(blocks, Tasks({"a": 3, "b": 2}))
