"""A search that learns or stops early, as Ray Tune sees it: one face for the searches of all outer folds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import Searcher

from raysel.search.fold_search import FoldSearch
from raysel.search.keep_actors import KeepActors
from raysel.search.study import Study


class FoldsSearcher(Searcher):
    """Passes Tune's questions on to the outer folds in turn; none hears of another's scores.

    Parameters
    ----------
    searches : mapping of str to FoldSearch
        By outer fold.
    """

    def __init__(self, searches: Mapping[str, FoldSearch]) -> None:
        super().__init__(metric=None, mode=None)
        self._searches = searches

    def __getstate__(self) -> dict[str, Any]:
        # Tune pickles it for a restore that raysel does not use.
        return {}

    def set_search_properties(self, *_: Any, **__: Any) -> bool:
        """Nothing to set: the study says it all."""
        return True

    def suggest(self, trial_id: str) -> Any:
        """A configuration for the outer fold that has asked least, of those that may ask."""
        for fold, search in sorted(self._searches.items(), key=lambda item: item[1].n_asked):
            record = search.next()
            if record is not None:
                return {"fold": fold, "params": record.params, "name": record.id}
        if all(search.exhausted for search in self._searches.values()):
            return Searcher.FINISHED
        return None

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Nothing: the fold learns from the record, which says more than Tune's result."""

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the journal is the truth."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing: the journal is the truth."""


class FoldsHalving(KeepActors):
    """Stops trials at the rungs of their own outer fold.

    Parameters
    ----------
    study : Study
    searches : mapping of str to FoldSearch
        By outer fold.
    """

    def __init__(self, study: Study, searches: Mapping[str, FoldSearch]) -> None:
        super().__init__()
        self._study, self._searches = study, searches

    def __getstate__(self) -> dict[str, Any]:
        # Tune pickles it for a restore that raysel does not use.
        return {}

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """Judge a trial that has come to a rung."""
        if result["done"] or "rung" not in result:
            return TrialScheduler.CONTINUE
        fold = trial.config["fold"]
        record = self._study.fold_record(fold, trial.config["params"])
        goes_on = self._searches[fold].goes_on(record, result["rung"], result["score"])
        return TrialScheduler.CONTINUE if goes_on else TrialScheduler.STOP
