"""Sampler that uses Optuna's tree-structured Parzen estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raysel.config.space import Choices, Domain, LogSpace, RandInt
from raysel.evaluation.samplers import Sampler


class TPESampler(Sampler):
    """Sampler that uses Optuna's tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011).

    A domain that is a list of values is searched by the indices of its values.
    """

    def __init__(self, params: Mapping[str, Any], space: Mapping[str, Domain], seed: int) -> None:
        import optuna  # noqa: PLC0415 - takes a second to import; only this sampler needs it

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._params, self._space = dict(params), dict(space)
        self._distributions = {key: _distribution(domain) for key, domain in sorted(space.items())}
        self._study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        self._trials: dict[int, Any] = {}

    def ask(self, number: int) -> Mapping[str, Any]:
        """Propose the configuration that the estimator suggests."""
        self._trials[number] = self._study.ask(fixed_distributions=self._distributions)
        point = self._trials[number].params
        return {**self._params, **{key: _value(domain, point[key]) for key, domain in self._space.items()}}

    def tell(self, number: int, score: float) -> None:
        """Update the estimator with the score of a proposed configuration."""
        self._study.tell(self._trials.pop(number), score)

    def observe(self, params: Mapping[str, Any], score: float) -> None:
        """Update the estimator with the score of a configuration of an earlier run."""
        import optuna  # noqa: PLC0415

        point = {key: _coordinate(domain, params[key]) for key, domain in self._space.items()}
        trial = optuna.trial.create_trial(value=score, params=point, distributions=self._distributions)
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
    return domain.values[coordinate] if isinstance(domain, Choices | LogSpace) else coordinate


def _coordinate(domain: Domain, value: Any) -> Any:
    """Coordinate of a parameter's value in Optuna's distribution."""
    return domain.values.index(value) if isinstance(domain, Choices | LogSpace) else value
