"""The layout of several tasks: the columns of each."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raysel.core.errors import DataError
from raysel.data.layouts import Tasks, layout_from_json

SHAPES = st.one_of(st.integers(1, 6), st.tuples(st.integers(1, 3), st.integers(1, 3)))
LAYOUTS = st.dictionaries(st.text("abc", min_size=1, max_size=3), SHAPES, min_size=1, max_size=4).map(Tasks)


@given(LAYOUTS)
def test_every_column_belongs_to_one_task(layout):
    covered = np.zeros(layout.n_features, dtype=int)
    coordinates, names = layout.coordinates(), layout.default_names()
    for name, columns in layout.slices().items():
        covered[columns] += 1
        assert set(coordinates["task"][columns]) == {name}
        np.testing.assert_array_equal(coordinates["column"][columns], np.arange(layout.widths()[name]))
    assert (covered == 1).all()
    assert len(set(names)) == len(names) == layout.n_features


@given(LAYOUTS)
def test_json_gives_the_layout_back(layout):
    again = layout_from_json(json.loads(json.dumps(layout.to_json())))
    assert again == layout
    assert list(again.tasks) == list(layout.tasks)


def test_bad_tasks_are_refused():
    for tasks in ({}, {"a": 0}, {"a": (2, -1)}, {"a": True}, {"a": ()}, {"a": 1.5}):
        with pytest.raises(DataError, match="task"):
            Tasks(tasks)
