"""Registry of methods by name, each imported when it is used, and their docstrings.

A name is one of raysel's own, one that another package registers under the entry point
``raysel.estimators``, or the dotted name of an importable class in scikit-learn's style, e.g.
``sklearn.svm.LinearSVC``.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from inspect import Parameter, isclass, signature
from typing import Any

from raysel.base.adapter import ScikitLearnMethod, wrapped_capabilities
from raysel.base.estimator import Capabilities, Estimator
from raysel.core.errors import ConfigError, suggestion
from raysel.core.plugins import import_dotted, is_imported, load_plugin, plugin_names, warn_of_clash
from raysel.data.layouts import Layout
from raysel.data.targets import QUANTITIES


def summary(cls: type) -> str:
    """First line of a docstring."""
    return (inspect.getdoc(cls) or "").partition("\n")[0].replace("``", "")


def parameter_texts(cls: type) -> dict[str, tuple[str, str]]:
    """Type and description of each parameter, by its name."""
    entries = re.findall(
        r"^(\w.*?) : (.*)\n((?:(?:[ ].*)?(?:\n|\Z))*)", _section(cls, "Parameters"), re.MULTILINE
    )
    texts: dict[str, tuple[str, str]] = {}
    for names, kind, text in entries:
        described = kind, " ".join(text.replace("``", "").split())
        texts |= dict.fromkeys(map(str.strip, names.split(",")), described)
    return texts


def papers(cls: type) -> str:
    """References of a docstring as one text, without their numbers."""
    return " ".join(
        re.sub(r"^\.\. \[\d+\]", "", _section(cls, "References"), flags=re.MULTILINE).split()
    )


def _section(cls: type, title: str) -> str:
    match = re.search(
        rf"^{title}\n-+\n(.*?)(?=\n\n\w[\w ]*\n---|\Z)",
        inspect.getdoc(cls) or "",
        re.MULTILINE | re.DOTALL,
    )
    if match is None:
        return ""
    return f"{match[1]}\n"


#: Entry point group in which other packages register subclasses of `Estimator` or classes in
#: scikit-learn's style.
GROUP = "raysel.estimators"

#: raysel's own methods as ``module:Class``.
OWN: dict[str, str] = {
    "smr": "raysel.solvers.smr.smr:SMR",
    "smml": "raysel.solvers.smml.smml:SMML",
    "mtda": "raysel.solvers.mtda.mtda:MTDA",
    "aligned_mtda": "raysel.solvers.mtda.aligned_mtda:AlignedMTDA",
    "bilinear_mtda": "raysel.solvers.mtda.bilinear_mtda:BilinearMTDA",
    "semisupervised_mtda": "raysel.solvers.mtda.semisupervised_mtda:SemiSupervisedMTDA",
    "graph_net": "raysel.solvers.spatial.graph_net:GraphNet",
    "tv_l1": "raysel.solvers.spatial.tv_l1:TVL1",
    "sparse_group_lasso": "raysel.solvers.grouped.sparse_group_lasso:SparseGroupLasso",
    "pca": "raysel.baselines.linear_projections:PCA",
    "lda": "raysel.baselines.linear_projections:LDA",
    "linear_svm": "raysel.baselines.linear_svm:LinearSVM",
    "rfs": "raysel.baselines.rfs:RFS",
    "glspfs": "raysel.baselines.glspfs:GLSPFS",
    "dfs": "raysel.baselines.dfs:DFS",
    "gbr": "raysel.baselines.least_squares:BilinearRegression",
    "kernel_svm": "raysel.baselines.kernel_classifiers:KernelSVM",
    "mkl": "raysel.baselines.mkl:MKL",
    "lp_boost": "raysel.baselines.lp_boost:LPBoost",
    "gaussian_process": "raysel.baselines.gaussian_process:GaussianProcess",
    "trace_ratio_lda": "raysel.baselines.linear_projections:TraceRatioLDA",
    "aggregate": "raysel.baselines.aggregate:Aggregate",
    "random_ranking": "raysel.baselines.univariate_filters:RandomRanking",
    "variance": "raysel.baselines.univariate_filters:Variance",
    "information_gain": "raysel.baselines.univariate_filters:InformationGain",
    "relieff": "raysel.baselines.multivariate_filters:ReliefF",
    "fisher_score": "raysel.baselines.univariate_filters:FisherScore",
    "t_test": "raysel.baselines.univariate_filters:TTest",
    "mrmr": "raysel.baselines.multivariate_filters:MRMR",
    "smoothed_f_test": "raysel.baselines.smoothed_filters:SmoothedFTest",
    "multilinear_lda": "raysel.baselines.two_dimensional_lda:MultilinearLDA",
    "two_dimensional_lda": "raysel.baselines.two_dimensional_lda:TwoDimensionalLDA",
    "nearest_neighbor": "raysel.baselines.nearest_neighbours:NearestNeighbor",
    "ml_knn": "raysel.baselines.nearest_neighbours:MLkNN",
    "mcgf": "raysel.baselines.mcgf:MCGF",
    "mlls": "raysel.baselines.least_squares:MLLS",
    "smr_regressor": "raysel.solvers.smr.smr:SMRRegressor",
    "graph_net_regressor": "raysel.solvers.spatial.graph_net:GraphNetRegressor",
    "tv_l1_regressor": "raysel.solvers.spatial.tv_l1:TVL1Regressor",
    "sparse_group_lasso_regressor": (
        "raysel.solvers.grouped.sparse_group_lasso:SparseGroupLassoRegressor"
    ),
    "rfs_regressor": "raysel.baselines.rfs:RFSRegressor",
    "glspfs_regressor": "raysel.baselines.glspfs:GLSPFSRegressor",
    "gbr_regressor": "raysel.baselines.least_squares:BilinearRegressor",
    "mlls_regressor": "raysel.baselines.least_squares:MLLSRegressor",
    "f_test": "raysel.baselines.quantity_filters:FTest",
    "mutual_information": "raysel.baselines.quantity_filters:MutualInformation",
    "mrmr_quantities": "raysel.baselines.quantity_filters:MRMRQuantities",
    "rrelieff": "raysel.baselines.quantity_filters:RReliefF",
    "smoothed_f_test_quantities": "raysel.baselines.smoothed_filters:SmoothedFTestQuantities",
}

#: Methods of classes with one of quantities, of this name and ``_regressor``.
_WITH_REGRESSOR = (
    *("smr", "graph_net", "tv_l1", "sparse_group_lasso"),
    *("rfs", "glspfs", "gbr", "mlls"),
)

#: Methods of a kind of target that stand in for those of classes: ``solver.name: smr`` is
#: smr_regressor for a quantity.
STAND_INS = {
    QUANTITIES: {
        **{name: f"{name}_regressor" for name in _WITH_REGRESSOR},
        "mrmr": "mrmr_quantities",
        "relieff": "rrelieff",
        "smoothed_f_test": "smoothed_f_test_quantities",
    }
}

_EXAMPLE = "write a dotted name such as sklearn.svm.LinearSVC."


def solver_names() -> list[str]:
    """List the registered names of methods."""
    return [*OWN, *(name for name in plugin_names(GROUP) if name not in OWN)]


def solver_class(name: str) -> type[Any]:
    """Import the class of a method."""
    if name in OWN:
        module, _, attribute = OWN[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
    if name in plugin_names(GROUP):
        cls = load_plugin(GROUP, name)
    elif "." in name:
        cls = import_dotted(
            name, "solver.name", example=_EXAMPLE, registered=solver_names(), is_wanted=isclass
        )
    else:
        raise ConfigError(f"solver.name: unknown solver {name!r}; {_hint(name, solver_names())}")
    if not isclass(cls):
        kind = type(cls).__name__
        raise ConfigError(
            f"solver.name: {name} is a {kind}, not a class; give a classifier or a selector."
        )
    if issubclass(cls, Estimator):
        lacking = [
            key
            for key in dir(cls)
            if getattr(getattr(cls, key, None), "__isabstractmethod__", False)
        ]
        if lacking:
            raise ConfigError(
                f"solver.name: {name} derives from raysel's Estimator and lacks"
                f" {', '.join(lacking)}; implement them."
            )
    missing = [
        method for method in ("fit", "get_params") if not callable(getattr(cls, method, None))
    ]
    if missing:
        raise ConfigError(
            f"solver.name: {name} has no {' and no '.join(missing)}; give a classifier, regressor"
            " or selector in scikit-learn's style."
        )
    return cls


def registered_method(name: str) -> type[Estimator] | None:
    """Return the class of a registered method; None of any other, or if it cannot be imported."""
    if name not in solver_names():
        return None
    try:
        cls = solver_class(name)
    except ConfigError:  # a method of another package that cannot be imported
        return None
    if issubclass(cls, Estimator):
        return cls
    return None


def find_method(name: str, target: str) -> str:
    """Return the name of the method that a name stands for where y is of this kind."""
    return STAND_INS.get(target, {}).get(name, name)


def imports_code(name: str) -> bool:
    """Whether a method is the user's own code, see `raysel.core.plugins.is_imported`."""
    return is_imported(name, GROUP)


