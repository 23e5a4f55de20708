"""What is recorded of a trial and of a refit: plain numbers that survive a round trip through JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from raysel.cv.convergence import Convergence
from raysel.cv.plan import FINAL


@dataclass
class InnerTrace:
    """One inner fit: the objective, and each score, after every iteration.

    ``source`` says how a fit on a path of configurations was found: solved, or by which certificate. ``converged``
    says whether the fit met its ``tol``, None while it has not ended; ``gap`` is its relative duality gap, None
    where the solver has none.
    """

    objective: list[float] = field(default_factory=list)
    scores: list[list[float]] = field(default_factory=list)
    source: str = "solved"
    converged: bool | None = None
    gap: float | None = None


@dataclass
class FoldTrace:
    """One configuration on one outer fold: its inner fits, seen by no outer test sample.

    ``null`` means that the zero solution was proved for every inner training set; it is scored like any other.
    ``error`` is the traceback of the inner fit that failed; it says nothing of other outer folds.
    """

    null: bool = False
    inner: list[InnerTrace] = field(default_factory=list)
    error: str = ""

    @property
    def score(self) -> float | None:
        """Mean over inner folds of the mean score at each one's last iteration; None where a fit failed."""
        if self.error or not self.inner:
            return None
        return float(np.mean([trace.scores[-1] for trace in self.inner]))

    def objective_curve(self) -> list[float]:
        """Mean objective over inner folds, by iteration."""
        return mean_curve([trace.objective for trace in self.inner])

    def score_curve(self) -> list[float]:
        """Mean score over inner folds and numbers of features, by iteration (one value if scored once)."""
        return mean_curve([np.mean(trace.scores, axis=1).tolist() for trace in self.inner if trace.scores])

    def score_curves(self) -> list[list[float]]:
        """Mean score over inner folds by iteration, a curve for each number of features."""
        return [
            mean_curve([[s[i] for s in t.scores] for t in self.inner]) for i in range(len(self.inner[0].scores[-1]))
        ]


def mean_curve(curves: Sequence[Sequence[float]]) -> list[float]:
    """Mean of curves of different lengths; a curve that has ended holds its last value.

    Examples
    --------
    >>> mean_curve([[4.0, 2.0], [2.0]])
    [3.0, 2.0]
    """
    length = max((len(curve) for curve in curves), default=0)
    held = [[*curve, *[curve[-1]] * (length - len(curve))] for curve in curves if curve]
    return np.mean(held, axis=0).tolist() if held else []


@dataclass
class TrialRecord:
    """One configuration on the outer folds it carried.

    Parameters
    ----------
    id : str
        Hash of the configuration; before it, the outer fold where the trial carried only one.
    name : str
        The configuration, readable.
    params : dict
    status : {"finished", "null", "stopped", "failed"}
        Stopped: left off early, and so no winner. Failed: on some outer fold at least; it can win the others.
    folds : dict of str to FoldTrace
    error : str
        Traceback of a trial that failed as a whole, e.g. because its worker process died.
    started, ended : float
        Seconds since the epoch.
    fold : str
        The only outer fold that it carried, in a search that keeps them apart.
    """

    id: str
    name: str
    params: dict[str, Any]
    status: str
    folds: dict[str, FoldTrace] = field(default_factory=dict)
    error: str = ""
    started: float = 0.0
    ended: float = 0.0
    fold: str = ""

    def curves(self, metric: str, labels: Sequence[str]) -> dict[str, list[float]]:
        """Curves for people to look at: each outer fold's, and their mean, which picks no winner.

        Parameters
        ----------
        metric : str
            E.g. ``"accuracy"``.
        labels : sequence of str
            A name for each score, e.g. ``["n10", "n20"]``; empty where there is one.

        Returns
        -------
        dict of str to list of float
        """
        alive = {name: trace for name, trace in self.folds.items() if not trace.error}
        looked_at = {n: t for n, t in alive.items() if n != FINAL} or alive
        found = {
            "objective": mean_curve([trace.objective_curve() for trace in looked_at.values()]),
            f"val_{metric}": mean_curve([trace.score_curve() for trace in looked_at.values()]),
        }
        for i, label in enumerate(labels if looked_at else ()):
            found[f"val_{metric}_{label}"] = mean_curve([trace.score_curves()[i] for trace in looked_at.values()])
        for name, trace in alive.items():
            found[f"objective/{name}"] = trace.objective_curve()
            found[f"val_{metric}/{name}"] = trace.score_curve()
        return {name: curve for name, curve in found.items() if curve}

    @property
    def failed_folds(self) -> list[str]:
        """The outer folds on which a fit failed."""
        return [name for name, trace in self.folds.items() if trace.error]

    @property
    def failure(self) -> str:
        """The first error, with the outer folds that failed; empty where there is none."""
        if self.error or not self.failed_folds:
            return self.error
        return f"on {', '.join(self.failed_folds)}: {self.folds[self.failed_folds[0]].error}"

    def convergence(self) -> Convergence:
        """How many of the inner fits that ended met their ``tol``, and their largest gap."""
        return Convergence.of(inner for trace in self.folds.values() if not trace.error for inner in trace.inner)

    @property
    def inferred(self) -> str:
        """How the inner fits were found where not all were solved, e.g. ``"12 solved, 8 zero"``; else empty."""
        counts = Counter(inner.source for trace in self.folds.values() for inner in trace.inner)
        return ", ".join(f"{n} {source}" for source, n in counts.most_common()) if set(counts) - {"solved"} else ""

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back; its lists are the record's own."""
        folds = {
            name: {**vars(trace), "inner": [dict(vars(inner)) for inner in trace.inner]}
            for name, trace in self.folds.items()
        }
        return {**vars(self), "folds": folds}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> TrialRecord:
        """Read what `to_json` wrote, whatever else stands beside it."""
        folds = {
            name: FoldTrace(trace["null"], [InnerTrace(**inner) for inner in trace["inner"]], trace.get("error", ""))
            for name, trace in raw["folds"].items()
        }
        return cls(**{**_own(cls, raw), "folds": folds})


