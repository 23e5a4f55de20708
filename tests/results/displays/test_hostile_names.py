"""Names that a formula, a page or a terminal could take for something else stay on the page,
without a warning.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from drawn import HOSTILE, is_on_page
from no_warnings import no_warnings

from raysel.results.displays.agreement import RankTable, StabilityCurve
from raysel.results.displays.confusion import Confusion, LabelErrors
from raysel.results.displays.data import Images, Ranges
from raysel.results.displays.preview_data import DataPreview
from raysel.results.displays.profile import Profile
from raysel.results.displays.scores import ScoreCurve, ScoreRows
from raysel.results.displays.search import SearchSurface, TriedConfiguration
from raysel.results.scores import FoldValues

N = len(HOSTILE)
VALUES = list(itertools.product(HOSTILE, ([1], [2, 3])))


def surface(*scores):
    params = [{HOSTILE[0]: a, HOSTILE[1]: b} for a, b in VALUES]
    return SearchSurface(
        "s",
        "accuracy",
        [TriedConfiguration(p, scores[i % len(scores)]) for i, p in enumerate(params)],
    )


PARTS = [
    Images(HOSTILE[0] * 20, HOSTILE, np.zeros((N, 2, 40))),
    Ranges(
        HOSTILE[1],
        HOSTILE,
        np.tile([0.0, 1e-9, 1.0, 1e9, 1e12], (N, 1)),
        np.zeros((N, 6)),
        HOSTILE[:6],
    ),
]
CURVE = pd.DataFrame(
    [[1, 0.0, 0.0, -0.1, 0.1]],
    columns=["n_features", "stability", "noise", "noise_lowest", "noise_highest"],
)
ONE = FoldValues.of([0.5])
SCORES = {"n_features": [1, 2]} | {
    f"{name}_{what}": [0.5, 0.5] for name in ("inner", "test") for what in ("mean", "sd")
}
BOTH = [
    ScoreCurve(HOSTILE[0] * 9, "accuracy", SCORES, ONE, {HOSTILE[1]: [0.7]}, []),
    ScoreRows(HOSTILE[0], "accuracy", dict.fromkeys(HOSTILE, ONE), ["a"]),
    StabilityCurve(HOSTILE[2], CURVE, 3, chosen=1),
    RankTable(HOSTILE[0], HOSTILE, np.ones((N, N)), HOSTILE, 2, N),
    Confusion(HOSTILE[0] * 9, np.eye(N, dtype=int) + 1, HOSTILE, 1),
    LabelErrors(HOSTILE[1], np.ones((N, 4), dtype=int), HOSTILE, 1),
    Profile(HOSTILE[3], np.eye(N) - 0.5, HOSTILE, HOSTILE, N),
    Profile(HOSTILE[3], np.ones((1, N)), HOSTILE, HOSTILE[:2], N),
]
HEADED = [*BOTH, surface(0.5, None), DataPreview(HOSTILE[0] * 9, PARTS, HOSTILE[2])]


@no_warnings
@pytest.mark.parametrize(
    "make",
    [
        *(display.headed_figure for display in HEADED),
        *(pytest.param(display.figure, marks=pytest.mark.slow) for display in (*BOTH, *PARTS)),
    ],
    ids=lambda make: f"{make.__name__} of {type(make.__self__).__name__}",
)
def test_hostile_names_stay_on_the_page_without_a_warning(make):
    assert is_on_page(make())
