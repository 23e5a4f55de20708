"""Methods by the name a configuration gives them; nothing is imported before its name is asked for.

A name is one of raysel's own, one that another package registers under the entry point ``raysel.estimators``, or the
dotted name of an importable class in scikit-learn's style, e.g. ``sklearn.svm.LinearSVC``.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Collection, Mapping
from inspect import Parameter, isclass, signature
from typing import Any

from raysel.base.adapter import ScikitLearnMethod, wrapped_capabilities
from raysel.base.capabilities import Capabilities
from raysel.base.estimator import Estimator
from raysel.data.layouts import Layout
from raysel.errors import ConfigError
from raysel.plugins import load_plugin, plugin_names, warn_of_clash

#: The entry point group in which other packages register estimators: on raysel's contract or in scikit-learn's style.
GROUP = "raysel.estimators"

#: raysel's own methods, ``module:Class``.
OWN: dict[str, str] = {
    "smr": "raysel.solvers.smr.smr:SMR",
    "smml": "raysel.solvers.smml.smml:SMML",
    "mtda": "raysel.solvers.mtda.mtda:MTDA",
    "aligned_mtda": "raysel.solvers.mtda.aligned_mtda:AlignedMTDA",
    "bilinear_mtda": "raysel.solvers.mtda.bilinear_mtda:BilinearMTDA",
    "semisupervised_mtda": "raysel.solvers.mtda.semisupervised_mtda:SemiSupervisedMTDA",
    "pca": "raysel.baselines.projections.pca:PCA",
    "lda": "raysel.baselines.projections.lda:LDA",
    "linear_svm": "raysel.baselines.classifiers.linear_svm:LinearSVM",
    "trace_ratio_lda": "raysel.baselines.projections.trace_ratio_lda:TraceRatioLDA",
    "aggregate": "raysel.baselines.projections.aggregate:Aggregate",
}


def solver_names() -> list[str]:
    """The registered names: raysel's own, then those of other packages.

    Returns
    -------
    list of str
    """
    return [*OWN, *(name for name in plugin_names(GROUP) if name not in OWN)]


def solver_class(name: str) -> type[Any]:
    """The class a configuration calls ``name``.

    Parameters
    ----------
    name : str

    Returns
    -------
    type
        A subclass of `Estimator`, or a class in scikit-learn's style, which `build_solver` wraps.

    Raises
    ------
    ConfigError
        If there is none, with the near one, or it is no classifier or selector.

    Examples
    --------
    >>> solver_class("sklearn.svm.LinearSVC").__name__
    'LinearSVC'
    """
    if name in OWN:
        module, _, attribute = OWN[name].partition(":")
        own: type[Any] = getattr(importlib.import_module(module), attribute)
        return own
    if name in plugin_names(GROUP):
        found = load_plugin(GROUP, name)
    elif "." in name:
        found = _imported(name)
    else:
        raise ConfigError(f"solver.name: unknown solver {name!r}; {_hint(name, solver_names())}")
    if not isclass(found):
        kind = type(found).__name__
        raise ConfigError(f"solver.name: {name} is a {kind}, not a class; name a classifier or a selector.")
    lacking = [method for method in ("fit", "get_params") if not callable(getattr(found, method, None))]
    if lacking:
        raise ConfigError(
            f"solver.name: {name} has no {' and no '.join(lacking)}; name a class in scikit-learn's style, a "
            "classifier or a selector."
        )
    return found


def imports_code(name: str) -> bool:
    """Whether to use this name imports code that is neither raysel's, nor a registered package's, nor scikit-learn's.

    Such a name is taken from the user only, never from a study's directory.

    Parameters
    ----------
    name : str

    Returns
    -------
    bool

    Examples
    --------
    >>> imports_code("mine.methods.Forest"), imports_code("sklearn.svm.LinearSVC"), imports_code("smr")
    (True, False, False)
    """
    return "." in name and not name.startswith("sklearn.") and name not in plugin_names(GROUP)


def solver_capabilities(name: str) -> Capabilities:
    """What a method can do, as far as its class tells.

    Parameters
    ----------
    name : str

    Returns
    -------
    Capabilities

    Raises
    ------
    ConfigError
        As `solver_class`.
    """
    cls = solver_class(name)
    if issubclass(cls, Estimator):
        capabilities: Capabilities = cls.capabilities
        return capabilities
    return wrapped_capabilities(cls)


def able_solvers(wanted: Callable[[Capabilities], bool]) -> str:
    """The registered methods that can do something, for an error's remedy.

    Parameters
    ----------
    wanted : callable
        Takes capabilities.

    Returns
    -------
    str
        Their names, separated by commas.
    """
    able = []
    for name in solver_names():
        try:
            if wanted(solver_capabilities(name)):
                able.append(name)
        except ConfigError:  # another package's, which cannot be imported
            continue
    return ", ".join(able)


def build_solver(name: str, layout: Layout, params: Mapping[str, Any], random_state: int | None = None) -> Estimator:
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
    Estimator

    Raises
    ------
    ConfigError
        If the solver has no such parameter, or the data supply it.

    Examples
    --------
    >>> from raysel.data.layouts import Matrix
    >>> build_solver("smr", Matrix(8, 8), {"rank": 2}).shape
    (8, 8)
    >>> build_solver("sklearn.svm.LinearSVC", Matrix(8, 8), {"C": 0.1}, random_state=0)
    ScikitLearnMethod(estimator=LinearSVC(C=0.1, random_state=0))
    """
    cls = solver_class(name)
    supplied = cls.layout_parameters if issubclass(cls, Estimator) else frozenset()
    _check_parameters(name, cls, params, supplied)
    drawn = {"random_state": random_state} if "random_state" in signature(cls).parameters else {}
    if issubclass(cls, Estimator):
        solver: Estimator = cls.from_layout(layout, **params, **drawn)
        return solver
    try:
        return ScikitLearnMethod(cls(**params, **drawn))
    except Exception as error:  # another package's constructor may raise anything
        raise ConfigError(f"solver: {name} cannot be made with these parameters: {error}") from error


