"""Comparisons on several data sets joined: scores, mean ranks, Friedman's and Nemenyi's tests."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from raysel.core.arrays import FloatArray
from raysel.core.errors import ConfigError
from raysel.core.printing import mean_and_sd
from raysel.numerics.inference import RankComparison, compare_over_data_sets
from raysel.results.comparison.export import write_files
from raysel.results.comparison.result import ComparisonResult
from raysel.results.comparison.rows import group_labels
from raysel.results.comparison.texts import format_p
from raysel.results.progress import counted
from raysel.results.tables import TextTable, in_markdown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class JoinedComparison:
    """Mean test scores of the same methods on several data sets.

    Use `join` to create one.
    """

    names: tuple[str, ...]
    metrics: tuple[str, ...]
    labels: tuple[str, ...]
    left_out: dict[str, dict[str, str]]
    #: Mean test scores; shape (n_data_sets, n_labels).
    scores: FloatArray
    cautions: tuple[str, ...] = ()

    @classmethod
    def join(cls, comparisons: Sequence[ComparisonResult]) -> JoinedComparison:
        """Join comparisons by the labels of their members."""
        _check_data_differ(comparisons)
        names = _names(comparisons)
        named = dict(zip(names, comparisons, strict=True))
        members = itertools.chain.from_iterable(one.members for one in comparisons)
        labels = dict.fromkeys(member.label for member in members)
        left_out = {}
        for label in labels:
            without = {name: one for name, one in named.items() if label not in one.studies}
            if without:
                left_out[label] = {name: _reason(one, label) for name, one in without.items()}
        shared = tuple(label for label in labels if label not in left_out)
        if len(shared) < 2:
            listed = "; ".join(_lacking(label, reasons) for label, reasons in left_out.items())
            raise ConfigError(
                f"{len(shared)} of {len(labels)} members have a result in every comparison, and two"
                f" or more are needed ({listed}). Give the same method the same label everywhere."
            )
        scores = np.array(
            [[one.studies[label].facts.test.mean for label in shared] for one in comparisons]
        )
        cautions = (*_unlike_methods(named, shared), *_shared_files(named))
        return cls(
            names=names,
            metrics=tuple(one.metric for one in comparisons),
            labels=shared,
            left_out=left_out,
            scores=scores,
            cautions=cautions,
        )

    @cached_property
    def ranking(self) -> RankComparison:
        """Mean ranks and their tests."""
        return compare_over_data_sets(self.scores)

    def table(self) -> pd.DataFrame:
        """Return the scores and ranks as a table with one row for each data set and method.

        Columns ``data_set``, ``metric``, ``member``, ``score`` (mean over the outer folds) and
        ``rank``.
        """
        import pandas as pd  # noqa: PLC0415 - takes half a second to import

        listed = []
        for i, (name, metric) in enumerate(zip(self.names, self.metrics, strict=True)):
            for j, label in enumerate(self.labels):
                found = (self.scores[i, j], self.ranking.ranks[i, j])
                listed.append((name, metric, label, *found))
        return pd.DataFrame(listed, columns=["data_set", "metric", "member", "score", "rank"])

    @property
    def title(self) -> str:
        """What is compared, in a few words."""
        return f"{len(self.labels)} methods on {len(self.names)} data sets"

    def text_table(self) -> TextTable:
        """Return a row a method, the best first: mean rank and score on each data set."""
        order = np.argsort(self.ranking.mean_ranks, kind="stable").tolist()
        rows = [
            [
                self.labels[j],
                f"{self.ranking.mean_ranks[j]:.2f}",
                *map(mean_and_sd, self.scores[:, j]),
            ]
            for j in order
        ]
        return TextTable(
            ["method", "mean rank", *self.names], rows, "Mean test scores over the outer folds"
        )

    def remarks(self) -> list[str]:
        """Return sentences on the tests, and on what was left out or is not alike."""
        ranking, lines = self.ranking, list(self.cautions)
        if ranking.reason:
            lines.append(
                f"There is no Friedman test and no critical-difference diagram: {ranking.reason}."
            )
            lines.append(
                "Folds of one data set are not independent and cannot stand in for data sets."
            )
        else:
            lines.append(self._test())
            if not ranking.is_sign_test:
                lines.append(
                    f"By Nemenyi's test at {ranking.alpha:g} (q = {ranking.q:.3f}) only differences"
                    f" of mean ranks above {ranking.critical_difference:.2f} can be seen."
                )
            if without := self._no_difference():
                lines.append(f"{without}: do not tell pairs of methods apart by Nemenyi's test.")
            groups = [", ".join(self.labels[j] for j in group) for group in ranking.groups]
            lines += [f"No clear difference among {group}." for group in groups]
        if len(set(self.metrics)) > 1:
            listed = ", ".join(
                f"{name} {metric}" for name, metric in zip(self.names, self.metrics, strict=True)
            )
            lines.append(f"The metrics differ: {listed}. Ranks are within each data set.")
        left_out = self.left_out.items()
        return [
            *lines,
            *(f"{_lacking(label, reasons, ' is left out: it')}." for label, reasons in left_out),
        ]

    def markdown(self) -> str:
        """Return table and remarks in Markdown."""
        remarks = "\n".join(f"- {in_markdown(remark)}" for remark in self.remarks())
        return f"# {self.title}\n\n{self.text_table().markdown()}\n\n{remarks}\n"

    def export(self, folder: str | Path) -> list[Path]:
        """Write the joined comparison into a folder."""
        ranking, figure = self.ranking, None
        if not ranking.reason:
            # Loads matplotlib.
            from raysel.results.displays.critical_difference import RankDiagram  # noqa: PLC0415

            name = "sign test" if ranking.is_sign_test else "Nemenyi"
            joined_by = f"Bars join methods that do not differ ({name}, {ranking.alpha:g})."
            tests = ". ".join(filter(None, [self._no_difference(), joined_by]))
            ranks = (ranking.mean_ranks, ranking.critical_difference, ranking.groups)
            figure = RankDiagram(self.title, self.labels, *ranks, f"{self._test()} {tests}")
        friedman = sign_test = float("nan")
        if ranking.is_sign_test:
            sign_test = ranking.p_value
        else:
            friedman = ranking.p_value
        described = {
            "data_sets": dict(zip(self.names, self.metrics, strict=True)),
            "mean_ranks": dict(zip(self.labels, ranking.mean_ranks.tolist(), strict=True)),
            "friedman": {"chi2": ranking.chi2, "p_value": friedman},
            "sign_test": {"p_value": sign_test},
            "nemenyi": {
                "alpha": ranking.alpha,
                "q": ranking.q,
                "critical_difference": ranking.critical_difference,
            },
            "no_test_because": ranking.reason or None,
            "left_out": self.left_out,
        }
        return write_files(
            Path(folder),
            "ranks",
            tables={"ranks": self.table()},
            text=self.markdown(),
            figure=figure,
            described=described,
        )

    def _test(self) -> str:
        """Sentence on the test over the data sets."""
        p, freedom = format_p(self.ranking.p_value), len(self.labels) - 1
        if not p.startswith("<"):
            p = f"= {p}"
        if self.ranking.is_sign_test:
            first, second = self.ranking.ranks.T
            runs = f"{(first < second).sum()}/{(first == second).sum()}/{(first > second).sum()}"
            return (
                f"Exact sign test of two methods over {len(self.names)} data sets: {self.labels[0]}"
                f" has won/tied/lost {runs}, p {p}."
            )
        return (
            f"Friedman's test over {len(self.names)} data sets: chi2 = {self.ranking.chi2:.2f},"
            f" {counted(freedom, 'degree')} of freedom, p {p}."
        )

    def _no_difference(self) -> str:
        ranking = self.ranking
        if ranking.is_sign_test or ranking.p_value <= ranking.alpha:
            return ""
        return f"Friedman's test finds no clear difference at {ranking.alpha:g}"


def _names(comparisons: Sequence[ComparisonResult]) -> tuple[str, ...]:
    """Names of the comparisons; of two with the same name their folders, or the whole paths."""
    names, folders = [one.name for one in comparisons], [one.path.name for one in comparisons]
    taken = Counter(names) + Counter(folders)
    own = []
    for name, folder, one in zip(names, folders, comparisons, strict=True):
        if names.count(name) == 1:
            own.append(name)
        elif taken[folder] == 1:
            own.append(folder)
        else:
            own.append(str(one.path))
    return tuple(own)


def _reason(comparison: ComparisonResult, label: str) -> str:
    """Why a label has no result in a comparison; empty if it is no member."""
    return next((member.failure for member in comparison.members if member.label == label), "")


def _lacking(label: str, reasons: Mapping[str, str], verb: str = "") -> str:
    """Sentence on where a label is no member, and where it failed."""
    absent = [name for name, reason in reasons.items() if not reason]
    told = []
    if absent:
        told.append(f"is no member of {', '.join(absent)}")
    for name, reason in reasons.items():
        if reason:
            told.append(f"has no result in {name}: {reason.rstrip('.')}")
    return f"{label}{verb} {'; '.join(told)}"


def _unlike_methods(named: Mapping[str, ComparisonResult], labels: Sequence[str]) -> Iterator[str]:
    """Sentences on labels that stand for several solvers or are scored by several estimators."""
    parts = (("solvers", "solver", "name"), ("estimators", "evaluation", "estimator"))
    for label, (what, section, key) in itertools.product(labels, parts):
        used = group_labels(
            (one.studies[label].config[section][key], name) for name, one in named.items()
        )
        if len(used) > 1:
            listed = "; ".join(f"{value} in {', '.join(names)}" for value, names in used.items())
            yield f"{label} has different {what}: {listed}. Its ranks are not those of one method."


def _shared_files(named: Mapping[str, ComparisonResult]) -> Iterator[str]:
    """Sentences on comparisons that use parts of one data file, which are not independent."""
    pairs = []
    for name, comparison in named.items():
        data = next(iter(comparison.studies.values())).config["dataset"]
        places = [
            part.get("path") or part.get("source") for part in (data, *(data.get("tasks") or ()))
        ]
        pairs += [(place, name) for place in places if place]
    for place, names in group_labels(pairs).items():
        if len(names) > 1:
            yield (
                f"{', '.join(names)} are parts of one data set, {place}: they are not independent,"
                " as ranks and tests take them to be."
            )


def _check_data_differ(comparisons: Sequence[ComparisonResult]) -> None:
    seen: dict[str, Path] = {}
    for one in comparisons:
        hashes = {study.facts.study.data_hash for study in one.studies.values()}
        if known := next((seen[data_hash] for data_hash in hashes if data_hash in seen), None):
            raise ConfigError(
                f"{known} and {one.path} have the same data: ranks are taken over different data"
                " sets. Give each data set once."
            )
        seen |= dict.fromkeys(hashes, one.path)
