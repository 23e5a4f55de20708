"""Shared style of the plots of a ranking: colours, colour bar of the folds, shortened names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.colorbar import Colorbar
from matplotlib.colors import BoundaryNorm, ListedColormap

OUTLINE = "#d95f02"  # distinct from all blues, also with colour blindness
BLUE = "#08519c"
EMPTY = "0.90"
WARNING = "#a63603"


def fold_colours(n_folds: int) -> tuple[ListedColormap, BoundaryNorm]:
    """Return a colour map for numbers of folds: white for 0, then blues that get darker."""
    blues = colormaps["Blues"](np.linspace(0.28, 1.0, n_folds) if n_folds > 1 else [1.0])
    colours = ListedColormap(np.vstack([[1.0, 1.0, 1.0, 1.0], blues]))
    return colours, BoundaryNorm(np.arange(-0.5, n_folds + 1), n_folds + 1)


def label_folds(bar: Colorbar, n_folds: int) -> None:
    """Label a colour bar with the numbers of folds."""
    bar.set_label(f"outer folds that select it, of {n_folds}")
    bar.set_ticks(np.unique(np.linspace(0, n_folds, min(n_folds, 10) + 1).round()).tolist())
    bar.ax.minorticks_off()
    bar.ax.yaxis.set_major_formatter("{x:.0f}")


def short(name: str, longest: int) -> str:
    """Shorten a text to one line of at most ``longest`` characters."""
    line = " ".join(name.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def short_middle(name: str, longest: int) -> str:
    """Shorten a text to one line of at most ``longest`` characters, keeping its start and its end."""
    line = " ".join(name.split())
    end = (longest - 1) // 2
    return line if len(line) <= longest else f"{line[: longest - 1 - end]}…{line[-end:]}"


def mean_and_sd(scores: Sequence[float]) -> str:
    """Return the mean of the folds' scores as text, with the standard deviation if there are several."""
    spread = f" ± {np.std(scores, ddof=1):.3f} (SD)" if len(scores) > 1 else ""
    return f"{np.mean(scores):.3f}{spread}"