def warn_of_name_clash(name: str) -> None:
    """Warn where another package registers a name of raysel's own; raysel's is used.

    Parameters
    ----------
    name : str
    """
    warn_of_clash(GROUP, name, OWN)


def _check_parameters(name: str, cls: type, params: Mapping[str, Any], supplied: Collection[str]) -> None:
    """Refuse parameters that the class has not, that the data or the study supply, and the lack of needed ones."""
    known = {key: p for key, p in signature(cls).parameters.items() if key != "random_state"}
    for key in params:
        if key in supplied:
            raise ConfigError(f"solver: `{key}` comes from the data set; leave it out (set dataset.shape if need be).")
        if key == "random_state":
            raise ConfigError("solver: `random_state` comes from the study's seed; leave it out.")
        if key not in known and Parameter.VAR_KEYWORD not in {p.kind for p in known.values()}:
            settable = [p for p in known if p not in supplied]
            raise ConfigError(f"solver: {name} has no parameter `{key}`; {_hint(key, settable)}")
    variadic = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    needed = [key for key, p in known.items() if p.default is Parameter.empty and p.kind not in variadic]
    if lacking := [key for key in needed if key not in params and key not in supplied]:
        raise ConfigError(
            f"solver: {name} needs the parameter `{lacking[0]}`; set solver.params.{lacking[0]}, or, where it is no "
            "number or word, name a class of your own that sets it."
        )


def _imported(name: str) -> Any:
    """What a dotted name stands for."""
    module, _, attribute = name.rpartition(".")
    try:
        home = importlib.import_module(module)
    except Exception as error:  # a foreign module may raise anything as it is imported
        raise ConfigError(
            f"solver.name: {module}, the module of {name}, cannot be imported ({type(error).__name__}: {error}); "
            f"install it, correct the name, or take one of {', '.join(solver_names())}."
        ) from error
    if not hasattr(home, attribute):
        public = [key for key, value in vars(home).items() if isclass(value) and not key.startswith("_")]
        raise ConfigError(f"solver.name: {module} has no {attribute!r}; {_hint(attribute, public)}")
    return getattr(home, attribute)


def _hint(word: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(word, list(known), 1)
    return f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}."
