"""The methods that the conformance suite is run on, a line each: fast parameters, and what no
class declares.
"""

from __future__ import annotations

import numpy as np

from raysel.testing import MethodCase

#: Aggregate pools tasks whose samples it pads with zeros: columns of one place are one feature.
POOLED = {
    "feature_order[[]tasks]": "the tasks' features are pooled by their place",
    "constant_features[[]tasks]": (
        "a feature that is constant in its own task has the score of its place in the others"
    ),
}
#: Bootstraps and candidate features are drawn by position.
BY_POSITION = dict.fromkeys(
    ["sample_order*", "feature_order*"], "draws samples and features by their positions"
)

#: A direction of matrices is one of rows times one of columns, which a constant cell does not turn.
KRONECKER = dict.fromkeys(
    ["constant_features[[]matrices*", "constant_features[[]tensors*", "constant_features[[]tasks]"],
    "a constant cell shares its row and column",
)
#: From the 6 and 8 columns of the suite's tasks into a space of 5.
MAPS = {
    "tasks": {
        "aligned": [
            np.random.default_rng(seed).standard_normal((d, 5)) for seed, d in enumerate((6, 8))
        ]
    }
}
MAPPED = dict.fromkeys(
    ["feature_order[[]tasks]", "constant_features[[]tasks]"], "a given map belongs to its columns"
)

#: The paper's updates of W_i and P in turn.
ALTERNATING = {"method": "alternating"}
#: 2DLDA starts at R = [I; 0], as its paper does.
FIRST_COLUMNS = dict.fromkeys(
    ["feature_order[[]matrices*", "feature_order[[]tensors*"],
    "starts at the first columns of the samples",
)
#: Smoothing and differences are of the cells that lie beside each other.
NEIGHBOURS = {"feature_order*": "a cell has other neighbours"}
#: MCGF predicts on a graph of all samples that are given to predict.
TRANSDUCTIVE = dict.fromkeys(
    ["scikit-learn[[]check_methods_subset_invariance]"], "predictions depend on those beside"
)

