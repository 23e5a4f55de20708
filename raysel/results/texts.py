"""The facts of a study as text: sentences, and rows of tables, of all that shows a figure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from raysel.config.searches import LISTED
from raysel.core.printing import listed, mean_and_sd, short, short_middle
from raysel.data.layouts import SEPARATOR
from raysel.data.planted_table import BATCH, NOISE, PLANTED, PLATE, PROXY
from raysel.evaluation.confounds import CONFOUNDS
from raysel.evaluation.feature_ranking import SELECTION_PROBABILITY, FeatureRanking
from raysel.evaluation.group_ranking import GroupRanking
from raysel.evaluation.records import ChooseN, RefitRecord
from raysel.numerics.inference import PairedComparison, TTestResult
from raysel.numerics.metrics import has_positive_class, is_of_quantities
from raysel.results.agreement import GIVEN, Agreement
from raysel.results.facts import Facts
from raysel.results.planted import PlantedGenes
from raysel.results.scores import RANKED_BY, FoldValues, Reference
from raysel.results.tables import NONE, TextTable

_ABBREVIATIONS = re.compile(r"\b(auc|f1|mae|mse|r2|rmse|roc)\b")
#: Fewer samples than these may have none of the outliers that one in 50 has.
_FEW_FOR_OUTLIERS = 100
_RULES = {
    "one_se": "the smallest within one standard error of the best inner mean",
    "best": "the one with the best inner mean",
}
#: Name of each score of the winners, and on what it is measured.
_SCORES = {
    "training": ("training", "on the samples of the fit itself"),
    "inner": ("best inner", "on inner folds, by which the winner was chosen"),
    "test": ("test", "on outer samples that neither fit nor choice has seen"),
}
#: What the checks answer that are run by commands of their own.
_HALVES = (
    "Stability selection (how often each feature is selected on random halves of the data, with a"
    " bound on the number of false selections)"
)
_PERMUTED = "The permutation test (how often a score as high is reached where labels mean nothing)"
_CLAIMS = "Claims (which features tell the label beside all others, at a false discovery rate)"
#: What is said of the score of a reference, and of the method beside it.
_WITH = {
    "all features": "Without selection",
    **{name: f"With the {words}" for name, words in RANKED_BY.items()},
    CONFOUNDS: "By the confounds alone",
    "chance": "By chance",
}
#: What is said of a difference that does not make the method better or worse.
VERDICTS = {"equal": "the same on every fold", "not distinguishable": "no clear difference"}
#: Share of the features from which on a selection of them says nothing.
_NEARLY_ALL = 0.9
#: What is said of genes that were not planted, by their role; the same of one and of many.
_ROLES_IN_WORDS = {
    PROXY: "only followed a planted one",
    BATCH: f"only followed the {PLATE}",
    NOISE: "told nothing",
}

# --- figures -----------------------------------------------------------------------------------


def format_values(values: FoldValues) -> str:
    """Return mean and standard deviation over the outer folds as text."""
    if np.isnan(values.mean):
        return "undefined on an outer fold"
    if np.isnan(values.sd):
        return mean_and_sd(values.mean)
    return f"{mean_and_sd(values.mean, values.sd)} (SD)"


def format_each(values: Mapping[str, FoldValues]) -> str:
    """Return named means and SDs, of tasks or of further metrics, as one line or nothing."""
    return ", ".join(f"{name} {format_values(each)}" for name, each in values.items())


def difference_cell(paired: PairedComparison, test: TTestResult | None) -> str:
    """Return a mean difference with its 95 % interval, or why there is none, as a short cell."""
    if test is None:
        return f"{paired.mean:+z.3f} ({paired.reason.removeprefix('the difference is ')})"
    return f"{paired.mean:+z.3f} [{test.lower:+z.3f}, {test.upper:+z.3f}]"


def number_range(numbers: Sequence[int], between: str = "-") -> str:
    """Return numbers as a range, e.g. ``"8-16"``, or as one number where all are equal."""
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low}{between}{high}"


def join_and(parts: Sequence[object], most: int = 8) -> str:
    """Join parts by commas and "and"; of many numbers the first and the last."""
    if len(parts) > most:
        return f"{len(parts)} numbers from {parts[0]} to {parts[-1]}"
    return f"{', '.join(map(str, parts[:-1]))} and {parts[-1]}"


def spaced(name: str) -> str:
    """Return the name of a metric in words, e.g. ``"ROC AUC"`` for ``"roc_auc"``."""
    words = name.replace("out_of_sample", "out-of-sample").replace("_", " ")
    return _ABBREVIATIONS.sub(lambda found: found[0].upper(), words)


def capitalized(text: str) -> str:
    """Return a text with its first letter in upper case."""
    return f"{text[0].upper()}{text[1:]}"


# --- score -------------------------------------------------------------------------------------


def headline(facts: Facts) -> str:
    """Return the honest score as one line without a full stop: of what, with how many features."""
    score = f"test {spaced(facts.metric)} {format_score(facts)} {format_numbers(facts)}"
    final = facts.final.n_features if facts.final else None
    if not _has_numbers(facts) or final is None or {final} == {*_chosen_numbers(facts)}:
        return score
    return f"{score}. The final model uses the top {final}"


def format_score(facts: Facts) -> str:
    """Return the mean test score with SD, number of folds and interval, or why there is none."""
    score, interval = facts.interval, f"no interval: {facts.interval.reason}"
    if score.lower is not None and score.upper is not None:
        interval = f"95 % interval {score.lower:.3f} to {score.upper:.3f}"
    over = "drawn training sets" if score.of_draws else "outer folds"
    return f"{mean_and_sd(score.mean, score.sd)} (SD over {len(facts.outer)} {over}; {interval})"


def score_tile(facts: Facts) -> tuple[str, str]:
    """Return the mean test score, and its SD over the outer folds, as the figures of a tile."""
    if len(facts.outer) == 1:
        return mean_and_sd(facts.test.mean), "on one outer fold"
    mean, _, spread = mean_and_sd(facts.test.mean, facts.test.sd).partition(" ")
    return mean, f"{spread} SD over {len(facts.outer)} outer folds".strip()


def format_numbers(facts: Facts) -> str:
    """Return the numbers of features that the score is of."""
    if facts.is_native:
        own = "by the model's own predictions"
        return f"averaged over {len(facts.by_task)} tasks, {own}" if facts.by_task else own
    if facts.is_mean_over_n:
        return f"averaged over the {number_range(facts.sizes)} best of {facts.n_features} features"
    return f"with the {number_range(_chosen_numbers(facts))} best of {facts.n_features} features"


def _chosen_numbers(facts: Facts) -> list[int]:
    """Return the number of features on each outer fold."""
    return [winner.n_features or facts.sizes[0] for winner in facts.outer]


def headline_notes(facts: Facts) -> Iterator[str]:
    """Yield what the figures of the headline mean where it is not plain, one sentence each."""
    if facts.interval.of_draws and facts.interval.lower is not None:
        yield "The interval is for this pool of samples."
    elif facts.interval.lower is not None and _misses_outliers(facts):
        yield (
            f"The interval does not allow for outliers that these {facts.study.n_samples} samples"
            " lack."
        )
    if _has_numbers(facts) and len({*_chosen_numbers(facts)}) > 1:
        yield (
            "Each outer fold chose its number of features by its inner scores; the top"
            f" {facts.top} count as selected."
        )


def _has_numbers(facts: Facts) -> bool:
    """Whether the score is of one number of best features on each outer fold."""
    return not (facts.is_native or facts.is_mean_over_n)


def _misses_outliers(facts: Facts) -> bool:
    """Whether the score is a mean error of so few quantities that no sample may be an outlier."""
    of_errors = is_of_quantities(facts.metric) and facts.metric.startswith("neg_")
    return of_errors and facts.study.n_samples < _FEW_FOR_OUTLIERS


def rule_sentence(evaluation: Mapping[str, Any], rule: ChooseN) -> str:
    """Return how the number of features is chosen, and which classifier gives the score."""
    if evaluation["estimator"] == "native":
        return "The model's own predictions are scored; no number of features is chosen."
    sizes = evaluation["n_features"]
    sentences = [f"Scored by {classifier_name(evaluation)} on the best features."]
    sentences += _inner_choice(evaluation)
    if len(sizes) > 1 and rule == "mean":
        sentences.append(f"The score is the mean over all {len(sizes)} numbers of features.")
    elif len(sizes) > 1:
        sentences.append(
            f"Each outer fold chooses their number, of {join_and(sizes)}, by its inner scores. It"
            f" is {_RULES[rule]} (evaluation.choose_n: {rule})."
        )
    return " ".join(sentences)


def _inner_choice(evaluation: Mapping[str, Any]) -> list[str]:
    """Sentences on the parameters of the estimator that the inner scores choose."""
    estimator = evaluation["estimator"]
    if estimator == "linear_svm" and len(evaluation.get("C", ())) > 1:
        return ["C is chosen by the inner scores."]
    if estimator == "ridge":
        return ["Its alpha is chosen by the inner scores."]
    names = [] if isinstance(estimator, str) else list(estimator.get("space") or ())
    if not names:
        return []
    if len(names) == 1:
        return [f"{names[0]} is chosen by the inner scores."]
    return [f"{join_and(names)} are chosen by the inner scores."]


def positive_sentence(
    evaluation: Mapping[str, Any], classes: Sequence[str], tasks: Sequence[str] = ()
) -> str:
    """Return which of two classes, of each task, the metrics look at; empty if none does."""
    named = [evaluation["metric"], *evaluation.get("report", ())]
    looking = [spaced(name) for name in named if has_positive_class(name)]
    of_tasks = [list(classes)]
    if tasks:
        starts = [f"{task}{SEPARATOR}" for task in tasks]
        of_tasks = [[label for label in classes if label.startswith(start)] for start in starts]
    if not looking or any(len(of_task) != 2 for of_task in of_tasks):
        return ""
    metrics = looking[0] if len(looking) == 1 else join_and(looking, len(looking))
    positive = listed(short(second, 40) for _, second in of_tasks)
    two = "the two of a task" if tasks else "the two"
    return f"The positive class of {metrics} is {positive}, the second of {two} in their order."


def classifier_name(evaluation: Mapping[str, Any]) -> str:
    """Return the classifier that scores the best features, and the references."""
    estimator = evaluation["estimator"]
    if not isinstance(estimator, str):
        return _estimator_name(estimator)
    if estimator == "linear_svm":
        values = [f"{C:g}" for C in evaluation.get("C", [1.0])]
        return f"linear SVM (C {_one_of(values)})"
    is_native = estimator == "native"
    if estimator == "ridge" or (is_native and is_of_quantities(evaluation["metric"])):
        return "ridge regression"
    k = 1 if is_native else evaluation.get("n_neighbors", 1)
    return "1-nearest neighbour" if k == 1 else f"{k} nearest neighbours"


def _one_of(values: Sequence[object], most: int = 8) -> str:
    """Return a value that is fixed as ``"= 1"``, and several as ``"of 1 and 2"``."""
    return f"= {values[0]}" if len(values) == 1 else f"of {join_and(values, most)}"


def _estimator_name(estimator: Mapping[str, Any]) -> str:
    """Return a class with parameters, e.g. ``LogisticRegression (C of 0.1 and 1, tol = 0.1)``."""
    searched, fixed = estimator.get("space", {}).items(), estimator.get("params", {}).items()
    shown = [f"{key} {_one_of(values, len(values))}" for key, values in searched]
    shown += [f"{key} = {value}" for key, value in fixed]
    name = estimator["name"].rpartition(".")[2]
    return f"{name} ({', '.join(shown)})" if shown else name


def interval_footnote(facts: Facts) -> str:
    """Return what the intervals of the score and of the differences mean, as one footnote."""
    return " ".join(_interval_sentences(facts))


def _interval_sentences(facts: Facts) -> Iterator[str]:
    score, n = facts.interval, len(facts.outer)
    tests = [reference.test for reference in facts.references.values()]
    if score.of_draws:
        if score.lower is not None:
            yield f"95 % interval: mean ± t SD / sqrt(J) over J = {n} draws of the training set."
            yield (
                "It takes this pool of samples as the whole population, and holds for the method"
                " trained on that many. It ends at the metric's bounds."
            )
        return
    if score.lower is not None:
        yield (
            f"95 % interval: mean ± t sqrt((1/J + n_test/n_train) v) over J = {n} outer folds,"
            f" n_test/n_train = {score.ratio:.3g}; it ends at the metric's bounds."
        )
        yield (
            "In it v is the variance of a fold's score, by the jackknife over its test samples, or"
            " over their groups or blocks."
        )
        yield "The interval is for the mean score of the outer folds' models on new samples."
        yield (
            "In simulations it held that mean in 89 to 100 % of data sets, median 98 %. It does not"
            " allow for outliers that no test sample shows."
        )
    if any(tests):
        yield (
            "Corrected 95 % interval of a difference (Nadeau & Bengio 2003): mean ± t SD sqrt(1/J +"
            " n_test/n_train), as the folds' training sets overlap."
        )
    chance = facts.references.get("chance")
    if chance is not None and chance.over_samples is not None:
        yield (
            "That of the difference to chance is the score's, as chance hardly depends on the"
            " samples."
        )
    elif chance is not None and chance.test is not None:
        yield (
            "In simulations it held the difference to chance in 87 to 100 % of data sets, median 98"
            " %, for errors, accuracy and log loss."
        )


def curve_table(facts: Facts) -> TextTable:
    """Return inner and test score and the references' means for each number of features.

    They are undefined where the estimator fails on an outer fold.
    """
    curve = facts.curve
    rows = []
    for i, n in enumerate(curve["n_features"]):
        scores = [(curve[f"{name}_mean"][i], curve[f"{name}_sd"][i]) for name in ("inner", "test")]
        scores += [(curve[name][i], np.nan) for name in facts.references]
        rows.append([str(n), *(mean_and_sd(mean, sd) for mean, sd in scores)])
    names = [reference_name(facts, name) for name in facts.references]
    return TextTable(["features", "inner", "test", *names], rows)


def optimism_rows(facts: Facts) -> list[tuple[str, str, str]]:
    """Return resubstitution, best inner and honest score as rows of a table."""
    return [
        (_SCORES[key][0], f"{mean:.3f}", _SCORES[key][1]) for key, mean in facts.optimism.items()
    ]


def optimism_sentence(facts: Facts) -> str:
    """Return resubstitution, best inner and honest score as one sentence."""
    parts = ", ".join(f"{name} {value}" for name, value, _ in optimism_rows(facts))
    return f"Scores: {parts} (mean {spaced(facts.metric)} over {len(facts.outer)} outer folds)."


# --- references --------------------------------------------------------------------------------


def reference_name(facts: Facts, name: str) -> str:
    """Return the name of a reference, with the classifier where it is not that of the method."""
    if name == "all features":
        whose = "all of a task's features" if facts.by_task else f"all {facts.n_features} features"
        return f"{whose} ({_rival_of_native(facts)})" if facts.is_native else whose
    if name == "chance":
        guess = facts.references[name].recorded if name in facts.references else ""
        if guess == "chance":
            guess = "stratified guess"
        return f"chance ({guess})" if guess else "chance"
    if name == CONFOUNDS:
        return f"{name} ({listed(confounds_of(facts.study.config['dataset']), 3)})"
    return RANKED_BY.get(name, name)


def confounds_of(section: Mapping[str, Any]) -> list[str]:
    """Return the confounds and sites of a section ``dataset``."""
    steps = section.get("prepare", ())
    sites = [step["harmonise"]["site"] for step in steps if "harmonise" in step]
    return [*section.get("confounds", ()), *sites]


def _rival_of_native(facts: Facts) -> str:
    """Return what predicts from all features, and whether it standardises them on all folds."""
    reference = facts.references.get("all features")
    chosen = list(chain(*reference.settings)) if reference else []
    name = classifier_name(facts.evaluation)
    if any("alpha" in setting for setting in chosen):
        name = "ridge regression"
    elif any("C" in setting for setting in chosen):
        name = "logistic regression"
    if chosen and all(setting.get("scaling") == "zscore" for setting in chosen):
        return f"{name} of standardised features"
    return name


def references_line(facts: Facts) -> str:
    """Return the mean scores of the references as one short line, which may be empty."""
    shown = [
        f"{reference_name(facts, name)} {scored.mean:.3f}"
        for name, scored in facts.references.items()
    ]
    return f"for comparison: {', '.join(shown)}" if shown else ""


def verdict_sentences(facts: Facts) -> list[str]:
    """Return which references score higher than the method, and which it does not clearly beat."""
    rivals = [facts.references[name] for name in _WITH if name in facts.references]
    rivals.sort(key=lambda reference: -max(reference.mean, facts.test.mean))
    unbeaten = [reference for reference in rivals if reference.verdict != "better"]
    return [_verdict_sentence(facts, reference) for reference in unbeaten]


def short_verdict(facts: Facts) -> str:
    """Return how the method compares with the best reference, and with chance if no better."""
    sentences, references = verdict_sentences(facts), facts.references
    if not references:
        return ""
    if not sentences:
        best = max(references.values(), key=lambda reference: reference.mean)
        clause = _clause(facts, best)
        return (
            f"{facts.method} is better than every reference{_pool(facts)}:"
            f" {clause[0].lower()}{clause[1:]}, {_with_method(facts)}."
        )
    told, chance = sentences[:1], references.get("chance")
    if chance is not None and chance.verdict != "better":
        usual = _verdict_sentence(facts, chance)
        told = [sentence for sentence in told if sentence != usual]
        told.append(f"{_clause(facts, chance)}, {_with_method(facts)}: the ranking may be chance.")
    return " ".join(told)


def _verdict_sentence(facts: Facts, reference: Reference) -> str:
    told = f"{facts.method} is {reference.verdict}{_pool(facts)}"
    verdict = VERDICTS.get(reference.verdict, told)
    if facts.interval.of_draws:
        verdict = verdict.replace("every fold", "every draw")
    return f"{_clause(facts, reference)}, {_with_method(facts)}: {verdict}."


def _pool(facts: Facts) -> str:
    """What a verdict over draws of the training set holds for; empty over folds."""
    return " on these samples" if facts.interval.of_draws else ""


def _clause(facts: Facts, reference: Reference) -> str:
    """Score of a reference, and what predicts where that is not the method's own classifier."""
    by = facts.is_native and reference.name == "all features"
    of = f" of {_rival_of_native(facts)}" if by else ""
    start = _WITH.get(reference.name, capitalized(reference.name))
    return f"{start} the score{of} is {reference.mean:.3f}"


