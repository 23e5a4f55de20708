"""Rows of a table are chosen without a copy of their cells, which numbers stand for."""

from __future__ import annotations

import itertools
import pickle
import sys

import numpy as np
import pandas as pd
import pytest

from raysel.data.table_rows import TableRows
from raysel.data.task_blocks import constant_features

FRAME = pd.DataFrame(
    {
        "age": [61.5, np.nan, 1e300, -0.0, 2.0**60],
        "sex": ["w", None, "m", "w", ""],
        "stage": pd.Categorical(
            ["ii", "i", None, "i", "ii"], categories=["i", "ii", "iii"], ordered=True
        ),
        "visits": pd.array([3, None, 2**60 + 1, 0, 3], dtype="Int64"),
        "day": pd.to_datetime(["2024-05-01", None, "2023-01-31", "2024-05-01", "2024-05-02"]),
        "alive": [True, False, True, True, False],
        "count": np.array([1, 2, 3, 4, 5], dtype=np.int32),
        "mixed": [1, "1", 1.5, np.nan, None],
    }
)
ARRAY = np.array(
    [[1.5, "a", None], [np.nan, "b", 2], [1.5, np.nan, 2.5], [True, "a", None]], dtype=object
)
GAPS = np.array([[0.1, np.nan, np.nan], [np.nan, 2.0, np.nan], [0.1, -3.0, np.nan]])
TABLES = {
    "frame": FRAME,
    "objects": ARRAY,
    "numbers": GAPS,
    "single": GAPS.astype(np.float32),
    "integers": np.array([[2**60, 1], [2**60 + 1, 2], [5, 3]]),
}


def calls_of(function, *args):
    """Number of calls of Python functions and built-in ones that a function takes."""
    counted = 0

    def count(_frame, event, _arg):
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return counted


def what_a_fit_reads(samples):
    """Cells of some rows, and which of their columns are constant."""
    chosen = samples[[3, 1]]
    return chosen.cells, chosen.constant


@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("kind", [np.array, pd.DataFrame])
def test_the_work_for_a_fit_does_not_grow_with_the_columns(gaps, kind):
    counts = []
    for n_columns in (30, 3000):
        values = np.random.default_rng(0).standard_normal((6, n_columns))
        values[:, : round(gaps * n_columns)] = np.nan
        samples = TableRows.of(kind(values))
        counts.append(calls_of(what_a_fit_reads, samples))
    assert counts[1] < 1.5 * counts[0]


def same_cells(got, given):
    """Whether two frames or arrays hold the same cells of the same types."""
    if isinstance(given, pd.DataFrame):
        pd.testing.assert_frame_equal(got, given)
        pairs = [(got[name].tolist(), given[name].tolist()) for name in given]
    else:
        assert got.dtype == given.dtype
        pairs = [(got.ravel().tolist(), given.ravel().tolist())]
    return all(list(map(repr, ours)) == list(map(repr, theirs)) for ours, theirs in pairs)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("rows", [[2, 1], [0], [], slice(1, None), "mask"], ids=str)
def test_an_estimator_gets_the_rows_of_the_table(table, rows):
    rows = np.arange(len(table)) % 2 == 0 if isinstance(rows, str) else rows
    samples = TableRows.of(table)
    assert np.isfinite(samples).all()
    chosen = samples[rows]
    places = np.arange(len(table))[rows]
    expected = table.iloc[places] if isinstance(table, pd.DataFrame) else table[places]
    assert same_cells(chosen.cells, expected)
    assert chosen.shape == (len(places), table.shape[1])
    np.testing.assert_array_equal(chosen, np.asarray(samples)[rows])
    np.testing.assert_array_equal(
        chosen.constant, constant_features(np.asarray(samples)[rows].reshape(chosen.shape))
    )
    again = pickle.loads(pickle.dumps(chosen))
    assert same_cells(again.cells, expected)
    np.testing.assert_array_equal(again, chosen)


def test_a_process_is_sent_no_other_rows():
    samples = TableRows.of(np.full((1000, 50), np.nan))
    assert len(pickle.dumps(samples[:10])) < 0.05 * len(pickle.dumps(samples))


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_numbers_are_the_places_of_the_cells_of_a_column_in_order(table):
    samples = TableRows.of(table)
    for place, is_numbered in enumerate(samples.is_numbered):
        is_frame = isinstance(table, pd.DataFrame)
        cells = (table.iloc[:, place] if is_frame else table[:, place]).tolist()
        numbers = np.asarray(samples)[:, place]
        if not is_numbered:
            assert numbers.tolist() == [float(cell) for cell in cells]
            continue
        assert sorted(set(numbers.tolist())) == list(range(len(set(map(repr, cells)))))
        for one, two in itertools.combinations(range(len(cells)), 2):
            alike = repr(cells[one]) == repr(cells[two])
            assert (numbers[one] == numbers[two]) == alike
            values = cells[one], cells[two]
            if all(isinstance(cell, int | float) and not np.isnan(cell) for cell in values):
                assert (numbers[one] < numbers[two]) == (cells[one] < cells[two]) or alike
            elif pd.isna(cells[two]) and not pd.isna(cells[one]):
                assert numbers[one] < numbers[two]


def test_integers_that_floats_cannot_hold_are_told_apart():
    ids = np.array([[2**60, 1], [2**60 + 1, 2], [2**60, 3]])
    for table in (ids, ids.astype(np.uint64), pd.DataFrame(ids)):
        assert np.asarray(TableRows.of(table)).tolist() == [[0, 1], [1, 2], [0, 3]]


def test_columns_of_numbers_are_looked_at_by_their_values_and_the_medians_of_these():
    for table, columns in ((FRAME, ["age", "visits"]), (pd.DataFrame(GAPS), [0, 1, 2])):
        filled = pd.DataFrame(TableRows.of(table).filled, columns=table.columns)
        values = table[columns].astype(np.float64).astype("float64")
        expected = values.fillna(values.median()).fillna(0.0)
        np.testing.assert_array_equal(filled[columns], expected)
    others = ["sex", "stage", "day", "alive", "count", "mixed"]
    samples = TableRows.of(FRAME)
    kept, filled = (
        pd.DataFrame(np.asarray(v), columns=FRAME.columns) for v in (samples, samples.filled)
    )
    np.testing.assert_array_equal(filled[others], kept[others])
    with_text = TableRows.of(ARRAY)
    np.testing.assert_array_equal(with_text.filled[:, 2], [2.25, 2.0, 2.5, 2.25])
    np.testing.assert_array_equal(with_text.filled[:, 1], np.asarray(with_text)[:, 1])


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_column_that_is_held_has_one_cell_and_the_others_stay(table):
    samples = TableRows.of(table)
    for column in range(table.shape[1]):
        held = samples.held([column])
        again = TableRows.of(held.cells)
        assert again.constant[column]
        others = np.arange(table.shape[1]) != column
        np.testing.assert_array_equal(np.asarray(again)[:, others], np.asarray(samples)[:, others])
        assert not np.asarray(held)[:, column].any()
    assert same_cells(samples.cells, table)
