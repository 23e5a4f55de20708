"""How far the ranking can be trusted: the same figures everywhere, recomputed from the journal's
scores.
"""

from __future__ import annotations

import dataclasses
import io
import json
import re
import warnings
from itertools import combinations

import numpy as np
import pytest
from rich.console import Console
from sklearn.feature_selection import f_classif
from small_studies import raw_config, run_offline

from raysel.cli.summary import print_answer
from raysel.config import config_from_dict
from raysel.core.errors import ConfigError, StudyError
from raysel.data.loading import load_dataset
from raysel.data.targets import find_target
from raysel.evaluation.plan import derived_seed
from raysel.numerics.rankings import nogueira_stability, rank_biased_overlap, top_weight
from raysel.results import texts
from raysel.results.agreement import Agreement, choose_top, noise_level
from raysel.results.export import export_result, manifest, markdown
from raysel.results.facts import Facts
from raysel.results.page import contents, findings
from raysel.results.page.findings import answer_sentences
from raysel.results.result import StudyResult
from raysel.select import main as main_select
from raysel.study.definition import Study


@pytest.fixture
def lists(finished):
    """Features with a score of each outer fold, best first, from the recorded scores."""
    X = load_dataset(finished.config["dataset"]["path"]).X
    rows = [np.where(np.ptp(X, axis=0) == 0, 0.0, refit.feature_scores) for refit in finished.outer]
    return [
        [int(i) for i in np.argsort(-scores, kind="stable") if scores[i] > 0] for scores in rows
    ]


def with_folds(result, names):
    """The study as if it had these folds only."""
    study = dataclasses.replace(result.stored.study, folds=names)
    refits = {name: result.stored.refits[name] for name in names}
    return StudyResult(dataclasses.replace(result.stored, study=study, refits=refits))


def test_the_curve_is_the_index_of_the_best_at_each_number(finished, lists):
    curve = finished.stability_curve()
    columns = ["n_features", "stability", "noise", "noise_lowest", "noise_highest"]
    assert curve.columns.tolist() == [*columns, "undefined_because"]
    assert {1, 4, 8, 64} <= set(curve.n_features)
    for row in curve.itertuples():
        sets = np.array([[i in best[: row.n_features] for i in range(64)] for best in lists])
        wanted = nogueira_stability(sets)
        np.testing.assert_allclose(row.stability, wanted.value)
        assert row.undefined_because == wanted.reason
    assert curve.equals(finished.stability_curve())


def test_noise_is_the_f_test_of_permuted_labels_on_the_same_folds(finished):
    """Plainly: scikit-learn's F values of each fold's training samples, and the index of the
    best of each.
    """
    study = Study.prepare(config_from_dict(finished.config), plan=finished.directory.plan)
    X, y, values = study.dataset.X, study.dataset.y, []
    permutations = find_target(y).permutations(y)
    for number in range(20):
        permuted = y[
            permutations.draw(
                np.random.default_rng(derived_seed(study.config.seed, "noise", number))
            )
        ]
        assert sorted(permuted) == sorted(y)
        sets = []
        for fold in study.plan.outer:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scores = f_classif(X[fold.train], permuted[fold.train])[0]
            order = np.argsort(
                -np.where(np.ptp(X[fold.train], axis=0) > 0, scores, 0), kind="stable"
            )
            sets.append([[f in order[:n] for f in range(64)] for n in (4, 8)])
        values.append([nogueira_stability([found[i] for found in sets]).value for i in range(2)])
    for i, n in enumerate((4, 8)):
        own = [row[i] for row in values]
        assert noise_level(finished.recorded, n) == pytest.approx(
            (np.mean(own), min(own), max(own)), abs=1e-6
        )


