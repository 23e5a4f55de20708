"""Remarks on the limitations of a result: rules that decide which there are, and sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from raysel.base.registry import registered_method
from raysel.config.space import Choices, LogSpace, domain_from_yaml
from raysel.core.printing import first_line, joined_lines
from raysel.evaluation.failing_numbers import FailingNumbers, failing_in_trials
from raysel.evaluation.lost_trials import was_lost
from raysel.evaluation.records import FINAL, Convergence, InnerTrace, RefitRecord, TrialRecord
from raysel.evaluation.scoring_estimators import ALPHAS, LINEAR_SVM, NATIVE, RIDGE
from raysel.numerics.inference import TTestResult
from raysel.results import stability
from raysel.results.records import StudyRecords
from raysel.results.scores import RANKED_BY, Reference, are_draws
from raysel.tracking.records import SearchRecord

#: Number of outer folds below which a difference that is not told from 0 is remarked on as that of
#: few folds.
_FEW_FOLDS: Final = 5
#: The method among the references, in remarks on the estimator.
_METHOD: Final = "the method"
#: Relative difference of two objectives from which on they differ in what is printed.
_APART: Final = 5e-4
#: Names of references in a sentence.
_WHOSE: Final = {name: f"the {words}" for name, words in RANKED_BY.items()}
#: How a model can be had that a file cannot hold.
STORAGE_REMEDY: Final = (
    "use run_study's result in its process, or fit attributes that are arrays, numbers, text or"
    " estimators"
)


@dataclass(frozen=True)
class Remark:
    """Remark on a result; `SENTENCES` has a sentence for each key."""

    key: str
    values: Mapping[str, Any] = field(default_factory=dict)


def actions(records: StudyRecords, references: Mapping[str, Reference]) -> Iterator[Remark]:
    """Yield the remarks that ask for an action, first those on the data."""
    evaluation, outer = records.config["evaluation"], records.outer
    yield from (Remark("data", {"text": text}) for text in records.stored.study.data_remarks)
    yield from search_remarks(records.trials, records.stored.search)
    if missed := [refit for refit in records.refits if refit.converged is False]:
        values = {"n_winners": len(records.refits), "gap": Convergence.of(missed).gap}
        yield Remark("winners_not_converged", {"folds": [refit.fold for refit in missed], **values})
    if records.stored.study.choose_n != "mean":
        yield from number_remarks(
            records.n_features, evaluation.get("n_features") or (), records.n_scored
        )
    space = records.config["solver"].get("space", {})
    yield from edge_remarks(space, [refit.params for refit in outer], _unstructured(records))
    yield from estimator_edge_remarks(evaluation, outer)
    tests = (reference.test for reference in references.values())
    yield from few_folds_remarks(tests, len(outer), of_draws=are_draws(outer))


def limitations(records: StudyRecords, top: int | None = None) -> Iterator[Remark]:
    """Yield the other remarks."""
    yield from _model_remarks(records)
    yield from _selection_remarks(records.n_scored, top or records.default_top)
    refits = records.refits
    if tied := {refit.fold: refit.n_tied for refit in refits if refit.n_tied > 1}:
        yield Remark("tied", {"folds": tied, "n_folds": len(refits)})
    yield from (Remark("local_optimum", refit.other_start) for refit in refits if refit.other_start)
    fits = inner_convergence(records.trials)
    if fits.n_converged < fits.n_fits:
        n = fits.n_fits - fits.n_converged
        yield Remark("inner_fits_not_converged", {"n": n, "n_fits": fits.n_fits, "gap": fits.gap})
    warned: dict[str, list[str]] = {}
    for refit in refits:
        for message in refit.warnings:
            warned.setdefault(message, []).append(refit.fold)
    for message, folds in warned.items():
        yield Remark("warning", {"folds": folds, "message": message})
    if records.stability_selection is not None:
        for key, values in records.stability_selection.limitations():
            yield Remark(key, values)
    yield from (Remark("mixed_versions", {"text": text}) for text in records.stored.mixed)


def _model_remarks(records: StudyRecords) -> Iterator[Remark]:
    """Remark on a ranking or a model that there is not, or that may not be used."""
    untrusted, unranked = records.stored.study.untrusted, records.unranked_folds
    if unranked:
        everywhere = len(unranked) == len(records.refits)
        yield Remark("no_ranking", {"folds": [] if everywhere else unranked})
    if not records.has_final:
        yield Remark("no_final_model")
    elif not records.in_memory and not records.directory.model.exists():
        yield Remark("no_model_file", {"untrusted": list(untrusted)})
    elif untrusted and not records.in_memory:
        yield Remark("model_without_method", {"untrusted": list(untrusted)})
    if records.has_model and not records.is_trusted:
        yield Remark("model_not_trusted")


def search_remarks(trials: Sequence[TrialRecord], search: SearchRecord | None) -> Iterator[Remark]:
    """Remark on a search that was cut, on failed trials, and on an estimator that fails."""
    if search is not None and search.cut:
        yield Remark("time_budget", {"n_tried": search.n_tried, "n_planned": search.n_planned})
    failed = [record for record in trials if record.status == "failed"]
    if failed:
        n_partly = sum(any(not trace.error for trace in record.folds.values()) for record in failed)
        counts = {"n": len(failed), "n_trials": len(trials), "n_partly": n_partly}
        yield Remark("failed_trials", {**counts, "n_lost": sum(map(was_lost, failed))})
    yield from (Remark("estimator_fails", vars(each)) for each in failing_in_trials(trials))


def _selection_remarks(n_scored: Mapping[str, int], top: int) -> Iterator[Remark]:
    """Remark on winners that select no feature, or fewer than ``top``."""
    if n_scored.get(FINAL) == 0:
        yield Remark("final_selects_none")
    outer = {fold: n for fold, n in n_scored.items() if fold != FINAL}
    if empty := [fold for fold, n in outer.items() if n == 0]:
        yield Remark("folds_select_none", {"folds": empty, "n_folds": len(outer)})
    if fewer := {fold: n for fold, n in n_scored.items() if 0 < n < top}:
        yield Remark("fewer_than_top", {"folds": fewer, "top": top})


def number_remarks(
    chosen: Mapping[str, int], listed: Sequence[int], n_scored: Mapping[str, int]
) -> Iterator[Remark]:
    """Remark on winners whose chosen number of features is the largest or smallest of several."""
    if len(listed) < 2:
        return
    largest = [fold for fold, n in chosen.items() if n == listed[-1] < n_scored.get(fold, 0)]
    smallest = [fold for fold, n in chosen.items() if n == listed[0] > 1]
    for end, n, folds in (("largest", listed[-1], largest), ("smallest", listed[0], smallest)):
        if folds:
            values = {"end": end, "n": n, "folds": folds, "n_folds": len(chosen)}
            yield Remark("end_of_n_features", values)


def edge_remarks(
    space: Mapping[str, Any],
    winners: Sequence[Mapping[str, Any]],
    unstructured: Mapping[str, float],
) -> Iterator[Remark]:
    """Remark on the ends of ``solver.space`` that most of the outer folds' winners have.

    Lists of three numbers and more and logarithmic grids have ends. An end that cannot be passed is
    not remarked: 0, 1 of whole numbers, and the value at which a method assumes no structure, of
    which another sentence tells.
    """
    for name, domain in space.items():
        values = sorted(_numbers(domain))
        for value in dict.fromkeys([*values[:1], *values[-1:]]):
            n = sum(params.get(name) == value for params in winners)
            if 2 * n <= len(winners):
                continue
            at = {"n": n, "n_folds": len(winners), "parameter": name, "value": value}
            if unstructured.get(name) == value:
                yield Remark("no_structure", at)
            elif len(values) > 2 and (end := _passable_end(value, values)):
                yield Remark("end_of_space", {**at, "end": end})


def estimator_edge_remarks(
    evaluation: Mapping[str, Any], outer: Sequence[RefitRecord]
) -> Iterator[Remark]:
    """Remark on the ends of the estimator's own grid that most outer folds choose."""
    names = [_METHOD, *(outer[0].reference_settings if outer else ())]
    for parameter, domain in _estimator_space(evaluation).items():
        values = sorted(_numbers(list(domain)))
        if len(values) < 3:
            continue
        for value in (values[0], values[-1]):
            numbers = {
                name: sum(_chose(refit, name, parameter, value) for refit in outer)
                for name in names
            }
            often = {name: n for name, n in numbers.items() if 2 * n > len(outer)}
            if often and (end := _passable_end(value, values)):
                at = {"parameter": parameter, "value": value, "folds": often, "end": end}
                yield Remark("end_of_estimator", {**at, "n_folds": len(outer)})


