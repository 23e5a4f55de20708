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

from raysel.core.arrays import FloatArray
from raysel.core.errors import DirectoryError
from raysel.core.files import read_json, write_result
from raysel.core.printing import mean_and_sd
from raysel.evaluation.ranking_files import write_table
from raysel.evaluation.records import RefitRecord
from raysel.numerics.permutation import PermutationPValue
from raysel.results.scores import FoldValues
from raysel.results.tables import read_numbers

if TYPE_CHECKING:
    import pandas as pd


#: Folder of the test in a study's directory.
FOLDER = "permutation"
#: Names of the files in it.
_RESULT, _TABLE = "result.json", "features"
#: Fields that the result's file holds as they are.
_PLAIN: tuple[str, ...] = (
    *("metric", "test_mean", "permuted", "recomputed", "retune", "seed", "exchanged", "n_movable"),
    *("log10_arrangements", "shares", "univariate", "places", "mixed"),
)
_COLUMNS = ("p_value", "p_value_fwer", "p_value_fwer_step_down")
#: Level at which features are counted in the sentences.
_LEVEL = 0.05
#: Largest number of features that are named in a sentence.
_MOST_NAMED = 10
#: What the p values of the features of a model do not say; measured in experiments/claims/error-control.
_OF_A_MODEL = (
    "The features' p values hold if none has to do with the labels. Where some do, a model of all can give others a "
    "higher score than with permuted labels, most with a weak penalty or a rare class, and they are then named "
    "falsely: in 33 and 93 % of generated studies of a rare class and of eight classes. For a claim about single "
    "features test those of a filter, such as fisher_score."
)
#: What those of a filter that rates features together do not say.
_OF_A_JOINT_FILTER = (
    "The features' p values hold if none has to do with the labels. Where some do, the scores of the others depend on "
    "them too, and others are then named falsely: by relieff with one neighbour and a rare class in up to a third of "
    "generated studies. For a claim about single features test those of a filter that rates each alone, such as "
    "fisher_score."
)
#: Why a method has none.
_OF_PLACES = (
    "The features have no p values: their scores are places in an order, of which the largest is the same for all "
    "labels. For a claim about single features test those of a filter, such as fisher_score."
)
#: When what is exchanged is not exchangeable, and the mend.
_NOT_EXCHANGEABLE = {
    "samples": ", as those of one subject, or measured one after another, are not: see cv.groups and cv.blocks",
    "blocks": ": a block must be longer than rows depend on each other",
}


