"""What the re-runs of the papers share: data, units that survive a crash, honest scores, files, verdicts.

For runs r, configurations c and numbers of features s, with test scores T and mean inner scores I:

    optimistic(s) = max_c mean_r T(r, c, s)
    honest(s)     = mean_r T(r, argmax_c I(r, c, s), s)

The optimistic score is that of "the parameters corresponding to the best performance". The honest one chooses by the
inner scores: at each s (a curve), and once over c and s as a study does with ``choose_n: best`` (a table).
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from threadpoolctl import threadpool_limits

from raysel import Dataset, load_dataset, open_study, resume_comparison, run_comparison
from raysel.data.task_blocks import constant_features
from raysel.evaluation.references import GUESSES, Sets, reference_scores
from raysel.run.api import prepare_study

HERE = Path(__file__).parent
#: Files in the folder RAYSEL_DATA.
FILES = {
    "ORL": "ORL.npz",
    "PIE": "PIE_68x42_32x32.npz",
    "UMIST": "UMIST.npz",
    "USPS": "USPS.npz",
    "scenes": "LSP_sift_128x85.npz",
    "AR (MTDA)": "AR100_32x32.npz",
    "ORL (MTDA)": "ORL_28x23.npz",
    "MSRC-v1": "MSRCv1_6v.npz",
    "mfeat": "Handwritten_mfeat.npz",
    "MSRC-v2": "MSRCv2_6v_multilabel.npz",
    "Scene": "Scene_multilabel.npz",
}
Row = dict[str, Any]
#: Row of the guesses that read no feature.
CHANCE = "chance"
#: Level of the verdicts.
LEVEL = 0.05


@dataclass(frozen=True)
class Experiment:
    """One run of an experiment: where its data lie, and where its studies, units and tables go."""

    name: str
    #: Folder of the studies and of the units that are no study.
    output: Path
    fast: bool = False
    #: Data sets in place of those of the experiment.
    data: Mapping[str, Path] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Committed folder of the experiment."""
        return HERE / "papers" / self.name

    @property
    def published(self) -> pd.DataFrame:
        """Figures as printed in the paper."""
        return pd.read_csv(self.folder / "published.csv", dtype={"at": "string"})

    def sets(self, *names: str) -> tuple[str, ...]:
        """Names of the data sets: those of the command line, else the experiment's; in the short form its last."""
        return tuple(self.data) or (names[-1:] if self.fast else names)

    def path(self, name: str) -> Path:
        """File of a data set."""
        if name in self.data:
            return self.data[name]
        folder = os.environ.get("RAYSEL_DATA")
        if not folder or not Path(folder, FILES[name]).is_file():
            sys.exit(f"{self.name} needs {FILES[name]}: set RAYSEL_DATA to its folder, or give --data NAME=FILE.")
        return Path(folder, FILES[name])

    def measure(self, function: Callable[..., Iterable[Row]], units: Iterable[Row], **constant: Any) -> pd.DataFrame:
        """Compute the rows of every unit, in processes of one thread; those that are in the output are not run again.

        A unit is a mapping of plain values, the arguments of the function; ``constant`` are arguments that it takes
        besides. Each row has the values of its unit. The order is that of the units, whichever ends first.
        """
        listed = list(units)
        file = self.output / f"{function.__name__}.jsonl"
        done = dict(_lines(file))
        missing = {key: unit for unit in listed if (key := _key(unit)) not in done}
        if missing:
            file.parent.mkdir(parents=True, exist_ok=True)
            _write_lines(file, done)
            with file.open("a", encoding="utf-8") as lines:
                futures = {
                    _pool().submit(_rows, partial(function, **constant), unit): key for key, unit in missing.items()
                }
                for future in as_completed(futures):
                    key = futures[future]
                    done[key] = future.result()
                    lines.write(_line(key, done[key]))
                    lines.flush()
        return pd.DataFrame([unit | row for unit in listed for row in done[_key(unit)]])

    def config(self, study: str) -> Row:
        """Return a committed configuration of the experiment as plain data."""
        return dict(yaml.safe_load((self.folder / f"{study}.yaml").read_text(encoding="utf-8")))

    def compare(self, name: str, config: Row, changes: Mapping[str, Any]) -> Any:
        """Run a comparison, or resume it, and give its result."""
        path = self.output / name
        changes = {"name": f"{self.name}-{name}", **changes}
        changes["tracking.uri"] = f"sqlite:///{self.output.absolute()}/mlflow.db"
        if self.fast:
            changes["search.executor"] = "serial"
        if (path / "members.json").exists():
            return resume_comparison(path, config, changes, progress=not self.fast)
        return run_comparison(config, changes, output=path, progress=not self.fast)


