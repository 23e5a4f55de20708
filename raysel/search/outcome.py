"""What a finished study found, read from its directory, and its export as a ranking of features."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from raysel.cv.records import RefitRecord
from raysel.cv.results import StudyResult
from raysel.data.layouts import Layout, Tasks, layout_from_json
from raysel.errors import ConfigError, StudyError
from raysel.ranking import FeatureRanking, ranking_figure, write_figure, write_manifest, write_ranking
from raysel.search.kept import Kept
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
    n_trials : mapping of str to int
        How many trials ended in each status.
    """

    directory: StudyDirectory
    study: Mapping[str, Any]
    result: StudyResult
    n_trials: Mapping[str, int]

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
        kept = Kept.read(directory)
        study, whole = kept.study, kept.status == "finished" or not ended
        if not whole or set(kept.refits) != set(study["folds"]) or not directory.model.exists():
            raise StudyError(
                f"the study in {directory.path} has not come to its end: {kept.n_trials} of {study['n_trials']} trials "
                f"are done. Go on with it by `python -m raysel.tune --resume {directory.path}`, or name another study."
            )
        try:
            ordered = [RefitRecord.from_json(dict(kept.refits[fold])) for fold in study["folds"]]
        except KeyError as error:
            raise StudyError(f"{directory.journal} is no journal of a study: a record has no {error}.") from error
        statuses = [entry["status"] for entry in kept.trials if entry["kind"] == "trial"]
        counts = {status: statuses.count(status) for status in ("finished", "null", "stopped", "failed")}
        return cls(directory, study, StudyResult(ordered, study["metric"]), counts)

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
        constant = np.zeros(len(names), dtype=bool)
        constant[self.study["constant"]] = True
        return FeatureRanking.from_folds(
            self.result.final.feature_scores,
            [refit.feature_scores for refit in self.result.outer],
            feature_names=names,
            fold_names=[refit.fold for refit in self.result.outer],
            n_selected=top or self.default_top,
            coordinates=self.layout.coordinates(),
            constant=constant,
        )

    def tasks_in_words(self) -> str:
        """Each task's mean test score with its standard deviation, in a line."""
        pairs = ((name, np.mean(own), np.std(own, ddof=1)) for name, own in self.task_scores.items())
        return ", ".join(f"{name} {mean:.3f} ± {spread:.3f}" for name, mean, spread in pairs)

    def markdown(self) -> str:
        """The winners and their scores as a table in Markdown, and what else a reader wants first.

        Returns
        -------
        str
        """
        metric, summary = self.result.metric, self.result.summary()
        inner, test = float(np.mean(summary["inner"])), f"{summary['test_mean']:.3f} ± {summary['test_std']:.3f}"
        rows = [f"| {r.fold} | {r.name} | {r.inner_score:.3f} | {r.test_score:.3f} |" for r in self.result.outer]
        model = f"Model: {self.result.final.name}, fitted on all {self.study['n_samples']} samples (run `final`)."
        stability = f"Stability of the top {self.default_top}: {self.ranking().stability}."
        head = [f"| outer fold | winner | inner {metric} | test {metric} |", "|---|---|---|---|"]
        tasks = [f"Test {metric} by task: {self.tasks_in_words()}.", ""] if self.task_scores else []
        mean = f"| **mean** | | {inner:.3f} | **{test}** |"
        return "\n".join([*head, *rows, mean, "", *tasks, f"{model} {stability}"])

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
        stability = self.ranking(top).stability
        return {
            "name": self.study["name"],
            "command": "python -m raysel.tune config.yaml --set cv.plan=plan.json",
            "config": self.study["config"],
            "config_hash": self.study["config_hash"],
            "data_hash": self.study["data_hash"],
            "versions": self.study["versions"],
            "seed": self.study["config"]["seed"],
            "metric": self.result.metric,
            "trials": dict(self.n_trials),
            "winners": {refit.fold: refit.params for refit in self.result.refits},
            "scores": self.result.summary() | ({"tasks": self.task_scores} if self.task_scores else {}),
            "top": top or self.default_top,
            "stability": {"value": stability.value, "lower": stability.lower, "upper": stability.upper},
        }

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
                ),
                folder / "ranking.png",
            )
            if (folder / "model.skops").resolve() != self.directory.model.resolve():
                shutil.copyfile(self.directory.model, folder / "model.skops")
            write_manifest(folder / "manifest.json", self.manifest(top))
        except OSError as error:
            raise StudyError(f"the ranking cannot be written to {folder}: {error.strerror}.") from error
        return [folder / name for name in EXPORTED]


#: The files of an exported ranking.
EXPORTED = ("ranking.csv", "ranking.parquet", "ranking.png", "model.skops", "manifest.json")
