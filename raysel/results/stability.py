"""Result of the stability selection of a finished study."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from raysel.core.arrays import BoolArray, FloatArray, IntArray, LabelArray
from raysel.core.errors import DirectoryError
from raysel.core.files import make_instance, read_json
from raysel.core.printing import joined_lines
from raysel.evaluation.ranking_files import write_manifest, write_table
from raysel.numerics.rankings import (
    ASSUMPTIONS,
    bounded_top,
    simple_bound,
    smallest_threshold,
    threshold_on_grid,
    unimodal_bound,
)
from raysel.results.tables import read_numbers

if TYPE_CHECKING:
    import pandas as pd


#: Expected number of false features from which on it is rounded up to a whole number.
_HALF = 0.5
#: Per cent of selections with a false feature from which on a bound says nothing.
_NO_BOUND = 99

#: Text of each key of a remark, as a function of its values: a sentence, then its figures.
SENTENCES: Final[dict[str, Callable[..., str]]] = {
    "halves_failed": lambda n, n_halves, n_left_out, number, reason: (
        f"Stability selection: {n} of {n_halves} halves failed, and {n_left_out} pairs were left"
        f" out: mend the cause and run it again.\nHalf {number}: {reason}"
    ),
    "halves_not_converged": (
        "Stability selection: {n} of {n_fits} fits did not reach tol: raise"
        " solver.params.max_iter in a new study."
    ).format,
    "smaller_top": (
        "Stability selection: each half selects at most {top} features, not the {n_of_model} of the"
        " final model.\nOf so many, more than 1 false one may be expected."
    ).format,
    "fewer_scored": (
        "Stability selection: no half gives more than {q} features a score, fewer than {top}: the"
        " bounds are those of a top of {q}."
    ).format,
    "no_bound": (
        "Stability selection: give a smaller top, e.g. {smaller}.\nA half selects {q} of {p}"
        " features, of which more than 1 may be false."
    ).format,
    "halves_of_other_versions": "Stability selection: {text}".format,
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class StabilitySelectionResult:
    """Selection probability of each feature, and the set above a threshold with its bounds.

    Half of the samples select the ``top`` best features of the winner's configuration, or fewer if
    fewer have a score. A feature is a false selection here if half of the samples, drawn at random,
    select it with a probability of at most ``theta`` = q / p, that of a selection by chance.
    `raysel.numerics.rankings` states the bounds.
    """

    #: Largest number of features that a half selects.
    top: int
    #: Selection probability from which a feature is in the set, a multiple of 1 / (2 ``n_pairs``).
    threshold: float
    #: Whether the threshold is the default: the smallest whose bound is at most 1.
    is_default: bool
    #: Number of halves, of 2 ``n_pairs``, that select each feature; shape (d,).
    counts: IntArray
    #: Number of pairs whose two halves both select each feature; shape (d,).
    pair_counts: IntArray
    #: Number of features that each half selects; shape (2 ``n_pairs``,).
    n_selected: IntArray
    #: Mask of the features that cannot be selected, because they have the same value in all
    #: samples; shape (d,).
    constant: BoolArray
    #: Number of halves that were asked for.
    n_halves: int
    #: Errors of the halves that failed, by number; their pairs count for nothing.
    errors: Mapping[int, str]
    #: Number of fits that did not reach their ``tol``.
    n_unconverged: int
    #: Winner's parameters and hash of the data, by which a result that no longer holds is known.
    identity: Mapping[str, Any] = field(default_factory=dict)
    #: Sentences on other versions: those of a later raysel, and of nodes of a cluster, which were
    #: allowed.
    mixed: tuple[str, ...] = ()
    #: What halves keep whole and the bounds take to be independent: "samples", "groups" or
    #: "blocks".
    unit: str = "samples"
    #: Number of the final model's features, where ``top`` is smaller by default.
    n_of_model: int | None = None
    #: Whether groups of features are counted in place of features: a half selects a group if it
    #: selects one of its members.
    of_groups: bool = False

    @property
    def noun(self) -> str:
        """What is selected: a feature, or a group of features."""
        return "group" if self.of_groups else "feature"

    @property
    def assumptions(self) -> str:
        """What has to hold to read the bounds as ones on features without an effect."""
        return f"{ASSUMPTIONS} The {self.unit} are taken to be independent."

    @property
    def n_pairs(self) -> int:
        """Number of pairs that count, B."""
        return len(self.n_selected) // 2

    @property
    def probability(self) -> FloatArray:
        """Share of the halves that select each feature, shape (d,)."""
        return self.counts / (2 * self.n_pairs)

    @property
    def simultaneous_probability(self) -> FloatArray:
        """Share of the pairs whose two halves both select each feature, shape (d,)."""
        return self.pair_counts / self.n_pairs

    @property
    def stability(self) -> float:
        """Nogueira's stability over the two halves of a pair, in the mean over the pairs.

        Of the features that are not constant, so that it is 0 in expectation where the labels mean
        nothing; NaN where the halves select all of them or none.
        """
        pairs = self.n_selected.reshape(-1, 2).sum(axis=1)
        sizes = pairs / (2 * self.p)
        expected = 2 * self.p * float((sizes * (1 - sizes)).sum())
        if expected <= 0:
            return math.nan
        return 1 - float(pairs.sum() - 2 * self.pair_counts.sum()) / expected

    @property
    def q(self) -> int:
        """Largest number of features that a half selects; ``top`` unless fewer have a score."""
        return int(self.n_selected.max())

    @property
    def p(self) -> int:
        """Number of features that can be selected: not constant, and no confounds."""
        return int((~self.constant).sum())

    @property
    def theta(self) -> float:
        """Selection probability up to which a feature counts as a false selection, q / p."""
        return self.q / self.p

    @property
    def selected(self) -> BoolArray:
        """Mask of the features whose selection probability reaches the threshold, shape (d,)."""
        return self.counts >= round(2 * self.n_pairs * self.threshold)

    @property
    def simple_bound(self) -> float:
        """Bound on the expected number of false selections, see `raysel.numerics.rankings`."""
        return simple_bound(self.q, self.p, self.threshold)

    @property
    def unimodal_bound(self) -> float | None:
        """The same for unimodal simultaneous selections; None if there is no such bound."""
        return unimodal_bound(self.q, self.p, self.threshold, self.n_pairs)

    @property
    def bound(self) -> float:
        """The unimodal bound, or the simple one where there is no unimodal one."""
        if self.unimodal_bound is None:
            return self.simple_bound
        return self.unimodal_bound

    def at(self, threshold: float | None) -> StabilitySelectionResult:
        """Return the selection with another threshold."""
        if threshold is None:
            return replace(
                self, threshold=smallest_threshold(self.q, self.p, self.n_pairs), is_default=True
            )
        return replace(self, threshold=threshold_on_grid(threshold, self.n_pairs), is_default=False)

    def thresholds(self) -> pd.DataFrame:
        """Return the size of the set and its bounds for every threshold.

        One row a threshold above 0.5: ``threshold``, ``n_features``, ``simple_bound`` and
        ``unimodal_bound`` (NaN where there is none).
        """
        import pandas as pd  # noqa: PLC0415 - takes a second to import

        shares = [
            count / (2 * self.n_pairs) for count in range(self.n_pairs + 1, 2 * self.n_pairs + 1)
        ]
        each = [replace(self, threshold=share) for share in shares]
        columns = {"n_features": [int(one.selected.sum()) for one in each]}
        columns |= {
            name: [getattr(one, name) for one in each]
            for name in ("simple_bound", "unimodal_bound")
        }
        return pd.DataFrame({"threshold": shares, **columns}).astype({"unimodal_bound": "float64"})

    def sentence(self) -> str:
        """Return the size of the set, its bounds and what they assume in sentences."""
        return f"{self.short_sentence()} {self._bounds()} {self.assumptions}"

    def short_sentence(self) -> str:
        """Return the size of the set, and how many of it are expected to be false at most."""
        n = int(self.selected.sum())
        return (
            f"Stability selection: {self._counted(n)} among the top {self.top} of at least"
            f" {100 * self.threshold:.4g} % of {2 * self.n_pairs} halves of the"
            f" {self.unit}.{self._expectation(n)}"
        )

    def _counted(self, n: int) -> str:
        """Return the number of what is selected, with its verb."""
        if self.of_groups:
            return "1 feature group has a member" if n == 1 else f"{n} feature groups have a member"
        return "1 feature is" if n == 1 else f"{n} features are"

    def _expectation(self, n: int) -> str:
        if not n:
            return ""
        if n == 1:
            return self._expectation_of_one()
        if self.bound >= n:
            return f" Nothing bounds how many of these {n} are false."
        most = math.ceil(self.bound) if self.bound > _HALF else f"{self.bound:.1g}"
        return f" Expect at most {most} of these {n} to be false."

    def _expectation_of_one(self) -> str:
        """Markov: false selections are at most as frequent as their expected number."""
        share = 100 * self.bound
        most = math.ceil(share) if share > 1 else f"{share:.1g}"
        if share > _NO_BOUND:
            return f" Nothing bounds how often such a {self.noun} is false."
        return f" At most {most} % of such selections hold a false {self.noun}."

    def _bounds(self) -> str:
        """Return what counts as false, and the bounds on the expected number."""
        bound = f"at most {self.simple_bound:.3g} (simple bound)"
        if self.unimodal_bound is not None:
            bound = (
                f"at most {self.unimodal_bound:.3g} (unimodal bound; simple bound"
                f" {self.simple_bound:.3g})"
            )
        return (
            "A feature counts as false if a random half selects it with a probability of at most"
            f" {self.theta:.3g}. The expected number of false ones is {bound}."
        )

    def limitations(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield key and values of each remark on the result; `SENTENCES` has the sentences."""
        if self.errors:
            number, reason = next(iter(self.errors.items()))
            yield (
                "halves_failed",
                {
                    "n": len(self.errors),
                    "n_halves": self.n_halves,
                    "n_left_out": self.n_halves // 2 - self.n_pairs,
                    "number": number,
                    "reason": reason.splitlines()[0],
                },
            )
        if self.n_unconverged:
            fits = {"n": self.n_unconverged, "n_fits": 2 * self.n_pairs}
            yield "halves_not_converged", fits
        if self.n_of_model is not None:
            yield "smaller_top", {"top": self.top, "n_of_model": self.n_of_model}
        if self.q < self.top:
            yield "fewer_scored", {"q": self.q, "top": self.top}
        if self.is_default and self.bound > 1:
            smaller = bounded_top(self.q, self.p, self.n_pairs)
            yield "no_bound", {"q": self.q, "p": self.p, "smaller": smaller}
        for text in self.mixed:
            yield "halves_of_other_versions", {"text": text}

    def remarks(self) -> list[str]:
        """Return remarks on the limitations of the result, one sentence each."""
        return [SENTENCES[key](**values) for key, values in self.limitations()]

    def to_json(self, feature_names: Sequence[str]) -> dict[str, Any]:
        """Return the summary of the selection for the manifest."""
        return {
            "of": (
                f"share of {2 * self.n_pairs} random halves of all {self.unit} that select a"
                f" feature among the top {self.top} by the final model's configuration"
            ),
            "n_halves": 2 * self.n_pairs,
            "stability_over_pairs_of_halves": self.stability,
            **self.bounds(feature_names),
            "sentences": [self.sentence(), *map(joined_lines, self.remarks())],
        }

    def bounds(self, feature_names: Sequence[str]) -> dict[str, Any]:
        """Return the selected features with the bounds on the false ones, as plain data."""
        return {
            "top": self.top,
            "threshold": self.threshold,
            "q": self.q,
            "p": self.p,
            "expected_false_selections_at_most": {
                "simple": self.simple_bound,
                "unimodal": self.unimodal_bound,
            },
            "assumptions": self.assumptions,
            "selected": [feature_names[i] for i in self.order() if self.selected[i]],
        }

    def order(self) -> IntArray:
        """Return the indices of the features, the most probable first."""
        return np.lexsort((-self.pair_counts, -self.counts)).astype(np.int64)