def _with_method(facts: Facts) -> str:
    return f"with {facts.method} {facts.test.mean:.3f}"


def missing_references_sentence(facts: Facts) -> str:
    """Return which references have no score, and why; empty if all have one."""
    expected = ["all features", "variance", "f_test", "chance"]
    if facts.is_native:
        expected = ["all features", "chance"]
    if facts.evaluation.get("references") == "chance":
        expected = ["chance"]
    missing = [name for name in expected if name not in facts.references]
    if not missing or not any(refit.references for refit in facts.outer):
        return ""
    fails = f"on an outer fold the estimator fails with it, or {spaced(facts.metric)} is undefined"
    whys = dict.fromkeys(missing, fails)
    if "variance" in missing and "f_test" not in missing:
        scaling = facts.study.config["dataset"].get("scaling", "unit")
        whys["variance"] = f"after the scaling {scaling} all features have the same variance"
    told = ", ".join(f"{reference_name(facts, name)} ({why})" for name, why in whys.items())
    return f"References without a score: {told}."


def score_table(facts: Facts) -> TextTable:
    """Return the method and its references: numbers of features, scores and differences."""
    method, every = scored_number(facts), "all" if facts.by_task else str(facts.n_features)
    fixed = {"all features": every, CONFOUNDS: "", "chance": ""}
    rows = [[facts.method, method, mean_and_sd(facts.interval.mean, facts.interval.sd), ""]]
    for name, reference in facts.references.items():
        numbers = number_range(reference.n_features) if reference.n_features else method
        cells = [reference_name(facts, name), fixed.get(name, numbers)]
        cells.append(mean_and_sd(reference.mean, reference.sd))
        rows.append([*cells, difference_cell(reference.paired, reference.test)])
    header = ["reference", "features", f"test {facts.metric}", "method ahead by [95 %]"]
    return TextTable(header, rows)


