"""A fixed list of trials, as Ray Tune sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ray.tune.search import Searcher


class ListedTrials(Searcher):
    """Proposes the configurations of a list, one after the other.

    Tune's own grid search copies the whole list for every trial.

    Parameters
    ----------
    configs : iterable of mapping
        What each trial is given.
    """

    def __init__(self, configs: Iterable[Mapping[str, Any]]) -> None:
        super().__init__(metric=None, mode=None)
        self._configs = iter(configs)

    def __getstate__(self) -> dict[str, Any]:
        # Tune pickles it for a restore that raysel does not use.
        return {}

    def set_search_properties(self, *_: Any, **__: Any) -> bool:
        """Nothing to set."""
        return True

    def suggest(self, trial_id: str) -> Any:
        """The next configuration."""
        config = next(self._configs, None)
        return Searcher.FINISHED if config is None else dict(config)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Nothing to learn."""

    def save(self, checkpoint_path: str) -> None:
        """Nothing to save: the journal keeps what is done."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing to restore."""
