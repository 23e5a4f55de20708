"""Sections of a report on what the study gives: scores, features, stability, errors, chance."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import numpy as np

from raysel.core.printing import joined_lines, short
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.evaluation.group_ranking import GroupRanking
from raysel.evaluation.records import FINAL
from raysel.results import texts
from raysel.results.agreement import CONSENSUS
from raysel.results.claims import Claim, claims_of_features, find_claims
from raysel.results.displays.ranking import score_meaning
from raysel.results.page import contents
from raysel.results.page.contents import Block, Section, Table, Text
from raysel.results.page.pictures import pictures
from raysel.results.permutation import PermutationTest
from raysel.results.region_claims import RegionClaims
from raysel.results.result import StudyResult
from raysel.results.tables import TextTable

_MOST_ROWS = 20
_RANKING_BYTES = 400_000
_MOST_CLAIMED = 10
_NOT_CLAIMED = (
    'How many of them are false is not known yet: the first command of "What can be claimed" below'
    " bounds it."
)
_NO_CLAIM = (
    "Nothing is claimed yet. The order of the features says which to look at first, and not how"
    " many of the first are false."
)
_NO_REFERENCES = "The study has no references to compare with: evaluation.references is off."
_MEANING_OF_STABILITY = (
    "Stability (Nogueira, Sechidis & Brown 2018) is 1 if all outer folds select the same"
    " features. The folds share training samples, so that they agree even where the labels mean"
    " nothing. New samples would agree less. The figure for permuted labels is that of the F-test,"
    " which prefers no feature by itself. Some methods do, as the variance or a linear model of"
    " unscaled columns. They are above that figure on permuted labels too, and above 0 over"
    " disjoint halves of the samples."
)


def answer(result: StudyResult) -> Section:
    """Return the section with the answer: score, references and trust."""
    facts = result.facts
    compared: Block = Text([_NO_REFERENCES], "note")
    if result.references:
        compared = _references_table(result)
    blocks: list[Block] = [Text(answer_sentences(result), "answer"), compared]
    classes = list(facts.by_task)
    if positive := texts.positive_sentence(facts.evaluation, facts.classes, classes):
        blocks.append(Text([positive], "note"))
    if intervals := texts.interval_footnote(facts):
        blocks.append(contents.Folded("How the intervals are made", [Text([intervals], "note")]))
    return Section("answer", "The answer", blocks)


def _references_table(result: StudyResult) -> Table:
    """Return the scores of the method and the references, with those of each fold to download."""
    caption = (
        f"{texts.capitalized(texts.spaced(result.metric))} on the test samples of the outer"
        f" folds (mean ± SD over {len(result.outer)} folds) beside the references on the same"
        " folds."
    )
    scores = [["method", *result.test_scores]]
    scores += [[name, *reference.scores] for name, reference in result.references.items()]
    columns = ["name", *(refit.fold for refit in result.outer)]
    data = contents.csv_download("references.csv", columns, scores)
    shown = texts.score_table(result.facts)
    heads = ["", "features", "test score", shown.header[-1]]
    return Table(caption, heads, shown.rows, text_columns=(0,), strong=(0,), download=data)


def answer_sentences(result: StudyResult) -> list[str]:
    """Return the answer: the score, how it compares, the first features, how far to trust them."""
    facts = result.facts
    sentences = [f"{texts.capitalized(texts.headline(facts))}.", *texts.headline_notes(facts)]
    if result.references:
        verdict = " ".join(texts.verdict_sentences(facts))
        sentences.append(verdict or texts.short_verdict(facts))
    if not result.recorded.ranks_features:
        return [*sentences, "The method gives no scores of the features, and so no ranking."]
    sentences += [texts.first_features(_ranking(result)), _claim(result)]
    if planted := facts.planted:
        sentences += filter(None, [texts.planted_sentence(planted), texts.lost_sentence(planted)])
    return [*filter(None, sentences), f"The stability {texts.short_stability(facts)}"]


def _claim(result: StudyResult) -> str:
    """Return the features that are claimed and the bound on the false ones, or that none is."""
    claims = claims_of_features(result.facts)
    if not claims:
        return _NOT_CLAIMED if result.facts.agreement and result.recorded.has_final else ""
    return " ".join(_with_names(claim, _MOST_CLAIMED) for claim in claims)


def _with_names(claim: Claim, most: int) -> str:
    """Return the sentence of a claim with the names of the first features."""
    if not claim.features:
        return claim.sentence
    names = ", ".join(short(name, 40) for name in claim.features[:most])
    left = len(claim.features) - most
    more = f" and {left} more, in {claim.table}" if left > 0 else ""
    return f"{claim.sentence} They are {names}{more}."


def _ranking(result: StudyResult) -> FeatureRanking:
    """Ranking of the final model, or of the consensus where there is no such model."""
    return result.ranking(by=FINAL if result.recorded.has_final else CONSENSUS)


def scores(result: StudyResult) -> Section:
    """Return the section on the score over the number of features, or as rows if it has none."""
    what = texts.capitalized(texts.spaced(result.metric))
    drawn = pictures(result, "scores")
    curve = texts.curve_table(result.facts)
    if len(curve.rows) < 2:
        return Section("scores", what, drawn)
    metric = texts.spaced(result.metric)
    caption = f"Mean {metric} ± SD over the outer folds; of references the mean."
    table = Table(caption, curve.header, curve.rows, ())
    folded = contents.Folded("The figures as a table", [table])
    return Section("scores", f"{what} over the number of features", [*drawn, folded])


def optimism(result: StudyResult) -> Section:
    """Return the section on resubstitution, best inner and honest score."""
    rows = texts.optimism_rows(result.facts)
    caption = (
        f"Mean {texts.spaced(result.metric)} of the winners of {len(result.outer)} outer folds."
        " Only the test score tells what to expect for new samples. The training score is of"
        " samples that the fit has seen. The best inner score is the best of many, and of smaller"
        " training sets."
    )
    heads = ["score", "mean", "measured"]
    table = Table(caption, heads, rows, text_columns=(0, 2), strong=(len(rows) - 1,))
    return Section("optimism", "Training, inner and test score", [table])


def confusion(result: StudyResult) -> Section | None:
    """Return the section on the errors by class, label or quantity; None if none are recorded."""
    drawn = pictures(result, "confusion")
    if not drawn:
        return None
    title = "Which classes are confused"
    if result.recorded.has_labels:
        title = "Which labels are found and missed"
    if result.predictions is not None:
        title = "Predicted and true quantity"
    return Section("confusion", title, drawn)


def claims(result: StudyResult) -> Section:
    """Return the section on what is claimed and what that needs, or on how to find it out."""
    found = find_claims(result.facts)
    blocks: list[Block] = [_claims_table(found)] if found else [Text([_NO_CLAIM])]
    blocks += [Text([_with_names(each, _MOST_ROWS)]) for each in found if each.features]
    blocks += pictures(result, "claims")
    if (permuted := result.permutation_test) is not None:
        blocks += [Text([" ".join(permuted.limits())]), _permutations(permuted)]
    if (tested := result.claims) is not None:
        table = [_plain_table(tested.figures())] if tested.figures().rows else []
        shown: list[Block] = [Text(tested.sentences())]
        if isinstance(tested, RegionClaims):
            blocks += table
        else:
            shown += table
        blocks.append(contents.Folded("Tests beside all others", shown))
    if (halves := result.stability_selection) is not None:
        sentences = [halves.sentence(), *map(joined_lines, halves.remarks())]
        if result.group_selection is not None:
            sentences.append(result.group_selection.short_sentence())
        blocks.append(contents.Folded("Stability selection", [Text(sentences)]))
    for what, command in texts.open_checks(result.facts, shlex.quote(contents.named(result.path))):
        where = contents.where_to_run(command)
        label = f"{what} has not been run for this study. To run it, {where}:"
        blocks.append(contents.CodeBlock(command, label))
    return Section("claims", "What can be claimed", blocks)


def _permutations(test: PermutationTest) -> Block:
    """Return the sentences and figures of a permutation test, shown on request."""
    tables = [_plain_table(table) for table in (test.figures(), test.claimed()) if table.rows]
    return contents.Folded("The permutation test", [Text([" ".join(test.sentences())]), *tables])


def _claims_table(found: Sequence[Claim]) -> Table:
    """Return the claims with their level and what must hold, a row each."""
    rows = [[each.what, each.level, each.assumption, f"raysel {each.command}"] for each in found]
    caption = "What is claimed, with the level of error, and what must hold for it."
    return Table(caption, ["claim", "level", "holds if", "by"], rows, range(4))


def _plain_table(table: TextTable) -> Table:
    """Return a table of strings as it stands, under its title."""
    return Table(f"{table.title}.", table.header, table.rows, table.text_columns)


def features(result: StudyResult) -> Section:
    """Return the section on the features that stand first, and what the final model gives them."""
    if not result.recorded.ranks_features:
        why = "There is no ranking of the features: a winner gives no feature scores."
        return Section("features", "Which features", [Text([why])])
    ranking = _ranking(result)
    how = f" ({ranking.chosen_by})" if ranking.chosen_by else ""
    meaning = score_meaning(result.config)
    lead = (
        f"The score of a feature is the {meaning}. A fold selects its best"
        f" {ranking.n_selected}{how}. {ranking.what_to_print}"
    )
    blocks: list[Block] = [Text([lead, _model_sentence(result, ranking)])]
    if len(ranking.recommended_top(1)):
        blocks.append(_top_table(result, ranking))
    if groups := result.facts.rank_groups(ranking):
        blocks.append(_group_table(groups))
    if result.recorded.has_final and ranking.n_scored:
        blocks.append(contents.Pictures(pictures(result, "features")))
    if line := texts.modalities(result.facts):
        note = f"Scores of the modalities, mean of the outer folds' winners: {line}."
        blocks.append(Text([note], "note"))
    if line := texts.redundancy(result.facts):
        note = f"Redundancy (mean absolute correlation of the pairs) {line}."
        blocks.append(Text([note], "note"))
    return Section("features", "Which features", blocks)


def _model_sentence(result: StudyResult, ranking: FeatureRanking) -> str:
    """Return how many features have a score in the final model, or that there is none."""
    if not result.recorded.has_final:
        return "There is no final model: cv.final is false."
    if not ranking.n_scored:
        return "The final model selects no feature: none has a score above 0."
    return f"{ranking.n_scored} of {ranking.n_candidates} features have a score in the final model."


def _top_table(result: StudyResult, ranking: FeatureRanking) -> Table:
    """Return the first features as a table, with the whole ranking to download."""
    whole = ranking.to_table()
    data = contents.csv_download(
        "ranking.csv",
        whole.column_names,
        zip(*whole.to_pydict().values(), strict=True),
        _RANKING_BYTES,
        "ranking/ranking.csv" if result.recorded.has_final else "",
    )
    found = result.facts.coefficients
    shown = texts.feature_table(ranking, found.directions() if found else (), _MOST_ROWS)
    caption = f"{shown.title}; consensus: place by the median rank over the folds."
    if "direction" in shown.header:
        caption += " Direction: what larger values speak for in the final model."
    return Table(caption, shown.header, shown.rows, shown.text_columns, download=data)


def _group_table(groups: GroupRanking) -> Table:
    """Return the first groups of features, with the members of all to download."""
    shown = texts.group_table(groups)
    whole = groups.to_table()
    rows = zip(*whole.to_pydict().values(), strict=True)
    data = contents.csv_download("groups.csv", whole.column_names, rows, _RANKING_BYTES)
    caption = f"{shown.title}. Stability of the groups {groups.stability}."
    return Table(caption, shown.header, shown.rows, shown.text_columns, download=data)


def stability(result: StudyResult) -> Section | None:
    """Return the section on the stability of the selection; None if no feature is ranked."""
    if not result.recorded.ranks_features:
        return None
    sentence = Text([f"Stability {texts.stability(result.facts)}"])
    meaning = Text([_MEANING_OF_STABILITY], "note")
    blocks = [sentence, *pictures(result, "stability"), meaning]
    return Section("stability", "How stable the selection is", blocks)


def disagreement(result: StudyResult) -> Section | None:
    """Return the section on the ranks of the best features in each outer fold."""
    if not result.recorded.ranks_features:
        return None
    drawn = pictures(result, "folds")
    sentences = ["No feature has a score above 0 in the final model."]
    if drawn:
        sentences = list(_disagreements(result))
    return Section("folds", "Where the folds disagree", [Text(sentences), *drawn])


def _disagreements(result: StudyResult) -> Iterator[str]:
    """Yield sentences on the consensus, and on the best features whose ranks differ most."""
    n, n_folds = result.default_top, len(result.outer)
    ranking = _ranking(result)
    best = ranking.consensus_top(n)
    agreement = result.facts.agreement
    if agreement and agreement.consensus:
        yield agreement.consensus
    outside = (~ranking.fold_selected[:, best]).sum(axis=0)
    always = int((outside == 0).sum())
    yield (
        f"Of the first {len(best)} features of the consensus, {always} are among the best {n} of"
        f" each of the {n_folds} outer folds."
    )
    if always < len(best):
        order = [i for i in np.argsort(-outside, kind="stable")[:3] if outside[i]]
        worst = [
            f"{short(result.feature_names[best[i]], 40)} (on {outside[i]} of {n_folds} folds)"
            for i in order
        ]
        yield f"Most often not among the best {n}: {', '.join(worst)}."
