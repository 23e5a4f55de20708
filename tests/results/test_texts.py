"""What a study's answer says in words: which numbers of features, what beats what, and what an
interval is of.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re

import numpy as np
import pytest
from scipy import stats

from raysel.evaluation.records import FINAL, RefitRecord
from raysel.numerics.inference import paired_comparison, sample_interval
from raysel.results import remarks, stability, texts
from raysel.results.export import manifest, markdown
from raysel.results.remarks import (
    edge_remarks,
    estimator_edge_remarks,
    few_folds_remarks,
    format_remarks,
    number_remarks,
)
from raysel.results.result import StudyResult
from raysel.results.scores import Reference, score_interval


def changed(result, evaluation=None, **by_fold):
    """The result with other fields of the outer refits, one value a fold, and another section
    evaluation.
    """
    study = result.stored.study
    if evaluation:
        config = {**study.config, "evaluation": {**study.config["evaluation"], **evaluation}}
        study = dataclasses.replace(study, config=config)
    refits = dict(result.stored.refits)
    for i, fold in enumerate(fold for fold in study.folds if fold != FINAL):
        refits[fold] = dataclasses.replace(
            refits[fold], **{name: values[i] for name, values in by_fold.items()}
        )
    return StudyResult(dataclasses.replace(result.stored, study=study, refits=refits))


#: Test scores of three folds at 4 and 8 features.
SCORES = [[0.80, 0.90], [0.70, 0.94], [0.85, 0.92]]
#: References whose mean difference to the scores at 8 features is large against its spread, small,
#: or nought.
REFERENCES = [
    {
        "all features": [s + 0.05 + 0.001 * i],
        "variance": [0.3, s],
        "f_test": [0.2, s + 0.01 * (i - 1)],
        "chance": [0.25],
    }
    for i, s in enumerate([0.90, 0.94, 0.92])
]


@pytest.fixture
def at_eight(finished):
    changes = {
        "n_features": [8] * 3,
        "position": [1] * 3,
        "test_scores": SCORES,
        "references": REFERENCES,
    }
    changes["reference_positions"] = [
        {}
    ] * 3  # as up to raysel 0.6: references at the method's number
    of_eight = changed(
        finished, **changes, training_scores=[[0.9, 1.0]] * 3, inner_score=[0.95, 0.96, 0.97]
    )
    refits = {**of_eight.stored.refits, FINAL: dataclasses.replace(of_eight.final, n_features=8)}
    return StudyResult(dataclasses.replace(of_eight.stored, refits=refits))


def test_the_headline_says_of_what_over_what_and_at_which_number(finished, at_eight):
    start = "test accuracy 0.920 ± 0.020 (SD over 3 outer folds; 95 % interval "
    assert texts.headline(at_eight.facts).startswith(start)
    assert texts.headline(at_eight.facts) in repr(at_eight)
    differ = changed(at_eight, n_features=[4, 8, 8], position=[0, 1, 1])
    assert differ.test_scores == [0.80, 0.94, 0.92]
    mean = changed(at_eight, {"choose_n": "mean"}, position=[None] * 3)
    assert mean.test_scores == pytest.approx([0.85, 0.82, 0.885])
    one = {
        "test_scores": [scores[1:] for scores in SCORES],
        "inner_curve": [[0.9]] * 3,
        "references": [{}] * 3,
    }
    one = changed(at_eight, {"choose_n": "mean", "n_features": [8]}, position=[None] * 3, **one)
    refits = {**at_eight.stored.refits, FINAL: dataclasses.replace(at_eight.final, n_features=4)}
    other_model = StudyResult(dataclasses.replace(at_eight.stored, refits=refits))
    native = changed(finished, {"estimator": "native"}, position=[None] * 3, n_features=[None] * 3)
    assert list(texts.headline_notes(differ.facts)) == [
        (
            "Each outer fold chose its number of features by its inner scores; the top 8 count as"
            " selected."
        )
    ]
    assert not [*texts.headline_notes(at_eight.facts), *texts.headline_notes(native.facts)]
    for result, end, cell in (
        (at_eight, ") with the 8 best of 64 features", "8"),
        (differ, ") with the 4-8 best of 64 features. The final model uses the top 8", "4-8"),
        (mean, "averaged over the 4-8 best of 64 features", "mean"),
        (one, ") with the 8 best of 64 features", "8"),
        (
            other_model,
            ") with the 8 best of 64 features. The final model uses the top 4",
            "8",
        ),
        (native, "by the model's own predictions", ""),
    ):
        assert texts.headline(result.facts).endswith(end)
        assert texts.score_table(result.facts).rows[0][1] == cell
    equal = changed(at_eight, test_scores=[[0.5, 0.5]] * 3, pseudo_values=[[0.5] * 3] * 3)
    assert "0.500 ± 0.000 (SD over 3 outer folds; no interval: all samples score the same)" in repr(
        equal
    )
    assert texts.interval_footnote(equal.facts).startswith("Corrected 95 % interval of a diff")
    alone = changed(equal, references=[{}] * 3)
    assert texts.interval_footnote(alone.facts) == ""
    for name, confusion, has in (
        ("balanced_accuracy", [[5, 0], [2, 0]], False),
        ("macro_f1", [[5, 0], [2, 0]], False),
        ("f1_macro", [[5, 0], [2, 0]], False),
        ("f1_macro", [[5, 0], [2, 1]], True),
        ("accuracy", [[5, 0], [2, 0]], True),
        ("macro_f1", [[5, 0, 2, 0], [3, 1, 1, 2]], False),  # two labels: tn, fp, fn, tp
        ("macro_f1", [[5, 1, 0, 1], [0, 5, 1, 1]], True),
    ):
        values = [[0.9, 0.8, 1.0]] * 3
        folds = changed(at_eight, confusion=[confusion] * 3, pseudo_values=values, n_test=[8] * 3)
        found = score_interval(folds.outer, name)
        assert (found.lower is not None) == has
        assert found.reason == ("" if has else "one class is never predicted right")
    old = changed(at_eight, pseudo_values=[None] * 3)
    assert "no interval: scores of samples were not recorded" in repr(old)
    undefined = changed(at_eight, pseudo_values=[[0.9, 0.8], [], [1.0]])
    reason = "no interval: undefined without some test sample"
    assert reason in repr(undefined)
    evaluation = at_eight.facts.evaluation
    assert "mean over all 2 numbers" in texts.rule_sentence(evaluation, "mean")
    assert "with the best inner mean" in texts.rule_sentence(evaluation, "best")


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc", "mean_average_precision", "r2"])
def test_the_difference_to_a_fixed_chance_has_the_interval_of_the_score(at_eight, metric):
    study = dataclasses.replace(at_eight.stored.study, metric=metric)
    values = [[0.95, 0.8, 1.0, 0.9], [0.9, 1.0, 0.92], [0.9, 0.99, 0.85]]
    guessed = changed(
        StudyResult(dataclasses.replace(at_eight.stored, study=study)),
        pseudo_values=values,
        references=[{**each, "chance": [0.3]} for each in REFERENCES],
    )
    chance, own = guessed.references["chance"], guessed.interval
    ends = (chance.test.lower, chance.test.upper)
    if metric == "accuracy":
        expected = paired_comparison(guessed.test_scores, [0.3] * 3, own.ratio, largest=1.0)
        assert ends == (expected.corrected.lower, expected.corrected.upper)
    else:
        most = np.inf if metric == "r2" else 1.0
        uncut = sample_interval(guessed.test_scores, own.ratio, values)
        assert ends == pytest.approx((uncut.lower - 0.3, min(uncut.upper - 0.3, most)))
        assert "is the score's" in texts.interval_footnote(guessed.facts)
    assert chance.verdict == "better"
    assert guessed.references["all features"].over_samples is None


def test_the_interval_of_few_errors_says_that_it_knows_no_rare_outliers(at_eight):
    """Of 60 samples from a population with 2 % outliers 30 % have none, and nothing in them
    tells of any.
    """
    for metric, n, said in (
        ("neg_rmse", 60, True),
        ("neg_mean_absolute_error", 60, True),
        ("neg_rmse", 200, False),
        ("r2", 60, False),
        ("accuracy", 60, False),
        ("neg_log_loss", 60, False),
    ):
        study = dataclasses.replace(at_eight.stored.study, metric=metric, n_samples=n)
        result = StudyResult(dataclasses.replace(at_eight.stored, study=study))
        assert result.interval.lower is not None
        notes = " ".join(texts.headline_notes(result.facts))
        assert (f"outliers that these {n} samples lack" in notes) == said, metric


def test_a_choice_at_an_end_of_the_numbers_is_remarked(at_eight):
    (remark,) = (text for text in at_eight.remarks() if "the largest." in text)
    chosen = [fold for fold, n in at_eight.recorded.n_features.items() if n == 8]
    assert f"Add larger evaluation.n_features: {len(chosen)} of 4 winners chose 8" in remark
    assert f"These are {', '.join(chosen)}; larger numbers may score better." in remark
    assert remark in markdown(at_eight.facts)
    mean = changed(at_eight, {"choose_n": "mean"}, position=[None] * 3)
    assert not any("the largest." in text for text in mean.remarks())
    (smallest,) = format_remarks(
        number_remarks({"outer0": 4, "outer1": 8, "final": 4}, [4, 8, 16], {})
    )
    assert "Add smaller evaluation.n_features: 2 of 3 winners chose 4" in smallest
    assert "These are outer0, final" in smallest
    for chosen, listed, n_scored, why in (
        (8, [8], 9, "nothing was chosen"),
        (8, [4, 8, 16], 20, "neither end"),
        (8, [4, 8], 8, "all features with a score are used already"),
        (1, [1, 8], 9, "there is no smaller number"),
    ):
        assert list(number_remarks({"outer0": chosen}, listed, {"outer0": n_scored})) == [], why


def test_winners_at_the_end_of_their_grid_are_remarked():
    space = {
        "alpha": {"logspace": [0.01, 1.0, 3]},
        "rank": [1, 2, 4],
        "p": [0.5, 1.0],
        "init": ["a", "b", "c"],
    }

    def told(*winners, space=space, unstructured=None):
        return format_remarks([*edge_remarks(space, winners, unstructured or {})])

    (low,) = told({"alpha": 0.01, "rank": 2}, {"alpha": 0.1, "rank": 4}, {"alpha": 0.01, "rank": 2})
    assert "smaller values to solver.space.alpha: 2 of 3 outer folds chose 0.01, the" in low
    (high,) = told({"alpha": 0.1, "rank": 4, "init": "a"}, {"alpha": 0.1, "rank": 4, "init": "a"})
    assert "larger values to solver.space.rank: 2 of 2 outer folds chose 4, the largest" in high
    assert told({"alpha": 0.01}, {"alpha": 1.0}) == [], "half of the folds, at two ends"
    assert told({"rank": 1}, {"rank": 1}) == [], "there is no smaller rank"
    assert told({"p": 1.0}, {"p": 1.0}) == [], "of two values each is an end"
    assert told({"gamma": 0}, {"gamma": 0}, space={"gamma": [0, 0.1, 0.2]}) == [], (
        "no weight is below 0"
    )
    (no_structure,) = told({"rank": 4}, {"rank": 4}, unstructured={"rank": 4})
    assert "2 of 2 folds chose rank = 4, which assumes no structure" in no_structure


def test_estimators_at_the_end_of_their_grid_are_remarked():
    def fold(own, every, f_test=(0.1, 0.1), position=1):
        return RefitRecord(
            fold="outer0",
            trial="",
            name="",
            params={},
            inner_score=0.0,
            test_scores=[],
            feature_scores=None,
            objective=[],
            started=0.0,
            ended=0.0,
            position=position,
            settings=[{"C": value} for value in own],
            reference_positions={"f_test": 0},
            reference_settings={
                "all features": [{"C": every}],
                "f_test": [{"C": value} for value in f_test],
            },
        )

    def told(*folds, estimator="linear_svm", C=(0.01, 0.1, 1.0)):
        found = estimator_edge_remarks({"estimator": estimator, "C": C}, folds)
        return format_remarks(found)

    (high,) = told(fold((0.1, 1.0), 1.0), fold((0.1, 1.0), 1.0), fold((1.0, 0.1), 1.0))
    assert "larger values to evaluation.C: most of 3 folds chose C = 1, the largest" in high
    assert "Folds: the method 2, all features 3." in high
    (low,) = told(*[fold((0.1, 0.1), 0.1, f_test=(0.01, 1.0))] * 2)
    assert "smaller values to evaluation.C: most of 2 folds chose C = 0.01, the smallest" in low
    assert "Folds: the F-test 2." in low
    assert told(fold((0.1, 0.1), 1.0), fold((0.1, 0.1), 0.01)) == [], (
        "half of the folds, at two ends"
    )
    assert told(fold((1.0, 1.0), 1.0), C=(0.1, 1.0)) == [], "of two values each is an end"
    mean_over_n = [fold((1.0, 0.1), 0.1, position=None), fold((1.0, 1.0), 0.1, position=None)]
    assert told(*mean_over_n) == [], "on one fold of two all numbers of features have it"
    of_neighbours = [{"n_neighbors": 1}]
    nearest = dataclasses.replace(fold((), 0.1), settings=of_neighbours, reference_settings={})
    space = {"name": "a.B", "space": {"n_neighbors": [1, 3, 5]}}
    assert told(nearest, estimator=space) == [], "there is no smaller number"
    assert told(fold((1.0, 1.0), 1.0), estimator="knn") == []


def test_few_folds_that_can_tell_little_are_remarked():
    scores, other = np.array([0.90, 0.93, 0.91]), np.array([0.91, 0.90, 0.92])
    found = paired_comparison(scores, other, 0.5)
    test = found.corrected
    (told,) = format_remarks(few_folds_remarks([test, None], 3, of_draws=False))
    assert told.startswith(f"To tell differences below {test.upper - found.mean:.3f}, set cv.outer")
    assert f"Over these 3 folds the difference is {abs(found.mean):.3f}." in told
    assert (
        list(
            few_folds_remarks(
                [paired_comparison(scores, other - 0.5, 0.5).corrected], 3, of_draws=False
            )
        )
        == []
    )
    (of_three,) = few_folds_remarks([test], 3, of_draws=False, level=0.05 / 3)
    expected = stats.t.ppf(1 - 0.05 / 6, 2) * stats.sem(scores - other) * np.sqrt(1 + 3 * 0.5)
    assert of_three.values["least"] == pytest.approx(expected)
    assert list(few_folds_remarks([test], 12, of_draws=False)) == []
    assert "cv.repeats to 20" in format_remarks(few_folds_remarks([test], 3, of_draws=True))[0]


def test_where_the_method_does_not_beat_a_reference_a_sentence_says_so(at_eight):
    verdicts = {
        "all features": "worse",
        "variance": "equal",
        "f_test": "not distinguishable",
        "chance": "better",
    }
    assert {name: reference.verdict for name, reference in at_eight.references.items()} == verdicts
    sentences = texts.verdict_sentences(at_eight.facts)
    assert sentences[0] == "Without selection the score is 0.971, with smr 0.920: smr is worse."
    assert sorted(sentences[1:]) == [
        "With the F-test the score is 0.920, with smr 0.920: no clear difference.",
        "With the largest variance the score is 0.920, with smr 0.920: the same on every fold.",
    ]
    assert " ".join(sentences) in markdown(at_eight.facts)
    assert texts.short_verdict(at_eight.facts) == sentences[0]
    table = texts.score_table(at_eight.facts)
    for row, reference in zip(table.rows[1:], at_eight.references.values(), strict=True):
        ratio = np.mean([refit.n_test / refit.n_train for refit in at_eight.outer])
        assert (
            reference.paired.mean
            == paired_comparison(at_eight.test_scores, reference.scores, ratio).mean
        )
        assert row[2] == f"{reference.mean:.3f} ± {reference.sd:.3f}"
    names = ["smr", "all 64 features", "largest variance", "F-test", "chance (stratified guess)"]
    rows = [(row[0], row[1]) for row in table.rows]
    assert rows == [*zip(names, ["8", "64", "8", "8", ""], strict=True)]


def test_the_short_verdict_names_the_best_reference_and_a_chance_that_is_not_beaten(at_eight):
    low = [{"all features": [0.5], "f_test": [0.2, 0.7], "chance": [0.25]} for _ in REFERENCES]
    better = changed(at_eight, references=low)
    assert texts.verdict_sentences(better.facts) == []
    best = "smr is better than every reference: with the F-test the score is 0.700, with smr 0.920."
    assert texts.short_verdict(better.facts) == best
    lucky = changed(
        at_eight,
        references=[{**r, "chance": [0.9 + 0.05 * (i == 1)]} for i, r in enumerate(REFERENCES)],
    )
    assert lucky.references["chance"].verdict == "not distinguishable"
    first, *_, last = texts.verdict_sentences(lucky.facts)
    assert last.startswith("By chance")
    warned = last.replace("no clear difference", "the ranking may be chance")
    assert texts.short_verdict(lucky.facts) == f"{first} {warned}"
    beaten = {"all features": [0.99], "f_test": [0.2, 0.9], "chance": [0.95]}
    worst = changed(
        at_eight, references=[beaten for _ in REFERENCES]
    )  # chance is neither the first nor the last
    assert "By chance the score is 0.950" in texts.short_verdict(worst.facts)


def test_references_without_a_score_are_named(at_eight):
    without = [
        {k: v for k, v in r.items() if k != "variance" or i} for i, r in enumerate(REFERENCES)
    ]
    fewer = changed(at_eight, references=without).facts
    assert list(fewer.references) == ["all features", "f_test", "chance"]
    missing = texts.missing_references_sentence(fewer)
    assert "without a score: largest variance" in missing
    assert missing in markdown(fewer)
    none = changed(at_eight, references=[{}] * 3).facts
    assert none.references == {}
    assert texts.missing_references_sentence(none) == "".join(texts.verdict_sentences(none)) == ""
    assert "F-test |" not in markdown(none)


def test_optimism_and_curve_are_means_over_the_outer_folds(at_eight):
    assert at_eight.facts.optimism == pytest.approx({"training": 1.0, "inner": 0.96, "test": 0.92})
    sentence = texts.optimism_sentence(at_eight.facts)
    assert sentence.startswith("Scores: training 1.000, best inner 0.960, test 0.920 (mean")
    curves = at_eight.score_curves()
    inner = np.mean([refit.inner_curve for refit in at_eight.outer], axis=0)
    for name, values in (
        ("n_features", [4, 8]),
        ("test_mean", np.mean(SCORES, axis=0)),
        ("test_sd", np.std(SCORES, axis=0, ddof=1)),
        ("inner_mean", inner),
        ("f_test", [0.2, 0.92]),
        ("all features", [0.971] * 2),
    ):
        np.testing.assert_allclose(curves[name], values, rtol=1e-12)
    assert at_eight.summary()["n_features"].tolist() == [8, 8, 8]
    assert at_eight.summary()["training_accuracy"].tolist() == [1.0] * 3


def test_facts_are_plain_data_in_the_manifest_and_the_last_record(at_eight):
    facts = at_eight.facts
    for scores in (manifest(at_eight)["scores"], facts.end_to_json(), facts.to_json()["scores"]):
        assert scores["interval"]["lower"] == at_eight.interval.lower
        assert scores["references"]["all features"]["verdict"] == "worse"
        assert scores["references"]["chance"]["method_minus_it"]["mean"] == pytest.approx(
            0.92 - 0.25
        )
        assert scores["curve"]["f_test"] == pytest.approx([0.2, 0.92])
        assert scores["n_features"]["outer0"] == 8
    assert json.loads(json.dumps(facts.to_json()))["remarks"][0].keys() == {"key", "values"}
    assert json.loads(json.dumps(facts.end_to_json(), allow_nan=False))["guesses"] == {}
    keys = {remark.key for remark in facts.remarks}
    assert keys <= remarks.SENTENCES.keys()
    assert manifest(at_eight)["remarks"] == at_eight.remarks() == format_remarks(facts.remarks)


def test_every_key_of_a_remark_has_a_sentence():
    yielded = set(re.findall(r'Remark\(\s*"(\w+)"', inspect.getsource(remarks)))
    yielded |= set(re.findall(r'yield\s+\(?\s*"(\w+)"', inspect.getsource(stability)))
    assert yielded == remarks.SENTENCES.keys()


#: Values of remarks of each key, as long as they usually are.
VALUES = {
    "data": {"text": "A remark on the data: mend it.\nIts figures."},
    "halves_failed": {
        "n": 2,
        "n_halves": 100,
        "n_left_out": 2,
        "number": 7,
        "reason": "ValueError: X",
    },
    "halves_not_converged": {"n": 5, "n_fits": 100},
    "smaller_top": {"top": 20, "n_of_model": 300},
    "fewer_scored": {"q": 4, "top": 20},
    "no_bound": {"q": 20, "p": 300, "smaller": 8},
    "end_of_n_features": {"end": "largest", "n": 50, "folds": ["outer0"], "n_folds": 4},
    "end_of_estimator": {
        "parameter": "alpha",
        "value": 1000,
        "end": "largest",
        "n_folds": 5,
        "folds": {"all features": 4, "f_test": 5},
    },
    "end_of_space": {"n": 3, "n_folds": 5, "parameter": "alpha", "value": 0.01, "end": "smallest"},
    "failed_trials": {"n": 3, "n_trials": 10, "n_partly": 1, "n_lost": 1},
    "estimator_fails": {
        "n_features": [8, 16],
        "setting": "C=0.1",
        "n_failed": 3,
        "n_inner": 9,
        "reason": "ValueError: too many",
    },
    "few_folds": {"n_folds": 3, "of_draws": False, "difference": 0.003, "least": 0.011},
    "fewer_than_top": {"folds": {"outer0": 3, "outer1": 4}, "top": 10},
    "final_selects_none": {},
    "folds_select_none": {"folds": ["outer0"], "n_folds": 5},
    "inner_fits_not_converged": {"n": 3, "n_fits": 30, "gap": 1e-3},
    "local_optimum": {"n": 50, "shared": 31, "excess": -0.02, "n_iter": 30, "n_starts": 3},
    "model_not_trusted": {},
    "model_without_method": {"untrusted": ["own.Mine"]},
    "no_final_model": {},
    "no_model_file": {"untrusted": ["own.Mine", "own.Other"]},
    "no_ranking": {"folds": ["outer0", "outer1", "outer2"]},
    "no_structure": {"n": 3, "n_folds": 5, "parameter": "rank", "value": 28},
    "tied": {"folds": {"outer0": 2, "outer1": 3}, "n_folds": 5},
    "time_budget": {"n_tried": 6, "n_planned": 9},
    "winners_not_converged": {"folds": ["outer0"], "n_winners": 4, "gap": 1e-3},
}


def test_all_remarks_but_those_that_are_texts_of_others_are_listed():
    texts_of_others = {"data", "mixed_versions", "halves_of_other_versions", "warning"}
    assert VALUES.keys() | texts_of_others == remarks.SENTENCES.keys()


@pytest.mark.parametrize("key", VALUES)
def test_a_command_prints_a_remark_as_one_sentence_of_25_words(key):
    remark = remarks.Remark(key, VALUES[key])
    (short,), (whole,) = remarks.short_remarks([remark]), format_remarks([remark])
    assert len(short.split()) <= 25
    assert short.endswith(".")
    assert not re.search(r"\. [A-Z]", short)
    assert whole.startswith(short)
    assert "\n" not in whole


def test_studies_of_before_there_were_references_are_told_without_them(finished):
    old = changed(
        finished,
        {"choose_n": "mean"},
        n_features=[None] * 3,
        position=[None] * 3,
        inner_curve=[[]] * 3,
        training_scores=[[]] * 3,
        references=[{}] * 3,
        n_train=[0] * 3,
        n_test=[0] * 3,
    )
    assert "no interval: sizes of folds were not recorded" in texts.headline(old.facts)
    assert old.score_curves()["inner_mean"].isna().all()
    assert old.facts.optimism.keys() == {"inner", "test"}
    assert markdown(old.facts)
    assert old.facts.end_to_json()["interval"]["test_train_ratio"] is None


def test_a_difference_that_rounds_to_zero_has_no_minus():
    paired = paired_comparison([0.5, 0.6 - 1e-9], [0.6, 0.5], 1.0)
    assert paired.mean < 0
    reference = Reference(
        name="f_test", scores=[0.6, 0.5], paired=paired, curve=[], recorded="f_test"
    )
    assert texts.difference_cell(paired, reference.test).startswith("+0.000 [-")


def test_a_reference_that_scores_higher_is_named_whatever_its_interval_says(at_eight):
    better = [{"variance": [0.3, 0.90 + d], "f_test": [0.95, 0.2]} for d in (0.001, 0.05, 0.03)]
    result = changed(
        at_eight, references=better, reference_positions=[{"f_test": 0, "variance": 1}] * 3
    )
    assert {reference.verdict for reference in result.references.values()} == {
        "not distinguishable"
    }
    first, second = texts.verdict_sentences(result.facts)
    assert first == "With the F-test the score is 0.950, with smr 0.920: no clear difference."
    assert (
        second
        == "With the largest variance the score is 0.927, with smr 0.920: no clear difference."
    )
    assert [row[1] for row in texts.score_table(result.facts).rows] == ["8", "8", "4"]
    ours = float(np.mean(at_eight.test_scores))
    close = changed(at_eight, references=[{"variance": [0.3, round(ours, 3) + 0.0004]}] * 3)
    (sentence,) = texts.verdict_sentences(close.facts)
    assert "the score is 0.920, with smr 0.920: no clear difference." in sentence


@pytest.mark.parametrize(
    ("constant", "guess"), [(0.2, "stratified guess"), (0.3, "most frequent class")]
)
def test_chance_is_the_better_guess_and_old_studies_have_one(at_eight, constant, guess):
    guesses = [
        {"most frequent class": [constant], "stratified guess": [0.25 + d]}
        for d in (-0.1, 0.0, 0.1)
    ]
    result = changed(at_eight, references=guesses)
    chance = result.references["chance"]
    assert chance.mean == pytest.approx(max(constant, 0.25))
    assert (
        texts.references_line(result.facts) == f"for comparison: chance ({guess}) {chance.mean:.3f}"
    )
    described = result.facts.end_to_json()
    assert described["references"]["chance"]["guess"] == guess
    assert described["references"]["chance"]["method_minus_it"]["mean"] == pytest.approx(
        0.92 - chance.mean
    )
    assert described["guesses"] == pytest.approx(
        {"most frequent class": constant, "stratified guess": 0.25}
    )
    assert texts.reference_name(at_eight.facts, "chance") == "chance (stratified guess)"


def drawn(result):
    """The same scores as of draws of the training set, whose folds are named so."""
    refits = dict(result.stored.refits)
    names = [f"repeat{i}_outer0" for i, _ in enumerate(result.outer)]
    for old, new in zip(result.outer, names, strict=True):
        refits[new] = dataclasses.replace(refits.pop(old.fold), fold=new, n_train=40, n_test=1757)
    study = dataclasses.replace(result.stored.study, folds=[*names, FINAL])
    return StudyResult(dataclasses.replace(result.stored, study=study, refits=refits))


def test_over_draws_the_interval_is_the_plain_one_and_of_this_pool(at_eight):
    result = drawn(at_eight)
    expected = stats.t.interval(0.95, 2, loc=0.92, scale=stats.sem([0.90, 0.94, 0.92]))
    assert (result.interval.lower, result.interval.upper) == pytest.approx(expected)
    told = f"95 % interval {expected[0]:.3f} to {expected[1]:.3f})"
    assert f"3 drawn training sets; {told}" in texts.headline(result.facts)
    assert "this pool of samples" in next(texts.headline_notes(result.facts))
    assert "as the whole population" in texts.interval_footnote(result.facts)
    told = [texts.short_verdict(result.facts), *texts.verdict_sentences(result.facts)]
    certain = [sentence for sentence in told if " is better" in sentence or " is worse" in sentence]
    assert certain
    assert all("on these samples" in sentence for sentence in certain)
    assert "on these samples" not in texts.short_verdict(at_eight.facts)
    (equal,) = [sentence for sentence in told if "the same on every" in sentence]
    assert equal.endswith("the same on every draw.")
    for name, found in result.references.items():
        paired = stats.ttest_rel(result.test_scores, found.scores).confidence_interval()
        if found.test is not None:
            assert (found.test.lower, found.test.upper) == pytest.approx((paired.low, paired.high))
        assert result.facts.end_to_json()["references"][name]["verdict"] == found.verdict
    assert result.references["chance"].verdict == "better"
    assert "corrected" not in markdown(result.facts)


def test_intervals_end_at_the_bounds_of_the_metric(at_eight):
    scores, values = [[0.1, 0.1], [0.9, 0.9], [1.0, 1.0]], [[0.1], [0.9], [1.0]]
    wide = changed(at_eight, test_scores=scores, pseudo_values=values)
    assert (wide.interval.lower, wide.interval.upper) == (0.0, 1.0)
    tests = [found.test for found in wide.references.values()]
    assert all(test.lower >= -1 and test.upper <= 1 for test in tests)
    assert any(test.lower == -1 for test in tests)
    stored = wide.facts.end_to_json()
    assert (stored["interval"]["lower"], stored["interval"]["upper"]) == (0.0, 1.0)
