"""Another package's methods, metric and reader: what a user of raysel may write and install."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from raysel.base.classifiers import Selector
from raysel.base.estimator import OneShotEstimator
from raysel.data.formats.files import RawData


@dataclass(frozen=True)
class Means:
    """Class means and standard deviations of a training set."""

    means: np.ndarray
    deviations: np.ndarray


class ClassSpread(OneShotEstimator, Selector):
    """On raysel's contract: ranks features by the spread of their class means, relative to noise
    plus a floor.
    """

    def __init__(self, floor=0.1, n_features_to_select=None):
        self.floor = floor
        self.n_features_to_select = n_features_to_select

    def prepare(self, X, y):
        return Means(
            np.array([X[y == label].mean(axis=0) for label in np.unique(y)]), X.std(axis=0)
        )

    def _updates(self, X, y, prepared):
        self.scores_ = prepared.means.std(axis=0) / (prepared.deviations + self.floor)
        yield -float(self.scores_.sum())


class NearestMean(ClassifierMixin, BaseEstimator):
    """In scikit-learn's style, and ranks nothing: the class of the nearest mean, in some norm."""

    def __init__(self, order=2):
        self.order = order

    def fit(self, X, y):
        X, y = validate_data(self, X, y)
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        return self

    def predict(self, X):
        check_is_fitted(self)
        distances = np.linalg.norm(
            validate_data(self, X, reset=False)[:, None] - self.means_, ord=self.order, axis=2
        )
        return self.classes_[distances.argmin(axis=1)]


def worst_recall(y_true, y_pred):
    """The smallest share of a class that is predicted."""
    return float(min(np.mean(y_pred[y_true == label] == label) for label in np.unique(y_true)))


def read_tab(path, options):
    """Columns of numbers, the last of them the class."""
    if options.groups is not None:
        raise ValueError("a .tab has no groups")
    table = np.loadtxt(path, delimiter="\t")
    return RawData(X=table[:, :-1].copy(), y=table[:, -1].astype(int))
