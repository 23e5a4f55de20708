"""Estimator that is given as an object, of which a study fits clones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from sklearn.base import clone
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline

from raysel.base.adapter import ScikitLearnMethod, find_capabilities
from raysel.base.estimator import Capabilities, Estimator
from raysel.core.errors import ConfigError


@dataclass(frozen=True, eq=False)
class Template:
    """Unfitted estimator, and the values of its searched parameters that are no plain data."""

    estimator: Any
    #: By parameter, the values by the texts that stand for them in a configuration.
    objects: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the estimator."""
        if isinstance(self.estimator, Estimator):
            return self.estimator.capabilities
        return find_capabilities(self.estimator)

    @property
    def classes(self) -> list[type]:
        """Class of the estimator, and of each estimator in it."""
        parts = [self.estimator, *self.estimator.get_params(deep=True).values()]
        for values in self.objects.values():
            parts += values.values()
        return list(dict.fromkeys(type(part) for part in parts if hasattr(part, "get_params")))

    @property
    def transforms(self) -> bool:
        """Whether a Pipeline in the estimator changes the values of columns before it predicts."""
        parts = [self.estimator, *self.estimator.get_params(deep=True).values()]
        pipelines = [part for part in parts if isinstance(part, Pipeline)]
        steps = chain.from_iterable(pipeline.steps[:-1] for pipeline in pipelines)
        return any(
            hasattr(step, "transform") and not isinstance(step, SelectorMixin) for _, step in steps
        )

    def values(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a configuration with the objects that their texts stand for."""
        return {name: self._object(name, value) for name, value in params.items()}

    def _object(self, name: str, value: Any) -> Any:
        objects = self.objects.get(name)
        if not objects:  # a value that stands for itself may be no key
            return value
        return objects.get(value, value)

    def clone(self, params: Mapping[str, Any], random_state: int | None = None) -> Any:
        """Return a clone with these parameters, and with the seed where it has none."""
        made = clone(self.estimator)
        try:
            # Cloned, as `GridSearchCV` does: a value that is an estimator must not be fitted
            # itself.
            made.set_params(
                **{name: clone(value, safe=False) for name, value in self.values(params).items()}
            )
        except ValueError as error:
            raise ConfigError(f"space: {error}") from error
        if random_state is not None:
            states = {
                name: random_state
                for name, value in made.get_params(deep=True).items()
                if value is None and (name == "random_state" or name.endswith("__random_state"))
            }
            made.set_params(**states)
        return made

    def solver(self, params: Mapping[str, Any], random_state: int | None = None) -> Estimator:
        """Return a clone as one of raysel's methods."""
        made = self.clone(params, random_state)
        if isinstance(made, Estimator):
            return made
        return ScikitLearnMethod(made)