def solver_capabilities(name: str) -> Capabilities:
    """Return the capabilities of a method."""
    cls = solver_class(name)
    if issubclass(cls, Estimator):
        return cls.capabilities
    return wrapped_capabilities(cls)


def able_solvers(wanted: Callable[[Capabilities], bool]) -> str:
    """List the registered methods with some capability, for error messages."""
    able = []
    for name in solver_names():
        try:
            if wanted(solver_capabilities(name)):
                able.append(name)
        except ConfigError:  # a method of another package that cannot be imported
            continue
    return ", ".join(able)


def build_solver(
    name: str,
    layout: Layout,
    params: Mapping[str, Any],
    random_state: int | None = None,
    importance: str | None = None,
    groups: Mapping[str, Any] | None = None,
) -> Estimator:
    """Make a method for data of a layout, in scikit-learn's style one with an importance.

    ``groups`` are those of the features, for a method that takes them.
    """
    cls = solver_class(name)
    supplied: frozenset[str] = frozenset()
    if issubclass(cls, Estimator):
        grouped = {"groups"} if cls.capabilities.grouped else frozenset()
        supplied = cls.layout_parameters | grouped
    _check_parameters(name, cls, params, supplied)
    seed = {"random_state": random_state} if "random_state" in signature(cls).parameters else {}
    if issubclass(cls, Estimator):
        known = {} if groups is None else {"groups": groups}
        return cls.from_layout(layout, **params, **known, **seed)
    try:
        made = cls(**params, **seed)
    except Exception as error:  # a third-party constructor may raise any exception
        raise ConfigError(
            f"solver: {name} cannot be constructed with these parameters: {error}"
        ) from error
    if importance:
        from raysel.base.importance import PermutationImportance  # noqa: PLC0415 - loads ensembles

        made = PermutationImportance(made, importance)
    return ScikitLearnMethod(made)


