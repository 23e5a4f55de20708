"""The suite of a method: all checks on all data sets that it takes, and studies of it."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import estimator_checks_generator

from raysel.base.adapter import ScikitLearnMethod
from raysel.base.estimator import Estimator
from raysel.data.dataset import Dataset
from raysel.data.loading import save_dataset
from raysel.data.targets import CLASSES
from raysel.execution.serial import SerialExecutor
from raysel.study.definition import Study
from raysel.testing import method_contract as contract
from raysel.testing import method_declarations as declarations
from raysel.testing import method_invariance as invariance
from raysel.testing import method_invariance as storage
from raysel.testing.checks import (
    Check,
    expecting,
    prepare_study,
    require,
    run_by,
)
from raysel.testing.method_cases import MethodCase, Samples, draw, draw_quantities, samples_for

#: R2 that a method surpasses on the suite's quantities, and does not reach on permuted ones.
_R2 = 0.1
#: Standard deviations of the accuracy of guesses that a method may lie above chance.
_BOUND = 4.0


def study_learns(case: MethodCase) -> None:
    """Nested cross-validation of the suite's data scores above what guesses would."""
    samples = _samples(case)
    if samples.of_quantities:
        score = _nested_r2(case, samples, samples.y)
        require(not case.learns or score > _R2, f"nested R2 {score:.2f} is not above {_R2}.")
        return
    score, n, chance = _nested_score(case, samples, samples.y)
    if case.learns:
        bound = chance + _BOUND * np.sqrt(chance * (1 - chance) / n)
        require(
            score > bound, f"nested accuracy {score:.2f} of {n} samples; guesses reach {bound:.2f}."
        )


def study_of_permuted_labels_finds_nothing(case: MethodCase) -> None:
    """Nested cross-validation of permuted labels scores as guesses would."""
    samples = _samples(case)
    if samples.of_quantities:
        score = _nested_r2(case, samples, np.random.default_rng(9).permutation(samples.y))
        require(score < _R2, f"nested R2 {score:.2f} of permuted quantities is above {_R2}.")
        return
    score, n, chance = _nested_score(case, samples, np.random.default_rng(9).permutation(samples.y))
    bound = chance + _BOUND * np.sqrt(chance * (1 - chance) / n)
    require(
        score < bound,
        f"nested accuracy {score:.2f} of {n} permuted labels; guesses reach {bound:.2f}.",
    )


CHECKS: tuple[Callable[[MethodCase], None], ...] = (
    study_learns,
    study_of_permuted_labels_finds_nothing,
)


def _samples(case: MethodCase) -> Samples:
    """Enough samples to tell learning from guessing, of the first layout that the method takes."""
    first = next(
        samples
        for samples in samples_for(case)
        if CLASSES not in case.capabilities.targets or not samples.of_quantities
    )
    layout = first.layout
    if layout.is_multitask:
        return first
    if first.of_quantities:
        return draw_quantities("study", layout, 90, 1, seed=8)
    return draw("study", layout, 90, 2, seed=8)