def scored_number(facts: Facts) -> str:
    """Return the number of features of the score: ``16``, ``8-16``, ``mean`` or none at all."""
    if facts.is_native:
        return ""
    if facts.is_mean_over_n:
        return "mean"
    numbers = [winner.n_features for winner in facts.outer]
    return number_range([n for n in numbers if n is not None])


# --- winners and trials ------------------------------------------------------------------------


def winners_table(facts: Facts) -> TextTable:
    """Return configurations, numbers of features and scores of the outer folds' winners."""
    numbers = winner_heads(facts, "best features")
    rows = []
    for i, winner in enumerate(facts.outer):
        reported = [values.values[i] for values in facts.report.values()]
        cells = ["undefined" if value is None else mean_and_sd(value) for value in reported]
        rows.append([winner.fold, winner.name, *winner_cells(facts, winner), *cells])
    means = [format_values(values) for values in (facts.test, *facts.report.values())]
    mean = ["mean", "", *[""] * len(numbers), mean_and_sd(facts.inner.mean), *means]
    scores = [f"{name} {facts.metric}" for name in ("inner", "test")]
    scores += [f"test {name}" for name in facts.report]
    return TextTable(["outer fold", "winner", *numbers, *scores], [*rows, mean])


def winner_heads(facts: Facts, chosen: str) -> list[str]:
    """Return the heads of the numbers of features in `winner_cells`."""
    heads = [chosen] if facts.has_chosen_n else []
    return [*heads, "features with a score"] if facts.agreement else heads


