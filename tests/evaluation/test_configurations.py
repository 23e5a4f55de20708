"""From a space to configurations: the same for the same seed, each once, inside its domain."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raysel.config.space import Choices, LogSpace, RandInt, Uniform
from raysel.core.errors import ConfigError
from raysel.evaluation.configurations import Configuration, configurations

SMALL = {"rank": Choices((1, 2, 4)), "p": LogSpace(0.1, 1.0, 4), "k": RandInt(3, 7)}
SIZE = 3 * 4 * 5


def points(space, method, num_samples=None, seed=0, params=None):
    actual = configurations(params or {}, space, method=method, num_samples=num_samples, seed=seed)
    return [json.dumps(dict(c.params), sort_keys=True) for c in actual]


def test_a_grid_is_the_product_of_its_domains():
    actual = configurations({"tol": 0.5}, SMALL, method="grid", num_samples=None, seed=0)
    expected = set(itertools.product((1, 2, 4), SMALL["p"].values, range(3, 8)))
    assert {(c.params["rank"], c.params["p"], c.params["k"]) for c in actual} == expected
    assert len(actual) == SIZE
    assert (
        len(set(points({"a": RandInt(0, 2**40), "b": Choices(("x", "y"))}, "grid", 5))) == 5
    )  # of a huge grid
    assert all(c.params["tol"] == 0.5 and c.searched == ("rank", "p", "k") for c in actual)


def test_without_a_space_there_is_one_configuration():
    (only,) = configurations({"tol": 0.5}, {}, method="grid", num_samples=7, seed=0)
    assert only.params == {"tol": 0.5}
    assert only.name == "tol=0.5"
    assert configurations({}, {}, method="grid", num_samples=None, seed=0)[0].name == "default"


def test_num_samples_takes_a_seeded_sample_of_a_grid():
    whole = points(SMALL, "grid")
    some = points(SMALL, "grid", 20, seed=1)
    assert len(some) == len(set(some)) == 20
    assert [p for p in whole if p in set(some)] == some
    assert some == points(SMALL, "grid", 20, seed=1)
    assert some != points(SMALL, "grid", 20, seed=2)
    assert points(SMALL, "grid", SIZE) == points(SMALL, "grid", 10 * SIZE) == whole
    # Every configuration is as likely as any other: 200 samples of 20 in 60 leave each out about as
    # often.
    drawn = Counter(
        itertools.chain.from_iterable(points(SMALL, "grid", 20, seed=s) for s in range(200))
    )
    assert set(drawn) == set(whole)
    # chi-square of 60 cells; variance of a cell without replacement is np(1-p), 99.99 % below 2 x
    # 59.
    expected = 200 * 20 / SIZE
    assert sum((n - expected) ** 2 for n in drawn.values()) / (expected * (1 - 20 / SIZE)) < 2 * (
        SIZE - 1
    )


def test_a_grid_of_a_continuous_domain_is_refused_with_its_name():
    with pytest.raises(
        ConfigError, match=r"solver\.space\.alpha: \{'uniform': \[0, 1\]\} has no grid"
    ):
        points({"alpha": Uniform(0, 1)}, "grid")


@pytest.mark.parametrize("method", ["random", "sobol"])
def test_sampling_needs_a_size_and_a_space(method):
    with pytest.raises(ConfigError):
        points(SMALL, method)
    with pytest.raises(ConfigError):
        points({}, method, 4)
    space = {"alpha": Uniform(0, 1), "beta": Uniform(1e-3, 1, log=True)}
    assert not set(points(space, method, 16, 0)) & set(points(space, method, 16, 1))


@pytest.mark.parametrize("method", ["random", "sobol"])
def test_a_small_space_is_exhausted_and_no_more(method):
    for seed in range(5):
        assert set(points(SMALL, method, 4 * SIZE, seed)) == set(points(SMALL, "grid"))
        assert set(points({"rank": Choices((1,))}, method, 3, seed)) == set(
            points({"rank": Choices((1,))}, "grid")
        )


floats = st.floats(-1e300, 1e300)
domain = st.one_of(
    st.lists(
        st.integers() | floats | st.booleans() | st.text(max_size=3),
        min_size=1,
        max_size=5,
        unique_by=repr,
    ).map(lambda v: Choices(tuple(v))),
    st.tuples(floats, floats).filter(lambda b: b[0] < b[1]).map(lambda b: Uniform(*b)),
    st.tuples(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300))
    .filter(lambda b: b[0] < b[1])
    .map(lambda b: Uniform(*b, log=True)),
    st.tuples(st.integers(-(2**53), 2**53), st.integers(0, 2**53))
    .filter(lambda b: b[0] < b[1])
    .map(lambda b: RandInt(*b)),
    st.builds(LogSpace, st.floats(1e-9, 1e-3), st.floats(1e-2, 1e9), st.integers(1, 6)),
)


def inside(value, domain) -> bool:
    if isinstance(domain, Choices | LogSpace):
        return any(value is v or (value == v and type(value) is type(v)) for v in domain.values)
    if isinstance(domain, RandInt):
        return type(value) is int and domain.low <= value <= domain.high
    return type(value) is float and domain.low <= value <= domain.high


@given(
    space=st.dictionaries(st.sampled_from("abcd"), domain, min_size=1),
    method=st.sampled_from(["random", "sobol"]),
    n=st.integers(1, 20),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=80)
def test_samples_stay_in_their_domains_each_once_and_the_same_for_the_same_seed(
    space, method, n, seed
):
    actual = configurations({}, space, method=method, num_samples=n, seed=seed)
    assert 1 <= len(actual) <= n
    assert len({c.id for c in actual}) == len(actual)
    for configuration in actual:
        assert set(configuration.params) == set(space)
        assert all(inside(value, space[key]) for key, value in configuration.params.items())
    turned = configurations(
        {}, dict(reversed(space.items())), method=method, num_samples=n, seed=seed
    )
    assert [c.id for c in turned] == [c.id for c in actual]


def test_random_samples_follow_their_distributions():
    space = {
        "u": Uniform(-2, 6),
        "l": Uniform(1e-4, 1e4, log=True),
        "r": RandInt(-1, 2),
        "c": Choices(("a", "b", "c")),
    }
    actual = configurations({}, space, method="random", num_samples=2000, seed=3)
    # A uniform share strays by less than 5 standard errors, for each of 4 equal parts.
    bound = 5 * np.sqrt(2000 * 0.25 * 0.75)
    for parts in (
        [int((c.params["u"] + 2) // 2) for c in actual],
        [int((np.log10(c.params["l"]) + 4) // 2) for c in actual],
        [c.params["r"] + 1 for c in actual],
    ):
        assert np.abs(np.bincount(parts, minlength=4) - 500).max() < bound
    assert all(abs(n - 2000 / 3) < bound for n in Counter(c.params["c"] for c in actual).values())


def test_sobol_is_balanced_where_random_is_not():
    space = {
        "alpha": Uniform(1e-3, 1, log=True),
        "beta": Uniform(0, 8),
        "rank": Choices((1, 2, 4, 8)),
    }
    for seed in range(5):
        actual = [
            c.params for c in configurations({}, space, method="sobol", num_samples=32, seed=seed)
        ]
        strata = {int(32 * (np.log10(p["alpha"]) + 3) / 3) for p in actual}
        assert strata == set(range(32))
        assert {int(4 * p["beta"]) for p in actual} == set(range(32))
        assert set(Counter(p["rank"] for p in actual).values()) == {8}
        # Halves of one axis against quarters of another: a net in two dimensions.
        assert set(Counter((p["beta"] > 4, p["rank"]) for p in actual).values()) == {4}
    # The first n of a block are kept when n is no power of two.
    assert points(space, "sobol", 20) == points(space, "sobol", 32)[:20]


def test_an_id_is_of_the_parameters_whatever_their_order():
    one, other = (
        Configuration({"a": 1, "b": 0.5}, ("a",)),
        Configuration({"b": 0.5, "a": 1}, ("b",)),
    )
    assert one.id == other.id != Configuration({"a": 1, "b": 0.25}, ("a",)).id
    assert one.name == "a=1"
    assert Configuration({"a": 1.23456789e-7, "b": True}, ("a", "b")).name == "a=1.235e-07 b=True"
