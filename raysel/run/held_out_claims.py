"""Tests of groups of features by what models of the outer folds tell of held-out samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.errors import StudyError
from raysel.evaluation.fold_models import FoldModels
from raysel.evaluation.plan import OuterFold, derived_seed
from raysel.evaluation.records import FINAL, RefitRecord
from raysel.evaluation.refit import fit_solver
from raysel.evaluation.soft_labels import SoftLabels
from raysel.evaluation.split import Split
from raysel.numerics.held_out_tests import (
    Redrawn,
    compare_redrawn,
    mean_is_positive,
    products_beside,
    redraw_columns,
    uses_columns,
)
from raysel.results.feature_claims import FOLDER
from raysel.run.claim_groups import FeatureGrouping, GroupTests
from raysel.run.claim_samples import Samples, check_units, finite_columns, origin_of, without
from raysel.run.permutation import packed, unpacked
from raysel.run.pieces import FinishedStudy, Work, all_failed, run_pieces
from raysel.study.definition import Study


def held_out_tests(
    finished: FinishedStudy, samples: Samples, grouping: FeatureGrouping
) -> GroupTests:
    """Test the groups of features that a model of an outer fold uses."""
    study, result = finished.study, finished.result
    if study.capabilities.transductive:
        raise StudyError(
            f"{study.config.solver.name} predicts a sample by the other ones to predict, which the"
            " tests change; claim by the method covariance."
        )
    chosen = {refit.fold: ChosenModel.of(refit) for refit in result.refits if refit.fold != FINAL}
    work = Work(
        f"{FOLDER}/held-out-{grouping.name}",
        partial(predict_redrawn, grouping, chosen),
        code=(predict_redrawn, redraw_columns, SoftLabels.of),
        settings={
            **grouping.settings,
            "winners": {refit.fold: [refit.trial, refit.position] for refit in result.refits},
            "configuration": finished.record.config_hash,
        },
        unit="models",
        n_limits=1 + grouping.n_groups,
    )
    pieces = run_pieces(finished, work, range(len(outer_folds(study))))
    if pieces.errors:
        raise all_failed(pieces, "models")
    folds = [FoldPredictions.from_json(raw) for raw in pieces.values.values()]
    rows = np.concatenate([fold.test for fold in outer_folds(study)])
    held_out, unit = np.unique(samples.units.member[rows], return_inverse=True)
    check_units(len(held_out), samples.units.noun, f"what is held out of {study.dataset.name}")
    p_value, share = np.ones(grouping.n_groups), np.full(grouping.n_groups, np.nan)
    own = sum(fold.own_loss for fold in folds)
    for number in sorted(set().union(*(fold.redrawn for fold in folds))):
        found = [fold.of_group(number) for fold in folds]
        others = np.delete(samples.X, grouping.columns(number, samples.origin), axis=1)
        effect, left, noise = _joined(found)
        effect, left = (without(samples.confounds[rows], each) for each in (effect, left))
        products = products_beside(others[rows], effect, left, noise)
        p_value[number] = mean_is_positive(np.bincount(unit, products).astype(np.float64))
        share[number] = 1 - own / sum(each.loss.sum() for each in found)
    return GroupTests(p_value=p_value, share=share, n_units=len(held_out), mixed=pieces.mixed)


def _joined(found: Sequence[Redrawn]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Join effects, what is left of the labels, and noise of the folds' held-out samples."""
    parts = [(each.effect, each.left, each.noise) for each in found]
    effect, left, noise = (np.concatenate(column) for column in zip(*parts, strict=True))
    return effect, left, noise


@dataclass(frozen=True)
class ChosenModel:
    """Configuration and number of features of an outer fold's model."""

    params: Mapping[str, Any]
    #: Number of features; None of a method that predicts by all.
    n_features: int | None
    settings: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, refit: RefitRecord) -> Self:
        """Return what a refit of the study has used."""
        return cls(refit.params, refit.n_features, refit.settings)

    def fit(self, study: Study, split: Split) -> tuple[SoftLabels, IntArray]:
        """Fit the model; return it with the prepared columns that it takes."""
        solver = study.trial_solver(self.params, split.random_state)
        fit_solver(solver, split)
        models = FoldModels(
            split=split,
            solver=solver,
            evaluation=study.evaluation,
            n_shown=study.default_top,
            settings=[tuple(setting.items()) for setting in self.settings],
        )
        pipeline = models.pipeline(self.n_features, ())
        columns = np.arange(split.X_train.shape[1])
        if self.n_features is not None and pipeline.selector is not None:
            columns = np.flatnonzero(pipeline.selector.get_support())
        return SoftLabels.of(pipeline.steps[-1][1], split.y_train), columns


@dataclass(frozen=True, eq=False)
class FoldPredictions:
    """Predictions of an outer fold's held-out samples, with and without each group redrawn."""

    #: Labels less predictions; shape (n, k).
    own: FloatArray
    #: Predictions with a redrawn group, by the number of each group that the model uses.
    redrawn: Mapping[int, Redrawn]

    @property
    def own_loss(self) -> float:
        """Squared error of all samples."""
        return float((self.own**2).sum())

    def of_group(self, number: int) -> Redrawn:
        """Return the predictions with a redrawn group, which the model need not use."""
        if number in self.redrawn:
            return self.redrawn[number]
        losses = (self.own**2).sum(axis=1)
        return Redrawn(np.zeros_like(self.own), self.own, np.zeros(len(losses)), losses)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the journal."""
        return {
            "n": len(self.own),
            "own": packed(self.own.ravel()),
            "redrawn": {
                str(number): {name: packed(array.ravel()) for name, array in vars(found).items()}
                for number, found in self.redrawn.items()
            },
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Read what `to_json` returned."""
        n = raw["n"]
        redrawn = {}
        for number, found in raw["redrawn"].items():
            effect, left = (unpacked(found[name]).reshape(n, -1) for name in ("effect", "left"))
            redrawn[int(number)] = Redrawn(
                effect, left, unpacked(found["noise"]), unpacked(found["loss"])
            )
        return cls(unpacked(raw["own"]).reshape(n, -1), redrawn)


def outer_folds(study: Study) -> list[OuterFold]:
    """Return the folds whose models have held-out samples."""
    return [fold for fold in study.plan.folds if len(fold.test)]


def predict_redrawn(
    grouping: FeatureGrouping, chosen: Mapping[str, ChosenModel], study: Study, number: int
) -> dict[str, Any]:
    """Fit the model of the outer fold with a number, and redraw each group that it uses."""
    fold = outer_folds(study)[number]
    split = study.split(fold, params=chosen[fold.name].params).with_test()
    X_train, X, origin = finite_columns(split, study.dataset.name), split.X_test, origin_of(split)
    model, taken = chosen[fold.name].fit(study, split)
    y, seen, redrawn = model.true(split.y_test), X[:, taken], {}
    for group in grouping.numbers(origin[taken]):
        columns = grouping.columns(group, origin)
        places = np.flatnonzero(np.isin(taken, columns))
        if not uses_columns(model.predict, seen, places):
            continue
        rng = np.random.default_rng(derived_seed(study.config.seed, "claims", number + 1, group))
        drawn = redraw_columns(X_train, X, columns, rng)[:, :, np.isin(columns, taken)]
        redrawn[group] = compare_redrawn(model.predict, y, seen, places, drawn)
    return FoldPredictions(y - model.predict(seen), redrawn).to_json()
