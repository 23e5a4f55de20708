"""Tables of two classes in which it is known which features tell."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from raysel.core.arrays import BoolArray, FloatArray, LabelArray

#: Samples, their classes, and which features tell.
Table = tuple[FloatArray, LabelArray, BoolArray]
Draw = Callable[[np.random.Generator, int, int], Table]


def independent(n_telling: int, shift: float) -> Draw:
    """Make normal features of which the first ones differ between the classes, by a shift in
    standard deviations.
    """

    def draw(generator: np.random.Generator, n_samples: int, n_features: int) -> Table:
        y = np.arange(n_samples) % 2
        telling = np.arange(n_features) < n_telling
        X = generator.standard_normal((n_samples, n_features)) + np.outer(y, shift * telling)
        return X, y, telling

    return draw


def modules(shift: float, batch_shift: float = 0.8) -> Draw:
    """Make 5 modules of 5 telling features, r about .7, and a batch that shifts a tenth of the
    others.

    The batch is the same as the class in 65 % of the samples.
    """

    def draw(generator: np.random.Generator, n_samples: int, n_features: int) -> Table:
        y = np.arange(n_samples) % 2
        batch = np.where(generator.random(n_samples) < 0.65, y, 1 - y)
        X = generator.standard_normal((n_samples, n_features))
        factors = generator.standard_normal((n_samples, 5)) + shift * y[:, None]
        X[:, :25] = np.sqrt(0.7) * np.repeat(factors, 5, axis=1) + np.sqrt(0.3) * X[:, :25]
        shifted = slice(25, 25 + n_features // 10)
        X[:, shifted] += batch_shift * batch[:, None]
        return X, y, np.arange(n_features) < 25

    return draw


def correlated(n_telling: int, shift: float) -> Draw:
    """Make blocks of 10 features with r = .5, and telling features spread over them."""

    def draw(generator: np.random.Generator, n_samples: int, n_features: int) -> Table:
        y = np.arange(n_samples) % 2
        blocks = generator.standard_normal((n_samples, n_features // 10))
        own = generator.standard_normal((n_samples, n_features))
        X = np.sqrt(0.5) * np.repeat(blocks, 10, axis=1) + np.sqrt(0.5) * own
        telling = np.zeros(n_features, dtype=bool)
        telling[np.linspace(0, n_features - 1, n_telling).astype(int)] = True
        return X + np.outer(y, shift * telling), y, telling

    return draw


#: By what they are.
DRAWS: dict[str, Draw] = {
    "5 independent features tell": independent(5, 0.9),
    "20 independent features tell": independent(20, 0.6),
    "60 independent features tell a little": independent(60, 0.4),
    "15 of correlated features tell": correlated(15, 0.6),
    "5 modules of 5 features tell, and a batch": modules(0.8),
}
