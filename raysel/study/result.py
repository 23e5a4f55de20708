"""What a finished study found, read from its directory, and its export as a ranking of features."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from raysel.arrays import BoolArray
from raysel.cv.convergence import Convergence
from raysel.cv.plan import FINAL
from raysel.cv.records import RefitRecord, TrialRecord
from raysel.data.layouts import Layout, Tasks, layout_from_json
from raysel.errors import ConfigError, StudyError
from raysel.ranking.export import write_manifest, write_ranking
from raysel.ranking.feature_ranking import FeatureRanking
from raysel.report.ranking_figure import ranking_figure, write_figure
from raysel.study.remarks import convergence_remarks, fit_remarks, search_remarks, selection_remarks
from raysel.study.scores import StudyResult
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory


@dataclass(frozen=True)
class Outcome:
    """A finished study.

    Parameters
    ----------
    directory : StudyDirectory
    study : mapping
        The journal's first record.
    result : StudyResult
    trials : list of TrialRecord
    search : mapping
        How far the search went: ``n_tried``, ``n_planned``, ``cut``; empty in journals of version 0.1.
    """

    directory: StudyDirectory
    study: Mapping[str, Any]
    result: StudyResult
    trials: list[TrialRecord]
    search: Mapping[str, Any]

    @classmethod
    def read(cls, directory: StudyDirectory, *, ended: bool = True) -> Outcome:
        """Read a study's journal.

        Parameters
        ----------
        directory : StudyDirectory
        ended : bool, default=True
            Whether its end must be written down; it is once the results are exported.

        Returns
        -------
        Outcome

        Raises
        ------
        StudyError
            If there is no study, or it has not come to its end.
        """
        kept = StoredStudy.read(directory)
        study, whole = kept.study, kept.status == "finished" or not ended
        if not whole or set(kept.refits) != set(study["folds"]) or not directory.model.exists():
            raise StudyError(
                f"the study in {directory.path} has not come to its end: {kept.n_trials} of {study['n_trials']} trials "
                f"are done. Go on with it by `python -m raysel.tune --resume {directory.path}`, or name another study."
            )
        try:
            ordered = [RefitRecord.from_json(dict(kept.refits[fold])) for fold in study["folds"]]
            trials = [TrialRecord.from_json(dict(entry)) for entry in kept.trials if entry["kind"] == "trial"]
        except (KeyError, TypeError) as error:
            raise StudyError(f"{directory.journal} is no journal of a study: a record has no {error}.") from error
        return cls(directory, study, StudyResult(ordered, study["metric"]), trials, kept.search)

    @property
    def n_trials(self) -> dict[str, int]:
        """How many trials ended in each status."""
        statuses = [record.status for record in self.trials]
        return {status: statuses.count(status) for status in ("finished", "null", "stopped", "failed")}

    @property
    def cut(self) -> bool:
        """Whether ``search.time_budget`` ended the search before all trials were made."""
        return bool(self.search.get("cut", False))

    @cached_property
    def winner_convergence(self) -> Convergence:
        """How many of the winners' refits, the model's among them, met their ``tol``."""
        return Convergence.of(self.result.refits)

    @cached_property
    def constant(self) -> BoolArray:
        """Features of one value in all samples: shape (n_features,)."""
        found = np.zeros(len(self.study["feature_names"]), dtype=bool)
        found[self.study["constant"]] = True
        return found

    @cached_property
    def n_scored(self) -> dict[str, int]:
        """How many features have a score in each fold's winner, the model's among them, by fold."""
        ranking = self.ranking()
        return dict(zip(ranking.fold_names, ranking.fold_n_scored.tolist(), strict=True)) | {FINAL: ranking.n_scored}

    def remarks(self, top: int | None = None) -> list[str]:
        """What limits the result, a sentence each; empty where nothing does.

        Parameters
        ----------
        top : int, optional
            How many features count as selected; `default_top` if not given.

        Returns
        -------
        list of str
        """
        return [
            *search_remarks(self.trials, self.search),
            *selection_remarks(self.n_scored, top or self.default_top),
            *convergence_remarks(self.trials, self.result.refits),
            *fit_remarks(self.result.refits),
        ]

    @property
    def layout(self) -> Layout:
        """The layout of the study's data."""
        return layout_from_json(self.study["layout"])

    @cached_property
    def task_scores(self) -> dict[str, list[float]]:
        """Each task's own test score on each outer fold; empty where the data are one task."""
        if not isinstance(self.layout, Tasks):
            return {}
        by_task = zip(*(refit.test_scores for refit in self.result.outer), strict=True)
        return {name: list(scores) for name, scores in zip(self.layout.tasks, by_task, strict=True)}

    @cached_property
    def default_top(self) -> int:
        """The middle one of the numbers of features that were scored, else a tenth of all."""
        scored = self.study["config"]["evaluation"].get("n_features") or []
        return int(scored[len(scored) // 2]) if scored else max(1, len(self.study["feature_names"]) // 10)

    def ranking(self, top: int | None = None) -> FeatureRanking:
        """The model's ranking and the outer folds'.

        Parameters
        ----------
        top : int, optional
            How many features count as selected; `default_top` if not given.

        Returns
        -------
        FeatureRanking

        Raises
        ------
        ConfigError
            If top is not between 1 and the number of features.
        """
        names = self.study["feature_names"]
        if top is not None and not 1 <= top <= len(names):
            raise ConfigError(f"--top {top} must lie between 1 and the {len(names)} features of the study.")
        return FeatureRanking.from_folds(
            self.result.final.feature_scores or [],
            [refit.feature_scores or [] for refit in self.result.outer],
            feature_names=names,
            fold_names=[refit.fold for refit in self.result.outer],
            n_selected=top or self.default_top,
            coordinates=self.layout.coordinates(),
            constant=self.constant,
        )

    def tasks_in_words(self) -> str:
        """Each task's mean test score with its standard deviation, in a line."""
        pairs = ((name, np.mean(own), np.std(own, ddof=1)) for name, own in self.task_scores.items())
        return ", ".join(f"{name} {mean:.3f} ± {spread:.3f} (SD)" for name, mean, spread in pairs)

    def stability_in_words(self, top: int | None = None) -> str:
        """Stability of the selected features, with what it is of."""
        ranking = self.ranking(top)
        return f"of the top {ranking.n_selected} over {ranking.n_folds} overlapping outer folds: {ranking.stability}"

    def markdown(self) -> str:
        """The winners and their scores as a table in Markdown, and what else a reader wants first.

        Returns
        -------
        str
        """
        metric, summary = self.result.metric, self.result.summary()
        inner, test = float(np.mean(summary["inner"])), f"{summary['test_mean']:.3f} ± {summary['test_std']:.3f} (SD)"
        rows = [
            f"| {r.fold} | {r.name} | {self.n_scored[r.fold]} | {r.inner_score:.3f} | {r.test_score:.3f} |"
            for r in self.result.outer
        ]
        model = f"Model: {self.result.final.name}, fitted on all {self.study['n_samples']} samples (run `final`)."
        model += f" {self.n_scored[self.result.final.fold]} of {len(self.constant)} features have a score in it."
        stability = f"Stability {self.stability_in_words()}."
        head = [
            f"| outer fold | winner | features with a score | inner {metric} | test {metric} |",
            "|---|---|---|---|---|",
        ]
        remarks = [f"- {remark}" for remark in self.remarks()]
        tasks = [f"Test {metric} by task: {self.tasks_in_words()}.", ""] if self.task_scores else []
        mean = f"| **mean** | | | {inner:.3f} | **{test}** |"
        return "\n".join([*head, *rows, mean, "", *tasks, f"{model} {stability}", *([""] if remarks else []), *remarks])

    def manifest(self, top: int | None = None) -> dict[str, Any]:
        """What re-creates the study, and what it found.

        Parameters
        ----------
        top : int, optional

        Returns
        -------
        dict
            Ready for JSON.
        """
        ranking, result = self.ranking(top), self.result
        command: str | None = "python -m raysel.tune config.yaml --set cv.plan=plan.json"
        if self.cut:
            again = f"{command} --set search.time_budget=null --set search.configurations=ranking/manifest.json"
            command = again if self._is_listed else None  # what a search has learnt by then depends on the clock
        return {
            "name": self.study["name"],
            "command": command,
            "remarks": self.remarks(top),
            "config": self.study["config"],
            "config_hash": self.study["config_hash"],
            "data_hash": self.study["data_hash"],
            "versions": self.study["versions"],
            "seed": self.study["config"]["seed"],
            "metric": result.metric,
            "trials": self.n_trials,
            "search": {"cut_by_time_budget": self.cut, **{k: self.search.get(k) for k in ("n_tried", "n_planned")}},
            "tried": [_tried(record) for record in sorted(self.trials, key=lambda record: record.id)],
            "winners": {refit.fold: refit.params for refit in result.refits},
            "convergence": {r.fold: {"converged": r.converged, "relative_duality_gap": r.gap} for r in result.refits},
            "features_with_score": self.n_scored,
            "scores": result.summary() | ({"tasks": self.task_scores} if self.task_scores else {}),
            "top": ranking.n_selected,
            "stability": {
                "value": ranking.stability.value,
                "of_the_top": ranking.n_selected,
                "over": f"{ranking.n_folds} overlapping outer folds",
                "undefined_because": ranking.stability.reason or None,
            },
        }

    @property
    def _is_listed(self) -> bool:
        """Whether the search tries a fixed list, whose tried part can be tried again."""
        search = self.study["config"]["search"]
        return search["method"] in ("grid", "random", "sobol") and not search.get("early_stopping")

    def export(self, folder: Path, top: int | None = None) -> list[Path]:
        """Write ranking, picture, model and manifest.

        Parameters
        ----------
        folder : Path
            Made if need be.
        top : int, optional

        Returns
        -------
        list of Path
            What was written: ranking.csv, ranking.parquet, ranking.png, model.skops, manifest.json.

        Raises
        ------
        ConfigError, StudyError
        """
        ranking = self.ranking(top)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_ranking(ranking, folder)
            write_figure(
                ranking_figure(
                    ranking,
                    self.layout,
                    name=self.study["name"],
                    test_scores=self.result.test,
                    metric=self.result.metric,
                    task_scores=self.task_scores,
                    remarks=self.remarks(top),
                ),
                folder / "ranking.png",
            )
            if (folder / "model.skops").resolve() != self.directory.model.resolve():
                shutil.copyfile(self.directory.model, folder / "model.skops")
            write_manifest(folder / "manifest.json", self.manifest(top))
        except OSError as error:
            raise StudyError(f"the ranking cannot be written to {folder}: {error.strerror}.") from error
        return [folder / name for name in EXPORTED]


def _tried(record: TrialRecord) -> dict[str, Any]:
    found = record.convergence()
    described: dict[str, Any] = {"id": record.id, "params": record.params, "status": record.status}
    described |= {"inner_fits": found.n_fits, "converged": found.n_converged, "largest_relative_gap": found.gap}
    if record.failed_folds:
        described["failed_on"] = record.failed_folds
    return described | ({"fold": record.fold} if record.fold else {})


#: The files of an exported ranking.
EXPORTED = ("ranking.csv", "ranking.parquet", "ranking.png", "model.skops", "manifest.json")
