"""Data of the pictures of a finished study."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from raysel.core.arrays import FloatArray
from raysel.evaluation.plan import FINAL
from raysel.results import texts
from raysel.results.agreement import source_ranking
from raysel.results.numbers import StudyNumbers

_GROUPS = 5  # groups of the values of a parameter of many values


@dataclass(frozen=True)
class TriedConfiguration:
    """A configuration as the figure shows it."""

    params: Mapping[str, Any]
    score: float | None
    n_winners: int = 0
    is_model: bool = False
    stopped: bool = False
    fold: str = ""


def shown_parameters(tried: Sequence[TriedConfiguration]) -> list[str]:
    """Choose at most two of the parameters that vary: those whose values explain most of the variance of the score.

    The share of a pair is the variance of the mean scores of the pair's cells; the values of a number with many of
    them are divided into five groups of equal size first. The order is that of the parameters.
    """
    varying = varying_parameters(tried)
    scored = [one for one in tried if one.score is not None]
    if len(varying) <= 2 or not scored:
        return varying[:2]
    scores = np.array([one.score for one in scored], dtype=float)
    groups = {name: _groups([one.params.get(name) for one in scored]) for name in varying}

    def explained(pair: tuple[str, str]) -> float:
        cells: dict[tuple[int, int], list[float]] = {}
        for a, b, score in zip(groups[pair[0]], groups[pair[1]], scores, strict=True):
            cells.setdefault((a, b), []).append(score)
        return round(sum(len(own) * (np.mean(own) - scores.mean()) ** 2 for own in cells.values()), 12)

    pairs = [(a, b) for i, a in enumerate(varying) for b in varying[i + 1 :]]
    best = max(pairs, key=explained)
    return [*best]


def varying_parameters(tried: Sequence[TriedConfiguration]) -> list[str]:
    """Return the names of the parameters that have several values."""
    names = dict.fromkeys(name for one in tried for name in one.params)
    return [name for name in names if len({repr(one.params.get(name)) for one in tried}) > 1]


def is_number(value: Any) -> bool:
    """Return whether the value of a parameter is a number; True and False are none."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))


def distinct_values(tried: Sequence[TriedConfiguration], name: str) -> list[Any]:
    """Return the distinct values of a parameter: numbers increasing, then the others in their order."""
    found = {repr(one.params.get(name)): one.params.get(name) for one in tried}
    numbers: list[Any] = [value for value in found.values() if is_number(value)]
    return [*sorted(numbers), *(value for value in found.values() if not is_number(value))]


def _groups(values: Sequence[Any]) -> list[int]:
    keys = [repr(value) for value in values]
    distinct = list(dict.fromkeys(keys))
    if len(distinct) > _GROUPS and all(is_number(value) for value in values):
        numbers = np.array(values, dtype=float)
        return np.searchsorted(np.quantile(numbers, np.linspace(0, 1, _GROUPS + 1)[1:-1]), numbers).tolist()
    return [distinct.index(key) for key in keys]


def is_grid(tried: Sequence[TriedConfiguration], names: Sequence[str]) -> bool:
    """Return whether the configurations fill most cells of the grid of the two parameters' values."""
    pairs = {tuple(repr(one.params.get(name)) for name in names) for one in tried}
    n_cells = np.prod([len(distinct_values(tried, name)) for name in names])
    return bool(len(pairs) >= 0.6 * n_cells)


def score_curves(result: StudyNumbers) -> dict[str, Any]:
    """Return the arguments of `plot_score_curve`: scores of each outer fold for each number of features."""
    outer = result.outer
    n_features = [int(n) for n in result.score_curves()["n_features"]]
    inner = [refit.inner_curve for refit in outer]
    if not all(inner):  # a study of raysel 0.1 or 0.2, whose mean over several numbers belongs to none of them
        inner = [] if len(n_features) > 1 else [[refit.inner_score] for refit in outer]
    rows = len(n_features) < 2  # rows name the reference in full
    curves = {
        texts.reference_name(result.facts, name) if rows else name: np.array(
            [refit.references[reference.recorded] for refit in outer]
        )
        for name, reference in result.references.items()
    }
    return {
        "n_features": n_features,
        "test": np.array([refit.test_scores for refit in outer]),
        "inner": np.array(inner),
        "metric": result.metric,
        "references": curves,
        "chosen": [refit.n_features for refit in outer if refit.position is not None],
    }