def _passable_end(value: float, values: Sequence[float]) -> str:
    """Return which end of sorted values one is; empty for 0 and the whole number 1, their least."""
    if value != values[0]:
        return "largest"
    is_least = value == 0 or (value == 1 and isinstance(value, int))
    return "" if is_least else "smallest"


def _estimator_space(evaluation: Mapping[str, Any]) -> Mapping[str, Sequence[Any]]:
    """Values by parameter that the inner scores choose from, for estimator and references."""
    estimator = evaluation["estimator"]
    if not isinstance(estimator, str):
        space: Mapping[str, Sequence[Any]] = estimator.get("space", {})
        return space
    if estimator == LINEAR_SVM:
        return {"C": evaluation.get("C", ())}
    return {"alpha": ALPHAS} if estimator in (RIDGE, NATIVE) else {}


def _chose(refit: RefitRecord, name: str, parameter: str, value: float) -> bool:
    """Whether the method or a reference has a value on a fold, for all its numbers of features."""
    settings, position = refit.settings, refit.position
    if name != _METHOD:
        settings = refit.reference_settings.get(name, [])
        position = refit.reference_positions.get(name, position)
    if position is not None and len(settings) > 1:
        settings = [settings[position]]
    values = [setting.get(parameter) for setting in settings if setting]  # none where it fails
    return bool(values) and all(each == value for each in values)