CASES = [
    MethodCase(
        "smr",
        {"max_iter": 30, "tol": 1e-6},
        [{"alpha": 0.3}, {"p": 0.5}, {"init": "identity"}],
        {"alpha": 2},
    ),
    MethodCase("smml", {"tol": 1e-3}, [{"gamma1": 0.3}, {"gamma2": 0.0}], {"gamma1": 1.0}),
    MethodCase(
        "mtda",
        {"shrinkage": 0.1},
        [{"shrinkage": 0.5}, {"n_components": 1}, ALTERNATING],
        objective="rises",
    ),
    MethodCase(
        "aligned_mtda",
        {"shrinkage": 0.1},
        [{"shrinkage": 0.5}, {"share": "within"}],
        objective="rises",
        expected_failures=MAPPED,
        layout_params=MAPS,
    ),
    MethodCase(
        "bilinear_mtda",
        {"n_init": 2},
        [{"n_init": 3}],
        objective="rises",
        expected_failures=KRONECKER,
    ),
    MethodCase(
        "semisupervised_mtda",
        {"shrinkage": 0.1},
        [{"unlabelled_weight": 0.5}, {"graph_weight": 1.0}],
        objective="rises",
    ),
    MethodCase(
        "graph_net",
        {},
        [{"alpha": 0.3}, {"l1_ratio": 1.0}, {"alpha": 0.02, "alpha_scale": "absolute"}],
        {"alpha": 1.0},
        expected_failures=NEIGHBOURS,
    ),
    MethodCase(
        "tv_l1",
        {},
        [{"alpha": 0.3}, {"l1_ratio": 1.0}, {"alpha": 0.02, "alpha_scale": "absolute"}],
        {"alpha": 1.0},
        expected_failures=NEIGHBOURS,
    ),
    MethodCase(
        "sparse_group_lasso",
        {},
        [{"alpha": 0.3}, {"l1_ratio": 1.0}, {"alpha": 0.02, "alpha_scale": "absolute"}],
        {"alpha": 1.0},
    ),
    MethodCase("pca", {}, [{"n_components": 2}]),
    MethodCase("lda", {"shrinkage": 0.1}, [{"shrinkage": 0.5}]),
    MethodCase(
        "linear_svm",
        {"C": 0.05, "penalty": "l1", "tol": 1e-6},
        [{"C": 1.0}, {"penalty": "l2"}],
        {"C": 1e-5},
    ),
    MethodCase(
        "rfs", {}, [{"alpha": 0.3}, {"alpha": 0.5, "alpha_scale": "absolute"}], {"alpha": 2.0}
    ),
    MethodCase(
        "glspfs", {}, [{"local": 0.0}, {"sparsity": 0.01}, {"n_neighbors": 3}], {"sparsity": 10.0}
    ),
    MethodCase("dfs", {}, [{"gamma": 1.0}, {"p": 0.5}]),
    MethodCase("gbr", {}, [{"alpha": 1.0}]),
    MethodCase(
        "kernel_svm", {"C": 1.0}, [{"C": 10.0}, {"gamma": 0.3}, {"gamma_scale": "absolute"}]
    ),
    MethodCase(
        "mkl", {"norm": 2}, [{"C": 10.0}, {"norm": "inf"}, {"norm": 1}, {"loss": "squared"}]
    ),
    MethodCase(
        "lp_boost", {"C": 1.0}, [{"C": 10.0}, {"weights": "per_class"}, {"nu": 0.2}], agreement=0.9
    ),
    MethodCase("gaussian_process", {}, [{"gamma": 0.3}]),
    MethodCase("trace_ratio_lda", {"shrinkage": 0.1}, [{"shrinkage": 0.5}], objective="rises"),
    MethodCase(
        "random_ranking",
        {},
        expected_failures={"feature_order*": "draws features by their positions"},
    ),
    MethodCase("variance"),
    MethodCase("information_gain", {}, [{"bins": 8}]),
    MethodCase("relieff", {}, [{"n_neighbors": 3}]),
    MethodCase(
        "fisher_score",
        {},
        [{"criterion": "set"}, {"criterion": "set", "gamma": 0.1, "n_ranked": 3}],
    ),
    MethodCase("t_test", {}, [{"aggregate": "mean"}]),
    MethodCase("mrmr", {}, [{"criterion": "MIQ"}, {"bins": 3}, {"n_ranked": 2}]),
    MethodCase("smoothed_f_test", {}, [{"width": 0}, {"width": 0.7}], expected_failures=NEIGHBOURS),
    MethodCase(
        "aggregate",
        {"shrinkage": 0.1},
        [{"shrinkage": 0.5}, {"criterion": "ratio_trace"}, {"intermediate_dim": 3}],
        objective="rises",
        expected_failures=POOLED,
    ),
    MethodCase(
        "multilinear_lda", {"shrinkage": 0.1}, [{"passes": 2}], expected_failures=FIRST_COLUMNS
    ),
    MethodCase(
        "two_dimensional_lda",
        {"shrinkage": 0.1},
        [{"shrinkage": 0.5}, {"passes": 2}],
        expected_failures=FIRST_COLUMNS,
    ),
    MethodCase("nearest_neighbor", {}, [{"n_neighbors": 3}]),
    MethodCase(
        "ml_knn", {"n_neighbors": 5}, [{"n_neighbors": 3}, {"smoothing": 0.5}], agreement=0.95
    ),
    MethodCase("mcgf", {}, [{"alpha": 0.25}, {"beta": 0.1}], expected_failures=TRANSDUCTIVE),
    MethodCase("mlls", {}, [{"alpha": 0.1}, {"beta": 0.1}, {"rank": 1}]),
    MethodCase("sklearn.linear_model.LogisticRegression", {"C": 0.5}, [{"C": 0.1}], tolerance=1e-3),
    MethodCase(
        "sklearn.ensemble.RandomForestClassifier",
        {"n_estimators": 5},
        expected_failures=BY_POSITION,
    ),
    MethodCase("sklearn.feature_selection.SelectKBest", {"k": 3}),
    MethodCase(
        "smr_regressor",
        {"max_iter": 30, "tol": 1e-6},
        [{"alpha": 0.3}, {"p": 0.5}, {"init": "identity"}],
        {"alpha": 2},
    ),
    MethodCase(
        "graph_net_regressor",
        {},
        [{"alpha": 0.3}, {"l1_ratio": 1.0}, {"alpha": 0.02, "alpha_scale": "absolute"}],
        {"alpha": 1.0},
        expected_failures=NEIGHBOURS,
    ),
    MethodCase(
        "tv_l1_regressor",
        {},
        [{"alpha": 0.3}, {"l1_ratio": 1.0}, {"alpha": 0.02, "alpha_scale": "absolute"}],
        {"alpha": 1.0},
        expected_failures=NEIGHBOURS,
    ),
    MethodCase(
        "sparse_group_lasso_regressor",
        {},
        [{"alpha": 0.3}, {"l1_ratio": 0.0}, {"alpha": 0.02, "alpha_scale": "absolute"}],
        {"alpha": 1.0},
    ),
    MethodCase(
        "rfs_regressor",
        {},
        [{"alpha": 0.3}, {"alpha": 0.5, "alpha_scale": "absolute"}],
        {"alpha": 2.0},
    ),
    MethodCase(
        "glspfs_regressor",
        {},
        [{"local": 0.0}, {"sparsity": 0.01}, {"n_neighbors": 3}],
        {"sparsity": 10.0},
    ),
    MethodCase("gbr_regressor", {}, [{"alpha": 1.0}]),
    MethodCase("mlls_regressor", {}, [{"alpha": 0.1}, {"beta": 0.1}]),
    MethodCase("f_test"),
    MethodCase("mutual_information", {}, [{"n_neighbors": 5}]),
    MethodCase("mrmr_quantities", {}, [{"criterion": "MIQ"}, {"bins": 3}, {"n_ranked": 2}]),
    MethodCase("rrelieff", {}, [{"n_neighbors": 3}, {"sigma": 2.0}]),
    MethodCase(
        "smoothed_f_test_quantities",
        {},
        [{"width": 0}, {"width": 0.7}],
        expected_failures=NEIGHBOURS,
    ),
    MethodCase("sklearn.linear_model.Lasso", {"alpha": 0.1, "tol": 1e-9}, [{"alpha": 1.0}]),
    MethodCase(
        "sklearn.ensemble.RandomForestRegressor", {"n_estimators": 5}, expected_failures=BY_POSITION
    ),
]


#: Methods whose checks are quick, one of each base class of raysel and role of scikit-learn's, and
#: the data sets that they are quick on: together all of the suite's.
QUICK = {
    "smr": ("tensors of order 3, 2 classes", "matrices, 3 classes"),
    "smml": ("modalities, 3 classes", "modalities, 3 labels"),
    "mtda": ("tasks", "more features than samples"),
    "graph_net": ("matrices, 3 labels",),
    "pca": ("tensors of order 3, 2 classes", "tasks"),
    "kernel_svm": ("modalities, 3 labels", "more features than samples"),
    "variance": ("masked volumes, 3 classes", "matrices, 3 classes"),
    "sklearn.linear_model.LogisticRegression": (
        "matrices, 3 classes",
        "more features than samples",
    ),
    "sklearn.feature_selection.SelectKBest": ("masked volumes, 3 classes", "modalities, 3 classes"),
    "smr_regressor": ("vectors, 1 quantity", "matrices, 2 quantities"),
    "graph_net_regressor": ("vectors, 1 quantity",),
    "f_test": ("more features than samples, 1 quantity", "modalities, 2 quantities"),
    "sklearn.linear_model.Lasso": ("matrices, 1 quantity", "modalities, 1 quantity"),
}