@cache
def _pool() -> ProcessPoolExecutor:
    """Processes of one thread, one a processor, that all experiments share."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(len(os.sched_getaffinity(0)), context, initializer=threadpool_limits, initargs=(1,))


@lru_cache(maxsize=2)
def read(path: str) -> Dataset:
    """Read a data set once a process."""
    return load_dataset(path)


@lru_cache(maxsize=16)
def fingerprint(path: str) -> str:
    """Return a short hash of a file's bytes."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]


def unit_scaled(data: Dataset) -> np.ndarray:
    """Return the pixels of all samples in [0, 1]: less the smallest, by the range; shape (n_samples, n_features)."""
    X = np.asarray(data.X, dtype=np.float64)
    return (X - X.min()) / np.ptp(X)


def _rows(function: Callable[..., Iterable[Row]], unit: Row) -> list[Row]:
    return list(function(**unit))


def _key(unit: Row) -> str:
    """Unit as text; of a data set the bytes count, not the place."""
    named = {name: fingerprint(value) if name == "path" else value for name, value in unit.items()}
    return json.dumps(named, sort_keys=True)


def _line(key: str, rows: list[Row]) -> str:
    return json.dumps([key, rows]) + "\n"


def _lines(file: Path) -> Iterator[tuple[str, list[Row]]]:
    """Yield the units in a file; a last line that was cut short is left out."""
    for line in file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else ():
        if line.endswith("\n"):
            key, rows = json.loads(line)
            yield key, rows


def _write_lines(file: Path, done: Mapping[str, list[Row]]) -> None:
    part = file.with_suffix(".part")
    part.write_text("".join(_line(key, rows) for key, rows in done.items()), encoding="utf-8")
    part.replace(file)


# --- optimistic and honest -------------------------------------------------------------------------


@dataclass(frozen=True)
class Scores:
    """Scores of a method for each run, configuration and number of features (or task)."""

    #: Test and mean inner scores, shape (n_runs, n_configurations, n_sizes).
    test: np.ndarray
    inner: np.ndarray

    @property
    def optimistic(self) -> np.ndarray:
        """Test score of the configuration whose mean test score is the best, at each size; (n_runs, n_sizes)."""
        best = self.test.mean(axis=0).argmax(axis=0)
        return self.test[:, best, np.arange(self.test.shape[2])]

    @property
    def best(self) -> np.ndarray:
        """Test score of each run at the configuration and size whose mean test score is the best."""
        return self.test[:, *np.unravel_index(self.test.mean(axis=0).argmax(), self.test.shape[1:])]

    @property
    def honest(self) -> np.ndarray:
        """Test score of the configuration whose inner score is the best, of each run at each size."""
        best = self.inner.argmax(axis=1)
        return np.take_along_axis(self.test, best[:, None, :], axis=1)[:, 0, :]


def guessed(*, fold: str, directory: str, **_: str) -> Iterator[Row]:
    """Score the guesses that read no feature on an outer fold of a finished study, task by task."""
    prepared, folds = _prepared(directory)
    train, test = folds[fold].train, folds[fold].test
    X, y = prepared.dataset.X, prepared.dataset.y
    sets = Sets(X[train], y[train], X[test], y[test], 0)
    scores = reference_scores(sets, evaluation=replace(prepared.evaluation, classifier="native")).scores
    yield {guess: np.asarray(scores[guess]).tolist() for guess in GUESSES}


def fitted_scores(*, fold: str, params: Row, directory: str, **_: str) -> Iterator[Row]:
    """Fit a configuration on an outer training set of a finished study, and score it on the test set as the study does.

    Other values of the unit tell the study from others: its name, the hashes of its data and configuration.
    """
    prepared, folds = _prepared(directory)
    solver, X_train, X_test = fitted(directory, fold, params)
    train, test, X, y = folds[fold].train, folds[fold].test, prepared.dataset.X, prepared.dataset.y
    scorer = prepared.evaluation.scorer(X_train, y[train], X_test, y[test], 0, constant_features(X[train]))
    yield {"scores": scorer(solver).tolist()}


