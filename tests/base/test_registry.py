"""Solvers by name, and what they refuse before a study starts."""

from __future__ import annotations

import numpy as np
import pytest

from raysel.base.registry import SOLVERS, check_multilabel, solver_class
from raysel.errors import ConfigError

OF_LABELS = {"smml", "linear_svm"}


@pytest.mark.parametrize("name", sorted(OF_LABELS))
def test_a_method_for_several_labels_is_let_in_and_predicts_them(name):
    X = np.random.default_rng(0).standard_normal((40, 6))
    Y = (X[:, :3] > 0).astype(int)
    check_multilabel(name)
    assert (solver_class(name)().fit(X, Y).predict(X) == Y).mean() > 0.8


@pytest.mark.parametrize("name", sorted(set(SOLVERS) - OF_LABELS))
def test_a_method_for_one_label_says_which_take_several(name):
    with pytest.raises(ConfigError, match=f"{name} takes one label a sample.*smml, linear_svm take several"):
        check_multilabel(name)
