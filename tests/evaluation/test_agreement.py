"""Agreement of folds against plain sets and lists, and the sentence on the consensus."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from statistics import fmean, median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from raysel.evaluation.agreement import (
    FoldRanks,
    consensus_scores,
    consensus_sentence,
    curve_sizes,
)
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.numerics.rankings import (
    nogueira_stability,
    rank_biased_overlap,
    selection_ranks,
    top_weight,
)


def fold_ranks(scores):
    scores = np.asarray(scores, dtype=float)
    names = tuple(f"outer{i}" for i in range(len(scores)))
    ranks = np.array([selection_ranks(row) for row in scores])
    return FoldRanks(ranks, (scores > 0).sum(axis=1), names)


def best(row, n):
    """Features with a score, best first, the lower index first of equal ones."""
    return sorted((i for i, score in enumerate(row) if score > 0), key=lambda i: (-row[i], i))[:n]


def ranking(final, folds, n, **changes):
    d = len(final)
    parts = {
        "feature_names": [f"f{i}" for i in range(d)],
        "fold_names": [f"outer{i}" for i in range(len(folds))],
    }
    return FeatureRanking.from_folds(final, folds, n_selected=n, **{**parts, **changes})


tied = st.tuples(st.integers(2, 5), st.integers(2, 8)).flatmap(
    lambda shape: arrays(
        np.float64, shape, elements=st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0, 3.0])
    )
)


@given(tied, st.data())
def test_equals_plain_sets_and_lists(scores, data):
    n, folds = data.draw(st.integers(1, scores.shape[1])), fold_ranks(scores)
    sets = np.array([[i in best(row, n) for i in range(len(row))] for row in scores])
    wanted = nogueira_stability(sets)
    assert folds.stability(n).value == pytest.approx(wanted.value, nan_ok=True)
    overlap = folds.overlap(n)
    assert top_weight(overlap.p, n) == pytest.approx(0.9)
    lists = [best(row, None) for row in scores]
    pairs = {}
    for i, j in combinations(range(len(lists)), 2):
        if lists[i] and lists[j]:
            pairs[f"outer{i}", f"outer{j}"] = rank_biased_overlap(lists[i], lists[j], overlap.p)
    assert overlap.pairs == pytest.approx(pairs)
    np.testing.assert_array_equal(overlap.values, overlap.values.T)
    if not pairs:
        assert np.isnan([overlap.mean, overlap.lowest]).all()
        assert "fewer than two outer folds give a feature a score" in str(overlap)
        return
    assert overlap.mean == pytest.approx(np.mean(list(pairs.values())))
    assert overlap.lowest == pairs[overlap.lowest_pair] == min(pairs.values())


@settings(max_examples=20)
@given(
    arrays(np.float64, (4, 7), elements=st.floats(0.125, 5), unique=True),
    st.permutations(range(7)),
    st.data(),
)
def test_the_order_of_features_and_folds_does_not_matter(scores, order, data):
    rows = data.draw(st.permutations(range(4)))
    one, other = fold_ranks(scores), fold_ranks(scores[rows][:, order])
    assert one.stability(3).value == pytest.approx(other.stability(3).value)
    assert one.overlap(3).mean == pytest.approx(other.overlap(3).mean)
    assert one.overlap(3).lowest == pytest.approx(other.overlap(3).lowest)


def test_one_fold_has_neither_and_says_so():
    folds = fold_ranks([[3.0, 2.0, 1.0]])
    assert "one selection" in folds.stability(2).reason
    assert str(folds.overlap(2)) == "undefined (one outer fold)"
    assert folds.overlap(2).lowest_pair is None


def test_all_features_have_an_overlap_but_no_stability():
    folds = fold_ranks([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    assert "every set holds all features" in folds.stability(3).reason
    overlap = folds.overlap(3)
    assert 0 < overlap.lowest < overlap.mean < 1
    assert overlap.lowest_pair == ("outer0", "outer1")


@given(st.integers(1, 100_000), st.lists(st.integers(1, 200), max_size=6))
def test_the_curve_holds_what_is_asked_for_and_few_others(d, wanted):
    sizes = curve_sizes(wanted, d)
    assert sizes == sorted(set(sizes))
    assert {n for n in wanted if n <= d} <= set(sizes)
    assert (sizes[0], sizes[-1]) == (1, d)
    assert len(set(sizes) - set(wanted)) <= 24


def plain_consensus(scores):
    """Features with a score, by median and mean of their ranks, d where they have none, then by
    index.
    """
    d, lists = scores.shape[1], [best(row, None) for row in scores]
    ranks = [[own.index(i) + 1 if i in own else d for own in lists] for i in range(d)]
    keys = [(median(ranks[i]), fmean(ranks[i]), i) for i in range(d)]
    return [int(i) for i in sorted(np.flatnonzero((scores > 0).any(axis=0)), key=keys.__getitem__)]


@given(tied, st.data())
def test_the_consensus_orders_by_the_median_rank(scores, data):
    n, d = data.draw(st.integers(1, scores.shape[1])), scores.shape[1]
    given_scores, order = consensus_scores(fold_ranks(scores)), plain_consensus(scores)
    np.testing.assert_array_equal(given_scores > 0, (scores > 0).any(axis=0))
    whole = ranking(np.zeros(d), list(scores), n)
    assert whole.consensus_top(d).tolist() == order
    assert whole.consensus_top(2).tolist() == order[:2]
    assert ranking(given_scores, list(scores), n).top(d).tolist() == order


@given(tied, st.integers(1, 8))
def test_the_selection_frequency_at_any_number_is_that_of_a_ranking_with_it(scores, n):
    n = min(n, scores.shape[1])
    one = ranking(scores[0], list(scores), 1)
    wanted = ranking(scores[0], list(scores), n).selection_frequency
    np.testing.assert_array_equal(one.selection_frequency_at(n), wanted)


@given(tied, st.data())
def test_the_sentence_counts_what_is_not_in_the_consensus(scores, data):
    final = data.draw(
        arrays(np.float64, scores.shape[1], elements=st.sampled_from([0.0, 1.0, 2.0]))
    )
    n = data.draw(st.integers(1, scores.shape[1]))
    text = consensus_sentence(ranking(final, list(scores), n))
    chosen = best(final, n)
    consensus = plain_consensus(scores)[:n]
    apart = [i for i in chosen if i not in consensus]
    if not chosen:
        assert "selects no feature" in text
    elif not consensus:
        assert "have no consensus" in text
    elif len(chosen) == len(final):
        assert "no order is compared" in text
    elif apart:
        assert text.startswith(f"{len(apart)} of the final model's ")
        first = [f" f{i} " for i in apart[:3]]
        assert max(len(part.split()) for part in text.split(". ")) <= 25
        assert [text.index(name) for name in first] == sorted(text.index(name) for name in first)
        assert ("and " in text.rpartition(":")[2]) == (len(apart) > 3)
    else:
        assert text.startswith("All of the final model's ")


def test_the_sentence_names_those_that_disagree():
    folds = [[1.0, 2.0, 3.0, 4.0, 0.0], [1.0, 2.0, 4.0, 3.0, 0.0]]
    text = consensus_sentence(ranking([9.0, 1.0, 2.0, 8.0, 0.0], folds, 2))
    assert (
        text
        == "1 of the final model's top 2 is not in the top 2 of the outer folds' consensus. Folds"
        " (of 2) that select it: f0 0."
    )
    text = consensus_sentence(ranking([9.0, 0.0, 0.0, 8.0, 0.0], folds, 3))
    assert text.startswith(
        "1 of the final model's 2 scored features is not in the top 3 of the outer folds'"
        " consensus."
    )
    names = ["a\nb" + "x" * 60, *"cdef"]
    text = consensus_sentence(ranking([9.0, 1.0, 2.0, 8.0, 0.0], folds[:1], 2, feature_names=names))
    assert "\n" not in text
    assert "of one outer fold" in text
    assert "x" * 50 not in text


@pytest.mark.parametrize("n_folds", [1, 2, 4, 6])
@given(st.data())
def test_places_in_the_consensus_of_an_even_number_of_folds(n_folds, data):
    """By the mean of the two ranks in the middle, then by the mean of all; of two folds these
    are the same.
    """
    d = data.draw(st.integers(2, 7))
    kinds = st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0])
    scores = np.array([data.draw(st.lists(kinds, min_size=d, max_size=d)) for _ in range(n_folds)])
    ranks = []
    for row in scores:
        order = sorted(range(d), key=lambda i: (-row[i], i))
        places = [Fraction(1 + order.index(i)) for i in range(d)]
        ranks.append([r if s > 0 else Fraction(d) for r, s in zip(places, row, strict=True)])
    keys = [(median(column), sum(column) / n_folds) for column in zip(*ranks, strict=True)]
    expected = [1 + sum(other < key for other in keys) for key in keys]
    found = ranking(scores[0], list(scores), 1)
    assert found.consensus_place.tolist() == expected
    assert found.consensus_rank.tolist() == [float(middle) for middle, _ in keys]
    if n_folds == 2:
        assert all(middle == mean for middle, mean in keys)
    exchanged = ranking(scores[0], list(scores[::-1]), 1)
    assert exchanged.consensus_place.tolist() == expected
