"""No two places of a study draw from the same seed."""

from __future__ import annotations

import itertools

import numpy as np

from raysel.evaluation.plan import _PURPOSES, NestedPlan, derived_seed


def test_no_two_places_share_a_seed():
    """Over three seeds, all purposes and up to three indices from 0 to 5, zeros at the end among them."""
    places = [()] + [key for n in (1, 2, 3) for key in itertools.product(range(6), repeat=n)]
    found = [derived_seed(seed, purpose, *key) for seed in (0, 1, 7) for purpose in _PURPOSES for key in places]
    assert len(set(found)) == len(found)  # by chance two of 4662 agree with probability .003


def test_the_seeds_of_a_plan_and_its_fits_differ():
    y = np.repeat([0, 1], 40)
    plan = NestedPlan.make(y, outer=3, inner=3, repeats=3, groups=None, seed=5)
    fits = [fold.random_state(5, inner) for fold in plan.folds for inner in (None, 0, 1, 2)]
    splits = [derived_seed(5, "outer split", r) for r in range(3)]
    splits += [derived_seed(5, "inner split", fold.repeat, fold.index) for fold in plan.folds]
    assert len(set(fits + splits)) == len(fits + splits)


def test_a_seed_is_numpys_own_spawn_key():
    """The same as NumPy's documented way of giving a child its own stream."""
    child = np.random.SeedSequence(3, spawn_key=(_PURPOSES.index("refit"), 1, 2))
    assert derived_seed(3, "refit", 1, 2) == child.generate_state(1)[0]
