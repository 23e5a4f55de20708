"""Result of a study, finished or not, read from its directory."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.evaluation.agreement import consensus_sentence
from raysel.evaluation.feature_ranking import SELECTION_PROBABILITY, FeatureRanking
from raysel.evaluation.records import FINAL
from raysel.results import texts
from raysel.results.agreement import CONSENSUS, source_ranking
from raysel.results.numbers import StudyNumbers
from raysel.results.remarks import format_remarks, limitations


@dataclass(frozen=True, eq=False, repr=False)
class StudyResult(StudyNumbers):
    """Scores, trials, ranking and model of a study, as `raysel.run_study` and
    `raysel.open_study` return it.
    """

    def ranking(self, top: int | None = None, by: str = FINAL) -> FeatureRanking:
        """Return a ranking of the features, with the ranks of the outer folds' winners.

        Parameters
        ----------
        top : int, optional
            Number of features that count as selected; by default that of the fold whose ranking it
            is, else `default_top`.
        by : str, default="final"
            Whose ranking: ``"final"`` (the final model), ``"consensus"`` (of the outer folds) or
            the name of an outer fold.

        Returns
        -------
        FeatureRanking
            Ranking of all features.

        Raises
        ------
        ConfigError
            If ``top`` is not between 1 and the number of features, or ``by`` is none of these.
        UnfinishedStudyError
            If the study has not finished.
        StudyError
            If the study's method does not rank features, or ``by`` is ``"final"`` and the study has
            no final fold.
        """
        self.check_ranks(top)
        return source_ranking(self, top, by, self.added_columns)

    @property
    def added_columns(self) -> dict[str, FloatArray]:
        """Columns that `raysel.stability_selection` and `raysel.permutation_test` add to the
        ranking's table.
        """
        added: dict[str, FloatArray] = {}
        if self.stability_selection is not None:
            added[SELECTION_PROBABILITY] = self.stability_selection.probability
        if self.permutation_test is not None:
            n_beside = len(self.feature_names) - self.n_candidates
            for name, values in self.permutation_test.ranking_columns().items():
                added[name] = np.pad(values, (0, n_beside), constant_values=1.0)
        return added

    def consensus_sentence(self, top: int | None = None) -> str:
        """Return how the final model's best features differ from those of the outer folds'
        consensus.

        Parameters
        ----------
        top : int, optional
            Number of features that count as selected; `default_top` by default.

        Returns
        -------
        str
            One sentence; empty if there is no ranking by a final model.

        Raises
        ------
        ConfigError
            If ``top`` is not between 1 and the number of features.
        UnfinishedStudyError
            If the study has not finished.
        """
        self.check_top(top)
        return consensus_sentence(source_ranking(self, top)) if self.is_ranked else ""

    def remarks(self, top: int | None = None) -> list[str]:
        """Return remarks on the limitations of the result, and on its data.

        Parameters
        ----------
        top : int, optional
            Number of features that count as selected; `default_top` by default.

        Returns
        -------
        list of str
            One sentence for each limitation.

        Raises
        ------
        ConfigError
            If ``top`` is not between 1 and the number of features.
        UnfinishedStudyError
            If the study has not finished.
        """
        self.check_top(top)
        return [*self.actions(), *format_remarks([*limitations(self, top)])]

    def actions(self) -> list[str]:
        """Return those of `remarks` that ask for an action; first those on data that make the
        scores say less.
        """
        return format_remarks(self.facts.actions)

    def plot_ranking(self, top: int | None = None, ax: Any = None) -> Any:
        """Draw the scores of the final model: a map for matrix-shaped samples, else bars of the
        best features.

        Parameters
        ----------
        top : int, optional
            Number of features that count as selected; `default_top` by default.
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.
        """
        return self._plot("ranking", ax, self.ranking(top))

    def plot_convergence(self, ax: Any = None) -> Any:
        """Draw the mean objective of each configuration by iteration, the final model's in colour.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.
        """
        return self._plot("objective", ax)

    def plot_scores(self, ax: Any = None) -> Any:
        """Draw test and inner score over the number of features, or as bars if there are not
        several numbers.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.
        """
        return self._plot("scores", ax)

    def plot_stability(self, ax: Any = None) -> Any:
        """Draw the stability of the outer folds' best features over their number.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.

        Raises
        ------
        StudyError
            If the study's method does not rank features.
        """
        self.check_ranks()
        return self._plot("stability", ax)

    def plot_search(self, ax: Any = None) -> Any:
        """Draw the validation score over the two hyperparameters that vary it the most, the best
        over the others.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.
        """
        return self._plot("search", ax)

    def plot_confusion(self, ax: Any = None) -> Any:
        """Draw the confusion of the classes on the outer folds' test samples, or the errors of each
        label.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.

        Raises
        ------
        StudyError
            If the study recorded no confusion, because an earlier version of raysel ran it.
        """
        return self._plot("confusion", ax)

    def plot_predictions(self, ax: Any = None) -> Any:
        """Draw the predicted over the true quantities of the outer folds' test samples.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.

        Raises
        ------
        StudyError
            If the study predicts classes.
        """
        return self._plot("predictions", ax)

    def plot_residuals(self, ax: Any = None) -> Any:
        """Draw what the predictions leave of the quantities of the outer folds' test samples.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.

        Raises
        ------
        StudyError
            If the study predicts classes.
        """
        return self._plot("residuals", ax)

    def plot_profile(self, top: int | None = None, ax: Any = None) -> Any:
        """Draw the coefficients of the final model's best features by class.

        Parameters
        ----------
        top : int, optional
            Number of features; `default_top` by default.
        ax : matplotlib Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib Axes
            The axes with the plot.

        Raises
        ------
        StudyError
            If the method has no coefficient for each feature, or the study has no final fold.
        DataError
            If there is no model file.
        """
        ranking, _ = self.ranking(top), self.model  # an error if there is no model, which says why
        return self._plot("profile", ax, ranking)

    def _plot(self, key: str, ax: Any, ranking: FeatureRanking | None = None) -> Any:
        from raysel.results.displays.registry import display_of  # noqa: PLC0415 - loads matplotlib

        return display_of(self, key, ranking).plot(ax)

    def __repr__(self) -> str:
        table = self.summary()
        return (
            f"{self._headline()}\n{table.to_string(index=False)}"
            if len(table)
            else self._headline()
        )

    def _repr_html_(self) -> str:
        table = self.summary()
        shown = [
            f"<p>{escape(self._headline())}</p>{table.to_html(index=False) if len(table) else ''}"
        ]
        if self.status == "finished" and self.ranks_features:
            shown.append(self.ranking(by=FINAL if self.has_final else CONSENSUS)._repr_html_())
        return "".join(shown)

    def _headline(self) -> str:
        if self.status != "finished":
            when = "with" if self.status == "running" else "after"
            done = f"{self.stored.n_trials} of {self.stored.study.n_trials} trials"
            return f"StudyResult({self.name}, {self.status} {when} {done})"
        return f"StudyResult({self.name}, {texts.headline(self.facts)})"