def winner_cells(facts: Facts, winner: RefitRecord) -> list[str]:
    """Return numbers of features, inner and test score of a winner as cells of a table."""
    cells = [str(winner.n_features)] if facts.has_chosen_n else []
    if facts.agreement:
        cells.append(str(facts.n_scored[winner.fold]))
    test = "" if winner.test_score is None else mean_and_sd(winner.test_score)
    return [*cells, mean_and_sd(winner.inner_score), test]


def model_sentence(facts: Facts) -> str:
    """Return what the final model is, and how many features have a score in it."""
    if facts.final is None:
        return "none (cv.final is false)"
    model = f"{facts.final.name}, fitted on all {facts.study.n_samples} samples"
    if facts.final.n_features is not None:
        model += f"; it predicts by its {facts.final.n_features} best features"
    if facts.agreement is not None:
        model += f"; {facts.n_scored[facts.final.fold]} of {facts.n_features} features have a score"
    return model


def convergence(facts: Facts) -> str:
    """Return how many winners converged, and to what; empty if it was not recorded."""
    fits = facts.fits
    if not fits.n_fits:
        return ""
    of = "outer folds and final model" if facts.final else "outer folds"
    how = "converged" if fits.gap is None else "are proved to be within tol of the optimum"
    if any(winner.local_optimum for winner in facts.winners):
        how = "converged to a local optimum"
    return f"{fits.n_converged} of {fits.n_fits} winners ({of}) {how}"


