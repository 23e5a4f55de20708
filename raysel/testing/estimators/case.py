"""The method that a suite is run on, and what the suite has to know of it besides its class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from raysel.base.capabilities import Capabilities
from raysel.base.estimator import Estimator
from raysel.base.registry import build_solver, solver_capabilities, solver_class
from raysel.data.layouts import Layout


@dataclass(frozen=True)
class MethodCase:
    """A method with parameters that make it fast on the suite's small data.

    Parameters
    ----------
    name : str or type
        As a study's configuration names it: a registered name, or the dotted name of a class, on raysel's contract or
        in scikit-learn's style; or such a class that can be imported.
    params : mapping of str to object, default={}
        The constructor's parameters, without what the layout and the study's seed supply.
    varied : sequence of mapping, default=()
        Changes of ``params``, each to another configuration that a study may try besides: their preparation is
        compared, and a path is fitted through them.
    null_params : mapping, default=None
        A change of ``params`` with which the solution is zero whatever the data; needed by a class that has
        ``is_zero_solution``.
    tolerance : float, default=1e-6
        How far scores may move, as a share of the largest, where samples, classes or features change their order.
    agreement : float, default=1.0
        Share of predictions that must stay the same there.
    objective : {"falls", "rises"} or None, default="falls"
        How the objective of a method that iterates moves from one iteration to the next; None where it may do both.
    learns : bool, default=True
        Whether nested cross-validation of the suite's data scores above chance.
    expected_failures : mapping of str to str, default={}
        Why a check must fail, by a pattern of its name, e.g. ``{"feature_order[[]matri*": "starts at the first
        columns"}``; a check that passes all the same is an error. scikit-learn's own are ``scikit-learn[check_...]``.
    layout_params : mapping of {"tensor", "modalities", "tasks"} to mapping, default={}
        Further parameters for the suite's data of a layout, e.g. the maps of two tasks of 6 and 8 columns.

    Examples
    --------
    >>> MethodCase("pca", {"n_components": 2}).capabilities.iterates
    False
    """

    name: str | type
    params: Mapping[str, Any] = field(default_factory=dict)
    varied: Sequence[Mapping[str, Any]] = ()
    null_params: Mapping[str, Any] | None = None
    tolerance: float = 1e-6
    agreement: float = 1.0
    objective: Literal["falls", "rises"] | None = "falls"
    learns: bool = True
    expected_failures: Mapping[str, str] = field(default_factory=dict)
    layout_params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def solver_name(self) -> str:
        """The name as a study's configuration gives it."""
        return self.name if isinstance(self.name, str) else f"{self.name.__module__}.{self.name.__qualname__}"

    @cached_property
    def cls(self) -> type[Any]:
        """The class."""
        return solver_class(self.solver_name)

    @property
    def wrapped(self) -> bool:
        """Whether the class is in scikit-learn's style, and wrapped."""
        return not issubclass(self.cls, Estimator)

    @cached_property
    def capabilities(self) -> Capabilities:
        """What the class declares."""
        return solver_capabilities(self.solver_name)

    def build(self, layout: Layout, seed: int = 0, **changes: Any) -> Estimator:
        """A method for data of this layout, not fitted.

        Parameters
        ----------
        layout : Layout
        seed : int, default=0
            ``random_state`` of methods that have it.
        **changes
            Parameters in place of those of the case.

        Returns
        -------
        Estimator
        """
        own = self.layout_params.get(layout.to_json()["kind"], {})
        return build_solver(self.solver_name, layout, {**self.params, **own, **changes}, seed)
