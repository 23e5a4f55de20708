"""Who may go on after so many iterations: successive halving within one outer fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class SuccessiveHalving:
    """The scores that the trials of one outer fold had when they reached each rung.

    Trial n may go on from rung r if its score there is no less than the ``1 - 1 / reduction_factor`` quantile
    of the others' (ASHA: Li et al., "A system for massively parallel hyperparameter tuning", MLSys 2020).

    Parameters
    ----------
    grace_period : int
        Iterations to the first rung.
    reduction_factor : int
        Each rung lies so many times further than the one before.
    max_iter : int
        The solver's; a rung there would stop nothing.
    batch_size : int or None
        Trials are judged by those of earlier batches only, so that the order in which they run changes nothing;
        None: by all that have come so far.

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
        """Note a trial's score at a rung and judge it.

        Parameters
        ----------
        id_ : str
            The trial's configuration.
        number : int
            Its place among those of its fold.
        level : int
            One of ``levels``.
        score : float

        Returns
        -------
        bool
        """
        there = self._scores[level]
        there[id_] = number, score
        judges = [other for key, (n, other) in there.items() if key != id_ and self._may_judge(n, number)]
        return not judges or bool(score >= np.quantile(judges, self._share))

    def note(self, id_: str, number: int, curve: Sequence[float], *, ended: bool) -> None:
        """Note a trial that needs no judgement any more.

        Parameters
        ----------
        id_ : str
        number : int
        curve : sequence of float
            Its score after each iteration.
        ended : bool
            Whether it came to its own end; it then holds its last score at all later rungs.
        """
        for level, there in self._scores.items():
            if curve and (ended or len(curve) >= level):
                there[id_] = number, curve[min(level, len(curve)) - 1]

    def _may_judge(self, other: int, number: int) -> bool:
        return self._batch_size is None or other // self._batch_size < number // self._batch_size
