"""Solvers and their rivals by the name a configuration gives them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any, TypeAlias

from raysel.arrays import FloatArray
from raysel.base.iterative import IterativeEstimator
from raysel.baselines.classifiers.linear_svm import LinearSVM
from raysel.baselines.projections.aggregate import Aggregate
from raysel.baselines.projections.lda import LDA
from raysel.baselines.projections.pca import PCA
from raysel.baselines.projections.trace_ratio_lda import TraceRatioLDA
from raysel.data.layouts import Layout
from raysel.errors import ConfigError
from raysel.solvers.mtda.aligned_mtda import AlignedMTDA
from raysel.solvers.mtda.bilinear_mtda import BilinearMTDA
from raysel.solvers.mtda.mtda import MTDA
from raysel.solvers.mtda.semisupervised_mtda import SemiSupervisedMTDA
from raysel.solvers.smml.path import check_smml_path, fit_smml_path
from raysel.solvers.smml.smml import SMML
from raysel.solvers.smr.smr import SMR

SOLVERS: dict[str, type[IterativeEstimator]] = {
    "smr": SMR,
    "smml": SMML,
    "mtda": MTDA,
    "aligned_mtda": AlignedMTDA,
    "bilinear_mtda": BilinearMTDA,
    "semisupervised_mtda": SemiSupervisedMTDA,
    "pca": PCA,
    "lda": LDA,
    "linear_svm": LinearSVM,
    "trace_ratio_lda": TraceRatioLDA,
    "aggregate": Aggregate,
}

#: Solvers whose configurations on one training set help each other.
PathFitter: TypeAlias = Callable[[Sequence[Any], FloatArray, Any], Iterator[tuple[int, str]]]
PATH_FITTERS: dict[str, PathFitter] = {"smml": fit_smml_path}
PATH_CHECKS: dict[str, Callable[[Sequence[Any]], None]] = {"smml": check_smml_path}


def solver_class(name: str) -> type[IterativeEstimator]:
    """The class a configuration calls ``name``.

    Parameters
    ----------
    name : str

    Returns
    -------
    type

    Raises
    ------
    ConfigError
        If there is none, with the near one.
    """
    if name not in SOLVERS:
        raise ConfigError(f"solver.name: unknown solver {name!r}; {_hint(name, SOLVERS)}")
    return SOLVERS[name]


def build_solver(
    name: str, layout: Layout, params: Mapping[str, Any], random_state: int | None = None
) -> IterativeEstimator:
    """A solver for data of this layout.

    Parameters
    ----------
    name : str
    layout : Layout
        Supplies the solver's structural parameters, e.g. ``shape``.
    params : mapping
    random_state : int, optional
        Given to solvers that draw random numbers.

    Returns
    -------
    IterativeEstimator

    Raises
    ------
    ConfigError
        If the solver has no such parameter, or the data supply it.

    Examples
    --------
    >>> from raysel.data.layouts import Matrix
    >>> build_solver("smr", Matrix(8, 8), {"rank": 2}).shape
    (8, 8)
    """
    cls = solver_class(name)
    accepted = [p for p in signature(cls).parameters if p != "random_state"]
    for key in params:
        if key in cls.layout_parameters:
            raise ConfigError(f"solver: `{key}` comes from the data set; leave it out (set dataset.shape if need be).")
        if key == "random_state":
            raise ConfigError("solver: `random_state` comes from the study's seed; leave it out.")
        if key not in accepted:
            settable = [p for p in accepted if p not in cls.layout_parameters]
            raise ConfigError(f"solver: {name} has no parameter `{key}`; {_hint(key, settable)}")
    drawn = {"random_state": random_state} if "random_state" in signature(cls).parameters else {}
    return cls.from_layout(layout, **params, **drawn)


def path_fitter(name: str, solvers: Sequence[IterativeEstimator] = ()) -> PathFitter:
    """The function that fits many configurations of a solver on one training set.

    Parameters
    ----------
    name : str
    solvers : sequence of IterativeEstimator, default=()
        Those that it is going to fit.

    Returns
    -------
    callable
        Takes solvers, X and ``prepared``; fits each and yields its position and how it was found.

    Raises
    ------
    ConfigError
        If the solver has none, or these cannot share one.
    """
    if name not in PATH_FITTERS:
        raise ConfigError(f"search.method path: {name} has no path ({', '.join(PATH_FITTERS)} has); use grid.")
    PATH_CHECKS[name](solvers)
    return PATH_FITTERS[name]


def check_multilabel(name: str) -> None:
    """Refuse a solver that takes one label a sample only.

    Parameters
    ----------
    name : str

    Raises
    ------
    ConfigError
        With those that take several.
    """
    able = [known for known in SOLVERS if _takes_labels(solver_class(known))]
    if name not in able:
        raise ConfigError(
            f"solver.name: {name} takes one label a sample, and y is an indicator; {', '.join(able)} take several."
        )


def _takes_labels(solver: type[IterativeEstimator]) -> bool:
    tags = solver().__sklearn_tags__().classifier_tags
    return tags is not None and tags.multi_label


def _hint(word: str, known: Any) -> str:
    near = difflib.get_close_matches(word, list(known), 1)
    return f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}."
