"""The Gaussian process against the evidence written out, its differences, and scikit-learn's
regressor.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_references import draw, kernels_of, signs_of
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, WhiteKernel

from raysel.baselines.gaussian_process import GaussianProcess, negative_log_evidence
from raysel.baselines.kernel_classifiers import take_pairs


class Block(Kernel):
    """A Gaussian kernel of fixed width on some columns, for scikit-learn."""

    def __init__(self, start, stop, gamma):
        self.start, self.stop, self.gamma = start, stop, gamma

    def __call__(self, X, Y=None, eval_gradient=False):
        kernel = RBF((2 * self.gamma) ** -0.5)
        K = kernel(
            X[:, self.start : self.stop], None if Y is None else Y[:, self.start : self.stop]
        )
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X):
        return np.ones(len(X))

    def is_stationary(self):
        return False


def library_kernel(model, widths):
    stops = np.cumsum(widths)
    blocks = [
        Block(b - w, b, g) for w, b, g in zip(widths, stops, model.kernel_gammas_, strict=True)
    ]
    scaled = [
        ConstantKernel(1 / len(widths), (np.exp(-15), np.exp(10))) * block for block in blocks
    ]
    return sum(scaled[1:], scaled[0]) + WhiteKernel(0.1, (np.exp(-12), np.exp(5)))


def check_evidence(kernels, T, logs):
    """The log-density of a normal distribution, its derivatives as the notes print them, and by
    differences.
    """
    pairs, (c, n) = np.array([take_pairs(K) for K in kernels]), T.shape
    value, gradient, dual = negative_log_evidence(logs, pairs, T)
    weights = np.exp(logs)
    total = np.tensordot(weights[:-1], kernels, 1) + weights[-1] * np.eye(n)
    np.testing.assert_allclose(
        value, -multivariate_normal(np.zeros(n), total).logpdf(T).sum(), rtol=1e-9
    )
    inverse = np.linalg.inv(total)
    np.testing.assert_allclose(dual, T @ inverse, rtol=1e-6, atol=1e-8)
    slopes = [
        c * np.trace(inverse @ K) - np.trace(T @ inverse @ K @ inverse @ T.T)
        for K in [*kernels, np.eye(n)]
    ]
    np.testing.assert_allclose(gradient, 0.5 * weights * slopes, rtol=1e-6, atol=1e-6)
    step = 1e-5 * np.eye(len(logs))
    ends = [[negative_log_evidence(logs + s * d, pairs, T)[0] for s in (1, -1)] for d in step]
    np.testing.assert_allclose(gradient, np.diff(ends)[:, 0] / -2e-5, rtol=1e-4, atol=1e-4)


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.integers(2, 4), st.sampled_from([0.01, 1.0, 100.0]))
def test_evidence_and_gradient_are_as_written(seed, n_classes, gamma):
    X, y, modalities = draw(n=20, n_classes=n_classes, seed=seed)
    logs = np.random.default_rng(seed).standard_normal(4)
    check_evidence(kernels_of(X, list(modalities.values()), gamma), signs_of(y), logs)


@pytest.mark.parametrize("widths", [(5,), (2, 3, 4)])
def test_it_is_scikit_learns_regressor(widths):
    X, y, modalities = draw(n=40, widths=widths, seed=2)
    model = GaussianProcess(modalities, tol=1e-12).fit(X, y)
    T = signs_of(y).T
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # the modality of noise gets the least weight
        library = GaussianProcessRegressor(library_kernel(model, widths), alpha=0).fit(
            X, T - T.mean(axis=0)
        )
    np.testing.assert_allclose(
        model.objective_path_[0], -library.log_marginal_likelihood_value_, rtol=1e-6
    )
    theta = np.log([*model.modality_scores_, model.noise_])
    np.testing.assert_allclose(
        model.objective_path_[0], -library.log_marginal_likelihood(theta), rtol=1e-9
    )
    np.testing.assert_allclose(
        model.decision_function(X), library.predict(X) + T.mean(axis=0), atol=1e-2
    )
    fixed = library_kernel(model, widths).clone_with_theta(theta)
    same = GaussianProcessRegressor(fixed, alpha=0, optimizer=None).fit(X, T - T.mean(axis=0))
    others = X + 0.3
    np.testing.assert_allclose(
        model.decision_function(others), same.predict(others) + T.mean(axis=0), atol=1e-7
    )


def test_constant_labels_have_no_part_in_the_evidence():
    X, y, modalities = draw(n=40)
    Y = np.column_stack([y == 0, np.zeros_like(y), np.ones_like(y), y == 1]).astype(int)
    model, varied = (
        GaussianProcess(modalities).fit(X, Y),
        GaussianProcess(modalities).fit(X, Y[:, [0, 3]]),
    )
    np.testing.assert_array_equal(model.modality_scores_, varied.modality_scores_)
    np.testing.assert_array_equal(model.decision_function(X)[:, 1:3], np.tile([-1.0, 1.0], (40, 1)))
    constant = GaussianProcess(modalities).fit(X, Y[:, 1:3])
    np.testing.assert_array_equal(constant.predict(X), Y[:, 1:3])


def test_the_mean_of_a_rare_label_is_subtracted():
    X, y, modalities = draw(n=60)
    Y = np.column_stack([np.arange(60) < 2, y == 0]).astype(int)
    model = GaussianProcess(modalities).fit(X, Y)
    np.testing.assert_allclose(model.intercept_, 2 * Y.mean(axis=0) - 1)
    far = model.decision_function(X + 1e3)
    np.testing.assert_allclose(far, np.tile(model.intercept_, (60, 1)))


def test_a_weight_of_noise_is_smaller():
    X, y, modalities = draw(n=90, widths=(4, 4), spread=2.0)
    weights = GaussianProcess(modalities).fit(X, y).modality_scores_
    assert weights[1] < 0.1 * weights[0]


def test_a_fit_that_is_cut_off_warns():
    X, y, modalities = draw(n=40)
    with pytest.warns(ConvergenceWarning, match="in 1 iterations of L-BFGS-B"):
        GaussianProcess(modalities, max_iter=1).fit(X, y)