@dataclass(frozen=True, eq=False)
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
    #: Whether the configurations were searched again for each permutation; else those that were chosen with the true
    #: labels were refitted, and p is approximate.
    retune: bool
    #: Seed of the permutations.
    seed: int
    #: What exchanges labels: ``"samples"``, ``"samples within groups"``, ``"groups"``, ``"groups of equal size"``,
    #: ``"blocks"``, or several.
    exchanged: str
    #: Number of samples that can get another label.
    n_movable: int
    #: Decimal logarithm of the number of different arrangements of the labels.
    log10_arrangements: float
    #: Mean test score as computed again with the true labels; None if that failed.
    recomputed: float | None
    #: P values of the feature scores, in the order of the columns: ``p_value``, ``p_value_fwer`` (adjusted by the
    #: maximum over all features) and ``p_value_fwer_step_down``; each (n_features,).
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
    #: Sentences on other versions: those of a later raysel, and of nodes of a cluster, which were allowed.
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
        """Return the result as sentences: the honest score's p value, then the features', then what limits them."""
        return [self._score_sentence(), *self._feature_sentences(), *self._remarks()]

    def _score_sentence(self) -> str:
        p, known = self.p, FoldValues.of(self.permuted).known
        how = (
            "configurations searched again with the permuted labels"
            if self.retune
            else "configuration fixed"
        )
        failed = f", {p.n_failed} of them because they failed" if p.n_failed else ""
        text = (
            f"Permutation test: p = {p.p_value:.3g} ({p.n_reached} of {p.n_permutations} permutations reach the "
            f"test {self.metric} {self.test_mean:.3f}{failed}; smallest possible {p.smallest:.3g}; {how}; 95 % "
            f"interval of p for all permutations {p.lower:.3g} to {p.upper:.3g})"
        )
        if known:
            highest = max(score for score in known.values if score is not None)
            shown = mean_and_sd(known.mean, known.sd) + (" (SD)" if len(known.values) > 1 else "")
            text += f"; permuted labels give {shown}, at most {highest:.3f}"
        return f"{text}."

    def _feature_sentences(self) -> list[str]:
        if not self.features:
            return [_OF_PLACES] if self.places else []
        adjusted, unadjusted = self.features["p_value_fwer"], self.features["p_value"]
        significant = np.flatnonzero(adjusted <= _LEVEL)
        order = significant[np.argsort(adjusted[significant], kind="stable")]
        names = ", ".join(self.feature_names[i] for i in order) if len(order) <= _MOST_NAMED else ""
        share = " and their shares of the sum" if self.shares else ""
        alone, expected = int((unadjusted <= _LEVEL).sum()), _LEVEL * len(adjusted)
        return [
            (
                f"{len(order)} of {len(adjusted)} features have p <= {_LEVEL} adjusted for all features (family-wise "
                f"error, by the maximum of the final model's feature scores{share}; smallest possible "
                f"{self.p.smallest:.3g}){f': {names}' if names else ''}."
            ),
            (
                f"{alone} have p <= {_LEVEL} without adjustment; {expected:.3g} are to be expected if no feature has "
                "to do with the labels."
            ),
            *self._limits(),
        ]

    def _limits(self) -> list[str]:
        """What the p values of the features do not say."""
        if self.shares:
            return [_OF_A_MODEL]
        return [] if self.univariate else [_OF_A_JOINT_FILTER]

    def _remarks(self) -> Iterator[str]:
        yield f"What is exchanged: the labels of {self.exchanged} ({self.n_movable} samples can get another label)."
        yield f"The p values assume that {self.exchanged} are exchangeable{_NOT_EXCHANGEABLE.get(self.exchanged, '')}."
        if 10**-self.log10_arrangements > self.p.smallest:
            n = round(10**self.log10_arrangements)
            yield (
                f"There are only {n} different arrangements of the labels, so p values far below {1 / n:.3g} are not "
                "to be expected from any number of permutations."
            )
        if self.p.smallest > _LEVEL:
            least = math.ceil(1 / _LEVEL) - 1
            yield f"{self.p.n_permutations} permutations cannot give p <= {_LEVEL}; compute at least {least}."
        if not self.retune:
            yield (
                "The configurations and numbers of features were chosen with the true labels and are held fixed, as if "
                "they had been given in advance: the p values are approximate and can be too small; only a test that "
                "searches them again (retune) is exact."
            )
        if self.errors:
            number, reason = next(iter(self.errors.items()))
            yield (
                f"{len(self.errors)} permutations failed and count as reaching every score; number {number}: "
                f"{reason.strip().splitlines()[0]}"
            )
        if self.recomputed is None or abs(self.recomputed - self.test_mean) > 1e-9:
            again = (
                "could not be computed again"
                if self.recomputed is None
                else f"is {self.recomputed:.6f} now"
            )
            yield (
                f"With the true labels the test {self.metric} {again}, and was {self.test_mean:.6f} in the study: the "
                "study's search cannot be repeated exactly, so the p value is not exact."
            )
        yield from self.mixed

    def _table(self) -> pa.Table:
        return pa.table({"feature": list(self.feature_names), **self.features})

    def write(self, folder: Path, of: Mapping[str, Any]) -> list[Path]:
        """Write the test into a folder."""
        written = write_table(self._table(), folder, _TABLE) if self.features else ()
        described = {
            "of": of,
            **{name: getattr(self, name) for name in _PLAIN},
            **asdict(self.p),
            "sentences": self.sentences(),
            "errors": {str(number): error for number, error in self.errors.items()},
            "has_features": bool(self.features),
        }
        text = json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False)
        return [*written, write_result(folder / _RESULT, f"{text}\n".encode())]

    def to_json(self) -> dict[str, Any]:
        """Return the summary of the test for the manifest."""
        return {
            "of": f"mean test {self.metric} over the outer folds with permuted labels, configurations "
            f"{'searched again' if self.retune else 'fixed'}",
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
        """Return the columns of the ranking table: ``p_value`` and ``p_value_fwer``; empty without feature scores."""
        return {name: self.features[name] for name in ("p_value", "p_value_fwer") if self.features}


def read_permutation_test(
    folder: Path, feature_names: Sequence[str], current: Mapping[str, Any]
) -> PermutationTest | None:
    """Read the test that `PermutationTest.write` wrote; None if there is none, or it is not of the current identity."""
    if not (folder / _RESULT).exists():
        return None
    try:
        raw = read_json(folder / _RESULT)
        if raw["of"] != json.loads(json.dumps(current)):
            return None
        features = {}
        if raw["has_features"]:
            features = read_numbers(folder / f"{_TABLE}.parquet", _COLUMNS, len(feature_names))
        earlier = {
            "univariate": False,
            "places": False,
            "mixed": (),
        }  # earlier versions did not know
        plain = {name: (earlier | raw)[name] for name in _PLAIN}
        plain |= {
            "permuted": tuple(raw["permuted"]),
            "mixed": tuple(plain["mixed"]),
        }
        p = PermutationPValue(
            **{field.name: raw[field.name] for field in fields(PermutationPValue)}
        )
        errors = {int(number): error for number, error in raw["errors"].items()}
        return PermutationTest(
            p=p, features=features, feature_names=tuple(feature_names), errors=errors, **plain
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DirectoryError(
            f"{folder} cannot be read as the result of a permutation test: {error!r}. Compute it again, which uses the "
            "permutations that are kept there."
        ) from error


def identity(refits: Sequence[RefitRecord], data_hash: str) -> dict[str, Any]:
    """Return plain data that change whenever a figure that the test is of changes."""
    return {
        "test_scores": [refit.test_score for refit in refits if refit.test_score is not None],
        "winners": {refit.fold: [refit.trial, refit.position] for refit in refits},
        "data_hash": data_hash,
    }
