"""Sentences on how far fits went: whether they met their tolerance, and what another start finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from raysel.config.space import Choices, LogSpace, domain_from_yaml
from raysel.evaluation.plan import FINAL
from raysel.evaluation.records import Convergence, RefitRecord, TrialRecord
from raysel.numerics.intervals import TTest
from raysel.tracking.records import SearchRecord


def convergence_in_words(refits: Sequence[RefitRecord]) -> str:
    """Say how many winners converged, and to what; empty if it was not recorded."""
    found = Convergence.of(refits)
    if not found.n_fits:  # version 0.1
        return ""
    of = "outer folds and final model" if any(refit.fold == FINAL for refit in refits) else "outer folds"
    if any(refit.local_optimum for refit in refits):
        return f"{found.n_converged} of {found.n_fits} winners ({of}) converged to a local optimum"
    if found.gap is not None:
        return f"{found.n_converged} of {found.n_fits} winners ({of}) are proved to be within tol of the optimum"
    return f"{found.n_converged} of {found.n_fits} winners ({of}) converged"


def other_start_sentence(found: Mapping[str, float]) -> str:
    """Say what a fit of the final model from another start found, see `raysel.evaluation.records.other_start`."""
    n, shared, excess = int(found["n"]), int(found["shared"]), found["excess"]
    end = (
        f"{abs(excess):.1%} {'above' if excess > 0 else 'below'} the model's" if abs(excess) >= 5e-4 else "the model's"
    )
    return (
        f"The final model is a local optimum: from another start the objective ends at {end}, and {shared} of the "
        f"{n} best features are the same (a second fit of {found['n_iter']} iterations)."
    )


#: Number of outer folds below which a difference that is not told from 0 is remarked on as that of few folds.
_FEW_FOLDS: Final = 5


def search_remarks(trials: Sequence[TrialRecord], search: SearchRecord | None) -> Iterator[str]:
    """Remark on a search that its time budget ended, and on failed trials."""
    if search is not None and search.cut:
        yield f"search.time_budget ended the search: {search.n_tried} of {search.n_planned} trials were made."
    failed = [record for record in trials if record.status == "failed"]
    if failed:
        partly = [record for record in failed if any(not trace.error for trace in record.folds.values())]
        where = f", {len(partly)} of them on some outer folds only" if partly else ""
        yield f"{len(failed)} of {len(trials)} trials failed{where}; their errors are in the journal."


def ranking_remarks(unranked_folds: Sequence[str], n_refits: int) -> Iterator[str]:
    """Remark on a missing ranking, because a winner gives no feature scores."""
    if len(unranked_folds) == n_refits:
        yield "There is no ranking of the features: the method gives no feature scores."
    elif unranked_folds:
        yield f"There is no ranking of the features: the winners of {', '.join(unranked_folds)} give no feature scores."


def final_remarks() -> Iterator[str]:
    """Remark that there is neither a final model nor its ranking, because the study has no final fold."""
    yield "There is no final model, and so no model.skops and no ranking of the features by it: cv.final is false."


def model_remarks(is_written: bool, untrusted: Sequence[str]) -> Iterator[str]:
    """Yield that there is no model file, or that it lacks the fitted method, and why."""
    if is_written:
        if untrusted:
            yield (
                "model.skops selects features and predicts, but lacks the fitted method: a model file must not name "
                f"{', '.join(untrusted)}; {storage_remedy(untrusted)}."
            )
        return
    if untrusted:
        yield (
            f"There is no model.skops: a model file must not name {', '.join(untrusted)}; {storage_remedy(untrusted)}."
        )
    else:
        yield "There is no model.skops: it was removed or could not be written; resume the study to write it."


def storage_remedy(untrusted: Sequence[str]) -> str:
    """Return how a model can be stored that contains some untrusted types, or that it cannot."""
    # An entry point registers the method's class, not parts of scikit-learn nor what skops cannot write: "Name (why)".
    if any(name.startswith("sklearn.") or " (" in name for name in untrusted):
        return "such models cannot be stored safely"
    return "register the class under the entry point raysel.estimators"


def selection_remarks(n_scored: Mapping[str, int], top: int) -> Iterator[str]:
    """Remark on winners that select no feature, or fewer than ``top``."""
    if not n_scored:
        return
    if n_scored.get(FINAL) == 0:
        yield "The final model selects no feature: none has a score above 0."
    outer = {fold: n for fold, n in n_scored.items() if fold != FINAL}
    empty = [fold for fold, n in outer.items() if n == 0]
    if empty:
        yield f"The winners of {len(empty)} of {len(outer)} outer folds select no feature: {', '.join(empty)}."
    fewer = [f"{fold} {n}" for fold, n in n_scored.items() if 0 < n < top]
    if fewer:
        yield f"Fewer features than the top {top} have a score, and only those are selected: {', '.join(fewer)}."


def number_remarks(chosen: Mapping[str, int], listed: Sequence[int], n_scored: Mapping[str, int]) -> Iterator[str]:
    """Remark on winners whose chosen number of features is the largest or the smallest that was scored."""
    if len(listed) < 2:
        return
    largest = [fold for fold, n in chosen.items() if n == listed[-1] < n_scored.get(fold, 0)]
    smallest = [fold for fold, n in chosen.items() if n == listed[0] > 1]
    for folds, end, others, may in (
        (largest, f"largest number of features that was tried, {listed[-1]}", "larger", "may score better"),
        (smallest, f"smallest number of features that was tried, {listed[0]}", "smaller", "may score as well"),
    ):
        if folds:
            yield (
                f"The inner scores choose the {end}, on {len(folds)} of {len(chosen)} folds ({', '.join(folds)}): "
                f"{others} numbers {may}; add some to evaluation.n_features."
            )


def edge_remarks(
    space: Mapping[str, Any], winners: Sequence[Mapping[str, Any]], unstructured: Mapping[str, float]
) -> Iterator[str]:
    """Remark on the ends of ``solver.space`` that most of the outer folds' winners have.

    Lists of three numbers and more and logarithmic grids have ends. An end that cannot be passed is not remarked: 0, 1
    of whole numbers, and the value at which a method assumes no structure, of which another sentence tells.
    """
    for name, domain in space.items():
        values = sorted(_numbers(domain))
        for end in dict.fromkeys([*values[:1], *values[-1:]]):
            n = sum(params.get(name) == end for params in winners)
            if 2 * n <= len(winners):
                continue
            who = f"The winners of {n} of {len(winners)} outer folds have {name} = {end:g}"
            smallest = end == values[0]
            if unstructured.get(name) == end:
                yield f"{who}, at which the method assumes no structure: on these data structure does not pay."
            elif len(values) > 2 and not (smallest and (end == 0 or (end == 1 and isinstance(end, int)))):
                which, further = ("smallest", "smaller") if smallest else ("largest", "larger")
                yield (
                    f"{who}, the {which} value of solver.space.{name}: {further} ones may score better; add some to it."
                )


def _numbers(domain: Any) -> list[float]:
    found = domain_from_yaml(domain)
    values = found.values if isinstance(found, Choices | LogSpace) else ()
    return [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]


def few_folds_remarks(tests: Iterable[TTest | None], n_folds: int, *, of_draws: bool) -> Iterator[str]:
    """Remark on so few outer folds, or draws, that they leave differences open, which more of them would tell."""
    left_open = [test for test in tests if test is not None and test.lower < 0 < test.upper]
    if left_open and n_folds < _FEW_FOLDS:
        low, high = max(((test.lower, test.upper) for test in left_open), key=lambda ends: abs(sum(ends)))
        runs, more = ("draws", "repeats to 20") if of_draws else ("outer folds", "outer to 10, or cv.repeats to 5")
        yield (
            f"{n_folds} {runs} can tell little: a difference of {abs(low + high) / 2:.3f} is not told from 0 here, one "
            f"of more than {(high - low) / 2:.3f} would be. More tell smaller ones: set cv.{more}."
        )


def convergence_remarks(refits: Sequence[RefitRecord]) -> Iterator[str]:
    """Remark on winners that did not reach ``tol``."""
    missed = [refit for refit in refits if refit.converged is False]
    if missed:
        gap = Convergence.of(missed).gap
        size = "" if gap is None else f", largest relative duality gap {gap:.1e}"
        folds = ", ".join(refit.fold for refit in missed)
        yield f"{len(missed)} of {len(refits)} winners did not reach tol in max_iter iterations ({folds}{size})."


def tie_remarks(refits: Sequence[RefitRecord]) -> Iterator[str]:
    """Remark on winners that only their place in the search distinguishes from other configurations."""
    tied = [f"{refit.fold} ({refit.n_tied} configurations)" for refit in refits if refit.n_tied > 1]
    if tied:
        yield (
            f"Tied in inner score, number of features and simplicity on {len(tied)} of {len(refits)} folds: "
            f"{', '.join(tied)}; the first in the order of the search was taken."
        )


def other_start_remarks(refits: Sequence[RefitRecord]) -> Iterator[str]:
    """Remark on a final model that is a local optimum."""
    yield from (other_start_sentence(refit.other_start) for refit in refits if refit.other_start)


def inner_fit_remarks(trials: Sequence[TrialRecord]) -> Iterator[str]:
    """Remark on inner fits that did not reach ``tol``; those of trials that were stopped early are not counted."""
    ended = [record.convergence() for record in trials if record.status != "stopped"]
    n_fits, n_converged = sum(found.n_fits for found in ended), sum(found.n_converged for found in ended)
    if n_converged < n_fits:
        gaps = [found.gap for found in ended if found.gap is not None]
        size = f"; largest relative duality gap {max(gaps):.1e}" if gaps else ""
        yield f"{n_fits - n_converged} of {n_fits} inner fits did not reach tol{size}."


def fit_remarks(refits: Sequence[RefitRecord]) -> Iterator[str]:
    """Remark on warnings that the winners' fits issued."""
    folds: dict[str, list[str]] = {}
    for refit in refits:
        for message in refit.warnings:
            folds.setdefault(message, []).append(refit.fold)
    for message, where in folds.items():
        yield f"The fit of {', '.join(where)} warned: {message}"