def trial_sentences(facts: Facts) -> Iterator[str]:
    """Yield how many trials gave no solution or were stopped, and what the figures depend on."""
    counts, search, total = facts.trials, facts.study.config["search"], sum(facts.trials.values())
    if counts["null"]:
        yield f"{counts['null']} of {total} trials gave the zero solution"
    if counts["stopped"]:
        yield f"{counts['stopped']} of {total} trials were stopped early"
    is_adaptive = search["method"] not in LISTED or search.get("early_stopping")
    if is_adaptive and not search["synchronous"]:
        yield "not synchronous: with another number of workers these figures can differ"


# --- features ----------------------------------------------------------------------------------


def feature_table(
    ranking: FeatureRanking, directions: Sequence[str] = (), most: int = 10
) -> TextTable:
    """Return the first features in the recommended order: folds, places and directions."""
    shown = ranking.recommended_top(most)
    if not len(shown):
        return TextTable(["feature"], [], f"no feature has a score above 0 in {ranking.source}")
    names = [ranking.feature_names[i] for i in shown]
    columns = {"feature": [short(name, 40) for name in names]}
    if part := ranking.part_axis:
        parts = [str(ranking.coordinates[part][i]) for i in shown]
        pairs = zip(names, parts, strict=True)
        if not all(name.startswith(f"{of}{SEPARATOR}") for name, of in pairs):
            columns[part] = [short(of, 30) for of in parts]
    for name, values in ranking.added.items():
        columns[spaced(name)] = [f"{values[i]:.3g}" for i in shown]
    columns["folds"] = [f"{ranking.selection_count[i]}/{ranking.n_folds}" for i in shown]
    columns["consensus"] = [f"{ranking.consensus_place[i]:.0f}" for i in shown]
    if ranking.source != "the consensus":
        source = ranking.source.removeprefix("the ")
        columns[source] = [source_rank(ranking, int(i)) for i in shown]
    if any(directions):
        columns["direction"] = [directions[i] for i in shown]
    title = (
        f"First {len(shown)} of {ranking.n_candidates} features; folds: how many have it among"
        f" their best {ranking.n_selected}"
    )
    return TextTable(list(columns), list(zip(*columns.values(), strict=True)), title)


