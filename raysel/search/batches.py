"""Proposals in batches, which do not depend on the order in which the trials of a batch end."""

from __future__ import annotations

from collections.abc import Mapping

from raysel.search.configurations import Configuration
from raysel.search.samplers import Sampler


class BatchedProposals:
    """Configurations that a sampler proposes for one outer fold, each tried once."""

    def __init__(
        self,
        sampler: Sampler,
        total: int,
        searched: tuple[str, ...],
        known: Mapping[str, float],
        batch_size: int | None,
    ) -> None:
        self._sampler, self._total, self._searched, self._batch_size = sampler, total, searched, batch_size
        self._known = dict(known)
        self._asked: list[str] = []
        self._told: set[int] = set()
        self.numbers: dict[str, int] = {}

    @property
    def n_asked(self) -> int:
        """Number of configurations that were proposed."""
        return len(self._asked)

    @property
    def exhausted(self) -> bool:
        """Whether all configurations were proposed."""
        return len(self._asked) >= self._total

    def next(self) -> Configuration | None:
        """Return the next configuration to try.

        If a proposed configuration has a known score already, the sampler receives that score instead.
        """
        while not self.exhausted and self._may_ask():
            configuration = Configuration(self._sampler.ask(len(self._asked)), self._searched)
            new = configuration.id not in self.numbers and configuration.id not in self._known
            self.numbers.setdefault(configuration.id, len(self._asked))
            self._asked.append(configuration.id)
            if new:
                return configuration
            self._tell_due()
        return None

    def tell(self, id_: str, score: float) -> None:
        """Report the score of a configuration that was tried."""
        self._known[id_] = score
        self._tell_due()

    def _may_ask(self) -> bool:
        size = self._batch_size
        return size is None or len(self._told) >= len(self._asked) // size * size

    def _tell_due(self) -> None:
        """Tell the sampler the scores that are due, in the order of the proposals."""
        size = self._batch_size
        while True:
            if size is None:
                due = [n for n, id_ in enumerate(self._asked) if n not in self._told and id_ in self._known]
            else:
                batch = range(len(self._told), min(len(self._told) + size, self._total))
                complete = batch.stop <= len(self._asked) and all(self._asked[n] in self._known for n in batch)
                due = list(batch) if complete else []
            if not due:
                return
            for n in due:
                self._sampler.tell(n, self._known[self._asked[n]])
            self._told.update(due)