def test_a_study_of_noise_says_so_and_one_of_digits_does_not(finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("noise.npz", X=rng.normal(size=(90, 60)), y=np.arange(90) % 2)
    raw = raw_config(
        "noise.npz", solver={"name": "fisher_score"}, cv__outer=5, evaluation__n_features=[4, 8]
    )
    noise = run_offline(raw, tmp_path / "study")
    assert noise.stability().value > 0.15  # folds that share samples agree on noise
    old = StudyResult(dataclasses.replace(finished.stored, noise=None))
    assert old.stability_curve().noise.isna().all()
    assert manifest(old)["stability"]["with_permuted_labels"] is None
    for result, sentence in (
        (noise, "permutations): the stability is not above that"),
        (finished, "permutations): the stability is above that"),
        (old, "The stability of noise was not recorded"),
    ):
        told = " ".join(answer_sentences(result))
        for text in (texts.short_stability(result.facts), markdown(result.facts), told):
            assert sentence in text
    nearly_all = texts.short_stability(Facts(noise.recorded, 57))
    assert "57 of 60 features are hardly a selection" in nearly_all
    assert "permuted labels" not in nearly_all


def test_the_overlap_is_of_all_pairs_of_outer_folds(finished, lists):
    overlap = finished.facts.agreement.overlap
    assert top_weight(overlap.p, finished.default_top) == pytest.approx(0.9)
    values = [rank_biased_overlap(one, other, overlap.p) for one, other in combinations(lists, 2)]
    assert list(overlap.pairs) == [("outer0", "outer1"), ("outer0", "outer2"), ("outer1", "outer2")]
    assert list(overlap.pairs.values()) == pytest.approx(values)
    assert overlap.mean == pytest.approx(np.mean(values))
    assert overlap.lowest == pytest.approx(min(values))


def test_summary_manifest_and_markdown_agree(finished):
    screen = io.StringIO()
    print_answer(finished, Console(file=screen, width=500), verbose=True)
    facts, page = finished.facts, markdown(finished.facts)
    line, short, sentence = (
        texts.stability(facts),
        texts.short_stability(facts),
        finished.facts.agreement.consensus,
    )
    assert all(part in line for part in short.split(". "))
    assert all(text in screen.getvalue() for text in (short, texts.overlap(facts), sentence))
    assert all(text in page for text in (line, sentence))
    stability, overlap, top = (
        finished.stability(),
        finished.facts.agreement.overlap,
        finished.default_top,
    )
    noise = noise_level(finished.recorded, top)
    for part in (
        (
            f"of the top {top} over 3 overlapping outer folds: {stability.value:.2f} (N: chosen by"
            " the inner "
        ),
        (
            f"{noise.mean:.2f} on the same folds ({noise.lowest:.2f} to {noise.highest:.2f} in 20"
            " permutations)"
        ),
        f"of the outer folds {overlap.mean:.2f} (lowest {overlap.lowest:.2f})",
    ):
        assert part in line
    written = json.loads((finished.directory.ranking / "manifest.json").read_text())
    assert (written["top"], written["ranking_of"], written["consensus"]) == (top, "final", sentence)
    assert written["top_chosen_by"] == "chosen by the inner scores of the final model"
    assert written["stability"]["value"] == stability.value
    permuted = {
        **noise._asdict(),
        "n_permutations": 20,
        "exchanged": "samples",
        "ranked_by": "F-test",
    }
    assert written["stability"]["with_permuted_labels"] == permuted
    assert written["rank_biased_overlap"]["mean"] == overlap.mean
    assert written["rank_biased_overlap"]["lowest_of"] == list(overlap.lowest_pair)
    curve = finished.stability_curve()
    assert written["stability_curve"]["n_features"] == curve.n_features.tolist()
    at_top = curve.loc[curve.n_features == top].iloc[0]
    assert (at_top.stability, at_top.noise, at_top.noise_lowest, at_top.noise_highest) == (
        stability.value,
        *noise,
    )


def test_the_first_features_of_the_consensus_stand_first_in_every_table(
    finished, lists, tmp_path, capsys
):
    ranks = np.array(
        [[best.index(f) + 1 if f in best else 64 for f in range(64)] for best in lists]
    )
    n, final = finished.default_top, finished.final.feature_scores
    counts = [sum(f in best[:n] for best in lists) for f in range(64)]
    keys = [(np.median(ranks[:, f]), ranks[:, f].mean(), f) for f in range(64)]
    order = sorted({f for best in lists for f in best}, key=keys.__getitem__)[:10]
    assert order != np.argsort(-np.array(final), kind="stable")[:10].tolist()
    names = [finished.feature_names[f] for f in order]
    coefficients = np.abs(finished.facts.coefficients.values)
    rows = [
        [
            name,
            f"{counts[f]}/3",
            f"{1 + sum(other[:2] < keys[f][:2] for other in keys)}",
            f"{1 + sum(score > final[f] for score in final)}",
            f"for {finished.facts.coefficients.classes[coefficients[:, f].argmax()]}",
        ]
        for name, f in zip(names, order, strict=True)
    ]
    table = texts.feature_table(finished.ranking(), finished.facts.coefficients.directions())
    assert table.header == ["feature", "folds", "consensus", "final model", "direction"]
    shown = [[*row[:4], row[4].replace("against", "for")] for row in table.rows]
    assert shown == rows
    screen = io.StringIO()
    print_answer(finished, Console(file=screen, width=80))
    assert main_select([str(finished.path), "--output", str(tmp_path / "out")]) == 0
    sections = [findings.answer(finished), findings.features(finished)]
    page = contents.Page("", "", sections)
    report = contents.render_page(page)
    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    first = words.index(rows[0][0].split() + rows[0][1:4] + table.rows[0][4].split())
    assert [row[0] for row in words[first : first + 10]] == names
    on_screen = re.findall(r"(\d+)  (\S+) +(\d/\d) ", screen.getvalue())
    assert sorted((int(place), name, folds) for place, name, folds in on_screen) == [
        (place, row[0], row[1]) for place, row in enumerate(rows, start=1)
    ]
    heads = re.findall(r'<th scope="row"><bdi>(.*?)</bdi>', report)
    start = heads.index(names[0])
    assert heads[start : start + 10] == names
    cells = re.findall(r"<td>(.*?)</td>", finished.ranking()._repr_html_())
    assert cells[::5][:10] == names
    assert f"of 3 folds select each: {names[0]} ({counts[order[0]]})" in report
    for text in (finished.ranking()._repr_html_(), report):
        assert "consensus of the outer folds, the one for a claim about features" in text


def test_a_table_of_features_says_what_is_known_beside_the_consensus(finished):
    ranking = finished.ranking()
    probability = np.linspace(1, 0, 64)
    tested = dataclasses.replace(ranking, added={"selection_probability": probability})
    table = texts.feature_table(tested, most=3)
    assert table.header == ["feature", "selection probability", "folds", "consensus", "final model"]
    vary = [
        name for name, same in zip(ranking.feature_names, ranking.constant, strict=True) if not same
    ]
    assert [row[0] for row in table.rows] == vary[:3]
    nothing = finished.ranking(by="consensus")
    assert "final model" not in texts.feature_table(nothing).header


def test_it_says_whose_number_of_features_it_is(finished):
    chosen = finished.recorded.n_features
    assert choose_top(finished.recorded) == (
        chosen["final"],
        "chosen by the inner scores of the final model",
    )
    assert choose_top(finished.recorded, by="outer1") == (
        chosen["outer1"],
        "chosen by the inner scores of outer1",
    )
    assert choose_top(finished.recorded, by="consensus") == choose_top(finished.recorded)
    assert choose_top(finished.recorded, 5) == (5, "as given")
    without = with_folds(finished, ["outer0", "outer1", "outer2"])
    assert choose_top(without.recorded) == (
        without.default_top,
        "median of the outer folds' choices",
    )
    assert finished.ranking().chosen_by == choose_top(finished.recorded).chosen_by
    assert "N:" not in texts.stability(Facts(finished.recorded, 5))


def test_without_a_final_model_the_consensus_and_the_folds_can_be_exported(finished, tmp_path):
    without = with_folds(finished, ["outer0", "outer1", "outer2"])
    assert without.facts.agreement.consensus == ""
    assert "consensus" not in manifest(without)
    assert manifest(without)["rank_biased_overlap"]["mean"] == finished.facts.agreement.overlap.mean
    with pytest.raises(StudyError):
        without.ranking()
    written = {
        path.name
        for path in export_result(without, tmp_path / "out", 6, by="consensus", formats=["json"])
    }
    assert written == {"ranking.json", "manifest.json"}  # the study asks for no pictures
    assert (
        without.ranking(6, by="consensus").top().tolist()
        == finished.ranking(6).consensus_top().tolist()
    )
    assert without.ranking(6, by="outer2").source == "outer2"


def test_one_outer_fold_has_a_ranking_but_no_agreement(finished):
    single = with_folds(finished, ["outer0", "final"])
    line = texts.stability(single.facts)
    assert "over 1 outer fold: undefined (one selection says nothing about others)" in line
    assert line.endswith(
        "Rank-biased overlap of the rankings of the outer folds undefined (one outer fold)."
    )
    assert single.stability_curve().stability.isna().all()
    assert "of one outer fold" in single.facts.agreement.consensus
    assert manifest(single)["rank_biased_overlap"]["undefined_because"] == "one outer fold"


def test_more_features_than_have_a_score_are_no_larger_selection(finished):
    n = finished.recorded.n_scored["final"]
    assert n == (~finished.recorded.constant).sum()
    assert Agreement.of(finished.recorded, 64).consensus.startswith(
        f"The final model selects all {n} features that are not constant"
    )
    assert (
        finished.stability(64).value
        == finished.stability(max(finished.recorded.n_scored.values())).value
    )


@pytest.mark.parametrize("by", ["outer7", "", "mean"])
def test_an_unknown_source_of_a_ranking_is_refused(finished, tmp_path, by):
    with pytest.raises(ConfigError, match="choose one of final, consensus, outer0, outer1, outer2"):
        export_result(finished, tmp_path / "out", by=by)
    assert not (tmp_path / "out").exists()
