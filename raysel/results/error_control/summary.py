"""Summary of a study's stability selection and permutation test for its manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raysel.results.result import StudyResult


def error_control_figures(result: StudyResult) -> dict[str, Any]:
    """Return what the manifest says of a study's stability selection and permutation test.

    Parameters
    ----------
    result : StudyResult
        Result of a finished study.

    Returns
    -------
    dict
        ``stability_selection`` and ``permutation_test``, each only if it was run: what its figures are of, the figures
        and its sentences.
    """
    found: dict[str, Any] = {}
    if (halves := result.stability_selection) is not None:
        found["stability_selection"] = {
            "of": f"share of {2 * halves.n_pairs} random halves of all samples that select a feature among the top "
            f"{halves.top} by the final model's configuration",
            "top": halves.top,
            "threshold": halves.threshold,
            "n_halves": 2 * halves.n_pairs,
            "q": halves.q,
            "p": halves.p,
            "expected_false_selections_at_most": {"simple": halves.simple_bound, "unimodal": halves.unimodal_bound},
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
