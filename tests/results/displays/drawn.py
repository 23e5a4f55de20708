"""What tests of displays read from a drawn figure."""

from __future__ import annotations

import warnings

from matplotlib.backends.backend_agg import FigureCanvasAgg

#: Names that a formula, a table, a page or a terminal could take for something else.
HOSTILE = [
    "$x^2_$ $\\frac{1",
    "a_b_c" * 30,
    "\u6570\u5b57",
    "<script>&amp;\"'",
    "\x00\x07bell",
    "",
    "\u202egnp.txt",
]


def line(ax, label):
    """Points of the only line whose label starts so."""
    (only,) = (one for one in ax.lines if str(one.get_label()).startswith(label))
    return only.get_xydata()


def labels(axis):
    """Texts of the tick labels of an axis."""
    return [label.get_text() for label in axis.get_ticklabels()]


def draw(figure):
    """Draw a figure and return its renderer."""
    canvas = FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Glyph"
        )  # the writer looks for a font that has the letter
        canvas.draw()
    return canvas.get_renderer()


def is_on_page(figure):
    """Whether nothing leaves the page."""
    inked, (width, height) = figure.get_tightbbox(draw(figure)), figure.get_size_inches()
    return (
        -0.02 <= inked.x0 < inked.x1 <= width + 0.02
        and -0.02 <= inked.y0 < inked.y1 <= height + 0.02
    )
