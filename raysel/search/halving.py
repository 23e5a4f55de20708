"""Asynchronous successive halving of the trials of one outer fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class SuccessiveHalving:
    """Early stopping of the trials of one outer fold by their scores at the rungs.

    A trial continues at a rung if its score there is at least the ``1 - 1 / reduction_factor`` quantile of the
    scores of the other trials (ASHA: Li et al., "A system for massively parallel hyperparameter tuning", MLSys 2020).

    Parameters
    ----------
    grace_period : int
        Number of iterations at the first rung.
    reduction_factor : int
        Ratio of the numbers of iterations at a rung and at the one before.
    max_iter : int
        Largest number of iterations of the solver; all rungs are below it.
    batch_size : int or None
        Number of trials in a batch. A trial is compared with those of earlier batches only, so that the result does
        not depend on the order in which the trials run. None: it is compared with all that have reached the rung.

    Attributes
    ----------
    levels : tuple of int
        Number of iterations at each rung.

    Examples
    --------
    >>> rungs = SuccessiveHalving(2, 3, 20, None)
    >>> rungs.levels
    (2, 6, 18)
    >>> [rungs.should_continue(id_, n, 2, score) for n, (id_, score) in enumerate([("a", 0.5), ("b", 0.8), ("c", 0.6)])]
    [True, True, False]
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
        """Record a trial's score at a rung and return whether the trial continues.

        Parameters
        ----------
        id_ : str
            Id of the trial.
        number : int
            Number of the trial in the order in which its outer fold's trials were proposed.
        level : int
            Number of iterations done, one of ``levels``.
        score : float
            Validation score of the trial at this rung.

        Returns
        -------
        bool
            False if the trial is to be stopped.
        """
        scores = self._scores[level]
        scores[id_] = number, score
        others = [other for key, (n, other) in scores.items() if key != id_ and self._is_comparable(n, number)]
        return not others or bool(score >= np.quantile(others, self._share))

    def note(self, id_: str, number: int, curve: Sequence[float], *, ended: bool) -> None:
        """Record the scores at all rungs of a trial that has ended.

        Parameters
        ----------
        id_ : str
            Id of the trial.
        number : int
            Number of the trial in the order in which its outer fold's trials were proposed.
        curve : sequence of float
            Validation score after each iteration.
        ended : bool
            Whether the trial was not stopped early; its last score then counts at all later rungs.
        """
        for level, scores in self._scores.items():
            if curve and (ended or len(curve) >= level):
                scores[id_] = number, curve[min(level, len(curve)) - 1]

    def _is_comparable(self, other: int, number: int) -> bool:
        return self._batch_size is None or other // self._batch_size < number // self._batch_size