def wholly_right(*, fold: str, params: Row, directory: str, **_: str) -> Iterator[Row]:
    """Rows of the test samples of an outer fold whose labels are all predicted right by a configuration."""
    prepared, folds = _prepared(directory)
    solver, _, X_test = fitted(directory, fold, params)
    test = np.asarray(folds[fold].test)
    yield {"right": test[(np.asarray(solver.predict(X_test)) == prepared.dataset.y[test]).all(axis=1)].tolist()}


def fitted(directory: str, fold: str, params: Row) -> tuple[Any, Any, Any]:
    """Fit a configuration on an outer training set of a finished study; also the scaled training and test set."""
    prepared, folds = _prepared(directory)
    train, test = folds[fold].train, folds[fold].test
    scaler, X = prepared.scaler(), prepared.dataset.X
    X_train, X_test = scaler.fit_transform(X[train]), scaler.transform(X[test])
    solver = prepared.solver(params, folds[fold].random_state(prepared.config.seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ends by max_iter, as printed
        solver.fit(X_train, prepared.dataset.y[train])
    return solver, X_train, X_test


@lru_cache(maxsize=2)
def _prepared(directory: str) -> tuple[Any, Mapping[str, Any]]:
    stored = open_study(directory)
    plan = {"cv.plan": str(stored.directory.plan)}
    study = prepare_study(dict(stored.config), plan, tracked=False)
    return study, {fold.name: fold for fold in study.plan.folds}


def scores_of(experiment: Experiment, label: str, study: Any) -> tuple[Scores, list[str]]:
    """Return the scores of all configurations of a finished study, and the numbers of features or tasks.

    The inner scores are those that the study recorded, the test scores of its winners too; others are fitted here. A
    configuration that failed has the score -inf.
    """
    folds = [refit.fold for refit in study.outer]
    listed = [record for record in study.records if all(fold in record.folds for fold in folds)]
    worst = np.full(len(study.outer[0].test_scores), -np.inf)
    last = [[record.folds[fold].last_scores for record in listed] for fold in folds]
    inner = np.array([[worst if one is None else one.mean(axis=0) for one in row] for row in last])
    known = {(refit.fold, refit.trial): refit.test_scores for refit in study.outer}
    known |= {
        (fold, record.id): worst
        for fold, row in zip(folds, last, strict=True)
        for record, one in zip(listed, row, strict=True)
        if one is None
    }
    stored = study.stored.study
    rest = [(fold, record) for fold in folds for record in listed if (fold, record.id) not in known]
    same = {"study": label, "data": stored.data_hash, "config": stored.config_hash}
    units = [same | {"fold": fold, "params": record.params} for fold, record in rest]
    table = experiment.measure(fitted_scores, units, directory=str(study.path))
    for (fold, record), scores in zip(rest, table["scores"] if units else (), strict=True):
        known[fold, record.id] = scores
    test = np.array([[known[fold, record.id] for record in listed] for fold in folds])
    numbers = () if study.facts.is_native else study.config["evaluation"]["n_features"]
    places = [str(n) for n in numbers or stored.labels or ("",)]
    return _by_dimension(Scores(test, inner), places, [record.params for record in listed])


def _by_dimension(scores: Scores, places: list[str], params: Sequence[Row]) -> tuple[Scores, list[str]]:
    """Give the configurations of a projection a place for each of its dimensions, as if these were features."""
    if "n_components" not in params[0] or len(places) > 1:
        return scores, places
    dimensions = np.array([int(np.prod(one["n_components"])) for one in params])
    of_each = [np.flatnonzero(dimensions == n) for n in np.unique(dimensions)]
    if len({len(one) for one in of_each}) > 1:
        return scores, places
    test, inner = (np.stack([values[:, one, 0] for one in of_each], axis=2) for values in (scores.test, scores.inner))
    return Scores(test, inner), [str(n) for n in np.unique(dimensions)]


def triple(experiment: Experiment, data: str, comparison: Any, method: str) -> pd.DataFrame:
    """Return the optimistic and honest scores of each member of a comparison: a row for each number of features.

    ``at`` is the number of features, or the task; ``mean`` over them; or ``chosen``, the score that a user gets. The
    differences are those of the members to ``method``, with the 95 % interval and the P value, by Holm over the
    comparison, of the test that speaks of these draws (the plain one), or for folds the corrected one.
    """
    comparison = replace(comparison, reference=method)
    tables = [_rows_of(experiment, f"{data}: {member.label}", member, comparison) for member in comparison.members]
    tables.append(_chance(experiment, data, comparison.studies[method]))
    return pd.concat(tables, ignore_index=True).assign(data=data)


def _chance(experiment: Experiment, data: str, study: Any) -> pd.DataFrame:
    """Score of the better of the two guesses that read no feature, over the outer folds."""
    stored = study.stored.study
    same = {"study": data, "data": stored.data_hash, "config": stored.config_hash}
    units = [same | {"fold": refit.fold} for refit in study.outer]
    rows = experiment.measure(guessed, units, directory=str(study.path))
    of_each = {guess: np.array(rows[guess].tolist()) for guess in GUESSES}
    best = max(of_each.values(), key=np.mean)
    parts = [("chosen", best.mean(axis=1))]
    if best.shape[1] > 1:
        parts += zip(stored.labels, best.T, strict=True)
    return pd.DataFrame([{"method": CHANCE, "at": at, "runs": len(values), "configurations": 1}
                         | {name: values.mean() for name in ("optimistic", "honest")}
                         | {f"{name}_sd": _sd(values) for name in ("optimistic", "honest")}
                         for at, values in parts])  # fmt: skip


def _rows_of(experiment: Experiment, label: str, member: Any, comparison: Any) -> pd.DataFrame:
    if member.result is None:
        return pd.DataFrame([{"method": member.label, "at": "chosen", "note": member.failure}])
    study, row = member.result, comparison.rows[member.label]
    scores, places = scores_of(experiment, label, study)
    parts = []
    if len(places) > 1:
        parts = [(place, scores.optimistic[:, i], scores.honest[:, i]) for i, place in enumerate(places)]
        parts.append(("mean", scores.optimistic.mean(axis=1), scores.honest.mean(axis=1)))
    n_tried = len(study.records)
    pooled = Scores(*(values.mean(axis=2, keepdims=True) for values in (scores.test, scores.inner)))
    parts.append(("chosen", (pooled if "tasks" in study.stored.study.layout else scores).best, row.scores))
    table = pd.DataFrame([
        {"method": member.label, "at": at, "runs": len(honest)}
        | {"configurations": n_tried if at == "chosen" else scores.test.shape[1]}
        | {"optimistic": optimistic.mean(), "optimistic_sd": _sd(optimistic)}
        | {"honest": honest.mean(), "honest_sd": _sd(honest)}
        for at, optimistic, honest in parts
    ])  # fmt: skip
    chosen = table.index[-1]
    table.loc[chosen, ["inner", "cpu_seconds"]] = [float(np.mean(study.inner_scores)), row.cpu_seconds]
    for name, values in row.facts.report.items():
        table.loc[chosen, [name, f"{name}_sd"]] = [values.mean, values.sd]
    if pair := comparison.pairs.get(member.label):
        table.loc[chosen, ["difference", "p", "test"]] = [pair.compared.mean, pair.p[pair.main], pair.main]
        if pair.test:
            table.loc[chosen, ["lower", "upper"]] = [pair.test.lower, pair.test.upper]
    return table


def _sd(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


@dataclass(frozen=True)
class Verdict:
    """What survives of "the method is the best" on one data set."""

    #: Rival with the best mean inner score, its honest score, that of the method, and the P value of their difference.
    best_other: str
    other: float
    method: float
    p: float
    holds: bool


def verdict(results: pd.DataFrame, method: str, rivals: Sequence[str]) -> Verdict:
    """Judge by rule: the method is above every rival, and its difference to the best other has p < .05.

    The best other is the rival with the best inner score, so that no test score chooses it.
    """
    chosen = results[results["at"] == "chosen"].set_index("method")
    others = chosen.loc[[rival for rival in rivals if rival in chosen.index]].dropna(subset=["honest"])
    best, own = str(others["inner"].idxmax()), float(chosen.loc[method, "honest"])
    p = float(others.loc[best, "p"])
    return Verdict(best, float(others.loc[best, "honest"]), own, p, bool(own > others["honest"].max() and p < LEVEL))


def joined_verdict(held: Sequence[bool]) -> str:
    """Return the verdict over several data sets, from whether it holds on each."""
    if not held:
        return "cannot be tested here"
    return "holds" if all(held) else "holds on some sets" if any(held) else "does not hold"