def group_table(groups: GroupRanking, most: int = 10) -> TextTable:
    """Return the first groups of features with their members, each with its share of the folds."""
    features, n_folds = groups.features, groups.features.n_folds
    shown = groups.order[:most]

    def members(group: int) -> str:
        named = [
            f"{short(features.feature_names[i], 40)} {features.selection_count[i]}/{n_folds}"
            for i in groups.members[group]
        ]
        return listed(named, 5, " and {n_more} more")

    columns = {
        "one of": [short(groups.labels[i], 50) for i in shown],
        "group": [short(groups.names[i], 40) for i in shown],
        "folds": [f"{groups.fold_selected[:, i].sum()}/{n_folds}" for i in shown],
        "members": [members(i) for i in shown],
    }
    title = (
        f"First {len(shown)} of {groups.n_groups} groups of features, by the median rank of their"
        f" best member; folds: how many have a member among their best {features.n_selected}"
    )
    return TextTable(list(columns), list(zip(*columns.values(), strict=True)), title)


def first_groups(groups: GroupRanking, most: int = 3) -> str:
    """Return the first groups of features and the stability of their selection, in a line."""
    n_folds = groups.features.n_folds
    first = [
        f"{short(groups.labels[i], 40)} ({groups.fold_selected[:, i].sum()}/{n_folds} folds)"
        for i in groups.order[:most]
    ]
    return f"first of {groups.n_groups}: {', '.join(first)}; stability {groups.stability}"


