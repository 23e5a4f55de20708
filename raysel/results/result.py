"""Result of a study, finished or not, read from its directory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import filterfalse
from typing import TYPE_CHECKING, Any

from raysel.core.arrays import FloatArray
from raysel.evaluation.feature_ranking import SELECTION_PROBABILITY, FeatureRanking
from raysel.evaluation.plan import FINAL
from raysel.results import trust, words
from raysel.results.displays import study_plots
from raysel.results.numbers import StudyNumbers
from raysel.results.permutation import PermutationTest, read_permutation_test
from raysel.results.remarks import (
    convergence_remarks,
    edge_remarks,
    few_folds_remarks,
    final_remarks,
    fit_remarks,
    inner_fit_remarks,
    model_remarks,
    number_remarks,
    other_start_remarks,
    ranking_remarks,
    search_remarks,
    selection_remarks,
    tie_remarks,
)
from raysel.results.scores import are_draws
from raysel.study.inspection.remarks import questions_scores

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class StudyResult(StudyNumbers):
    """Scores, trials, ranking and model of a study."""

    def stability_curve(self) -> pd.DataFrame:
        """Return the stability of the best N features over the outer folds for a range of N.

        One row for each N, the numbers of ``evaluation.n_features`` and up to 24 others from 1 to all features:
        ``n_features``; ``stability`` (Nogueira's; NaN where every fold selects all features or none); ``noise``,
        ``noise_lowest`` and ``noise_highest`` (mean and range for an F-test ranking of permuted labels on the same
        folds; NaN if an earlier version of raysel ran the study); ``undefined_because``.
        """
        return trust.stability_curve(self)

    def consensus_sentence(self, top: int | None = None) -> str:
        """Return how the final model's best features differ from those of the outer folds' consensus, the mean rank."""
        self.check_top(top)
        return trust.consensus_words(self, top)

    def ranking(self, top: int | None = None, by: str = FINAL) -> FeatureRanking:
        """Return a ranking of the features, with the ranks of the outer folds' winners."""
        self.check_ranks(top)
        return trust.source_ranking(self, top, by, self.added_columns)

    @property
    def added_columns(self) -> dict[str, FloatArray]:
        """Columns that `raysel.stability_selection` and `raysel.permutation_test` add to the ranking's table."""
        added: dict[str, FloatArray] = {}
        if self.stability_selection is not None:
            added[SELECTION_PROBABILITY] = self.stability_selection.probability
        if self.permutation_test is not None:
            added |= self.permutation_test.ranking_columns()
        return added

    @cached_property
    def permutation_test(self) -> PermutationTest | None:
        """P values of the honest score and of the features as `raysel.permutation_test` last found them.

        None if it has not run, or if a winner has changed since then.
        """
        return read_permutation_test(self)

    def remarks(self, top: int | None = None) -> list[str]:
        """Return remarks on the limitations of the result, and on its data."""
        self.check_top(top)
        return [
            *self.actions(),
            *ranking_remarks(self.unranked_folds, len(self.refits)),
            *(
                model_remarks(self.directory.model.exists(), self.stored.study.untrusted)
                if self.has_final
                else final_remarks()
            ),
            *selection_remarks(self.n_scored, top or self.default_top),
            *tie_remarks(self.refits),
            *other_start_remarks(self.refits),
            *inner_fit_remarks(self.records),
            *fit_remarks(self.refits),
            *(self.stability_selection.remarks() if self.stability_selection else ()),
            *self.stored.mixed,
            *filterfalse(questions_scores, self.stored.study.data_remarks),
        ]

    def actions(self) -> list[str]:
        """Return those of `remarks` that ask for an action; first those on data that make the scores say less."""
        return [
            *filter(questions_scores, self.stored.study.data_remarks),
            *search_remarks(self.records, self.stored.search),
            *convergence_remarks(self.refits),
            *number_remarks(
                self.n_features if self.stored.study.choose_n != "mean" else {},
                self.config["evaluation"].get("n_features") or (),
                self.n_scored,
            ),
            *edge_remarks(
                self.config["solver"].get("space", {}), [refit.params for refit in self.outer], self._unstructured
            ),
            *few_folds_remarks(
                (own.test for own in self.references.values()), len(self.outer), of_draws=are_draws(self.outer)
            ),
        ]

    @property
    def _unstructured(self) -> dict[str, float]:
        """Value of a searched parameter at which the method assumes no structure of the features."""
        name, sides = self.config["solver"]["name"], self.layout.grid
        if name == "smr" and sides:
            return {"rank": min(sides) if len(sides) > 1 else 1}
        return {"gamma1": 0} if name == "smml" else {}

    def plot_ranking(self, top: int | None = None, ax: Any = None) -> Any:
        """Draw the scores of the final model: a map for matrix-shaped samples, else bars of the best features."""
        from raysel.results.displays.plots import plot_ranking  # noqa: PLC0415 - loads matplotlib

        return plot_ranking(self.ranking(top), self.layout, ax)

    def plot_convergence(self, ax: Any = None) -> Any:
        """Draw the mean objective of each configuration by iteration, the final model's in colour."""
        from raysel.results.displays.plots import plot_convergence  # noqa: PLC0415

        final = self.stored.refits.get(FINAL)
        return plot_convergence(self.records, final.trial if final else None, ax)

    def plot_scores(self, ax: Any = None) -> Any:
        """Draw test and inner score over the number of features, or as bars if there are not several numbers."""
        return study_plots.plot_scores(self, ax)

    def plot_stability(self, ax: Any = None) -> Any:
        """Draw the stability of the outer folds' best features over their number."""
        return study_plots.plot_stability(self, ax)

    def plot_search(self, ax: Any = None) -> Any:
        """Draw the validation score over the two hyperparameters that vary it the most, the best over the others."""
        return study_plots.plot_search(self, ax)

    def plot_confusion(self, ax: Any = None) -> Any:
        """Draw the confusion of the classes on the outer folds' test samples, or the errors of each label."""
        return study_plots.plot_confusion(self, ax)

    def plot_profile(self, top: int | None = None, ax: Any = None) -> Any:
        """Draw the coefficients of the final model's best features by class."""
        return study_plots.plot_profile(self, top, ax)

    def __repr__(self) -> str:
        table = self.summary()
        return f"{self._headline()}\n{table.to_string(index=False)}" if len(table) else self._headline()

    def _repr_html_(self) -> str:
        table = self.summary()
        shown = [f"<p>{escape(self._headline())}</p>{table.to_html(index=False) if len(table) else ''}"]
        if self.status == "finished" and self.ranks_features:
            shown.append(self.ranking(by=FINAL if self.has_final else trust.CONSENSUS)._repr_html_())
        return "".join(shown)

    def _headline(self) -> str:
        if self.status != "finished":
            when = "with" if self.status == "running" else "after"
            done = f"{self.stored.n_trials} of {self.stored.study.n_trials} trials"
            return f"StudyResult({self.name}, {self.status} {when} {done})"
        return f"StudyResult({self.name}, {words.headline(self)})"
