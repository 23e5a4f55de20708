"""Plots of a finished study on given axes."""

from __future__ import annotations

from typing import Any

from raysel.core.errors import StudyError
from raysel.results.displays import data as picture_data
from raysel.results.numbers import StudyNumbers


def plot_scores(result: StudyNumbers, ax: Any = None) -> Any:
    """Draw the scores of a study over the number of features, or as rows where there are not several."""
    from raysel.results.displays.plots import new_axes  # noqa: PLC0415
    from raysel.results.displays.score_curve import plot_score_curve, plot_score_rows  # noqa: PLC0415

    found = picture_data.score_curves(result)
    if len(found["n_features"]) > 1:
        return plot_score_curve(ax=ax or new_axes(), **found)
    references = {name: values.mean(axis=1) for name, values in found["references"].items()}
    rows = {"test (unseen samples)": found["test"].mean(axis=1), "inner validation": found["inner"].mean(axis=1)}
    return plot_score_rows(rows | references, ax or new_axes(), metric=result.metric)


def plot_stability(result: StudyNumbers, ax: Any = None) -> Any:
    """Draw the stability of the outer folds' best features over their number."""
    from raysel.results.displays.plots import new_axes  # noqa: PLC0415
    from raysel.results.displays.stability import plot_stability as draw  # noqa: PLC0415

    return draw(ax=ax or new_axes(), **picture_data.stability_curve(result))


def plot_search(result: StudyNumbers, ax: Any = None) -> Any:
    """Draw the validation score over one or two hyperparameters."""
    from raysel.results.displays.plots import new_axes  # noqa: PLC0415
    from raysel.results.displays.surface import plot_surface  # noqa: PLC0415

    return plot_surface(picture_data.tried_configurations(result), ax or new_axes(), metric=result.metric)


def plot_confusion(result: StudyNumbers, ax: Any = None) -> Any:
    """Draw the confusion of the classes, or the errors of each label, on the outer folds' test samples."""
    from raysel.results.displays.confusion import plot_confusion as draw  # noqa: PLC0415
    from raysel.results.displays.confusion import plot_label_errors  # noqa: PLC0415
    from raysel.results.displays.plots import new_axes  # noqa: PLC0415

    found = picture_data.confusion(result)
    if found is None:
        raise StudyError(f"the study {result.name} recorded no confusion: an earlier version of raysel ran it.")
    chosen = plot_label_errors if found["multilabel"] else draw
    return chosen(found["counts"], found["classes"], ax or new_axes())


def plot_profile(result: StudyNumbers, top: int | None = None, ax: Any = None) -> Any:
    """Draw the coefficients of the final model's best features by class."""
    from raysel.results.displays.plots import new_axes  # noqa: PLC0415
    from raysel.results.displays.profile import plot_profile as draw  # noqa: PLC0415

    _ = result.model  # an error if there is none, which says why
    found = picture_data.profile(result, top)
    if found is None:
        raise StudyError(
            f"the final model of {result.name} has no coefficient for each feature; plot_profile needs a linear method."
        )
    return draw(ax=ax or new_axes(), **found)
