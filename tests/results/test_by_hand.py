"""The answer of a study of the digits, recomputed by scikit-learn from the plan and the rankings
alone.
"""

from __future__ import annotations

import csv
import io
import json
import warnings

import numpy as np
import pytest
from rich.console import Console
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import f_classif
from sklearn.metrics import accuracy_score, pairwise_distances
from sklearn.preprocessing import MinMaxScaler
from small_studies import raw_config

import raysel
from raysel.cli.summary import print_answer
from raysel.evaluation.plan import OuterFold
from raysel.results.export import markdown

SIZES = [4, 8, 16, 24, 32]
ALPHAS = [0.05, 0.3]
SEED = 3


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    config = raw_config(
        name="digits",
        seed=SEED,
        dataset={"source": "digits"},
        solver={"name": "smr", "params": {"rank": 2, "max_iter": 4}, "space": {"alpha": ALPHAS}},
        evaluation={"classifier": "knn", "n_features": SIZES},
        cv={"outer": 3, "inner": 3},
        search={"executor": "serial"},
        tracking={"uri": f"sqlite:///{folder}/mlflow.db"},
    )
    return raysel.run_study(config, output=folder / "study", progress=False)


def scaled(train, test):
    """All pixels by one range: scikit-learn's scaler, fitted on the pixels as one column."""
    scaler = MinMaxScaler().fit(train.reshape(-1, 1))
    return (scaler.transform(part.reshape(-1, 1)).reshape(part.shape) for part in (train, test))


def nearest(train, y, test):
    """1-nearest neighbour; of several at the same distance (all are exact here) the most
    frequent class counts.
    """
    D = pairwise_distances(test * 16, train * 16, metric="sqeuclidean").round()
    votes = np.stack(
        [(D.min(axis=1, keepdims=True) == D)[:, y == c].sum(axis=1) for c in range(10)], axis=1
    )
    return votes.argmax(axis=1)


def curve(train, y, test, y_test, order):
    return [
        accuracy_score(y_test, nearest(train[:, best], y, test[:, best]))
        for best in (order[:n] for n in SIZES)
    ]


def one_se(scores):
    """Position and score of the smallest number within one standard error of the best mean."""
    means = scores.mean(axis=0)
    best = means.argmax()
    position = np.flatnonzero(means >= means[best] - stats.sem(scores[:, best]) - 1e-12)[0]
    return position, means[position]


def inner_scores(X, y, fold, alpha):
    """Scores of the configuration on the inner folds, which only raysel's SMR itself ranks for."""
    found = []
    for i, inner in enumerate(fold["inner"]):
        train, held = inner["train"], inner["validation"]
        state = OuterFold(fold["name"], 0, fold["index"], *[np.array([])] * 2, ()).random_state(
            SEED, i
        )
        Z, Z_held = scaled(X[train], X[held])
        smr = raysel.SMR(shape=(8, 8), rank=2, max_iter=4, alpha=alpha, random_state=state).fit(
            Z, y[train]
        )
        found.append(curve(Z, y[train], Z_held, y[held], np.argsort(-smr.scores_, kind="stable")))
    return np.array(found)


def rankings(Z, y):
    """Orders of the features by their variance and by their F value."""
    with np.errstate(invalid="ignore"), warnings.catch_warnings(action="ignore"):
        values = {"variance": Z.var(axis=0), "f_test": np.nan_to_num(f_classif(Z, y)[0])}
    return {name: np.argsort(-own, kind="stable") for name, own in values.items()}


def chosen_by_a_reference(X, y, fold, name):
    """Position of the number of features that the inner folds choose for a plain ranking."""
    found = []
    for inner in fold["inner"]:
        train, held = inner["train"], inner["validation"]
        Z, Z_held = scaled(X[train], X[held])
        found.append(curve(Z, y[train], Z_held, y[held], rankings(Z, y[train])[name]))
    return one_se(np.array(found))[0]


def interval(values, ratio):
    error = np.std(values, ddof=1) * np.sqrt(1 / len(values) + ratio)
    margin = stats.t.ppf(0.975, len(values) - 1) * error
    return np.mean(values) - margin, np.mean(values) + margin


