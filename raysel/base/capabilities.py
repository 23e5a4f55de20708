"""Capabilities of a method, declared by its class and checked before a study runs."""

from __future__ import annotations

from dataclasses import dataclass

#: Kinds of layouts, as in the description by ``Layout.to_json``.
TENSOR, MODALITIES, TASKS, VOLUME = "tensor", "modalities", "tasks", "volume"
#: What is said of a method with ``Capabilities.reconstructed``.
RECONSTRUCTED = "reconstructed, the authors' code was not found"
#: What is said of a method with ``Capabilities.transductive``.
TRANSDUCTIVE = "sees the features of the test samples, not their labels"


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a method.

    Parameters
    ----------
    ranks : bool or None, default=True
        Whether the method computes a score for each feature, ``scores_``. None: a fit tells, as for classes in
        scikit-learn's style.
    predicts : bool, default=False
        Whether the method has ``predict``.
    iterates : bool, default=True
        Whether the method iterates, so that early stopping can be applied; otherwise it is solved in one step.
    multilabel : bool, default=False
        Whether y may be an indicator of shape (n_samples, n_labels).
    transductive : bool, default=False
        Whether the prediction for a sample depends on the other samples passed to ``predict``.
    path : bool, default=False
        Whether the method has ``fit_path``, which fits many configurations on one training set.
    reconstructed : bool, default=False
        Whether the method is a reconstruction from its paper, because the authors' code was not found.
    local_optimum : bool, default=False
        Whether a fit ends at one of several local optima, which its start decides.
    layouts : frozenset of {"tensor", "modalities", "tasks", "volume"}, default={"tensor", "modalities", "volume"}
        Kinds of layouts that the method supports. A table without structure is a tensor of one axis.
    max_axes : int, default=None
        Largest number of axes of a sample, 2 for methods of matrices; None for any number.
    prepare_parameters : frozenset of str, default=frozenset()
        Constructor parameters that ``prepare`` depends on. Configurations with equal values of these share the
        prepared training sets.

    Examples
    --------
    >>> from dataclasses import replace
    >>> replace(Capabilities(), predicts=True).predicts
    True
    """

    ranks: bool | None = True
    predicts: bool = False
    iterates: bool = True
    multilabel: bool = False
    transductive: bool = False
    path: bool = False
    reconstructed: bool = False
    local_optimum: bool = False
    layouts: frozenset[str] = frozenset({TENSOR, MODALITIES, VOLUME})
    max_axes: int | None = None
    prepare_parameters: frozenset[str] = frozenset()