def best_features_table(facts: Facts, ranking: FeatureRanking) -> TextTable:
    """Return the first ten features in two columns, below the stability of the ranking."""
    shown = ranking.recommended_top(10)
    if not len(shown):
        return TextTable(["feature"], [], f"No feature has a score above 0 in {ranking.source}.")
    heads = [" ", "feature", "folds"]
    columns = [
        [str(place) for place in range(1, len(shown) + 1)],
        [short_middle(ranking.feature_names[i], 20) for i in shown],
        [f"{ranking.selection_count[i]}/{ranking.n_folds}" for i in shown],
    ]
    if ranking.source != "the consensus":
        heads.append("model")
        columns.append([source_rank(ranking, int(i)) for i in shown])
    cells = list(zip(*columns, strict=True))
    half = (len(cells) + 1) // 2
    right = [*cells[half:], ("",) * len(heads)]
    rows = [[*left, *beside] for left, beside in zip(cells[:half], right, strict=False)]
    return TextTable(heads * 2, rows, _features_title(facts, ranking, len(shown)))


def _features_title(facts: Facts, ranking: FeatureRanking, n_shown: int) -> str:
    """Return which features a table shows, in which order, and how stable their choice is."""
    order = "selection probability" if SELECTION_PROBABILITY in ranking.added else "consensus"
    title = f"First {n_shown} of {ranking.n_candidates} features by {order}"
    if facts.agreement is None:
        return title
    value, _ = stability_figure(facts.agreement)
    title += f"; stability of the top {facts.top}: {value}"
    noise = facts.agreement.noise
    return title if noise is None or facts.agreement.halves else f"{title}, noise {noise.mean:.2f}"


def planted_sentence(found: PlantedGenes) -> str:
    """Return how many of the planted genes the consensus finds, and what else it selects."""
    n, best = found.all[PLANTED], found.best
    told = f"{best[PLANTED]} of {n} planted genes are found"
    others = [f"{best[role]} {said}" for role, said in _ROLES_IN_WORDS.items() if best[role]]
    return f"{told}; of the first {n}, {', '.join(others)}." if others else f"{told}."


def lost_sentence(found: PlantedGenes) -> str:
    """Return a selection of some outer folds that does not survive; nothing if there is none."""
    gene = found.lost
    if gene is None:
        return ""
    folds = f"{gene.n_folds} of {found.n_folds} folds"
    return f"Does not survive: {gene.name} ({folds}), which {_ROLES_IN_WORDS[gene.role]}."


def first_features(ranking: FeatureRanking, most: int = 5) -> str:
    """Return a sentence that names the first features, with the folds that select each."""
    shown, n_folds = ranking.recommended_top(most), ranking.n_folds
    if not len(shown):
        return "No feature has a score above 0."
    named = [f"{short(ranking.feature_names[i], 40)} ({ranking.selection_count[i]})" for i in shown]
    return f"First features, with how many of {n_folds} folds select each: {', '.join(named)}."