#: Folder of the files in a study's directory, and in it that of groups of features.
FOLDER, GROUPS = "stability", "groups"
_TABLE, _RESULT = "selection.parquet", "result.json"


def write_stability_selection(
    selection: StabilitySelectionResult,
    folder: Path,
    feature_names: Sequence[str],
    coordinates: Mapping[str, LabelArray],
) -> tuple[Path, Path, Path]:
    """Write ``selection.parquet``, ``selection.csv`` and ``result.json``.

    `feature_names` are the names of the features, or of their groups; confounds, which come behind
    them, have no row.
    """
    order = selection.order()
    order = order[order < len(feature_names)]
    columns: dict[str, Any] = {
        selection.noun: np.array(feature_names),
        "index": np.arange(len(feature_names)),
        **coordinates,
        "selection_probability": selection.probability,
        "simultaneous_probability": selection.simultaneous_probability,
        "selected": selection.selected,
        "n_halves": selection.counts,
        "n_pairs": selection.pair_counts,
    }
    table = pa.table(
        {name: pa.array(np.asarray(values)[order]) for name, values in columns.items()}
    )
    csv, parquet = write_table(table, folder, "selection")
    return parquet, csv, write_manifest(folder / _RESULT, _described(selection, feature_names))


def _described(selection: StabilitySelectionResult, feature_names: Sequence[str]) -> dict[str, Any]:
    return {
        "schema": 1,
        "sentence": selection.sentence(),
        "remarks": [*map(joined_lines, selection.remarks())],
        "threshold_is_default": selection.is_default,
        "theta": selection.theta,
        **selection.bounds(feature_names),
        "halves": {
            "asked_for": selection.n_halves,
            "counted": 2 * selection.n_pairs,
            "n_selected": selection.n_selected,
            "stability_of_pairs": selection.stability,
            "failed": {str(number): reason for number, reason in selection.errors.items()},
            "not_converged": selection.n_unconverged,
        },
        "identity": selection.identity,
        "mixed": list(selection.mixed),
        "unit": selection.unit,
        "n_of_model": selection.n_of_model,
    }


