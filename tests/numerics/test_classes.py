"""Classes against sorted sets of Python, and the refusal of a single one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.core.errors import DataError
from raysel.numerics.classes import distance_differences, distinct_classes

LABELS = st.one_of(st.lists(st.integers(-3, 3), min_size=1), st.lists(st.sampled_from("abc"), min_size=1))


@given(LABELS)
def test_codes_are_places_in_the_sorted_classes(labels):
    expected = sorted(set(labels))
    if len(expected) < 2:
        with pytest.raises(DataError) as refused:
            distinct_classes(labels)
        # The label as a user writes it, not NumPy's repr of it.
        assert str(refused.value) == f"y holds one class only ({labels[0]}); at least two are needed."
        return
    classes, codes = distinct_classes(np.array(labels))
    assert classes.tolist() == expected
    assert codes.tolist() == [expected.index(label) for label in labels]


@given(st.integers(1, 6), st.integers(2, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_it_is_the_nearest_other_class_less_the_own(n, n_classes, seed):
    nearest = np.random.default_rng(seed).integers(0, 4, (n, n_classes)).astype(float)  # with ties
    found = distance_differences(nearest)
    for row, scores in zip(nearest, found, strict=True):
        for r in range(n_classes):
            assert scores[r] == min(row[q] for q in range(n_classes) if q != r) - row[r]
        assert scores.max() == scores[row.argmin()] >= 0


def test_a_class_without_samples_is_last_and_does_not_count_for_the_others():
    found = distance_differences(np.array([[1.0, np.inf, 3.0]]))
    assert found.tolist() == [[2.0, -np.inf, -2.0]]
