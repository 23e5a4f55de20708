"""Permutation test of a finished study, as its files hold it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.errors import DirectoryError
from raysel.core.files import make_instance, read_json, write_result
from raysel.core.printing import mean_and_sd, short
from raysel.evaluation.ranking_files import write_table
from raysel.evaluation.records import RefitRecord
from raysel.numerics.permutation import PermutationPValue
from raysel.results.scores import FoldValues
from raysel.results.tables import TextTable, read_numbers

if TYPE_CHECKING:
    import pandas as pd


#: Folder of the test in a study's directory.
FOLDER = "permutation"
#: Names of the files in it.
_RESULT, _TABLE = "result.json", "features"
#: The table of the features in a study's directory.
FEATURES = f"{FOLDER}/{_TABLE}.csv"
_COLUMNS = ("p_value", "p_value_fwer", "p_value_fwer_step_down")
#: Level at which features are claimed.
LEVEL = 0.05
#: Largest number of features that a table names.
_MOST_NAMED = 20
#: What claims single features where this test does not.
_INSTEAD = (
    "raysel stability bounds how many features of such a ranking are false.",
    (
        "For p values of single features test a filter that rates each alone: fisher_score for"
        " classes, f_test for quantities."
    ),
)
#: What the p values of the features of a model do not say; measured in
#: experiments/claims/error-control.
_OF_A_MODEL = (
    (
        "The features' p values hold only if no feature tells the labels: else a model can name"
        " others falsely."
    ),
    *_INSTEAD,
)
#: What those of a filter that rates features together do not say.
_OF_A_JOINT_FILTER = (
    (
        "The features' p values hold only if no feature tells the labels: else the filter can name"
        " others falsely."
    ),
    *_INSTEAD,
)
#: Why a method has none.
_OF_PLACES = (
    (
        "The features have no p values: their scores are places in an order, of which the largest"
        " is always the same."
    ),
    *_INSTEAD,
)
#: What those of a filter that rates each feature alone say.
_OF_A_FEATURE_ALONE = (
    (
        "The probability that one or more claimed features tell nothing of the labels is at most"
        f" {LEVEL}."
    ),
    "A claimed feature may tell the labels only because it follows another one.",
)
#: What must hold of what is exchanged, and the mend.
_EXCHANGEABLE = {
    "samples": "; those of one subject or of a series in time are not: see cv.groups and cv.blocks",
    "blocks": ": a block must be longer than rows depend on each other",
}


@dataclass(frozen=True)
class _StoredTest:
    """Fields that the file holds as they are; earlier versions did not know the last three."""

    metric: str
    test_mean: float
    permuted: tuple[float | None, ...]
    recomputed: float | None
    retune: bool
    seed: int
    exchanged: str
    n_movable: int
    log10_arrangements: float
    shares: bool
    errors: dict[int, str]
    univariate: bool = False
    places: bool = False
    mixed: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class PermutationTest:
    """Permutation test of a study's honest score and of its final model's feature scores."""

    #: Name of the score.
    metric: str
    #: Mean test score of the study over the outer folds.
    test_mean: float
    #: The same with permuted labels, in the order of the permutations; None for one that failed.
    permuted: tuple[float | None, ...]
    #: P value of ``test_mean`` and its Monte-Carlo error.
    p: PermutationPValue
    #: Whether the configurations were searched again for each permutation; else those that were
    #: chosen with the true labels were refitted, and p is approximate.
    retune: bool
    #: Seed of the permutations.
    seed: int
    #: What exchanges labels: ``"samples"``, ``"samples within groups"``, ``"groups"``, ``"groups of
    #: equal size"``, ``"blocks"``, or several.
    exchanged: str
    #: Number of samples that can get another label.
    n_movable: int
    #: Decimal logarithm of the number of different arrangements of the labels.
    log10_arrangements: float
    #: Mean test score as computed again with the true labels; None if that failed.
    recomputed: float | None
    #: P values of the feature scores, in the order of the columns: ``p_value``, ``p_value_fwer``
    #: (adjusted by the maximum over all features) and ``p_value_fwer_step_down``; each
    #: (n_features,).
    features: Mapping[str, FloatArray]
    #: Names of the features.
    feature_names: tuple[str, ...]
    #: Whether the feature scores were also compared as shares of their sum.
    shares: bool
    #: Whether the score of a feature depends on no other feature.
    univariate: bool
    #: Whether the scores are places in an order, which have no p values.
    places: bool
    #: Error of each permutation that failed, by its number.
    errors: Mapping[int, str] = field(default_factory=dict)
    #: Sentences on other versions: those of a later raysel, and of nodes of a cluster, which were
    #: allowed.
    mixed: tuple[str, ...] = ()

    @property
    def p_value(self) -> float:
        """P value of the mean test score."""
        return self.p.p_value

    def table(self) -> pd.DataFrame:
        """Return the p values of the features, in the order of the columns.

        ``feature``, ``p_value``, ``p_value_fwer`` and ``p_value_fwer_step_down``.
        """
        return self._table().to_pandas()

    def sentences(self) -> list[str]:
        """Return the result as sentences: p value of the score, those of features, limits."""
        return [self._score_sentence(), *self._feature_sentences(), *self._remarks()]

    def figures(self) -> TextTable:
        """Return the honest score, those of permuted labels and the p value, one row a figure."""
        p, known = self.p, FoldValues.of(self.permuted).known
        rows = [[f"test {self.metric}", mean_and_sd(self.test_mean)]]
        if known:
            highest = max(score for score in known.values if score is not None)
            rows += [
                ["with permuted labels", mean_and_sd(known.mean, known.sd)],
                ["highest with permuted labels", mean_and_sd(highest)],
            ]
        rows += [
            ["permutations", str(p.n_permutations)],
            ["that reach the score", str(p.n_reached)],
            ["of these failed", str(p.n_failed)],
            ["p", f"{p.p_value:.3g}"],
            ["smallest possible p", f"{p.smallest:.3g}"],
            ["95 % interval of p for all permutations", f"{p.lower:.3g} to {p.upper:.3g}"],
            ["samples that can get another label", str(self.n_movable)],
        ]
        return TextTable(["figure", "value"], rows, "Permutation test")

    @property
    def claims_features(self) -> bool:
        """Whether a small p value claims a feature: that of a filter that rates each alone."""
        return bool(self.features) and self.univariate and not self.shares

    def claimed(self) -> TextTable:
        """Return the first of the claimed features, with their p values."""
        header, claimed = ["feature", "p", "adjusted p"], self.claimed_features()
        rows = [
            [
                short(self.feature_names[i], 40),
                f"{self.features['p_value'][i]:.3g}",
                f"{self.features['p_value_fwer'][i]:.3g}",
            ]
            for i in claimed[:_MOST_NAMED]
        ]
        title = f"Features claimed at a family-wise error of {LEVEL}"
        if len(rows) < len(claimed):
            title = f"First {len(rows)} of {len(claimed)} f{title[1:]}; all: {FEATURES}"
        return TextTable(header, rows, title)

    def claimed_features(self) -> IntArray:
        """Return the indices of the claimed features, the smallest adjusted p value first."""
        if not self.claims_features:
            return np.array([], dtype=np.int64)
        return self._significant()

    def _significant(self) -> IntArray:
        """Indices of the features whose adjusted p value is small, the smallest first."""
        adjusted = self.features["p_value_fwer"]
        found = np.flatnonzero(adjusted <= LEVEL)
        return found[np.argsort(adjusted[found], kind="stable")]

    def _score_sentence(self) -> str:
        p = self.p
        return (
            f"With permuted labels {p.n_reached} of {p.n_permutations} scores are as high: "
            f"p = {p.p_value:.3g}."
        )

    def _feature_sentences(self) -> list[str]:
        if not self.features:
            return [*self.limits()]
        unadjusted = self.features["p_value"]
        alone, expected = int((unadjusted <= LEVEL).sum()), LEVEL * len(unadjusted)
        without = (
            f"Without adjustment {alone} have p <= {LEVEL}; if none tells the labels, expect"
            f" {expected:.3g}."
        )
        return [self.claim, without, *self.limits()]

    @property
    def claim(self) -> str:
        """Sentence on the features whose adjusted p value is small."""
        n, n_all = len(self._significant()), len(self.feature_names)
        if self.claims_features:
            return f"{n} of {n_all} features are claimed at a family-wise error of {LEVEL}."
        small = f"{n} of {n_all} features have p <= {LEVEL} adjusted for all features"
        return f"{small}, which claims no single one."

    def limits(self) -> tuple[str, ...]:
        """Return what the p values of the features say, or why they claim none, in sentences."""
        if self.places:
            return _OF_PLACES
        if self.shares:
            return _OF_A_MODEL
        if self.features and not self.univariate:
            return _OF_A_JOINT_FILTER
        if len(self.claimed_features()):
            return _OF_A_FEATURE_ALONE
        return ()

    def _remarks(self) -> Iterator[str]:
        if self.retune:
            yield "Configurations were searched again with the permuted labels."
        else:
            yield (
                "Configurations were chosen with the true labels, so that p values can be too"
                " small: --retune gives exact ones."
            )
        yield (
            f"p values hold only if {self.exchanged} are"
            f" exchangeable{_EXCHANGEABLE.get(self.exchanged, '')}."
        )
        if 10**-self.log10_arrangements > self.p.smallest:
            n = round(10**self.log10_arrangements)
            yield (
                f"The labels have only {n} arrangements: do not expect p values below {1 / n:.3g}."
            )
        if self.p.smallest > LEVEL:
            least = math.ceil(1 / LEVEL) - 1
            yield (
                f"{self.p.n_permutations} permutations cannot give p <= {LEVEL}: compute at least"
                f" {least}."
            )
        if self.errors:
            number, reason = next(iter(self.errors.items()))
            yield f"Permutations that failed count as reaching the score: {len(self.errors)}."
            yield f"The first is permutation {number}: {reason.strip().splitlines()[0]}"
        if self.recomputed is None:
            yield "The score with the true labels could not be computed again, so p is not exact."
        elif abs(self.recomputed - self.test_mean) > 1e-9:
            yield (
                f"Computed again with the true labels the score is {self.recomputed:.6f}, not"
                f" {self.test_mean:.6f}, so p is not exact."
            )
        yield from self.mixed

    def _table(self) -> pa.Table:
        return pa.table({"feature": list(self.feature_names), **self.features})

    def write(self, folder: Path, of: Mapping[str, Any]) -> list[Path]:
        """Write the test into a folder."""
        written: list[Path] = []
        if self.features:
            written += write_table(self._table(), folder, _TABLE)
        described = {
            "of": of,
            **{stored.name: getattr(self, stored.name) for stored in fields(_StoredTest)},
            **asdict(self.p),
            "sentences": self.sentences(),
            "has_features": bool(self.features),
        }
        text = json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False)
        return [*written, write_result(folder / _RESULT, f"{text}\n".encode())]

    def to_json(self) -> dict[str, Any]:
        """Return the summary of the test for the manifest."""
        search = "searched again" if self.retune else "fixed"
        return {
            "of": (
                f"mean test {self.metric} over the outer folds with permuted labels, configurations"
                f" {search}"
            ),
            "p_value": self.p_value,
            "smallest_possible_p_value": self.p.smallest,
            "n_permutations": self.p.n_permutations,
            "n_reached": self.p.n_reached,
            "n_failed": self.p.n_failed,
            "searched_again": self.retune,
            "seed": self.seed,
            "exchanged": self.exchanged,
            "sentences": self.sentences(),
        }

    def ranking_columns(self) -> dict[str, FloatArray]:
        """Return the columns ``p_value`` and ``p_value_fwer`` of the ranking, if there are any."""
        return {name: self.features[name] for name in ("p_value", "p_value_fwer") if self.features}


def read_permutation_test(
    folder: Path, feature_names: Sequence[str], current: Mapping[str, Any], *, n_rows: int
) -> PermutationTest | None:
    """Read the test that `PermutationTest.write` wrote; None if it is of another state.

    Earlier versions wrote `n_rows` rows, those of confounds last.
    """
    if not (folder / _RESULT).exists():
        return None
    try:
        raw = read_json(folder / _RESULT)
        if raw["of"] != json.loads(json.dumps(current)):
            return None
        features = {}
        if raw["has_features"]:
            n = len(feature_names)
            read = read_numbers(folder / f"{_TABLE}.parquet", _COLUMNS, (n, n_rows))
            features = {name: values[:n] for name, values in read.items()}
        stored, p = make_instance(_StoredTest, raw), make_instance(PermutationPValue, raw)
        if stored.log10_arrangements < 0 or not 0 < p.smallest <= 1:
            raise ValueError("a number of permutations is out of range")
        return PermutationTest(
            p=p, features=features, feature_names=tuple(feature_names), **vars(stored)
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DirectoryError(
            f"{folder} cannot be read as the result of a permutation test: {error!r}. Compute it"
            " again, which uses the permutations that are kept there."
        ) from error


def identity(refits: Sequence[RefitRecord], data_hash: str) -> dict[str, Any]:
    """Return plain data that change whenever a figure that the test is of changes."""
    return {
        "test_scores": [refit.test_score for refit in refits if refit.test_score is not None],
        "winners": {refit.fold: [refit.trial, refit.position] for refit in refits},
        "data_hash": data_hash,
    }