def _numbers(domain: Any) -> list[float]:
    """Return the numbers that a domain lists, in its order."""
    parsed = domain_from_yaml(domain)
    if not isinstance(parsed, Choices | LogSpace):
        return []
    numbers = [value for value in parsed.values if isinstance(value, int | float)]
    return [value for value in numbers if not isinstance(value, bool)]


def _unstructured(records: StudyRecords) -> Mapping[str, float]:
    """Return the values of parameters with which the method assumes no structure of features."""
    method = registered_method(records.config["solver"]["name"])
    return method.unstructured(records.layout) if method else {}


def few_folds_remarks(
    tests: Iterable[TTestResult | None], n_folds: int, *, of_draws: bool, level: float = 0.05
) -> Iterator[Remark]:
    """Remark on so few outer folds, or draws, that more of them would tell a difference."""
    left_open = [
        (abs(test.statistic) * test.error, test.detectable(level))
        for test in tests
        if test is not None and test.p_value > level
    ]
    if left_open and n_folds < _FEW_FOLDS:
        difference, least = max(left_open)
        values = {"difference": difference, "least": least}
        yield Remark("few_folds", {"n_folds": n_folds, "of_draws": of_draws, **values})


def inner_convergence(trials: Iterable[TrialRecord]) -> Convergence:
    """Count the inner fits of trials that were not stopped early, and those that met ``tol``."""
    fits: list[InnerTrace] = []
    for record in trials:
        if record.status != "stopped":
            for trace in record.folds.values():
                fits += () if trace.error else trace.inner
    return Convergence.of(fits)


# --- sentences ---------------------------------------------------------------------------------


def format_remarks(remarks: Iterable[Remark]) -> list[str]:
    """Return remarks with their figures, as the report has them."""
    return [joined_lines(_text(remark)) for remark in remarks]


def short_remarks(remarks: Iterable[Remark]) -> list[str]:
    """Return each remark as one sentence that says what to do, as commands print it."""
    return [first_line(_text(remark)) for remark in remarks]


def _text(remark: Remark) -> str:
    text: str = SENTENCES[remark.key](**remark.values)
    return text


_names = ", ".join


def _each(numbers: Mapping[str, object], form: str = "{} {}") -> str:
    return ", ".join(form.format(*pair) for pair in numbers.items())


def _largest_gap(gap: float | None, before: str, behind: str = "") -> str:
    return "" if gap is None else f"{before}largest relative duality gap is {gap:.1e}{behind}"


def _key_of_parameter(parameter: str) -> str:
    return "evaluation.C" if parameter == "C" else "evaluation.estimator"


def _key_of_setting(setting: str) -> str:
    if setting.startswith("C="):
        return "evaluation.C"
    return "evaluation.estimator" + ".space" * bool(setting)


def _local_optimum(n: float, shared: float, excess: float, n_starts: float = 1, **_: float) -> str:
    """What other starts find; those of earlier versions were one."""
    starts = "another start" if n_starts == 1 else f"the best of {n_starts} other starts"
    found = f"{excess:.1%} higher" if excess > 0 else f"{-excess:.1%} lower"
    if abs(excess) < _APART:
        found = "at the same objective"
    told = f"{starts} ends {found}, with {int(shared)} of the same {int(n)} best features."
    if excess > -_APART:
        return f"The final model is a local optimum: {told}"
    return (
        "Take the ranking as one of several: the final model is not the best local optimum.\n"
        f"{told[0].upper()}{told[1:]}"
    )


def _no_model_file(untrusted: Sequence[str]) -> str:
    if untrusted:
        cannot = f"A model file cannot hold {_names(untrusted)}."
        return f"There is no model.skops: {STORAGE_REMEDY}.\n{cannot}"
    return "Resume the study to write model.skops: it was removed or could not be written."


def _no_ranking(folds: Sequence[str]) -> str:
    if folds:
        return (
            "Choose a method that scores features: some winners do not, so there is no ranking.\n"
            f"The winners of {_names(folds)} give no scores."
        )
    return "Choose a method that scores features: this one does not, so there is no ranking."


