"""Method that a conformance suite is run on, with the parameters and tolerances of the suite."""

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
        Registered name, or dotted name of a class that derives from `Estimator` or is in scikit-learn's style, as in
        ``solver.name``; or such a class itself, which must be importable.
    params : mapping of str to object, default={}
        Parameters of the constructor, without those that are set from the layout and from the study's seed.
    varied : sequence of mapping, default=()
        Changes of ``params`` that give further configurations: the suite compares their preparation and fits a path
        through them.
    null_params : mapping, default=None
        Change of ``params`` with which the solution is zero for any data; required if the class has
        ``is_zero_solution``.
    tolerance : float, default=1e-6
        Largest change of a score, as a share of the largest score, if samples, classes or features are reordered.
    agreement : float, default=1.0
        Smallest share of predictions that are equal after reordering.
    objective : {"falls", "rises"} or None, default="falls"
        Direction in which the objective of an iterative method changes. None: not checked.
    learns : bool, default=True
        Whether nested cross-validation of the suite's data scores above chance.
    expected_failures : mapping of str to str, default={}
        Reason why a check fails, by a pattern of its name, e.g. ``{"feature_order[[]matri*": "starts at the first
        columns"}``. It is an error if such a check passes. scikit-learn's checks are named
        ``scikit-learn[check_...]``.
    layout_params : mapping of {"tensor", "modalities", "tasks"} to mapping, default={}
        Additional parameters for data of a kind of layout, e.g. the maps of two tasks of 6 and 8 columns.

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
        """Name of the method as in ``solver.name``."""
        return self.name if isinstance(self.name, str) else f"{self.name.__module__}.{self.name.__qualname__}"

    @cached_property
    def cls(self) -> type[Any]:
        """Class of the method."""
        return solver_class(self.solver_name)

    @property
    def wrapped(self) -> bool:
        """Whether the class is in scikit-learn's style, so that `ScikitLearnMethod` wraps it."""
        return not issubclass(self.cls, Estimator)

    @cached_property
    def capabilities(self) -> Capabilities:
        """Capabilities that the class declares."""
        return solver_capabilities(self.solver_name)

    def build(self, layout: Layout, seed: int = 0, **changes: Any) -> Estimator:
        """Make an unfitted method for data of a layout.

        Parameters
        ----------
        layout : Layout
            Layout of the data.
        seed : int, default=0
            Seed for methods with a parameter ``random_state``.
        **changes
            Parameters that replace those of the case.

        Returns
        -------
        Estimator
            The unfitted method.
        """
        own = self.layout_params.get(layout.to_json()["kind"], {})
        return build_solver(self.solver_name, layout, {**self.params, **own, **changes}, seed)
