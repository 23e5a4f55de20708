"""Summary of a study's stability selection and permutation test: for its manifest, and which is still to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from raysel.numerics.selection_bounds import ASSUMPTIONS

if TYPE_CHECKING:
    from raysel.results.result import StudyResult


def error_control_figures(result: StudyResult) -> dict[str, Any]:
    """Return what the manifest says of a study's stability selection and permutation test."""
    found: dict[str, Any] = {}
    if (halves := result.stability_selection) is not None:
        found["stability_selection"] = {
            "of": f"share of {2 * halves.n_pairs} random halves of all samples that select a feature among the top "
            f"{halves.top} by the final model's configuration",
            "top": halves.top,
            "threshold": halves.threshold,
            "n_halves": 2 * halves.n_pairs,
            "stability_over_pairs_of_halves": halves.stability,
            "q": halves.q,
            "p": halves.p,
            "expected_false_selections_at_most": {"simple": halves.simple_bound, "unimodal": halves.unimodal_bound},
            "assumptions": ASSUMPTIONS,
            "selected": [result.feature_names[i] for i in halves.order() if halves.selected[i]],
            "sentences": [halves.sentence(), *halves.remarks()],
        }
    if (test := result.permutation_test) is not None:
        found["permutation_test"] = {
            "of": f"mean test {test.metric} over the outer folds with permuted labels, configurations "
            f"{'searched again' if test.retune else 'fixed'}",
            "p_value": test.p_value,
            "smallest_possible_p_value": test.p.smallest,
            "n_permutations": test.p.n_permutations,
            "n_reached": test.p.n_reached,
            "n_failed": test.p.n_failed,
            "searched_again": test.retune,
            "seed": test.seed,
            "exchanged": test.exchanged,
            "sentences": test.sentences(),
        }
    return found


def open_checks(result: StudyResult, place: str) -> list[tuple[str, str]]:
    """Return what each check answers that has not been run for a study at a place, and the command that runs it."""
    checks = []
    if result.stability_selection is None and result.is_ranked:
        what = (
            "Stability selection (how often each feature is selected on random halves of the samples, with a bound on "
            "the number of false selections)"
        )
        checks.append((what, f"python -m raysel.stability {place}"))
    if result.permutation_test is None:
        what = "The permutation test (how often a score as high is reached where labels mean nothing)"
        checks.append((what, f"python -m raysel.permute {place} --permutations 200"))
    return checks
