"""Each outer fold's winner: its own best inner score, then few features, simplicity and the place in the search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_studies import raw_config, run_offline

from raysel.core.errors import StudyError
from raysel.evaluation.records import FoldTrace, InnerTrace, TrialRecord
from raysel.evaluation.selection import select_winner


def trace(score: float | None) -> FoldTrace:
    if score is None:
        return FoldTrace(error="Traceback: singular")
    # Spread over two inner fits and two numbers of features; earlier iterations must not count.
    return FoldTrace(
        inner=[
            InnerTrace([3.0, 2.0], [[1.0, 1.0], [score - 0.125, score + 0.125]]),
            InnerTrace([3.0], [[score, score]]),
        ]
    )


def record(name: str, scores: dict[str, float | None], status: str = "finished") -> TrialRecord:
    return TrialRecord(name, name, {}, status, {fold: trace(score) for fold, score in scores.items()})


RULES = ("mean", "best", "one_se")
SCORES = st.sampled_from([0.25, 0.5, 0.75, None])
RECORDS = st.lists(
    st.tuples(SCORES, SCORES, st.sampled_from(["finished", "finished", "stopped"]), st.integers(0, 2)),
    min_size=1,
    max_size=8,
)


@given(drawn=RECORDS, order=st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_the_winner_is_the_one_that_the_rules_name_in_any_order(drawn, order):
    records, preference = [], {}
    for number, (a, b, status, simple) in enumerate(drawn):
        name = f"{(number * 7) % 10}{number}"  # ids in no order
        failed = status == "finished" and (a is None or b is None)
        records.append(record(name, {"outer0": a, "outer1": b}, "failed" if failed else status))
        preference[name] = ((float(simple), -1.0), -number)  # listed in the other order than drawn
    for fold, which in (("outer0", 0), ("outer1", 1)):
        able = [(r, d) for r, d in zip(records, drawn, strict=True) if d[2] != "stopped" and d[which] is not None]
        shuffled = records.copy()
        order.shuffle(shuffled)
        if not able:
            mend = "Change solver.space" if any(r.failure for r in records) else "Raise search.time_budget"
            with pytest.raises(StudyError, match=f"no configuration has a score on {fold}.*{mend}"):
                select_winner(shuffled, fold, preference, "mean")
            continue
        top = max(d[which] for _, d in able)
        best = [r.id for r, d in able if d[which] == top]
        simplest = min(preference[i][0] for i in best)
        tied = [i for i in best if preference[i][0] == simplest]
        expected = tied[-1]  # the first in the order of the list
        for given_order in (shuffled, records):
            winner, n_tied = select_winner(given_order, fold, preference, "mean")
            assert (winner.id, n_tied) == (expected, len(tied))


def test_each_fold_picks_its_own_and_the_mean_picks_none():
    records = [
        record("a", {"outer0": 0.9, "outer1": 0.1}),
        record("b", {"outer0": 0.1, "outer1": 0.9}),
        record("mean", {"outer0": 0.8, "outer1": 0.8}),
    ]
    preference = {r.id: ((), 0) for r in records}
    assert [select_winner(records, fold, preference, "mean")[0].id for fold in ("outer0", "outer1")] == ["a", "b"]


def test_a_zero_solution_wins_where_nothing_does_better():
    null = TrialRecord("null", "null", {}, "null", {"final": FoldTrace(True, [InnerTrace([1.0], [[0.4]])])})
    preference = {"null": ((0.0,), 1), "other": ((9.0,), 0)}
    assert select_winner([null, record("other", {"final": 0.4})], "final", preference, "mean")[0].id == "null"
    assert select_winner([null, record("other", {"final": 0.5})], "final", preference, "mean")[0].id == "other"


def test_a_failure_on_one_outer_fold_is_no_failure_on_another():
    records = [record("a", {"outer0": None, "outer1": 0.9}, "failed"), record("b", {"outer0": 0.1, "outer1": 0.1})]
    preference = {"a": ((), 0), "b": ((), 1)}
    assert [select_winner(records, fold, preference, "mean")[0].id for fold in ("outer0", "outer1")] == ["b", "a"]
    with pytest.raises(StudyError, match=r"on outer0: 1 failed, the first with .*singular"):
        select_winner(records[:1], "outer0", preference, "mean")


def test_scores_that_differ_in_their_last_bit_are_tied():
    one, other = 0.1 + 0.2, 0.3
    assert one != other
    records = [record("complex", {"outer0": max(one, other)}), record("simple", {"outer0": min(one, other)})]
    assert select_winner(records, "outer0", {"complex": ((2.0,), 0), "simple": ((1.0,), 1)}, "mean")[0].id == "simple"
    better = record("better", {"outer0": 0.3 + 1e-9})
    preference = {"complex": ((2.0,), 0), "simple": ((1.0,), 1), "better": ((3.0,), 2)}
    assert select_winner([*records, better], "outer0", preference, "mean")[0].id == "better"


def test_a_configuration_is_scored_at_the_number_of_features_that_is_chosen_for_it():
    level = TrialRecord("level", "", {}, "finished", {"outer0": FoldTrace(inner=[InnerTrace([1.0], [[0.7, 0.7]])] * 2)})
    steep = TrialRecord("steep", "", {}, "finished", {"outer0": FoldTrace(inner=[InnerTrace([1.0], [[0.1, 0.8]])] * 2)})
    preference = {"level": ((), 0), "steep": ((), 1)}
    found = {rule: select_winner([level, steep], "outer0", preference, rule)[0].id for rule in RULES}
    assert found == {"mean": "level", "best": "steep", "one_se": "steep"}


@pytest.mark.parametrize("rule", ["best", "one_se"])
def test_equal_scores_go_to_fewer_features_before_the_simpler(rule):
    few = TrialRecord("few", "", {}, "finished", {"outer0": FoldTrace(inner=[InnerTrace([1.0], [[0.8, 0.2]])] * 2)})
    many = TrialRecord("many", "", {}, "finished", {"outer0": FoldTrace(inner=[InnerTrace([1.0], [[0.2, 0.8]])] * 2)})
    preference = {"few": ((9.0,), 1), "many": ((1.0,), 0)}
    assert select_winner([many, few], "outer0", preference, rule)[0].id == "few"
    assert select_winner([many, few], "outer0", preference, "mean")[0].id == "many"


# --- the ties of a study --------------------------------------------------------------------------


@pytest.fixture
def separable(tmp_path):
    """Two classes that every setting of a linear classifier tells apart."""
    y = np.arange(40) % 2
    X = 10.0 * (2 * y - 1)[:, None] + np.random.default_rng(0).normal(size=(40, 4))
    np.savez(tmp_path / "few.npz", X=X, y=y)
    return tmp_path / "few.npz"


def run(data, folder, space, **search):
    solver = {"name": "sklearn.svm.LinearSVC", "space": space}
    evaluation = {"classifier": "native", "references": False}
    raw = raw_config(data, solver=solver, evaluation=evaluation, dataset__scaling="none")
    raw["search"] |= search
    return run_offline(raw, folder)


@pytest.mark.parametrize("values", [[0.1, 1.0, 10.0], [10.0, 0.1, 1.0]])
def test_the_first_that_is_listed_wins(separable, tmp_path, values):
    result = run(separable, tmp_path / "study", {"C": values})
    assert [refit.params["C"] for refit in result.refits] == values[:1] * 3
    assert [refit.n_tied for refit in result.refits] == [3, 3, 3]
    (remark,) = (text for text in result.remarks() if "Tied" in text)
    assert "on 3 of 3 folds: outer0 (3 configurations), outer1 (3 configurations), final (3 configurations)" in remark


def test_of_proposals_the_first_wins(separable, tmp_path):
    search = {"method": "tpe", "num_samples": 5, "synchronous": True, "batch_size": 2}
    result = run(separable, tmp_path / "study", {"C": {"loguniform": [0.1, 10.0]}}, **search)
    for refit in result.refits:
        trials = [record for record in result.records if record.fold == refit.fold]
        assert sorted(record.number for record in trials) == list(range(5))
        assert refit.trial == next(record.id for record in trials if record.number == 0)
        assert refit.n_tied == 5
