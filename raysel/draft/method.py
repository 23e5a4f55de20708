"""Method and search space of a drafted study, by the kind and the size of the data."""

from __future__ import annotations

from typing import Any

from raysel.data.dataset import Dataset
from raysel.data.layouts import Tensor
from raysel.draft.kind import Effort, Kind, effort_of
from raysel.draft.text import Entry

#: Ranks that are tried beside that which bounds nothing, where the samples have more rows and columns.
_RANKS = (2, 4, 8)

#: Method for data that the others would take minutes a fit for.
FOR_LARGE = "fisher_score"
#: Largest number of equations, of samples or features, that each iteration of rfs may solve.
_LARGEST_SYSTEM = 1500
#: Most iterations of smml, by which the longest time of a study is estimated; on MSRC-v1, MSRC-v2, Scene and mfeat fits
#: to the duality gap of a draft took 54 at most.
_MOST_ITERATIONS = 200
#: On tables rfs with a linear SVM was within one SD of the best of eight methods on iris, wine, breast_cancer, MSRC-v1
#: and mfeat; its own prediction was not (.81 on iris, where the SVM has .95).
_OF_KIND = {
    Kind.TABLE: ("rfs", "robust regression onto the classes: one weight a column, no structure among them"),
    Kind.TENSOR: ("rfs", "one weight a cell: the methods that use rows and columns need samples of two axes"),
    Kind.MATRIX: ("smr", "sparse matrix regression: ranks the cells by a regression of low rank in rows and columns"),
    Kind.MODALITIES: ("smml", "sparse multimodal learning: weighs whole modalities and single features"),
    Kind.LABELS: ("smml", "sparse multimodal learning, which takes several labels a sample"),
}


def method_entries(dataset: Dataset, kind: Kind) -> list[Entry]:
    """Choose the solver, its parameters and the space that is searched."""
    name, why = _OF_KIND[kind]
    effort = effort_of(dataset)
    size = min(dataset.n_samples, dataset.n_features)
    if (effort is Effort.HUGE and name != "smml") or (name == "rfs" and size > _LARGEST_SYSTEM):
        why = (
            f"ratio of the scatter between and within classes, a feature at a time: a fit of {name} would take minutes"
        )
        return [Entry("solver.name", FOR_LARGE, why), Entry("search.method", "grid", "one configuration")]
    found = [Entry("solver.name", name, f"{why}; others: python -m raysel.tune --list-solvers")]
    space: dict[str, Any]
    if name == "smml":
        params = {"max_iter": _MOST_ITERATIONS, "tol": 0.001}
        found.append(Entry("solver.params", params, "iterations at most, and the duality gap at which a fit ends"))
        steps = [0.01, 0.1] if effort >= Effort.MEDIUM else [0.01, 0.03, 0.1, 0.3]
        space = {"gamma1": [0, *steps], "gamma2": [0.001, *steps]}
        unit = "gamma1 weighs modalities, gamma2 features; fractions of the value from which on nothing is selected"
        method = Entry("search.method", "path", "all values of the space in one pass over each training set")
    else:
        n_values = 3 if effort >= Effort.LARGE else 5 if name == "smr" and effort is Effort.SMALL else 4
        alpha = {"logspace": [0.003, 0.3, n_values]}
        unit = "alpha is the sparsity, as a fraction of the value from which on nothing is selected"
        method = Entry("search.method", "grid", "every combination of the space")
        if isinstance(dataset.layout, Tensor) and name == "smr":
            found.append(
                Entry("solver.params", {"max_iter": 30, "tol": 0.0001}, "iterations at most, and when to stop")
            )
            side = min(dataset.layout.shape)
            ranks = [*[rank for rank in _RANKS if rank < side][: 3 - effort], side]
            space = {"alpha": alpha, "rank": ranks}
            unit += f"; rank is that of the weights; {side} bounds nothing, so that low rank has to pay"
        else:
            space = {"alpha": alpha}
    return [*found, Entry("solver.space", space, f"what is searched: {unit}"), method]