def warn_of_name_clash(name: str) -> None:
    """Warn if another package registers the name of a method of raysel, which is used."""
    warn_of_clash(GROUP, name, OWN)


def _check_parameters(
    name: str, cls: type, params: Mapping[str, Any], supplied: Collection[str]
) -> None:
    """Check that all parameters exist and may be set, and that no required one is missing."""
    known = {key: p for key, p in signature(cls).parameters.items() if key != "random_state"}
    for key in params:
        if key in supplied:
            raise ConfigError(
                f"solver: `{key}` is set from the data set; remove it (set dataset.shape to change"
                " the shape, dataset.feature_groups to change groups)."
            )
        if key == "random_state":
            raise ConfigError("solver: `random_state` is set from the study's seed; remove it.")
        if key not in known and Parameter.VAR_KEYWORD not in {p.kind for p in known.values()}:
            settable = [p for p in known if p not in supplied]
            raise ConfigError(f"solver: {name} has no parameter `{key}`; {_hint(key, settable)}")
    variadic = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    required = [
        key for key, p in known.items() if p.default is Parameter.empty and p.kind not in variadic
    ]
    if missing := [key for key in required if key not in params and key not in supplied]:
        raise ConfigError(
            f"solver: {name} requires the parameter `{missing[0]}`; set solver.params.{missing[0]}."
            " If its value is neither a number nor text, write a subclass that sets it."
        )


def _hint(word: str, known: Collection[str]) -> str:
    return suggestion(word, known, f"known: {', '.join(known)}.")
