"""Results are computed once for what they depend on, and the oldest are dropped above the limit."""

from __future__ import annotations

import numpy as np
import pytest

from raysel.baselines.recent import RecentResults


def computing(counts, key, size=10):
    def compute():
        counts.append(key)
        return (np.full(size, float(len(counts))),)

    return compute


def test_each_setting_and_array_has_its_own_result():
    recent, counts = RecentResults(1000), []
    X = np.arange(6.0)
    inputs = [
        ("a", (X,)),
        ("b", (X,)),
        ("a", (X.reshape(2, 3),)),
        ("a", (X.astype(np.int64),)),
        ("a", (X, X)),
        ("a", (X[:3], X[3:])),
        ("a", (X[::-1],)),
    ]
    first = [
        recent.get(settings, arrays, computing(counts, i))
        for i, (settings, arrays) in enumerate(inputs)
    ]
    again = [recent.get(settings, arrays, computing(counts, -1)) for settings, arrays in inputs]
    assert counts == list(range(len(inputs)))
    assert all(one is other for one, other in zip(first, again, strict=True))
    with pytest.raises(ValueError, match="read-only"):
        first[0][0][0] = 0.0


def test_the_oldest_are_dropped():
    recent, counts = RecentResults(25), []  # two results of ten numbers
    for key in "abacab":
        recent.get(key, (), computing(counts, key))
    assert counts == ["a", "b", "c", "b"]  # b is the oldest when c comes, and then c
    recent.get("large", (), computing(counts, "large", 26))
    recent.get("large", (), computing(counts, "large", 26))
    assert counts[4:] == ["large", "large"]
