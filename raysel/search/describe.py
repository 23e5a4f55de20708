"""What a study is going to do, in words, before it does any of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from raysel.arrays import IntArray, LabelArray
from raysel.search.study import Study


def describe(study: Study) -> Iterator[str]:
    """Data, folds with their class counts, trials, fits and memory, a line at a time.

    Parameters
    ----------
    study : Study

    Yields
    ------
    str
    """
    data, folds, config = study.dataset, study.plan.folds, study.config
    counts = zip(data.classes, _counts(data.y, data.classes), strict=True)
    groups = f", {len(np.unique(data.groups))} groups kept whole" if data.groups is not None else ""
    kind = "label" if data.is_multilabel else "class"
    yield f"data      {data.name}: {data.n_samples} samples x {data.n_features} features{groups}"
    yield f"{'labels ' if data.is_multilabel else 'classes'}   {len(data.classes)} ({_shortened(counts)})"
    yield f"solver    {config.solver.name}, {len(study.configurations)} configurations ({config.search.method})"
    yield f"folds     {len(study.plan.outer)} outer x {len(folds[0].inner)} inner, and a final fold on all data"
    for fold in folds:
        sets = [("train", fold.train), *([("test", fold.test)] if len(fold.test) else [])]
        shown = [f"{len(index)} {name} ({_spread(study, index)} a {kind})" for name, index in sets]
        yield f"  {fold.name:<16}{', '.join(shown)}"
    fits = len(study.configurations) * study.n_inner + len(folds)
    yield f"trials    {len(study.configurations)}, {fits} fits in all"
    largest = max((inner for fold in folds for inner in fold.inner), key=lambda inner: len(inner.train))
    needed = data.X.nbytes + study.n_inner * study.fold_data(largest).nbytes
    yield f"memory    {needed / 2**20:.0f} MiB shared by all workers"
    yield from warnings(study)


def warnings(study: Study) -> Iterator[str]:
    """What a reader of the results should know of the folds.

    Parameters
    ----------
    study : Study

    Yields
    ------
    str
    """
    if study.dataset.is_multilabel:
        lacking = list(study.plan.lacking(study.dataset.y, study.dataset.label_names))
        if lacking:
            more = f", and {len(lacking) - 1} more of the kind" if len(lacking) > 1 else ""
            yield f"note      {lacking[0]}{more}; such a label counts as 0 there."


def _counts(y: LabelArray, classes: LabelArray) -> list[int]:
    return y.sum(axis=0).tolist() if y.ndim == 2 else [int((y == c).sum()) for c in classes]


def _spread(study: Study, index: IntArray) -> str:
    counts = _counts(study.dataset.y[index], study.dataset.classes)
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _shortened(counts: Iterator[tuple[object, int]], length: int = 70) -> str:
    text = ", ".join(f"{name}: {count}" for name, count in counts)
    return text if len(text) <= length else text[: text.rindex(", ", 0, length)] + ", ..."
