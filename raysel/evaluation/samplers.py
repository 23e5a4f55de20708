"""Samplers, which propose the configurations of one outer fold by the trials of that fold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from raysel.config.space import Choices, Domain, LogSpace, RandInt
from raysel.evaluation.configurations import Configuration


class Sampler(ABC):
    """Base class of the samplers: `ask` proposes a configuration, `tell` reports its score.

    A study makes one for each outer fold. Its proposals may depend on the scores that it is told
    and on the seed alone, so that a synchronous search has the same numbers whatever the workers.

    Parameters
    ----------
    params : mapping of str to object
        Solver parameters that the study sets.
    space : mapping of str to Domain
        Solver parameters that are searched, and the domain of each.
    seed : int
        Seed of the sampler's random numbers.
    """

    #: Distributions, besides its own, whose versions can change what the sampler proposes.
    libraries: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def __init__(self, params: Mapping[str, Any], space: Mapping[str, Domain], seed: int) -> None:
        """Make a sampler that knows no score."""

    @abstractmethod
    def ask(self, number: int) -> Mapping[str, Any]:
        """Propose a configuration.

        Parameters
        ----------
        number : int
            Number of configurations that were proposed before.

        Returns
        -------
        mapping of str to object
            All solver parameters that the study sets, fixed and searched.
        """

    @abstractmethod
    def tell(self, number: int, score: float) -> None:
        """Report the score of a configuration that `ask` proposed.

        Parameters
        ----------
        number : int
            Number that `ask` was called with.
        score : float
            Validation score; larger is better.
        """

    @abstractmethod
    def observe(self, params: Mapping[str, Any], score: float) -> None:
        """Report the score of a configuration that was tried in an earlier run of the study.

        Parameters
        ----------
        params : mapping of str to object
            All solver parameters of the configuration.
        score : float
            Validation score; larger is better.
        """


class ListSampler(Sampler):
    """Sampler that proposes the configurations of a list in their order."""

    def __init__(self, configurations: Sequence[Configuration]) -> None:
        self._configurations = configurations

    def ask(self, number: int) -> Mapping[str, Any]:
        """Return the parameters at this position of the list."""
        return self._configurations[number].params

    def tell(self, number: int, score: float) -> None:
        """Do nothing: the order of the list does not depend on scores."""

    def observe(self, params: Mapping[str, Any], score: float) -> None:
        """Do nothing: the order of the list does not depend on scores."""


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
        self._sampler, self._total = sampler, total
        self._searched, self._batch_size = searched, batch_size
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

        If a proposed configuration has a known score already, the sampler receives that score
        instead.
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
        while due := self._due():
            for n in due:
                self._sampler.tell(n, self._known[self._asked[n]])
            self._told.update(due)

    def _due(self) -> list[int]:
        """Numbers of the proposals whose scores the sampler may be told: whole batches, if any."""
        size, n_told = self._batch_size, len(self._told)
        if size is None:
            untold = (n for n in range(len(self._asked)) if n not in self._told)
            return [n for n in untold if self._asked[n] in self._known]
        batch = range(n_told, min(n_told + size, self._total))
        is_asked = batch.stop <= len(self._asked)
        if is_asked and all(self._asked[n] in self._known for n in batch):
            return list(batch)
        return []


class TPESampler(Sampler):
    """Sampler that uses Optuna's tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011).

    A domain that is a list of values is searched by the indices of its values.
    """

    libraries = ("optuna",)

    def __init__(self, params: Mapping[str, Any], space: Mapping[str, Domain], seed: int) -> None:
        import optuna  # noqa: PLC0415 - takes a second to import; only this sampler needs it

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._params, self._space = dict(params), dict(space)
        self._distributions = {key: _distribution(domain) for key, domain in sorted(space.items())}
        self._study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed)
        )
        self._trials: dict[int, Any] = {}

    def ask(self, number: int) -> Mapping[str, Any]:
        """Propose the configuration that the estimator suggests."""
        self._trials[number] = self._study.ask(fixed_distributions=self._distributions)
        point = self._trials[number].params
        return {
            **self._params,
            **{key: _value(domain, point[key]) for key, domain in self._space.items()},
        }

    def tell(self, number: int, score: float) -> None:
        """Update the estimator with the score of a proposed configuration."""
        self._study.tell(self._trials.pop(number), score)

    def observe(self, params: Mapping[str, Any], score: float) -> None:
        """Update the estimator with the score of a configuration of an earlier run."""
        import optuna  # noqa: PLC0415

        point = {key: _coordinate(domain, params[key]) for key, domain in self._space.items()}
        trial = optuna.trial.create_trial(
            value=score, params=point, distributions=self._distributions
        )
        self._study.add_trial(trial)


def _distribution(domain: Domain) -> Any:
    """Optuna distribution of a domain."""
    from optuna.distributions import (  # noqa: PLC0415
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if isinstance(domain, Choices):
        return CategoricalDistribution(range(len(domain.values)))
    if isinstance(domain, LogSpace):  # its values are evenly spaced on the scale of their indices
        return IntDistribution(0, len(domain.values) - 1)
    if isinstance(domain, RandInt):
        return IntDistribution(domain.low, domain.high)
    return FloatDistribution(domain.low, domain.high, log=domain.log)


def _value(domain: Domain, coordinate: Any) -> Any:
    """Value of a parameter at a coordinate that Optuna proposed."""
    if isinstance(domain, Choices | LogSpace):
        return domain.values[coordinate]
    return coordinate


def _coordinate(domain: Domain, value: Any) -> Any:
    """Coordinate of a parameter's value in Optuna's distribution."""
    if isinstance(domain, Choices | LogSpace):
        return domain.values.index(value)
    return value
