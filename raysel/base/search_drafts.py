"""What a drafted study searches of a method, by the size of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Effort of a fit; the larger it is, the fewer fits a draft asks for.
SMALL, MEDIUM, LARGE, HUGE = range(4)
#: Number of values of X times number of classes from which an effort is medium, large, and huge.
_STEPS = (500_000, 50_000_000, 400_000_000)
#: Largest number of equations, of samples or features, that each iteration may solve; with as many
#: samples and features a fit with an l1 penalty takes seconds.
_LARGEST_SYSTEM = 1500

#: What the parameter ``alpha`` is, in the comment of a draft.
OF_ALPHA = (
    "what is searched: alpha is the sparsity, as a fraction of the value from which on nothing is"
    " selected"
)


@dataclass(frozen=True)
class DataSize:
    """Size of a data set, from which alone the time of fits is told: on every machine the same."""

    n_samples: int
    n_features: int
    #: Number of classes or labels; 1 for quantities.
    n_classes: int

    @property
    def effort(self) -> int:
        """`SMALL`, `MEDIUM`, `LARGE` or `HUGE`."""
        n_values = self.n_samples * self.n_features * self.n_classes
        return sum(n_values > step for step in _STEPS)

    def by_effort(self, small: Any, medium: Any, large: Any) -> Any:
        """Return what fits the effort; ``large`` stands for huge ones too."""
        return (small, medium, large)[min(self.effort, LARGE)]

    @property
    def has_large_systems(self) -> bool:
        """Whether equations of the samples or of the features take long to solve."""
        return min(self.n_samples, self.n_features) > _LARGEST_SYSTEM


@dataclass(frozen=True)
class SearchDraft:
    """What a drafted study searches of a method, with the comment of each key."""

    #: What the method is, as the reason for it.
    why: str
    #: Domain by parameter, as in ``solver.space``, and what the values are.
    space: Mapping[str, Any]
    of_space: str
    #: Parameters that are set, as in ``solver.params``, and what they do.
    params: Mapping[str, Any] = field(default_factory=dict)
    of_params: str = ""