def source_rank(ranking: FeatureRanking, feature: int) -> str:
    """Return the rank of a feature in the source of a ranking, or a dash without a score."""
    rank = ranking.ranks[feature]
    return f"{rank:.0f}" if rank <= ranking.n_scored else NONE


def redundancy(facts: Facts) -> str:
    """Return the redundancy of the best features as one line, with what it is of and over what."""
    values = facts.redundancy.get(facts.top)
    if values is None:
        return ""
    n, mean = len(values.values), "undefined (fewer than two features with a score are selected)"
    folds = f"{n}"
    if known := values.known:
        mean = f"{known.mean:.2f}"
        folds = f"{n}" if len(known.values) == n else f"{len(known.values)} of {n}"
    return (
        f"of the top {facts.top} over all {facts.study.n_samples} samples, mean of {folds} outer"
        f" folds: {mean}"
    )


def modalities(facts: Facts) -> str:
    """Return the mean score or kernel weight of each modality over the folds as one line."""
    return ", ".join(f"{name} {mean:.3g}" for name, mean in facts.mean_modality_scores.items())


def stability(facts: Facts) -> str:
    """Return stability and overlap of the outer folds in sentences: of what, and over what."""
    if facts.agreement is None:
        return ""
    top = facts.agreement.top
    given = top.chosen_by == GIVEN or facts.agreement.halves
    chosen = "" if given else f" (N: {top.chosen_by})"
    sentences = [f"{_stability(facts.agreement)}{chosen}", noise_level(facts)]
    sentences.append(capitalized(overlap(facts)))
    return ". ".join(filter(None, sentences)) + "."


def short_stability(facts: Facts) -> str:
    """Return the stability of the top features, and what noise gives, in sentences."""
    if facts.agreement is None:
        return ""
    return ". ".join(filter(None, [_stability(facts.agreement), noise_level(facts)])) + "."


def overlap(facts: Facts) -> str:
    """Return the rank-biased overlap of the outer folds' rankings, with what it is of."""
    of = "rank-biased overlap of the rankings of the outer folds"
    return f"{of} {facts.agreement.overlap}" if facts.agreement else ""


def noise_level(facts: Facts) -> str:
    """Compare the stability with that of noise, without a full stop; empty if undefined."""
    agreement = facts.agreement
    if agreement and agreement.halves:
        return (
            "The halves of a pair share no sample, so that noise gives 0 on average, unless the"
            " method prefers features whatever the labels"
        )
    if agreement is None or agreement.stability.reason:
        return ""
    if agreement.top.n >= _NEARLY_ALL * facts.n_features:
        return (
            f"{agreement.top.n} of {facts.n_features} features are hardly a selection: read the"
            " stability at smaller numbers"
        )
    noise, recorded = agreement.noise, agreement.permutations
    if recorded is None:
        return (
            "The stability of noise was not recorded, because an earlier version of raysel ran the"
            " study"
        )
    if noise is None:
        return "There is no stability of noise, because no permutation changes a label"
    verdict = "above" if agreement.stability.value > noise.highest else "not above"
    return (
        f"The F-test with permuted labels gives {noise.mean:.2f} on the same folds"
        f" ({noise.lowest:.2f} to {noise.highest:.2f} in {recorded.n_permutations} permutations):"
        f" the stability is {verdict} that"
    )


def _stability(agreement: Agreement) -> str:
    value, of = stability_figure(agreement)
    return f"{of}: {value}"


def stability_figure(agreement: Agreement) -> tuple[str, str]:
    """Return the stability that is shown, and what it is of: pairs of halves, else folds."""
    if halves := agreement.halves:
        over = f"{halves.n_pairs} pairs of disjoint halves of the {halves.unit}"
        return f"{halves.stability:.2f}", f"of the top {halves.top} over {over}"
    return str(agreement.stability), f"of the top {agreement.top.n} over {agreement.over}"


def open_checks(facts: Facts, place: str, program: str = "raysel") -> list[tuple[str, str]]:
    """Return what each check answers that has not been run at a place, and its command."""
    checks = []
    if facts.stability_selection is None and facts.agreement and facts.final:
        checks.append((_HALVES, f"{program} stability {place}"))
    if facts.permutation_test is None:
        checks.append((_PERMUTED, f"{program} permute {place} --permutations 200"))
    if facts.claims is None and not facts.records.layout.is_multitask:
        checks.append((_CLAIMS, f"{program} claims {place} --fdr 0.1"))
    return checks
