"""Result of a study, finished or not: what users hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.errors import StudyError
from raysel.data.layouts import Layout
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.group_ranking import GroupRanking
from raysel.evaluation.records import FINAL, RefitRecord, TrialRecord
from raysel.numerics.inference import MeanInterval
from raysel.numerics.rankings import Stability
from raysel.results import texts
from raysel.results.agreement import CONSENSUS, stability_curve
from raysel.results.facts import Facts
from raysel.results.feature_claims import FeatureClaims
from raysel.results.frames import trials_frame, winners_frame
from raysel.results.permutation import PermutationTest
from raysel.results.records import StudyRecords, read_study
from raysel.results.region_claims import RegionClaims
from raysel.results.remarks import format_remarks
from raysel.results.scores import Reference
from raysel.results.stability import StabilitySelectionResult
from raysel.results.tables import trace_table
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal_upload import tracking_status

if TYPE_CHECKING:
    import pandas as pd


class StudyResult:
    """Scores, trials, ranking and model of a study, as `raysel.run_study` returns it.

    Attributes
    ----------
    recorded : StudyRecords
        What was computed, as far as the study has run.
    facts : Facts
        What follows from that, each figure computed once, when it is first asked for. Of a study
        that has not finished they raise an `UnfinishedStudyError`.
    """

    def __init__(
        self, stored: StoredStudy, models: Mapping[str, Any] | None = None, *, trust: bool = False
    ) -> None:
        self.recorded = StudyRecords(stored, models or {}, trust)
        self.facts = Facts(self.recorded)

    @classmethod
    def open(cls, path: str | Path, *, trust: bool = False) -> Self:
        """Read a study from its directory.

        Parameters
        ----------
        path : str or Path
            Directory of the study.
        trust : bool, default=False
            Whether to read models that this account has not signed, see `raysel.load_model`.

        Returns
        -------
        StudyResult
            The study as far as it has run.

        Raises
        ------
        DirectoryError
            If the directory holds no study, or its journal is damaged.
        """
        return cls(read_study(path), trust=trust)

    # --- definition -------------------------------------------------------------------------

    @property
    def stored(self) -> StoredStudy:
        """The study as restored from its journal."""
        return self.recorded.stored

    @property
    def directory(self) -> StudyDirectory:
        """Directory of the study with the paths of its files.

        Raises
        ------
        StudyError
            If the study is held in memory.
        """
        return self.recorded.directory

    @property
    def path(self) -> Path:
        """Path of the study's directory."""
        return self.recorded.path

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.recorded.name

    @property
    def status(self) -> str:
        """``finished``, ``failed``, ``interrupted``, ``running`` or ``killed``, when it was opened.

        A study without a recorded end is ``running`` if a process holds the lock of its directory,
        else ``killed``.
        """
        return self.recorded.status

    @property
    def config(self) -> Mapping[str, Any]:
        """Configuration of the study as plain data."""
        return self.recorded.config

    @property
    def metric(self) -> str:
        """Name of the score."""
        return self.recorded.metric

    @property
    def feature_names(self) -> Sequence[str]:
        """Names of the features, in the order of the columns."""
        return self.recorded.feature_names

    @property
    def layout(self) -> Layout:
        """Arrangement of the data's columns."""
        return self.recorded.layout

    @property
    def tracking(self) -> Mapping[str, Any]:
        """Upload to MLflow: ``complete``, ``error``, ``logged`` and ids of experiment and run."""
        return tracking_status(self.directory)

    # --- trials and winners -----------------------------------------------------------------

    @property
    def records(self) -> list[TrialRecord]:
        """Records of the trials, in the order in which they ended."""
        return self.recorded.trials

    @property
    def n_trials(self) -> dict[str, int]:
        """Number of trials in each state."""
        return self.recorded.n_trials

    @property
    def refits(self) -> list[RefitRecord]:
        """Refits of the winners in the order of the outer folds, the final one last.

        Raises
        ------
        UnfinishedStudyError
            If the study has not finished.
        """
        return self.recorded.refits

    @property
    def outer(self) -> list[RefitRecord]:
        """Refits of the outer folds' winners, each with its test score."""
        return self.recorded.outer

    @property
    def final(self) -> RefitRecord:
        """Refit of the final fold's winner on all data: the model.

        Raises
        ------
        UnfinishedStudyError
            If the study has not finished.
        StudyError
            If the study has no final fold.
        """
        return self.recorded.final

    @property
    def classes(self) -> Sequence[str]:
        """Names of the classes, those of all tasks, or of the labels; empty if not recorded."""
        return self.recorded.classes

    @property
    def confusion(self) -> IntArray | None:
        """Test samples of all outer folds by true and predicted class, at their chosen numbers.

        Shape (n_classes, n_classes), rows and columns in the order of `classes`; for several labels
        a sample one row ``[tn, fp, fn, tp]`` a label. A sample counts once for each outer fold that
        tests it. None if an earlier version of raysel ran the study.
        """
        return self.recorded.confusion

    @property
    def predictions(self) -> FloatArray | None:
        """True and predicted quantities of the test samples, at each fold's chosen number.

        Shape (n_samples, n_quantities, 2), fold by fold. None for classes.
        """
        return self.recorded.predictions

    # --- scores -----------------------------------------------------------------------------

    @property
    def test_scores(self) -> list[float]:
        """Test score of each outer fold's winner, at the number that its inner scores choose.

        The mean over the numbers of features if ``evaluation.choose_n`` is ``mean``, or over the
        tasks.
        """
        return self.recorded.test_scores

    @property
    def inner_scores(self) -> list[float]:
        """Inner score of each outer fold's winner."""
        return [refit.inner_score for refit in self.outer]

    @property
    def test_mean(self) -> float:
        """Mean test score over the outer folds, which estimates the score on new samples."""
        return self.facts.test.mean

    @property
    def test_sd(self) -> float:
        """Sample standard deviation of the test scores over the folds; NaN if there is one."""
        return self.facts.test.sd

    @property
    def interval(self) -> MeanInterval:
        """Mean and SD of the test scores with their 95 % interval, or why there is none.

        It is for the mean score of the outer folds' models on new samples, by the spread over the
        test samples, or their groups or blocks (`raysel.numerics.inference.sample_interval`). Over
        draws of the training set (``cv.train_per_class``) it is Student's, of the mean over all
        draws from this pool of samples.
        """
        return self.facts.interval

    @property
    def references(self) -> Mapping[str, Reference]:
        """Scores of the references of ``evaluation.references`` on the same outer folds, by name.

        They are ``all features``, ``variance``, ``f_test``, ``confounds alone`` where there are
        confounds, and ``chance``, the best of the guesses that read no feature; those that have no
        score on an outer fold are left out.
        """
        return self.facts.references

    @property
    def report(self) -> dict[str, list[float | None]]:
        """Each metric of ``evaluation.report`` on the outer folds; None where undefined."""
        return {name: list(values.values) for name, values in self.facts.report.items()}

    # --- features ---------------------------------------------------------------------------

    @property
    def default_top(self) -> int:
        """Number of features that count as selected by default.

        That of the final model, or the median of the outer folds' where there is none yet; the
        middle value of ``evaluation.n_features``, else a tenth of all features, where none was
        chosen.
        """
        return self.recorded.default_top

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
        return self.facts.ranking(top, by)

    def group_ranking(self, top: int | None = None, by: str = FINAL) -> GroupRanking:
        """Return a ranking of the groups of features that ``dataset.feature_groups`` forms.

        Parameters
        ----------
        top : int, optional
            Number of single features that count as selected, as of `ranking`.
        by : str, default="final"
            Whose scores the members have, as of `ranking`.

        Returns
        -------
        GroupRanking
            Ranking of all groups.

        Raises
        ------
        ConfigError
            If ``top`` is not between 1 and the number of features, or ``by`` is no source.
        UnfinishedStudyError
            If the study has not finished.
        StudyError
            If the study has no groups of features, its method does not rank features, or ``by`` is
            ``"final"`` and the study has no final fold.
        """
        groups = self.facts.rank_groups(self.ranking(top, by))
        if groups is None:
            raise StudyError(
                f"the study {self.name} has no groups of features; set dataset.feature_groups, e.g."
                " to {correlated: 0.7}, or rank single features by ranking()."
            )
        return groups

    def stability(self, top: int | None = None) -> Stability:
        """Return the stability of the features that the outer folds' winners select.

        Parameters
        ----------
        top : int, optional
            Number of features that count as selected; `default_top` by default.

        Returns
        -------
        Stability
            Nogueira's stability.

        Raises
        ------
        ConfigError
            If ``top`` is not between 1 and the number of features.
        UnfinishedStudyError
            If the study has not finished.
        StudyError
            If the study's method does not rank features.
        """
        self.recorded.check_ranks(top)
        return self.recorded.fold_ranks.stability(top or self.default_top)

    @property
    def stability_selection(self) -> StabilitySelectionResult | None:
        """Set, probabilities and bounds that `raysel.stability_selection` last found.

        None if it has not run, or if the final model has changed since then.
        """
        return self.recorded.stability_selection

    @property
    def group_selection(self) -> StabilitySelectionResult | None:
        """The same of the groups of features that ``dataset.feature_groups`` forms.

        A half selects a group if it selects one of its members. None without groups, too.
        """
        return self.recorded.group_selection

    @property
    def permutation_test(self) -> PermutationTest | None:
        """P values of score and features that `raysel.permutation_test` last found.

        None if it has not run, or if a winner has changed since then.
        """
        return self.recorded.permutation_test

    @property
    def claims(self) -> FeatureClaims | RegionClaims | None:
        """Claims about the features or regions that `raysel.claim_features` last made.

        None if it has not run, or if the data have changed since then.
        """
        return self.recorded.claims

    # --- models -----------------------------------------------------------------------------

    @property
    def model(self) -> Any:
        """Fitted pipeline of scaler, selector and classifier, read without unpickling.

        What no file can hold is in the result of the process that has fitted it alone.

        It is the pipeline that was scored on the outer folds, fitted to all samples: see
        `FeaturePipeline`.

        The file holds training samples where the classifier needs them to predict: the selected
        features of all samples for ``knn``, all features for kernel and nearest-neighbour methods
        with ``native``.

        Raises
        ------
        UnfinishedStudyError
            If the study has not finished.
        StudyError
            If the study has no final fold.
        DataError
            If the file is missing, not trusted or damaged, or names a class that model files may
            not hold.
        """
        return self.fold_model(self.final.fold)

    def fold_model(self, fold: str) -> Any:
        """Return the pipeline that was scored on a fold, read without unpickling.

        Parameters
        ----------
        fold : str
            Name of the fold, e.g. ``"outer0"``; ``"final"`` for `model`.

        Returns
        -------
        FeaturePipeline
            Fitted pipeline of scaler, feature selector and classifier. Its score on the fold's test
            samples is the recorded one.

        Raises
        ------
        ConfigError
            If the study has no such fold.
        UnfinishedStudyError
            If the study has not finished.
        DataError
            If the file is missing, not trusted or damaged, or names a class that model files may
            not hold.
        """
        return self.recorded.fold_model(fold)

    # --- remarks ----------------------------------------------------------------------------

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
        self.recorded.check_top(top)
        return format_remarks([*self.facts.actions, *self.facts.find_limitations(top)])

    # --- tables -----------------------------------------------------------------------------

    def score_curves(self) -> pd.DataFrame:
        """Return inner and test scores for each number of features as a table.

        Returns
        -------
        DataFrame
            One row a number: ``n_features``, ``inner_mean``, ``inner_sd``, ``test_mean``,
            ``test_sd`` (over the outer folds) and a column with the mean of each of `references`;
            no rows for the classifier ``native``.
        """
        import pandas as pd  # noqa: PLC0415 - takes half a second to import

        return pd.DataFrame(self.facts.curve)

    def stability_curve(self) -> pd.DataFrame:
        """Return the stability of the best N features over the outer folds for a range of N.

        Returns
        -------
        DataFrame
            One row for each N, the numbers of ``evaluation.n_features`` and up to 24 others from 1
            to all features: ``n_features``; ``stability`` (Nogueira's; NaN where every fold selects
            all features or none); ``noise``, ``noise_lowest`` and ``noise_highest`` (mean and range
            for an F-test ranking of permuted labels on the same folds; NaN if an earlier version of
            raysel ran the study); ``undefined_because``.

        Raises
        ------
        UnfinishedStudyError
            If the study has not finished.
        StudyError
            If the study's method does not rank features.
        """
        import pandas as pd  # noqa: PLC0415

        return pd.DataFrame(stability_curve(self.recorded))

    def summary(self) -> pd.DataFrame:
        """Return the winners of the outer folds as a table.

        Returns
        -------
        DataFrame
            One row an outer fold that has been refitted: ``outer_fold``, ``winner``, ``n_features``
            (the chosen number of best features), ``training_<metric>``, ``inner_<metric>``,
            ``test_<metric>``, ``test_<name>`` for each metric of ``evaluation.report``,
            ``features_with_score``, ``redundancy`` (of the `default_top` features, over all
            samples) and ``converged``.
        """
        return winners_frame(self.recorded)

    def trials(self) -> pd.DataFrame:
        """Return the trials that have ended as a table, the best validation score first.

        Returns
        -------
        DataFrame
            One row a trial: ``trial`` (its id), ``outer_fold`` (in an adaptive search),
            ``param_*``, ``status``, ``val_<metric>`` (mean over the outer folds, for display only),
            ``val_<metric>/<fold>`` for each outer fold and the final one, ``objective``,
            ``converged`` (share of the inner fits that met ``tol``), ``seconds`` (missing if the
            search is along a path, where configurations have no time of their own) and ``error``.
        """
        return trials_frame(self.recorded)

    def traces(self) -> pd.DataFrame:
        """Return objective and scores of every inner fit by iteration.

        Returns
        -------
        DataFrame
            One row an iteration: ``trial``, ``configuration``, ``fold``, ``inner``, ``iteration``,
            ``objective`` and one ``score`` column for each number of features.
        """
        return trace_table(self.recorded.trials, self.stored.study.labels).to_pandas()

    # --- figures ----------------------------------------------------------------------------

    def plot_ranking(self, top: int | None = None, ax: Any = None) -> Any:
        """Draw the scores of the final model: a map of images, else bars of the best features.

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
        """Draw test and inner score over the number of features, or as bars of one number.

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
        self.recorded.check_ranks()
        return self._plot("stability", ax)

    def plot_search(self, ax: Any = None) -> Any:
        """Draw the validation score over the two hyperparameters that vary it the most.

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
        """Draw the confusion of the classes on the test samples, or the errors of each label.

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

    def plot_claimed_regions(self, ax: Any = None) -> Any:
        """Draw the outlines of the claimed regions of images or volumes over the mean sample.

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
            If no regions were claimed.
        """
        return self._plot("claimed-regions", ax)

    def _plot(self, key: str, ax: Any, ranking: FeatureRanking | None = None) -> Any:
        # Loads matplotlib.
        from raysel.results.displays.registry import find_display  # noqa: PLC0415

        return find_display(self.facts, key, ranking).plot(ax)

    def __repr__(self) -> str:
        table = self.summary()
        if not len(table):
            return self._headline()
        return f"{self._headline()}\n{table.to_string(index=False)}"

    def _repr_html_(self) -> str:
        table = self.summary()
        shown = [f"<p>{escape(self._headline())}</p>"]
        if len(table):
            shown.append(table.to_html(index=False))
        if self.status == "finished" and self.recorded.ranks_features:
            source = FINAL if self.recorded.has_final else CONSENSUS
            shown.append(self.ranking(by=source)._repr_html_())
        return "".join(shown)

    def _headline(self) -> str:
        if self.status != "finished":
            when = "with" if self.status == "running" else "after"
            done = f"{self.stored.n_trials} of {self.stored.study.n_trials} trials"
            return f"StudyResult({self.name}, {self.status} {when} {done})"
        return f"StudyResult({self.name}, {texts.headline(self.facts)})"
