"""Random permutations of labels that keep what a data set ties together: groups of samples and tasks."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from raysel.arrays import IntArray, LabelArray
from raysel.errors import DataError


class LabelPermutations:
    """Permutations of labels among samples, within groups, among groups, or among blocks of consecutive samples.

    Labels of several tasks are permuted within each task. Without groups the samples exchange their labels.

    `y` is (n_samples,) or (n_samples, n_labels), `groups`, `tasks` and `blocks` (n_samples,).
    """

    def __init__(
        self,
        y: LabelArray,
        groups: LabelArray | None = None,
        tasks: IntArray | None = None,
        blocks: IntArray | None = None,
    ) -> None:
        n = len(y)
        codes = np.unique(y, axis=0, return_inverse=True)[1].reshape(n)
        members = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
        owners = np.zeros(n, dtype=np.int64) if tasks is None else tasks
        self._n = n
        #: Sets of units that exchange labels, each unit an array of samples, and whether in the samples' order: else
        #: each unit has one label.
        self._exchanges: list[tuple[list[IntArray], bool]] = []
        kinds, self.n_movable, self.log10_arrangements = set(), 0, 0.0
        if blocks is not None:
            kinds.add("blocks")
            self._exchange_alike([np.flatnonzero(blocks == block) for block in np.unique(blocks)], codes)
        for task in np.unique(owners) if blocks is None else ():
            own = np.flatnonzero(owners == task)
            own = own[np.argsort(members[own], kind="stable")]
            parts = np.split(own, np.flatnonzero(np.diff(members[own])) + 1)
            n_mixed = sum(len(part) for part in parts if len(np.unique(codes[part])) > 1)
            if not n_mixed:
                kinds.add("samples" if groups is None else "groups")
                self._exchange(parts, codes)
            elif 2 * n_mixed >= len(own):
                kinds.add("samples within groups")
                for part in parts:
                    self._exchange(list(part[:, None]), codes)
            else:
                kinds.add("groups of equal size")
                self._exchange_alike(parts, codes)
        self.kind = ", ".join(sorted(kinds, reverse=True))
        if not self._exchanges:
            raise DataError(
                f"no permutation of {self.kind} changes a label: a permutation test needs samples, or groups, of "
                "different labels that can be exchanged within each task and group."
            )

    def _exchange_alike(self, parts: list[IntArray], codes: IntArray) -> None:
        """Let parts of equal length exchange their labels in the order in which they stand."""
        for length in sorted({len(part) for part in parts}):
            self._exchange([part for part in parts if len(part) == length], codes, ordered=True)

    def _exchange(self, units: list[IntArray], codes: IntArray, *, ordered: bool = False) -> None:
        """Let units exchange their labels, if they differ in them."""
        labels = [codes[unit if ordered else unit[:1]] for unit in units]
        counts = np.unique(np.stack(labels), axis=0, return_counts=True)[1]
        if len(counts) > 1:
            self._exchanges.append((units, ordered))
            self.n_movable += sum(map(len, units))
            self.log10_arrangements += float(_log_multinomial(counts)) / math.log(10)

    def draw(self, rng: np.random.Generator) -> IntArray:
        """Draw a permutation. Returns (n_samples,)."""
        source: IntArray = np.arange(self._n, dtype=np.int64)
        for units, ordered in self._exchanges:
            for unit, other in zip(units, rng.permutation(len(units)), strict=True):
                source[unit] = units[other] if ordered else units[other][0]
        return source


def _log_multinomial(counts: IntArray) -> float:
    """Natural logarithm of the number of arrangements of labels that occur so often."""
    return float(gammaln(counts.sum() + 1) - gammaln(counts + 1).sum())
