"""The figures of confusion show the numbers that they are given."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import is_on_page, labels
from sklearn.metrics import confusion_matrix

from raysel.results.displays.confusion import Confusion, LabelErrors


@pytest.mark.parametrize("n_classes", [7, pytest.param(40, marks=pytest.mark.slow), 100])
def test_confusion_is_normalised_by_row_with_counts_as_text(n_classes):
    rng = np.random.default_rng(0)
    true = np.repeat(np.arange(n_classes), 5)
    predicted = np.where(rng.random(len(true)) < 0.7, true, rng.integers(0, n_classes, len(true)))
    counts = confusion_matrix(true, predicted)
    shown = Confusion("study", counts, [f"person {i}" for i in range(n_classes)], 3)
    ax = shown.plot()
    np.testing.assert_allclose(
        ax.images[0].get_array(), confusion_matrix(true, predicted, normalize="true")
    )
    assert f"{(true == predicted).sum()} of {5 * n_classes} are right" in shown.caption
    if n_classes <= 60:
        at = {tuple(map(round, text.get_position())): int(text.get_text()) for text in ax.texts}
        assert at == {(c, r): counts[r, c] for r, c in zip(*np.nonzero(counts), strict=True)}
    wrong = counts - np.diag(np.diag(counts))
    row, column = np.unravel_index(wrong.argmax(), wrong.shape)
    assert (
        f"Most often confused: person {row} as person {column} ({wrong.max()} of 5)"
        in shown.caption
    )
    np.testing.assert_array_equal(shown.frame().iloc[:, 1:], counts)
    figure = shown.headed_figure()
    assert max(figure.get_size_inches()) < 13
    assert is_on_page(figure)


def test_a_class_without_samples_has_no_shares():
    assert Confusion("study", np.array([[0, 0], [1, 3]]), ["a", "b"], 1).shares.tolist() == [
        [0, 0],
        [0.25, 0.75],
    ]


def test_labels_show_found_missed_and_false_alarms():
    counts = np.array([[50, 10, 15, 25], [100, 0, 0, 0], [70, 0, 30, 0]])  # tn, fp, fn, tp
    shown = LabelErrors("study", counts, ["sky", "horse", "car"], 2)
    ax = shown.plot()
    assert [float(bar.get_width()) for bar in ax.patches] == [25, 0, 0, 15, 0, 30, -10, 0, 0]
    np.testing.assert_allclose(shown.rates(), [[25 / 35, np.nan, np.nan], [25 / 40, np.nan, 0]])
    (rates,) = ax.child_axes
    assert labels(rates.yaxis) == ["0.71   0.62", "\u2013   \u2013", "\u2013   0.00"]
    assert "100 samples for each label" in shown.caption
    np.testing.assert_array_equal(shown.frame().iloc[:, 1:], counts)
