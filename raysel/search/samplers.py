"""Samplers: what proposes the configurations of one outer fold, from nothing but that fold's own trials."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from raysel.search.configurations import Configuration


class Sampler(ABC):
    """Base of the samplers: asked for configurations one at a time, told the score of each."""

    @abstractmethod
    def ask(self, number: int) -> Mapping[str, Any]:
        """Propose a configuration.

        Parameters
        ----------
        number : int
            How many were asked for before.

        Returns
        -------
        mapping of str to object
            All solver parameters that the study sets, fixed and searched.
        """

    @abstractmethod
    def tell(self, number: int, score: float) -> None:
        """Report the score of a configuration that was asked for.

        Parameters
        ----------
        number : int
            As it was given to `ask`.
        score : float
            Larger is better.
        """

    @abstractmethod
    def observe(self, params: Mapping[str, Any], score: float) -> None:
        """Report the score of a configuration that was tried in an earlier run of the study.

        Parameters
        ----------
        params : mapping of str to object
        score : float
            Larger is better.
        """


class ListSampler(Sampler):
    """Sampler that proposes the configurations of a list in their order.

    Parameters
    ----------
    configurations : sequence of Configuration
    """

    def __init__(self, configurations: Sequence[Configuration]) -> None:
        self._configurations = configurations

    def ask(self, number: int) -> Mapping[str, Any]:
        """Return the parameters at this position of the list."""
        return self._configurations[number].params

    def tell(self, number: int, score: float) -> None:
        """Ignore the score: a list does not learn."""

    def observe(self, params: Mapping[str, Any], score: float) -> None:
        """Ignore the score: a list does not learn."""
