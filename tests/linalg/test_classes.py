"""Classes against sorted sets of Python, and the refusal of a single one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raysel.core.errors import DataError
from raysel.numerics.classes import distinct_classes

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
