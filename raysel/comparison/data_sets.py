"""Comparisons on several data sets joined: scores, mean ranks, Friedman's and Nemenyi's tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from raysel.arrays import FloatArray
from raysel.comparison.export import frame_content, make_folder
from raysel.comparison.stored import StoredComparison
from raysel.comparison.words import TextTable, p_in_words
from raysel.errors import ConfigError
from raysel.files import write_result
from raysel.ranking.export import write_manifest
from raysel.statistics.over_data_sets import RankComparison, compare_over_data_sets

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class JoinedComparison:
    """Mean test scores of the same methods on several data sets.

    Use `join` to create one.

    Parameters
    ----------
    names : tuple of str
        Names of the comparisons, one a data set.
    metrics : tuple of str
        Metric of each comparison.
    labels : tuple of str
        Labels of the members that have a result in every comparison.
    left_out : dict of str to list of str
        Other labels, each with the names of the comparisons in which it has no result.
    scores : ndarray of shape (n_data_sets, n_labels)
        Mean test scores.
    """

    names: tuple[str, ...]
    metrics: tuple[str, ...]
    labels: tuple[str, ...]
    left_out: dict[str, list[str]]
    scores: FloatArray

    @classmethod
    def join(cls, comparisons: Sequence[StoredComparison]) -> JoinedComparison:
        """Join comparisons by the labels of their members.

        Parameters
        ----------
        comparisons : sequence of StoredComparison
            Comparisons, each on another data set.

        Returns
        -------
        JoinedComparison
            Scores of the members that all comparisons have.

        Raises
        ------
        ConfigError
            If two comparisons use the same data, or fewer than two labels have a result in all of them.
        """
        _check_data_differ(comparisons)
        labels = list(dict.fromkeys(member.label for found in comparisons for member in found.members))
        lacking = {
            label: [
                name for name, found in zip(_names(comparisons), comparisons, strict=True) if label not in found.studies
            ]
            for label in labels
        }
        shared = tuple(label for label in labels if not lacking[label])
        if len(shared) < 2:
            listed = "; ".join(f"{label} has none in {', '.join(names)}" for label, names in lacking.items() if names)
            raise ConfigError(
                f"{len(shared)} of {len(labels)} members have a result in every comparison, and two or more are needed "
                f"({listed}). Give the same method the same label everywhere."
            )
        scores = np.array([[found.studies[label].test_mean for label in shared] for found in comparisons])
        return cls(
            _names(comparisons),
            tuple(found.metric for found in comparisons),
            shared,
            {label: names for label, names in lacking.items() if names},
            scores,
        )

    @cached_property
    def ranking(self) -> RankComparison:
        """Mean ranks and their tests."""
        return compare_over_data_sets(self.scores)

    def table(self) -> pd.DataFrame:
        """Return the scores and ranks as a table with one row for each data set and method.

        Returns
        -------
        DataFrame
            Columns ``data_set``, ``metric``, ``member``, ``score`` (mean over the outer folds) and ``rank``.
        """
        import pandas as pd  # noqa: PLC0415 - takes half a second to import

        listed = [
            (name, metric, label, self.scores[i, j], self.ranking.ranks[i, j])
            for i, (name, metric) in enumerate(zip(self.names, self.metrics, strict=True))
            for j, label in enumerate(self.labels)
        ]
        return pd.DataFrame(listed, columns=["data_set", "metric", "member", "score", "rank"])

    @property
    def title(self) -> str:
        """What is compared, in a few words."""
        return f"{len(self.labels)} methods on {len(self.names)} data sets"

    def text_table(self) -> TextTable:
        """Return a row of strings for each method, the best first: its mean rank and its score on each data set."""
        order = np.argsort(self.ranking.mean_ranks, kind="stable").tolist()
        rows = [
            [self.labels[j], f"{self.ranking.mean_ranks[j]:.2f}", *[f"{score:.3f}" for score in self.scores[:, j]]]
            for j in order
        ]
        return TextTable("Mean test scores over the outer folds", ["method", "mean rank", *self.names], rows)

    def remarks(self) -> list[str]:
        """Return sentences on the tests, or why there are none, and on the methods that were left out."""
        found, lines = self.ranking, []
        if found.reason:
            lines.append(
                f"There is no Friedman test and no critical-difference diagram: {found.reason}. The folds of one data "
                "set are not independent and cannot stand in for data sets."
            )
        else:
            lines.append(self._friedman())
            lines.append(
                f"Nemenyi's test at {found.alpha:g}: mean ranks differ if they lie {found.critical_difference:.2f} or "
                f"more apart (q = {found.q:.3f})."
            )
            if found.p_value > found.alpha:
                lines.append(
                    f"Friedman's test finds no difference at {found.alpha:g}, so pairs of methods should not be told "
                    "apart by Nemenyi's test."
                )
            groups = [", ".join(self.labels[j] for j in group) for group in found.groups]
            lines += [f"No significant difference among {group}." for group in groups]
        if len(set(self.metrics)) > 1:
            listed = ", ".join(f"{name} {metric}" for name, metric in zip(self.names, self.metrics, strict=True))
            lines.append(f"The metrics differ: {listed}. Ranks are within each data set.")
        for label, names in self.left_out.items():
            lines.append(f"{label} is left out: it has no result in {', '.join(names)}.")
        return lines

    def markdown(self) -> str:
        """Return table and remarks in Markdown."""
        remarks = "\n".join(f"- {remark}" for remark in self.remarks())
        return f"# {self.title}\n\n{self.text_table().markdown()}\n\n{remarks}\n"

    def export(self, folder: str | Path) -> list[Path]:
        """Write the joined comparison into a folder.

        Parameters
        ----------
        folder : str or Path
            Folder to write to; created if it does not exist. Files of an earlier export are replaced.

        Returns
        -------
        list of Path
            The written files: ranks.csv, ranks.md, manifest.json, and, if there are tests, ranks.svg and ranks.png
            with the critical-difference diagram.

        Raises
        ------
        StudyError
            If a file cannot be written.
        """
        folder, found = make_folder(folder), self.ranking
        written = [
            write_result(folder / "ranks.csv", frame_content(self.table())),
            write_result(folder / "ranks.md", self.markdown().encode()),
        ]
        if not found.reason:
            from raysel.display.figures.writing import write_figure  # noqa: PLC0415
            from raysel.display.rank_figure import rank_figure  # noqa: PLC0415 - loads matplotlib

            joined_by = f"Bars join methods that do not differ by Nemenyi's test at {found.alpha:g}."
            figure = rank_figure(
                self.labels,
                found.mean_ranks,
                found.critical_difference,
                found.groups,
                title=self.title,
                subtitle=f"{self._friedman()} {joined_by}",
            )
            written += [write_figure(figure, folder / f"ranks.{kind}") for kind in ("svg", "png")]
        described = {
            "data_sets": dict(zip(self.names, self.metrics, strict=True)),
            "mean_ranks": dict(zip(self.labels, found.mean_ranks.tolist(), strict=True)),
            "friedman": {"chi2": found.chi2, "p_value": found.p_value},
            "nemenyi": {"alpha": found.alpha, "q": found.q, "critical_difference": found.critical_difference},
            "no_test_because": found.reason or None,
            "left_out": self.left_out,
        }
        return [*written, write_manifest(folder / "manifest.json", described)]

    def _friedman(self) -> str:
        p = p_in_words(self.ranking.p_value)
        return (
            f"Friedman's test over {len(self.names)} data sets: chi2 = {self.ranking.chi2:.2f}, "
            f"{len(self.labels) - 1} degrees of freedom, p {p if p.startswith('<') else f'= {p}'}."
        )


def _names(comparisons: Sequence[StoredComparison]) -> tuple[str, ...]:
    """Names of the comparisons; those of the directories where two have the same name."""
    names = [found.name for found in comparisons]
    return tuple(n if names.count(n) == 1 else str(found.path) for n, found in zip(names, comparisons, strict=True))


def _check_data_differ(comparisons: Sequence[StoredComparison]) -> None:
    seen: dict[str, Path] = {}
    for found in comparisons:
        own = {study.stored.study.data_hash for study in found.studies.values()}
        for data_hash in own:
            if data_hash in seen:
                raise ConfigError(
                    f"{seen[data_hash]} and {found.path} have the same data: ranks are taken over different data sets. "
                    "Give each data set once."
                )
        seen |= dict.fromkeys(own, found.path)