@dataclass
class PathRecord:
    """Configurations on one inner training set: all, or those that a grid has grown by.

    Parameters
    ----------
    fold : str
    inner : int
    status : {"finished", "failed"}
    fits : dict of str to InnerTrace
        By the configuration's id.
    error : str
        Traceback of a failed one.
    started, ended : float
        Seconds since the epoch.
    """

    fold: str
    inner: int
    status: str = "finished"
    fits: dict[str, InnerTrace] = field(default_factory=dict)
    error: str = ""
    started: float = 0.0
    ended: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` reads back; its lists are the record's own."""
        return {**vars(self), "fits": {id_: dict(vars(fit)) for id_, fit in self.fits.items()}}

    @property
    def failure(self) -> str:
        """The error of a path that failed; empty where there is none."""
        return self.error

    def joined(self, later: PathRecord) -> PathRecord:
        """Join a later path, of configurations that were not there before, to this one.

        Parameters
        ----------
        later : PathRecord
            Of the same training set.

        Returns
        -------
        PathRecord
        """
        failed = self if self.status == "failed" else later
        return replace(
            failed,
            fits={**self.fits, **later.fits},
            started=min(self.started, later.started),
            ended=max(self.ended, later.ended),
        )

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> PathRecord:
        """Read what `to_json` wrote, whatever else stands beside it."""
        return cls(**{**_own(cls, raw), "fits": {id_: InnerTrace(**fit) for id_, fit in raw["fits"].items()}})


@dataclass
class RefitRecord:
    """A fold's winner, refitted on its whole training set and, but for the final fold, scored once.

    Parameters
    ----------
    fold : str
    trial : str
        Id of the winning configuration.
    params : dict
    inner_score : float
    test_scores : list of float
        One for each number of features; empty for the final fold.
    feature_scores : list of float, optional
        One for each feature; None where the method ranks nothing.
    objective : list of float
        By iteration.
    started, ended : float
        Seconds since the epoch.
    converged : bool, optional
        Whether the refit met its ``tol``; None where it was not recorded.
    gap : float, optional
        Its relative duality gap, where the solver has one.
    warnings : list of str
        What the fit warned of, besides convergence.
    """

    fold: str
    trial: str
    name: str
    params: dict[str, Any]
    inner_score: float
    test_scores: list[float]
    feature_scores: list[float] | None
    objective: list[float]
    started: float = 0.0
    ended: float = 0.0
    converged: bool | None = None
    gap: float | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def test_score(self) -> float | None:
        """Mean over numbers of features; None for the final fold."""
        return float(np.mean(self.test_scores)) if self.test_scores else None

    def to_json(self) -> dict[str, Any]:
        """Plain data that the constructor takes back."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> RefitRecord:
        """Read what `to_json` wrote, whatever else stands beside it."""
        return cls(**_own(cls, raw))


def _own(cls: type, raw: dict[str, Any]) -> dict[str, Any]:
    required = {field.name for field in fields(cls) if field.default is MISSING and field.default_factory is MISSING}
    return {field.name: raw[field.name] for field in fields(cls) if field.name in required or field.name in raw}