def _study(case: MethodCase, samples: Samples, y: Any, folder: Path) -> Study:
    layout = samples.layout
    save_dataset(Dataset(samples.X, y, layout, "suite"), folder / "suite.arrow")
    d = samples.X.shape[1]
    changed = dict(next(iter(case.varied), {}))
    default = {
        key: value for key, value in case.build(layout).get_params().items() if key in changed
    }
    space = {
        key: [default[key], value]
        for key, value in changed.items()
        if isinstance(default.get(key), float)
    }
    params = {key: value for key, value in case.params.items() if key not in space}
    evaluation: dict[str, Any] = {"n_features": [d // 4, d // 2], "choose_n": "best"}
    if case.capabilities.predicts:
        evaluation = {"estimator": "native"}
    if samples.of_quantities:
        evaluation = evaluation | {"metric": "out_of_sample_r2"}
        if not case.capabilities.predicts:
            evaluation = evaluation | {"estimator": "ridge"}
    config = {
        "name": "suite",
        "seed": 1,
        "dataset": {"scaling": "none"},
        "solver": {"name": case.solver_name, "params": params, "space": space},
        "evaluation": evaluation,
        "cv": {"outer": 3, "inner": 2},
        "search": {"executor": "serial", "max_concurrent": 1},
    }
    return prepare_study(folder / "suite.arrow", config)


def _nested_score(case: MethodCase, samples: Samples, y: Any) -> tuple[float, int, float]:
    """Mean accuracy on the outer test samples, their number, and the accuracy of the best guess."""
    with tempfile.TemporaryDirectory() as folder:
        study = _study(case, samples, y, Path(folder))
        finished = run_by(SerialExecutor(study), study, Path(folder, "run"))
    scores = [
        refit.record.test_score for refit in finished.refits if refit.record.test_score is not None
    ]
    _, counts = np.unique(y, return_counts=True)
    largest = (
        [part.max() for part in _by_task(y)] if samples.layout.is_multitask else [counts.max()]
    )
    return float(np.mean(scores)), len(y), float(np.sum(largest)) / len(y)


def _nested_r2(case: MethodCase, samples: Samples, y: Any) -> float:
    """Mean R2 on the outer test samples."""
    with tempfile.TemporaryDirectory() as folder:
        study = _study(case, samples, y, Path(folder))
        finished = run_by(SerialExecutor(study), study, Path(folder, "run"))
    return float(
        np.mean([r.record.test_score for r in finished.refits if r.record.test_score is not None])
    )


def _by_task(y: Any) -> list[Any]:
    """Counts of the classes of each task."""
    tasks = np.char.partition(y, "/")[:, 0]
    return [np.unique(y[tasks == task], return_counts=True)[1] for task in np.unique(tasks)]


#: The parts of the suite that are run on every data set.
_PARTS = {
    "contract": contract.CHECKS,
    "declarations": declarations.CHECKS,
    "invariance": invariance.CHECKS,
    "storage": storage.STORAGE_CHECKS,
}


def estimator_checks(
    method: str | type | MethodCase, params: Mapping[str, Any] | None = None, **knowledge: Any
) -> Iterator[Check]:
    """Generate the checks of the conformance suite of a method.

    Parameters
    ----------
    method : str, type or MethodCase
        Name or class of the method as for `MethodCase`, or a `MethodCase`.
    params : mapping, default=None
        Parameters of the constructor with which a fit takes milliseconds. None: the defaults.
    **knowledge
        Further fields of `MethodCase`: ``null_params``, ``varied``, ``tolerance``, ...

    Yields
    ------
    Check
        Checks of the kinds "contract", "declarations", "invariance", "storage", "study" and
        "scikit-learn".

    Examples
    --------
    >>> checks = estimator_checks("pca", {"n_components": 1}, objective=None)
    >>> next(check for check in checks if check.kind == "invariance")()
    """
    case = method
    if not isinstance(case, MethodCase):
        case = MethodCase(case, params or {}, **knowledge)
    yield from expecting(_checks(case), case.expected_failures)


def _checks(case: MethodCase) -> Iterator[Check]:
    for samples in samples_for(case):
        for kind, checks in _PARTS.items():
            for check in checks:
                name = f"{case.solver_name}: {check.__name__}[{samples.name}]"
                yield Check(name, partial(check, case, samples), kind)
    for study_check in CHECKS:
        yield Check(
            f"{case.solver_name}: {study_check.__name__}", partial(study_check, case), "study"
        )
    yield from _scikit_learns(case)


def _scikit_learns(case: MethodCase) -> Iterator[Check]:
    """Yield scikit-learn's own checks of the method, without a layout."""
    seeded = {"random_state": 0} if "random_state" in case.cls().get_params() else {}
    model = case.cls(**case.params, **seeded)
    estimator = model if isinstance(model, Estimator) else ScikitLearnMethod(model)
    for instance, check in estimator_checks_generator(estimator, mark=None):
        name = getattr(check, "func", check).__name__
        options = ", ".join(
            f"{key}={value}" for key, value in getattr(check, "keywords", {}).items()
        )
        if options:
            name = f"{name}({options})"
        yield Check(
            f"{case.solver_name}: scikit-learn[{name}]",
            partial(_quietly, check, clone(instance)),
            "scikit-learn",
        )


def _quietly(check: Callable[[Any], None], instance: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            check(instance)
        except (
            SkipTest
        ) as reason:  # scikit-learn's own; without pytest it would end a loop over the checks
            warnings.warn(f"not checked: {reason}", UserWarning, stacklevel=2)
