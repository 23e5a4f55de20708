"""What one outer fold tries next, learnt from nothing but that fold's own trials."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from raysel.config.space import Choices, Domain, LogSpace, RandInt
from raysel.search.configurations import Configuration

#: Told of a trial that failed or gave the zero solution: no metric is lower.
WORST_SCORE = -1.0


class Sampler(ABC):
    """Where a fold's configurations come from."""

    @abstractmethod
    def ask(self, number: int) -> Mapping[str, Any]:
        """Parameters of the fold's next configuration."""

    @abstractmethod
    def tell(self, number: int, score: float) -> None:
        """The score of one that was asked for."""

    @abstractmethod
    def observe(self, params: Mapping[str, Any], score: float) -> None:
        """The score of one that an earlier run asked for."""


class ListSampler(Sampler):
    """A list, in its order.

    Parameters
    ----------
    configurations : sequence of Configuration
    """

    def __init__(self, configurations: Sequence[Configuration]) -> None:
        self._configurations = configurations

    def ask(self, number: int) -> Mapping[str, Any]:
        """The next of the list."""
        return self._configurations[number].params

    def tell(self, number: int, score: float) -> None:
        """Nothing to learn."""

    def observe(self, params: Mapping[str, Any], score: float) -> None:
        """Nothing to learn."""


class TPESampler(Sampler):
    """Optuna's tree-structured Parzen estimator, through Ray's searcher.

    Parameters
    ----------
    params : mapping
        Fixed parameters.
    space : mapping of str to Domain
    seed : int
    """

    def __init__(self, params: Mapping[str, Any], space: Mapping[str, Domain], seed: int) -> None:
        import optuna  # noqa: PLC0415 - a second to import, for those who use it
        from ray.tune.search.optuna import OptunaSearch  # noqa: PLC0415

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._params, self._space = dict(params), dict(space)
        distributions = {key: self._distribution(domain) for key, domain in sorted(space.items())}
        sampler = optuna.samplers.TPESampler(seed=seed)
        self._searcher = OptunaSearch(distributions, metric="score", mode="max", sampler=sampler)

    def ask(self, number: int) -> Mapping[str, Any]:
        """The estimator's proposal."""
        point = self._searcher.suggest(str(number))
        assert point is not None  # noqa: S101 - Optuna always proposes
        return {**self._params, **{key: self._value(domain, point[key]) for key, domain in self._space.items()}}

    def tell(self, number: int, score: float) -> None:
        """The estimator learns a score."""
        self._searcher.on_trial_complete(str(number), {"score": score})

    def observe(self, params: Mapping[str, Any], score: float) -> None:
        """The estimator learns a score of an earlier run."""
        point = {key: self._coordinate(domain, params[key]) for key, domain in self._space.items()}
        self._searcher.add_evaluated_point(point, score)

    # A domain with a list of values is searched by their positions.

    @staticmethod
    def _distribution(domain: Domain) -> Any:
        from optuna.distributions import (  # noqa: PLC0415
            CategoricalDistribution,
            FloatDistribution,
            IntDistribution,
        )

        if isinstance(domain, Choices):
            return CategoricalDistribution(range(len(domain.values)))
        if isinstance(domain, LogSpace):  # its values are even there
            return IntDistribution(0, len(domain.values) - 1)
        if isinstance(domain, RandInt):
            return IntDistribution(domain.low, domain.high)
        return FloatDistribution(domain.low, domain.high, log=domain.log)

    @staticmethod
    def _value(domain: Domain, coordinate: Any) -> Any:
        return domain.values[coordinate] if isinstance(domain, Choices | LogSpace) else coordinate

    @staticmethod
    def _coordinate(domain: Domain, value: Any) -> Any:
        return domain.values.index(value) if isinstance(domain, Choices | LogSpace) else value


class FoldProposals:
    """One outer fold's configurations as they are proposed, tried and learnt from.

    Parameters
    ----------
    source : Sampler
    total : int
        How many are proposed at most.
    searched : tuple of str
        The parameters that vary.
    known : mapping of str to float
        Scores by configuration id that an earlier run of the study has found.
    batch_size : int or None
        A batch is asked for when all before it are told, and told in the order of asking; None: each is told as it
        comes, and one is asked for whenever there is room.

    Attributes
    ----------
    numbers : dict of str to int
        Each configuration's place among those asked for, by id.
    """

    def __init__(
        self,
        source: Sampler,
        total: int,
        searched: tuple[str, ...],
        known: Mapping[str, float],
        batch_size: int | None,
    ) -> None:
        self._source, self._total, self._searched, self._batch_size = source, total, searched, batch_size
        self._known = dict(known)
        self._asked: list[str] = []
        self._told: set[int] = set()
        self.numbers: dict[str, int] = {}

    @property
    def n_asked(self) -> int:
        """How many have been proposed."""
        return len(self._asked)

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to propose."""
        return len(self._asked) >= self._total

    def next(self) -> Configuration | None:
        """The next configuration to try; None while there is none to ask for.

        What an earlier run or an earlier proposal has found is not tried again.
        """
        while not self.exhausted and self._may_ask():
            configuration = Configuration(self._source.ask(len(self._asked)), self._searched)
            new = configuration.id not in self.numbers and configuration.id not in self._known
            self.numbers.setdefault(configuration.id, len(self._asked))
            self._asked.append(configuration.id)
            if new:
                return configuration
            self._learn()
        return None

    def settle(self, id_: str, score: float) -> None:
        """Take a tried configuration's score.

        Parameters
        ----------
        id_ : str
        score : float
        """
        self._known[id_] = score
        self._learn()

    def _may_ask(self) -> bool:
        size = self._batch_size
        return size is None or len(self._told) >= len(self._asked) // size * size

    def _learn(self) -> None:
        """Tell the source what is due, in the order of asking."""
        size = self._batch_size
        while True:
            if size is None:
                due = [n for n, id_ in enumerate(self._asked) if n not in self._told and id_ in self._known]
            else:
                batch = range(len(self._told), min(len(self._told) + size, self._total))
                whole = batch.stop <= len(self._asked) and all(self._asked[n] in self._known for n in batch)
                due = list(batch) if whole else []
            if not due:
                return
            for n in due:
                self._source.tell(n, self._known[self._asked[n]])
            self._told.update(due)
