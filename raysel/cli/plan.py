"""Description of a study before it runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from raysel.arrays import IntArray, LabelArray
from raysel.base.capabilities import RECONSTRUCTED
from raysel.base.registry import solver_capabilities
from raysel.data.layouts import Modalities, Tensor
from raysel.display.progress import counted, duration
from raysel.results.remarks import storage_remedy
from raysel.study.cost import CostEstimate, estimate_cost
from raysel.study.definition import Study
from raysel.study.stored import StoredStudy

#: Columns whose standard deviations differ by more than this factor probably have different units.
_SPREADS = 100.0


def describe(study: Study) -> Iterator[str]:
    """Describe the data, the folds with their class counts, the trials, and the cost of a study.

    Parameters
    ----------
    study : Study
        Study to describe.

    Yields
    ------
    str
        One line at a time.
    """
    data = study.dataset
    yield from describe_samples(study)
    yield f"solver    {method_in_words(study)}"
    yield from describe_folds(study)
    yield f"scores    {scores_in_words(study)}"
    cost = estimate_cost(study)
    yield f"trials    {study.n_trials}, {cost.n_fits} fits in all"
    yield f"memory    {memory_in_words(data.X.nbytes + cost.prepared_bytes, cost.fit_bytes)}"
    yield f"cost      {_in_words(study, cost)}"
    yield from warnings(study)


def describe_samples(study: Study) -> Iterator[str]:
    """Describe the samples and the classes or labels of a study.

    Parameters
    ----------
    study : Study
        Study to describe.

    Yields
    ------
    str
        One line at a time.
    """
    data = study.dataset
    counts = zip(data.classes, _counts(data.y, data.classes), strict=True)
    groups = f", {len(np.unique(data.groups))} groups kept together" if data.groups is not None else ""
    only = f", only {', '.join(study.config.dataset.only)}" if study.config.dataset.only else ""
    yield f"data      {data.name}{only}: {data.n_samples} samples x {data.n_features} features{groups}"
    yield f"{'labels ' if data.is_multilabel else 'classes'}   {len(data.classes)} ({_shortened(counts)})"


def describe_folds(study: Study) -> Iterator[str]:
    """Describe the folds of a study with their class counts.

    Parameters
    ----------
    study : Study
        Study to describe.

    Yields
    ------
    str
        One line at a time.
    """
    folds, kind = study.plan.folds, "label" if study.dataset.is_multilabel else "class"
    final = "and a final fold on all data" if study.config.cv.final else "no final fold, so no model"
    yield f"folds     {len(study.plan.outer)} outer x {len(folds[0].inner)} inner, {final}"
    for fold in folds:
        sets = [("train", fold.train), *([("test", fold.test)] if len(fold.test) else [])]
        shown = [f"{len(index)} {name} ({_spread(study, index)} a {kind})" for name, index in sets]
        yield f"  {fold.name:<16}{', '.join(shown)}"


def method_in_words(study: Study) -> str:
    """Return the solver of a study, the number of configurations that are tried, and how.

    Parameters
    ----------
    study : Study
        Study to describe.

    Returns
    -------
    str
        One phrase, which also says that a method is reconstructed from its paper.
    """
    config = study.config
    each = " on each outer fold" if config.search.adaptive else ""
    stops = f", early stopping {config.search.early_stopping}" if config.search.early_stopping else ""
    number = counted(study.n_configurations, "configuration")
    origin = f"; {RECONSTRUCTED}" if solver_capabilities(config.solver.name).reconstructed else ""
    return f"{config.solver.name}, {number}{each} ({config.search.method}{stops}){origin}"


def scores_in_words(study: Study) -> str:
    """Return the metric of a study, the classifier that it is of, and the metrics that are reported beside it."""
    scored = study.config.evaluation
    report = f"; reported on the test samples: {', '.join(scored.report)}" if scored.report else ""
    return f"{scored.metric} by {scored.classifier}{report}"


def memory_in_words(shared: int, fit: int | None) -> str:
    """Return the bytes that all workers share, and those of a fit beside them, if they are known, as text."""
    each = "" if fit is None else f", and up to {fit / 2**20:.0f} MiB for each fit that runs at once"
    return f"{shared / 2**20:.0f} MiB shared by all workers{each}"


def n_slots(study: Study) -> int:
    """Return the number of trials of a study that run at once on this machine."""
    search = study.config.search
    slots = max(1, len(os.sched_getaffinity(0)) // search.cpus_per_trial)
    return 1 if search.executor == "serial" else min(slots, search.max_concurrent or slots)


def announce(study: Study, path: Path, stored: StoredStudy | None) -> Iterator[str]:
    """Describe a study that is about to run: configurations, directory, notes and cost.

    Parameters
    ----------
    study : Study
        Study that is about to run.
    path : Path
        Directory of the study.
    stored : StoredStudy or None
        State of a resumed study; None for a new one.

    Yields
    ------
    str
        One line at a time.
    """
    size = f"{study.dataset.name} ({study.dataset.n_samples} x {study.dataset.n_features})"
    where = " on each outer fold" if study.config.search.adaptive else ""
    inner = study.n_inner // len(study.plan.folds) if study.config.search.adaptive else study.n_inner
    tried = f"{counted(study.n_configurations, 'configuration')}{where} x {counted(inner, 'inner fit')}"
    yield f"{study.config.name}: {tried} on {size} -> {path}"
    if stored:
        yield f"{stored.n_trials} of {counted(study.n_trials, 'trial')} {'is' if study.n_trials == 1 else 'are'} done"
    yield from warnings(study)
    yield _in_words(study, estimate_cost(study, stored.n_trials if stored else 0))


def _in_words(study: Study, cost: CostEstimate) -> str:
    slots = n_slots(study)
    about = "at most about" if cost.at_most else "about"
    return (
        f"{about} {duration(cost.seconds / slots + cost.fixed_seconds)} on the {counted(slots, 'slot')} of this "
        f"machine: {cost.n_fits} fits of up to {cost.fit_seconds:.3g} s, from a pilot fit, and "
        f"{duration(cost.fixed_seconds)} to start and to write the results"
    )


def warnings(study: Study) -> Iterator[str]:
    """Note properties of the data, the method or the folds that affect the results.

    Parameters
    ----------
    study : Study
        Study to check.

    Yields
    ------
    str
        One line for each note.
    """
    layout = study.dataset.layout
    table = isinstance(layout, Modalities) or (isinstance(layout, Tensor) and len(layout.shape) == 1)
    X = study.dataset.X
    if table and isinstance(X, np.ndarray) and study.config.dataset.scaling == "unit":
        spreads = X[:, ~study.dataset.constant].std(axis=0)
        ratio = spreads.max() / spreads.min() if len(spreads) else 1.0
        if ratio > _SPREADS:
            yield (
                f"note      the columns' standard deviations differ by a factor of {ratio:.3g}, which dataset.scaling "
                "unit does not change: if the columns have different units, set it to zscore."
            )
    if study.findings.untrusted:
        change = "not be written" if study.evaluation.classifier == "native" else "lack the fitted method"
        yield (
            f"note      model.skops will {change}, because {', '.join(study.findings.untrusted)} is not trusted: "
            f"{storage_remedy(study.findings.untrusted)}."
        )
    if study.dataset.is_multilabel:
        lacking = list(study.plan.lacking(study.dataset.y, study.dataset.label_names))
        if lacking:
            more = f", and {len(lacking) - 1} more such sets" if len(lacking) > 1 else ""
            yield f"note      {lacking[0]}{more}; such a label counts as 0 there."
    yield from (f"note      {remark}" for remark in study.data_remarks)


def _counts(y: LabelArray, classes: LabelArray) -> list[int]:
    return y.sum(axis=0).tolist() if y.ndim == 2 else [int((y == c).sum()) for c in classes]


def _spread(study: Study, index: IntArray) -> str:
    counts = _counts(study.dataset.y[index], study.dataset.classes)
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _shortened(counts: Iterator[tuple[object, int]], length: int = 70) -> str:
    text = ", ".join(f"{name}: {count}" for name, count in counts)
    return text if len(text) <= length else text[: text.rindex(", ", 0, length)] + ", ..."
