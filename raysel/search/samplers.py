"""Samplers, which propose the configurations of one outer fold from the trials of that fold alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from raysel.search.configurations import Configuration


class Sampler(ABC):
    """Base class of the samplers: `ask` proposes a configuration, `tell` reports its score."""

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