@dataclass(frozen=True)
class _Halves:
    """What the file of a stability selection says of its halves."""

    counted: int
    asked_for: int
    n_selected: list[int]
    not_converged: int
    failed: dict[int, str]


@dataclass(frozen=True)
class _StoredSelection:
    """What the file says; earlier versions did not know the last three."""

    top: int
    threshold: float
    threshold_is_default: bool
    halves: _Halves
    identity: dict[str, Any]
    mixed: tuple[str, ...] = ()
    unit: str = "samples or groups"
    n_of_model: int | None = None


def read_stability_selection(
    folder: Path, constant: BoolArray, n_features: int
) -> StabilitySelectionResult | None:
    """Read the result that `write_stability_selection` wrote of the first `n_features` columns.

    `constant` (n_columns,) is the mask of the columns that cannot be selected. Earlier versions
    wrote all columns.
    """
    if not (folder / _RESULT).exists():
        return None
    try:
        stored = make_instance(_StoredSelection, read_json(folder / _RESULT))
        table = read_numbers(
            folder / _TABLE,
            ("index", "n_halves", "n_pairs", "selection_probability"),
            (n_features, len(constant)),
        )
        by_index = np.argsort(table["index"])
        if not np.array_equal(np.asarray(table["index"])[by_index], np.arange(len(by_index))):
            raise ValueError("the features are not those of the study")
        behind = (0, len(constant) - len(by_index))
        counts, pair_counts = (
            np.pad(np.array(table[name], dtype=np.int64)[by_index], behind)
            for name in ("n_halves", "n_pairs")
        )
        halves = stored.halves
        if halves.counted != len(halves.n_selected) or not np.allclose(
            np.array(table["n_halves"]) / halves.counted,
            table["selection_probability"],
            rtol=0,
            atol=1e-12,
        ):
            raise ValueError(f"{_TABLE} and {_RESULT} are of different runs")
        return StabilitySelectionResult(
            top=stored.top,
            threshold=stored.threshold,
            is_default=stored.threshold_is_default,
            counts=counts,
            pair_counts=pair_counts,
            n_selected=np.array(halves.n_selected, dtype=np.int64),
            constant=constant,
            n_halves=halves.asked_for,
            errors=halves.failed,
            n_unconverged=halves.not_converged,
            identity=stored.identity,
            mixed=stored.mixed,
            unit=stored.unit,
            n_of_model=stored.n_of_model,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DirectoryError(
            f"{folder} cannot be read as a stability selection: {error}. Run raysel stability"
            " again, or remove it."
        ) from error
