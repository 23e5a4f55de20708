"""A generated table as the field has it, of which it is known what tells the classes."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

import numpy as np

from raysel.core.arrays import FloatArray, IntArray
from raysel.core.errors import ConfigError
from raysel.data.formats.files import RawData

#: What a gene is, in the order of their interest: it tells the classes by itself; it follows a gene
#: of its module that does; it follows the plate; or it tells nothing.
PLANTED, PROXY, BATCH, NOISE = "planted", "proxy", "batch", "noise"
#: Name of the data set.
SOURCE = "planted-genes"
#: Column of the plates, which are the batches of the samples; it is text.
PLATE = "plate"
#: Genes of a module, the first of which leads the others.
_MODULE = 10
#: Correlation of a gene with the leader of its module.
_CORRELATION = 0.7
#: Standard deviation of the class means of the planted genes, from the strongest to the weakest.
_EFFECTS = 1.2, 0.6
_N_PLATES = 3
#: Share of the samples whose plate is drawn by their class.
_CONFOUNDED = 0.25


def make_gene_table(
    n_samples: int = 200,
    n_modules: int = 30,
    n_planted: int = 10,
    n_classes: int = 3,
    empty: float = 0.02,
    random_state: int | None = None,
) -> tuple[RawData, Mapping[str, str]]:
    """Make a table of genes in modules, three plates and empty cells, and what each gene is.

    The leader of each of the first ``n_planted`` modules tells the classes: its class means have a
    standard deviation of 1.2, of the last such 0.6, times that within a class. The nine others of a
    module follow their leader with a correlation of 0.7 and tell nothing more. The genes of the
    last two modules differ between the plates, and a quarter of the samples have the plate of their
    class, the others any. The share ``empty`` of the cells has no value.
    """
    if not 2 <= n_classes <= min(n_samples, len(string.ascii_uppercase)):
        raise ConfigError(
            f"n_classes={n_classes} must be at least 2, at most {len(string.ascii_uppercase)} and"
            f" at most n_samples={n_samples}."
        )
    if not 1 <= n_planted <= n_modules - 2:
        raise ConfigError(
            f"n_planted={n_planted} must be from 1 to n_modules - 2 = {n_modules - 2}: a module has"
            " one planted gene, the last two follow the plate."
        )
    if not 0 <= empty < 1:
        raise ConfigError(f"empty={empty} is no share of the cells: give a number from 0 to 1.")
    rng = np.random.default_rng(random_state)
    y = rng.permutation(np.arange(n_samples) % n_classes)
    leaders = rng.standard_normal((n_samples, n_modules))
    effects = np.linspace(*_EFFECTS, n_planted)
    leaders[:, :n_planted] += (effects * _contrasts(rng, n_classes, n_planted))[y]
    alone = rng.standard_normal((n_samples, n_modules, _MODULE))
    X = _CORRELATION * leaders[:, :, None] + np.sqrt(1 - _CORRELATION**2) * alone
    X[:, :, 0] = leaders
    plates = _draw_plates(rng, y)
    shifts = _contrasts(rng, _N_PLATES, 2 * _MODULE).reshape(_N_PLATES, 2, _MODULE)
    X[:, -2:] += shifts[plates]
    X[rng.random(X.shape) < empty] = np.nan
    roles = {
        f"m{module + 1:02d}g{gene + 1:02d}": _role(module, gene, n_planted, n_modules)
        for module, gene in np.ndindex(n_modules, _MODULE)
    }
    raw = RawData(
        X=np.column_stack([X.reshape(n_samples, -1), plates]),
        y=np.array(list(string.ascii_uppercase))[y],
        feature_names=(*roles, PLATE),
        categories={PLATE: tuple(f"P{plate + 1}" for plate in range(_N_PLATES))},
        label="subtype",
    )
    return raw, roles


def planted_roles(source: str | None, params: Mapping[str, Any] | None) -> Mapping[str, str]:
    """Return what each gene of a generated table is, by its name; of other data nothing."""
    if source != SOURCE:
        return {}
    given = {"seed": 0, **(params or {})}
    return make_gene_table(random_state=given.pop("seed"), **given)[1]


def _contrasts(rng: np.random.Generator, n_levels: int, n: int) -> FloatArray:
    """Draw effects of each level, with mean 0 and standard deviation 1; shape (n_levels, n)."""
    drawn = rng.standard_normal((n_levels, n))
    centred: FloatArray = (drawn - drawn.mean(axis=0)) / drawn.std(axis=0)
    return centred


def _draw_plates(rng: np.random.Generator, y: IntArray) -> IntArray:
    """Draw the plate of each sample, of some by their class; shape (n_samples,)."""
    drawn = rng.integers(_N_PLATES, size=len(y))
    plates: IntArray = np.where(rng.random(len(y)) < _CONFOUNDED, y % _N_PLATES, drawn)
    return plates


def _role(module: int, gene: int, n_planted: int, n_modules: int) -> str:
    """Return what a gene is."""
    if module < n_planted:
        return PROXY if gene else PLANTED
    if module >= n_modules - 2:
        return BATCH
    return NOISE
