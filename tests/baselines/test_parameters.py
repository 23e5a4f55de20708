"""What the parameters of methods may be, and which of two values is the simpler model."""

from __future__ import annotations

import numpy as np
import pytest

from raysel.base.registry import solver_class
from raysel.core.errors import ConfigError, DataError

#: A value outside the interval or set of a parameter, by method.
OUTSIDE = [
    ("dfs", "gamma", 0.0),
    ("dfs", "p", 2.5),
    ("gbr", "alpha", 0.0),
    ("glspfs", "local", -1.0),
    ("glspfs", "sparsity", 0.0),
    ("glspfs", "n_neighbors", 0),
    ("glspfs", "sparsity_scale", "none"),
    ("linear_svm", "C", 0.0),
    ("linear_svm", "penalty", "l3"),
    ("ml_knn", "n_neighbors", 0),
    ("ml_knn", "smoothing", 0.0),
    ("mlls", "alpha", -1.0),
    ("mlls", "beta", 0.0),
    ("rfs", "alpha", 0.0),
    ("rfs", "alpha_scale", "none"),
]
#: Parameters of which the first are those of the simpler model.
SIMPLER = [
    ("dfs", {"gamma": 1.0}, {"gamma": 0.1}),
    ("gbr", {"alpha": 1.0}, {"alpha": 0.1}),
    ("glspfs", {"sparsity": 0.5}, {"sparsity": 0.1}),
    ("linear_svm", {"penalty": "l1", "C": 1.0}, {"penalty": "l2", "C": 0.01}),
    ("linear_svm", {"penalty": "l2", "C": 0.01}, {"penalty": "l2", "C": 0.1}),
    ("rfs", {"alpha": 0.5}, {"alpha": 0.1}),
    ("ml_knn", {"n_neighbors": 9}, {"n_neighbors": 5}),
    ("ml_knn", {"smoothing": 2.0}, {"smoothing": 1.0}),
    ("mlls", {"rank": 2}, {"rank": None}),
    ("mlls", {"rank": None, "beta": 0.1}, {"rank": None, "beta": 0.01}),
    ("kernel_svm", {"C": 0.1, "gamma": 2.0}, {"C": 1.0, "gamma": 1.0}),
    ("smr", {"rank": 1, "alpha": 0.1}, {"rank": 2, "alpha": 0.5}),
    ("smr", {"rank": 2, "alpha": 0.5}, {"rank": 2, "alpha": 0.1}),
    ("smml", {"gamma1": 0.5, "gamma2": 0.1}, {"gamma1": 0.2, "gamma2": 0.2}),
    ("smml", {"gamma1": 0.2, "gamma2": 0.2}, {"gamma1": 0.1, "gamma2": 0.1}),
    ("bilinear_mtda", {"bilinear": (1, 2)}, {"bilinear": (2, 2)}),
    ("bilinear_mtda", {"bilinear": (3, 4)}, {"bilinear": None}),
    *(
        (name, {"n_components": few, "shrinkage": more}, {"n_components": many, "shrinkage": less})
        for name in (
            "mtda",
            "aligned_mtda",
            "semisupervised_mtda",
            "lda",
            "trace_ratio_lda",
            "aggregate",
        )
        for few, more, many, less in ((1, 0.0, 2, 0.5), (2, 0.5, 2, 0.1), (2, 0.1, None, 0.9))
    ),
]


def test_values_outside_their_range_are_refused():
    for name, parameter, value in OUTSIDE:
        cls = solver_class(name)
        with pytest.raises(ConfigError, match=f"'{parameter}' parameter of {cls.__name__}"):
            cls(**{parameter: value}).check(5)


def test_one_class_is_refused():
    for name in ("dfs", "gbr", "information_gain", "linear_svm", "ml_knn", "rfs"):
        with pytest.raises(DataError):
            solver_class(name)().fit(np.eye(3), np.zeros(3))


def test_the_simpler_model_has_the_smaller_key():
    for name, simple, other in SIMPLER:
        cls = solver_class(name)
        assert cls(**simple).complexity_key() < cls(**other).complexity_key(), name