def stability_curve(result: StudyNumbers) -> dict[str, Any]:
    """Return the arguments of `plot_stability`: the stability of the outer folds' best features by their number."""
    result.check_ranks()
    table = result.stability_curve()
    return {
        "n_features": table["n_features"].tolist(),
        "stability": table["stability"].to_numpy(),
        "noise": table[["noise", "noise_lowest", "noise_highest"]].to_numpy(),
        "chosen": result.default_top if result.has_final else None,
    }


def tried_configurations(result: StudyNumbers) -> list[TriedConfiguration]:
    """Return the configurations of the search with their mean validation scores over the outer folds."""
    found = _tried(result, by_fold=False)
    by_fold = len(varying_parameters(found)) == 1 and any(record.fold for record in result.records)
    return _tried(result, by_fold=True) if by_fold else found


def _tried(result: StudyNumbers, *, by_fold: bool) -> list[TriedConfiguration]:
    rule = result.stored.study.choose_n
    by_params: dict[tuple[str, str], list[Any]] = {}
    for record in result.records:
        key = (record.fold if by_fold else "", json.dumps(record.params, sort_keys=True))
        by_params.setdefault(key, []).append(record)
    wins = [refit.trial for refit in result.outer]
    model = result.final.trial if result.has_final else None
    found = []
    for (fold, _), records in by_params.items():
        traces = [(name, trace) for record in records for name, trace in record.folds.items()]
        of_folds = [trace for name, trace in traces if name != FINAL] or [trace for _, trace in traces]
        scores = [score for trace in of_folds if (score := trace.score(rule)) is not None]
        found.append(
            TriedConfiguration(
                records[0].params,
                float(np.mean(scores)) if scores else None,
                n_winners=sum(wins.count(record.id) for record in records),
                is_model=any(record.id == model for record in records),
                stopped=all(record.status == "stopped" for record in records),
                fold=fold,
            )
        )
    return found


def confusion(result: StudyNumbers) -> dict[str, Any] | None:
    """Return the arguments of `confusion_figure`: counts of the outer folds' test samples."""
    recorded = [refit.confusion for refit in result.outer]
    if not recorded or not all(recorded):
        return None
    counts = np.sum(recorded, axis=0)
    # In a table of labels every row counts all test samples; in one of classes all rows together do.
    n_test = sum(refit.n_test for refit in result.outer)
    multilabel = counts.shape != (len(counts), len(counts)) or bool(n_test and (counts.sum(axis=1) == n_test).all())
    return {
        "counts": counts,
        "classes": list(result.classes or range(len(counts))),
        "multilabel": multilabel and len(counts) > 1,
    }


def profile(result: StudyNumbers, top: int | None = None) -> dict[str, Any] | None:
    """Return the arguments of `plot_profile`: coefficients of the final model's best features by class."""
    if result.layout.is_multitask or not result.directory.model.exists():
        return None
    found = linear_coefficients(result.model, len(result.feature_names))
    if found is None:
        return None
    values, own = found
    result.check_ranks(top)
    shown = source_ranking(result, top).top()
    classes = result.classes
    known = classes if classes and len(classes) in (len(own), len(values)) else own
    return {
        "coefficients": values[:, shown],
        "features": [result.feature_names[i] for i in shown],
        "classes": list(known),
    }


def linear_coefficients(model: Any, n_features: int) -> tuple[FloatArray, list[Any]] | None:
    """Find the coefficients of the method in a fitted pipeline of a scaler, the method and further steps."""
    waiting: list[Any] = [model.steps[1][1]]
    while waiting:
        estimator = waiting.pop(0)
        values = getattr(estimator, "coef_", None)
        if isinstance(values, np.ndarray) and values.ndim <= 2 and values.shape[-1:] == (n_features,):
            rows = values.reshape(-1, n_features)
            return rows, list(getattr(estimator, "classes_", range(len(rows))))
        fitted = [(name, part) for name, part in sorted(vars(estimator).items()) if name.endswith("_")]
        waiting += [part for _, part in fitted if isinstance(part, BaseEstimator)]
    return None
