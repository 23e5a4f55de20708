"""The profile of coefficients shows the numbers that it is given."""

from __future__ import annotations

import numpy as np
import pandas as pd

from raysel.results.displays.profile import Profile


def test_the_profile_is_centred_at_zero_with_signs():
    coefficients = np.array([[1.0, -2.0, 0.0], [0.5, 0.5, -4.0]])
    shown = Profile("study", coefficients, ["a", "b", "c"], ["no", "yes"], 9)
    ax = shown.plot()
    np.testing.assert_array_equal(ax.images[0].get_array(), coefficients.T)
    assert ax.images[0].get_clim() == (-4.0, 4.0)
    signs = {tuple(map(int, text.get_position())): text.get_text() for text in ax.texts}
    assert signs == {(0, 0): "+", (0, 1): "\u2212", (1, 0): "+", (1, 1): "+", (1, 2): "\u2212"}
    assert "3 best features, of 9 in all" in shown.caption
    expected = pd.DataFrame(
        {"feature": ["a", "b", "c"], "no": coefficients[0], "yes": coefficients[1]}
    )
    pd.testing.assert_frame_equal(shown.frame(), expected)


def test_the_profile_shows_as_many_features_as_there_is_room():
    shown = Profile("study", np.ones((1, 50)), [f"x{i}" for i in range(50)], ["no", "yes"], 90)
    assert len(shown.plot().patches) == len(shown.frame()) == 50
    assert len(shown.for_report().plot().patches) == 24
    (ax,) = shown.headed_figure().axes
    assert len(ax.patches) == 30
