"""Writer of figures as PNG, SVG and PDF with the same bytes for the same figure."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from matplotlib import font_manager, ft2font, rc_context, rcParams
from matplotlib.figure import Figure
from matplotlib.text import Text

from raysel.core.files import write_result

#: Text stays text (searchable, editable) in SVG and PDF; ids in SVG are random unless their hash has a fixed salt.
_SETTINGS = {"svg.hashsalt": "raysel", "svg.fonttype": "none", "pdf.fonttype": 42, "savefig.facecolor": "white"}
#: Metadata without date.
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": "raysel"},
    "svg": {"Creator": "raysel", "Date": None},
    "pdf": {"Creator": "raysel", "CreationDate": None},
}


def write_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure as PNG (150 dots per inch), SVG or PDF; the same figure gives the same bytes.

    Text stays text in SVG and PDF. Letters that the font lacks are taken from another installed font if one has them.
    """
    kind = Path(path).suffix.removeprefix(".")
    image = io.BytesIO()
    families = rcParams["font.sans-serif"]
    settings: Any = _SETTINGS | {"font.sans-serif": [families[0], *_more_fonts(figure), *families[1:]]}
    with rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from font")  # no installed font has the letter
        figure.savefig(image, format=kind, dpi=150, metadata=_METADATA[kind])
    return write_result(path, image.getvalue())


def write_figures(figure: Figure, folder: str | Path, name: str, kinds: Sequence[str]) -> list[Path]:
    """Write a figure as files ``<name>.<kind>``."""
    return [write_figure(figure, Path(folder, f"{name}.{kind}")) for kind in kinds]


def _more_fonts(figure: Figure) -> list[str]:
    """Families of installed fonts that have the letters of the figure which the default font lacks."""
    letters = {c for text in figure.findobj(Text) if isinstance(text, Text) for c in text.get_text()}
    missing = {c for c in letters if ord(c) > 0x7F} - _letters_of(font_manager.findfont(font_manager.FontProperties()))
    found: list[str] = []
    for font in sorted(font_manager.fontManager.ttflist, key=_preference) if missing else ():
        if helps := missing & _letters_of(font.fname):
            found.append(font.name)
            missing -= helps
        if not missing:
            break
    return found


def _preference(font: font_manager.FontEntry) -> tuple[bool, str, str]:
    """Sort key of fonts: upright of normal weight first, then by name."""
    return (font.style != "normal" or font.weight not in (400, "normal"), font.name, font.fname)


@cache
def _letters_of(path: str) -> frozenset[str]:
    try:
        return frozenset(map(chr, ft2font.FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):  # a font file that is damaged
        return frozenset()
