"""Small random problems for Hypothesis: samples of several classes, some features constant or
copies.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


@st.composite
def labelled_samples(draw, least_per_class=1, most_classes=4, most_features=6):
    """X and y with classes of different sizes; the last two features are a copy of the first and
    a constant.
    """
    sizes = draw(st.lists(st.integers(least_per_class, 7), min_size=2, max_size=most_classes))
    sizes[0] = max(sizes[0], 2)
    d = draw(st.integers(1, most_features))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = rng.standard_normal((len(y), d)) * 10.0 ** rng.integers(-2, 3, d)
    X += y[:, None] * rng.standard_normal(d) * X.std(axis=0)
    return np.column_stack([X, X[:, 0], np.full(len(y), 0.1)]), y