@pytest.mark.slow
def test_headline_curve_and_references_are_scikit_learns(study):
    X, y = load_digits(return_X_y=True)
    plan = json.loads((study.path / "plan.json").read_text())
    figures = {
        name: [] for name in ("inner", "test", "all features", "variance", "f_test", "chance")
    }
    curves, numbers = {name: [] for name in ("inner", "test", "variance", "f_test")}, []
    ratios, tested = [], []
    by_reference, guesses = {}, {"most frequent class": [], "stratified guess": []}
    for number, fold in enumerate(plan["folds"][:3]):
        train, test = fold["train"], fold["test"]
        ratios.append(len(test) / len(train))
        tested.append(len(test))
        inner = [inner_scores(X, y, {**fold, "index": number}, alpha) for alpha in ALPHAS]
        # The better score wins, of equal ones that with fewer features.
        chosen = max(
            range(len(ALPHAS)), key=lambda i: (round(one_se(inner[i])[1], 12), -one_se(inner[i])[0])
        )
        position, score = one_se(inner[chosen])
        assert study.outer[number].params["alpha"] == ALPHAS[chosen]
        assert study.recorded.n_features[fold["name"]] == SIZES[position]
        numbers.append(SIZES[position])

        with (study.path / "folds" / f"{fold['name']}.csv").open(newline="") as file:
            order = np.array(
                [study.feature_names.index(row["feature"]) for row in csv.DictReader(file)]
            )
        Z, Z_test = scaled(X[train], X[test])
        sets = Z, y[train], Z_test, y[test]
        for name, own in {"test": order, **rankings(Z, y[train])}.items():
            at = position if name == "test" else chosen_by_a_reference(X, y, fold, name)
            curves[name].append(curve(*sets, own))
            figures[name].append(curves[name][-1][at])
            by_reference.setdefault(name, []).append(SIZES[at])
        curves["inner"].append(inner[chosen].mean(axis=0))
        figures["inner"].append(score)
        figures["all features"].append(accuracy_score(y[test], nearest(Z, y[train], Z_test)))
        state = OuterFold(fold["name"], 0, number, *[np.array([])] * 2, ()).random_state(SEED)
        draws = []
        for seed in np.random.SeedSequence(state).generate_state(100):
            dummy = DummyClassifier(strategy="stratified", random_state=int(seed)).fit(Z, y[train])
            draws.append(accuracy_score(y[test], dummy.predict(Z_test)))
        guesses["stratified guess"].append(np.mean(draws))
        guesses["most frequent class"].append(np.mean(y[test] == np.bincount(y[train]).argmax()))
    guess = max(guesses, key=lambda name: np.mean(guesses[name]))
    figures["chance"] = guesses[guess]

    assert study.test_scores == figures["test"]
    assert study.inner_scores == pytest.approx(figures["inner"], abs=1e-15)
    table = study.score_curves().set_index("n_features")
    for name in ("inner", "test"):
        assert table[f"{name}_mean"].tolist() == pytest.approx(
            np.mean(curves[name], axis=0).tolist(), abs=1e-15
        )
        assert table[f"{name}_sd"].tolist() == pytest.approx(
            np.std(curves[name], axis=0, ddof=1).tolist(), abs=1e-14
        )
    low, high = study.interval.lower, study.interval.upper
    assert (low + high) / 2 == pytest.approx(np.mean(figures["test"]))
    # Of the accuracy the variance is that of being right, here estimated by 100 parts of each fold.
    right, n = np.mean(figures["test"]), np.mean(tested)
    margin = 1.96 * np.sqrt((1 / 3 + np.mean(ratios)) * right * (1 - right) / n)
    assert (high - low) / 2 == pytest.approx(margin, rel=0.25)

    out = io.StringIO()
    print_answer(study, Console(file=out, width=200))
    shown = [
        " ".join(text.split()) for text in (out.getvalue(), markdown(study.facts).replace("|", " "))
    ]
    own_n = {
        k: "-".join(map(str, dict.fromkeys((min(v), max(v))))) for k, v in by_reference.items()
    }
    n = f"{min(numbers)}-{max(numbers)}" if len(set(numbers)) > 1 else f"{numbers[0]}"
    mean, sd = np.mean(figures["test"]), np.std(figures["test"], ddof=1)
    told = (
        f"accuracy {mean:.3f} ± {sd:.3f} (SD over 3 outer folds; 95 % interval {low:.3f} to"
        f" {high:.3f})"
    )
    for text in shown:
        assert f"{told} with the {n} best of 64 features" in text
    for name, words in (
        ("all features", "all 64 features 64"),
        ("variance", f"largest variance {own_n['variance']}"),
        ("f_test", f"F-test {own_n['f_test']}"),
        ("chance", f"chance ({guess})"),
    ):
        found, own = study.references[name], figures[name]
        assert found.scores == pytest.approx(own, abs=1e-15)
        if name in curves:
            assert found.curve == pytest.approx(np.mean(curves[name], axis=0).tolist(), abs=1e-15)
            assert table[name].tolist() == found.curve
        d = np.subtract(figures["test"], own)
        low, high = interval(d, np.mean(ratios))
        row = (
            f"{words} {np.mean(own):.3f} ± {np.std(own, ddof=1):.3f} {d.mean():+.3f} [{low:+.3f},"
            f" {high:+.3f}]"
        )
        assert all(row in text for text in shown), row