#: What lies beyond an end, and how it may score.
_BEYOND: Final = {"largest": "larger", "smallest": "smaller"}
_THERE: Final = {"largest": "better", "smallest": "as well"}
#: Text of each key of a remark, as a function of its values: a sentence of at most 25 words that
#: says what to do, and on a second line the figures that only the report has.
SENTENCES: Final[dict[str, Callable[..., str]]] = {
    "data": "{text}".format,
    "end_of_n_features": lambda end, n, folds, n_folds: (
        f"Add {_BEYOND[end]} evaluation.n_features: {len(folds)} of {n_folds} winners"
        f" chose {n}, the {end}.\nThese are {_names(folds)}; {_BEYOND[end]} numbers may score"
        f" {_THERE[end]}."
    ),
    "end_of_estimator": lambda parameter, value, end, folds, n_folds: (
        f"Add {_BEYOND[end]} values to {_key_of_parameter(parameter)}: most of {n_folds} folds"
        f" chose {parameter} = {value:g}, the {end}.\nFolds:"
        f" {_each({_WHOSE.get(name, name): n for name, n in folds.items()})}."
    ),
    "end_of_space": lambda n, n_folds, parameter, value, end: (
        f"Add {_BEYOND[end]} values to solver.space.{parameter}: {n} of {n_folds} outer folds chose"
        f" {value:g}, the {end}."
    ),
    "failed_trials": lambda n, n_trials, n_partly, n_lost: (
        f"{n} of {n_trials} trials failed: read their errors in study.trials() or the journal."
        + (f"\n{n_lost} lost their worker process; --resume runs these again." if n_lost else "")
        + (f"\n{n_partly} failed on some outer folds only." if n_partly else "")
    ),
    "estimator_fails": lambda **values: (
        f"Change evaluation.n_features or {_key_of_setting(values['setting'])}: the estimator fails"
        f" with {FailingNumbers(**values)}.\nA number is left out of an outer fold where one of its"
        " inner folds fails; the others are scored as without it."
    ),
    "few_folds": lambda n_folds, of_draws, difference, least: (
        f"To tell differences below {least:.3f}, set"
        f" {'cv.repeats to 20' if of_draws else 'cv.outer to 10 or cv.repeats to 5'}.\nOver these"
        f" {n_folds} {'draws' if of_draws else 'folds'} the difference is {difference:.3f}."
    ),
    "fewer_than_top": lambda folds, top: (
        f"Choose a smaller number: fewer than the top {top} features have a score.\nFeatures with a"
        f" score: {_each(folds)}. Only these are selected."
    ),
    "final_selects_none": (
        "Add weaker penalties to solver.space: the final model selects no feature.".format
    ),
    "folds_select_none": lambda folds, n_folds: (
        f"Add weaker penalties to solver.space: {len(folds)} of {n_folds} outer folds select no"
        f" feature.\nThese are {_names(folds)}."
    ),
    "inner_fits_not_converged": lambda n, n_fits, gap: (
        f"Raise solver.params.max_iter: {n} of {n_fits} inner fits did not reach tol."
        + _largest_gap(gap, "\nThe ", ".")
    ),
    "local_optimum": _local_optimum,
    "mixed_versions": "{text}".format,
    "model_without_method": lambda untrusted: (
        f"model.skops predicts, but lacks the fitted method: {STORAGE_REMEDY}.\n"
        f"A model file cannot hold {_names(untrusted)}."
    ),
    "model_not_trusted": (
        ("To use model.skops run raysel trust STUDY_DIR: this account has not signed it.").format
    ),
    "no_final_model": (
        "Set cv.final to true to get a final model, model.skops and its ranking.".format
    ),
    "no_model_file": _no_model_file,
    "no_ranking": _no_ranking,
    "no_structure": (
        (
            "{n} of {n_folds} folds chose {parameter} = {value:g}, which assumes no structure: here"
            " structure does not pay."
        ).format
    ),
    **stability.SENTENCES,
    "tied": lambda folds, n_folds: (
        f"List the preferred configurations first: on {len(folds)} of {n_folds} folds several tied,"
        " and the first won.\nTied in inner score, number of features and simplicity:"
        f" {_each(folds, '{} ({} configurations)')}."
    ),
    "time_budget": (
        (
            "Raise search.time_budget and resume: it ended the search after {n_tried} of"
            " {n_planned} trials."
        ).format
    ),
    "warning": lambda folds, message: f"The fit of {_names(folds)} warned: {message}",
    "winners_not_converged": lambda folds, n_winners, gap: (
        f"Raise solver.params.max_iter: {len(folds)} of {n_winners} winners did not reach tol.\n"
        f"They are those of {_names(folds)}{_largest_gap(gap, '; the ')}."
    ),
}
