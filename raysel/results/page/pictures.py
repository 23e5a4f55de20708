"""Figures of a study as SVG elements of its report, whose neutral colours follow the page's."""

from __future__ import annotations

import io
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from raysel.results.displays.display import Cell, Display, lay_out
from raysel.results.displays.drawing import BLUE, OUTLINE, PINK, SKY, WARNING
from raysel.results.displays.registry import find_displays
from raysel.results.page.contents import Picture, csv_download, printable
from raysel.results.result import StudyResult

_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_SCALE = 0.1  # rem per point of a figure, so that texts have the same size in all figures
_PLAIN = re.compile(r"#[0-9a-f]{6}")
_COLOUR = re.compile(r"(fill|stroke): (#[0-9a-f]{6})")
#: Colours that have a lighter shade in dark mode, as properties of the style sheet.
_NAMED = {BLUE: "--blue", OUTLINE: "--orange", PINK: "--pink", SKY: "--sky", WARNING: "--warning"}


def pictures(result: StudyResult, section: str) -> list[Picture]:
    """Return the pictures of a section of the report."""
    return [picture(display) for display in find_displays(result.facts, section)]


def picture(display: Display) -> Picture:
    """Return a figure as a picture of a report."""
    data = None
    if display.table:
        table = display.frame()
        rows = table.astype(object).where(table.notna(), None).itertuples(index=False, name=None)
        name, columns = f"{display.table}.csv", list(table.columns)
        data = csv_download(name, columns, rows, rest=display.whole_table)
    caption = display.caption
    svg = inline_svg(display.figure(), display.key, caption, display.cells())
    return Picture(svg, caption, data, display.on_white)


def inline_svg(figure: Figure, key: str, description: str, cells: Sequence[Cell] = ()) -> str:
    """Return a figure as an SVG element for a page of HTML; the same figure gives the same text.

    Black becomes the colour of the page's text, a grey a transparent shade of it and white the
    colour of its background, so that the figure can be read in light and in dark mode. Texts remain
    texts, in the page's font. A browser shows the text of a cell where the pointer is over it.
    """
    text = io.StringIO()
    with rc_context({"svg.hashsalt": key, "svg.fonttype": "none"}), warnings.catch_warnings():
        # The browser has other fonts.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        lay_out(figure)
        figure.savefig(text, format="svg", metadata=metadata, transparent=True)
    root = ET.fromstring(printable(text.getvalue()))  # noqa: S314 - what matplotlib has just written
    width, height = (float(side) for side in root.attrib["viewBox"].split()[2:])
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{_SVG}metadata":
                parent.remove(child)
    for element in root.iter():
        _adapt(element, key)
    if cells:
        root.append(_named_cells(figure, cells, height))
    root.attrib["style"] = f"--width: {width * _SCALE:.4g}rem"
    root.attrib |= {
        "width": f"{width:g}",
        "height": f"{height:g}",
        "role": "img",
        "aria-labelledby": f"{key}-title",
    }
    title = ET.Element(f"{_SVG}title", {"id": f"{key}-title"})
    title.text = printable(description)
    root.insert(0, title)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
    return ET.tostring(root, encoding="unicode")


def _named_cells(figure: Figure, cells: Sequence[Cell], height: float) -> ET.Element:
    """Return transparent rectangles over cells of the figure's axes, with their texts as titles."""
    group = ET.Element(f"{_SVG}g", {"fill": "none", "pointer-events": "all"})
    centres = np.array([(cell.x, cell.y) for cell in cells], dtype=np.float64)
    to_points = 72 / figure.dpi
    corners = [
        to_points * figure.axes[0].transData.transform(centres + shift) for shift in (-0.5, 0.5)
    ]
    low, high = np.minimum(*corners), np.maximum(*corners)
    for cell, (left, bottom), (right, top) in zip(cells, low, high, strict=True):
        place = {"x": left, "y": height - top, "width": right - left, "height": top - bottom}
        attributes = {name: f"{value:.5g}" for name, value in place.items()}
        title = ET.SubElement(ET.SubElement(group, f"{_SVG}rect", attributes), f"{_SVG}title")
        title.text = printable(cell.text)
    return group


def _adapt(element: ET.Element, key: str) -> None:
    """Prefix the ids of an element and its references to them, and replace its neutral colours."""
    attributes = element.attrib
    for name, value in list(attributes.items()):
        if name.startswith(_XLINK):  # HTML and SVG 2 know the attribute without the prefix
            del attributes[name]
            local = name.removeprefix(_XLINK)
            if local == "href":
                attributes["href"] = f"#{key}-{value[1:]}" if value.startswith("#") else value
        elif name == "id":
            attributes["id"] = f"{key}-{value}"
        elif "url(#" in value:
            attributes[name] = value.replace("url(#", f"url(#{key}-")
    # In patterns of hatches the colours are attributes.
    plain = [name for name in ("fill", "stroke") if _PLAIN.fullmatch(attributes.get(name, ""))]
    colours = [f"{name}: {attributes.pop(name)}" for name in plain]
    if style := "; ".join(filter(None, [attributes.get("style"), *colours])):
        attributes["style"] = _COLOUR.sub(_page_colour, style)


def _page_colour(found: re.Match[str]) -> str:
    what, colour = found.groups()
    red, green, blue = colour[1:3], colour[3:5], colour[5:7]
    if colour in _NAMED:
        return f"{what}: var({_NAMED[colour]}, {colour})"
    if not red == green == blue:
        return found[0]
    level = int(red, 16) / 255
    if level == 1.0:
        return f"{what}: var(--paper, {colour})"
    if not level:
        return f"{what}: currentColor"
    return f"{what}: currentColor; {what}-opacity: {1 - level:.3g}"
