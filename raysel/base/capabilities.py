"""What a method can do, declared by its class and asked before anything runs."""

from __future__ import annotations

from dataclasses import dataclass

#: The arrangements of columns, as a layout's ``to_json`` names them.
TENSOR, MODALITIES, TASKS = "tensor", "modalities", "tasks"


@dataclass(frozen=True)
class Capabilities:
    """What a method can do.

    Parameters
    ----------
    ranks : bool, default=True
        Whether it gives each feature a score, ``scores_``.
    predicts : bool, default=False
        Whether it has ``predict``.
    iterates : bool, default=True
        Whether it approaches its solution in iterations, which early stopping can judge; else it is solved in one step.
    multilabel : bool, default=False
        Whether y may be an indicator, (n_samples, n_labels).
    transductive : bool, default=False
        Whether what it predicts for a sample depends on the samples that are predicted with it.
    path : bool, default=False
        Whether it has ``fit_path``, which fits many configurations on one training set.
    layouts : frozenset of {"tensor", "modalities", "tasks"}, default={"tensor", "modalities"}
        The arrangements of columns that it takes. Plain columns are a tensor of one axis.
    prepare_parameters : frozenset of str, default=frozenset()
        The constructor's parameters that ``prepare`` depends on. Configurations that agree in them share what is
        prepared of a training set.

    Examples
    --------
    >>> from dataclasses import replace
    >>> replace(Capabilities(), predicts=True).predicts
    True
    """

    ranks: bool = True
    predicts: bool = False
    iterates: bool = True
    multilabel: bool = False
    transductive: bool = False
    path: bool = False
    layouts: frozenset[str] = frozenset({TENSOR, MODALITIES})
    prepare_parameters: frozenset[str] = frozenset()
