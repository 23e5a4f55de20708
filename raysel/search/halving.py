"""Asynchronous successive halving of the trials of one outer fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class SuccessiveHalving:
    """Early stopping of the trials of one outer fold by their scores at the rungs.

    A trial continues at a rung if its score there is at least the ``1 - 1 / reduction_factor`` quantile of the
    scores of the other trials (ASHA: Li et al., "A system for massively parallel hyperparameter tuning", MLSys 2020).
    """

    def __init__(self, grace_period: int, reduction_factor: int, max_iter: int, batch_size: int | None) -> None:
        levels = [grace_period]
        while levels[-1] * reduction_factor < max_iter:
            levels.append(levels[-1] * reduction_factor)
        self.levels = tuple(level for level in levels if level < max_iter)
        self._share = 1 - 1 / reduction_factor
        self._batch_size = batch_size
        self._scores: dict[int, dict[str, tuple[int, float]]] = {level: {} for level in self.levels}

    def should_continue(self, id_: str, number: int, level: int, score: float) -> bool:
        """Record a trial's score at a rung and return whether the trial continues."""
        scores = self._scores[level]
        scores[id_] = number, score
        others = [other for key, (n, other) in scores.items() if key != id_ and self._is_comparable(n, number)]
        return not others or bool(score >= np.quantile(others, self._share))

    def note(self, id_: str, number: int, curve: Sequence[float], *, ended: bool) -> None:
        """Record the scores at all rungs of a trial that has ended."""
        for level, scores in self._scores.items():
            if curve and (ended or len(curve) >= level):
                scores[id_] = number, curve[min(level, len(curve)) - 1]

    def _is_comparable(self, other: int, number: int) -> bool:
        return self._batch_size is None or other // self._batch_size < number // self._batch_size
