"""Figures as SVG inside a page: their ids, colours and texts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from raysel.results.displays.display import Cell
from raysel.results.displays.drawing import BLUE
from raysel.results.page import pictures
from raysel.results.page.pictures import inline_svg

HOSTILE = 'style="fill: #000000" </svg><script>url(#x)</script> & \x00\u202e'


def drawn() -> Figure:
    figure = Figure(figsize=(3, 2))
    ax = figure.subplots()
    ax.plot([1, 2], [3, 4], color=BLUE)
    ax.imshow(np.eye(3))
    ax.barh([0], [1], color="#ffffff", edgecolor="0.5")
    ax.text(0, 0, HOSTILE, parse_math=False)
    return figure


def test_the_same_figure_gives_the_same_element_with_ids_of_its_own():
    first, other = inline_svg(drawn(), "a", "what"), inline_svg(drawn(), "b", "what")
    assert first == inline_svg(drawn(), "a", "what")
    ids = [set(re.findall(r'\bid="([^"]*)"', svg)) for svg in (first, other)]
    assert ids[0]
    assert not ids[0] & ids[1]
    for svg, own in zip((first, other), ids, strict=True):
        assert {
            *re.findall(r'href="#([^"]*)"', svg),
            *re.findall(r'"url\(#([^")]*)\)"', svg),
        } <= own
        assert "xlink" not in svg
        assert "metadata" not in svg


def test_its_texts_are_escaped_and_its_description_is_its_title():
    root = ET.fromstring(inline_svg(drawn(), "a", 'a <b> & "c"'))
    texts = ["".join(element.itertext()) for element in root.iter("text")]
    assert HOSTILE.replace("\x00", "\ufffd").replace("\u202e", "\ufffd") in texts
    assert root.find("title").text == 'a <b> & "c"'
    assert root.attrib["aria-labelledby"] == root.find("title").attrib["id"]
    assert not list(root.iter("script"))


def test_a_cell_tells_its_text_where_it_is_drawn():
    figure = Figure(figsize=(3, 2))
    figure.subplots().imshow(np.zeros((2, 3)))
    cells = [Cell(column, row, f"{row} {column}") for row in range(2) for column in range(3)]
    root = ET.fromstring(inline_svg(figure, "a", "what", cells))
    (background,) = (one for one in root.iter("g") if one.attrib.get("id") == "a-patch_2")
    numbers = re.findall(r"[\d.]+", background.find("path").attrib["d"])
    corners = np.array(numbers, dtype=float).reshape(-1, 2)
    (left, top), (wide, high) = corners.min(axis=0), np.ptp(corners, axis=0) / (3, 2)
    told = [rect for rect in root.iter("rect") if rect.find("title") is not None]
    assert len(told) == 6
    for rect in told:
        row, column = map(int, rect.find("title").text.split())
        place = [float(rect.attrib[name]) for name in ("x", "y", "width", "height")]
        where = [left + column * wide, top + row * high, wide, high]
        assert place == pytest.approx(where, abs=0.02)


def test_neutral_colours_follow_the_page():
    root = ET.fromstring(inline_svg(drawn(), "a", "what"))
    styles = " ".join(element.attrib.get("style", "") for element in root.iter())
    assert "#000000" not in styles
    assert "#ffffff" not in styles.replace("var(--paper, #ffffff)", "")
    assert "stroke: currentColor; stroke-opacity: 0.498" in styles  # a grey of 0.5
    assert f"stroke: var(--blue, {BLUE})" in styles


def test_the_named_colours_can_be_read_on_the_dark_page():
    sheet = Path(pictures.__file__).with_name("report.css").read_text()
    light, dark, on_white = (
        dict(re.findall(r"(--\w+): (#\w{6})", part))
        for part in (
            sheet.partition("@media")[0],
            sheet.partition("(prefers-color-scheme: dark)")[2].partition("* {")[0],
            sheet.partition(".on-white svg { color")[2].partition("}")[0],
        )
    )
    for colour, name in pictures._NAMED.items():
        assert light[name] == on_white[name] == colour
        assert (luminance(dark[name]) + 0.05) / (luminance(dark["--paper"]) + 0.05) >= 4.5, name


def luminance(colour):
    """Relative luminance of a colour, as the Web Content Accessibility Guidelines define it."""
    c = np.array(to_rgb(colour))
    return float(
        np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]
    )


def test_the_colours_of_hatches_follow_the_page():
    figure = Figure(figsize=(3, 2))
    figure.subplots().barh([0], [1], color="#ffffff", edgecolor="#d95f02", hatch="//")
    svg = inline_svg(figure, "a", "what")
    (pattern,) = ET.fromstring(svg).iter("pattern")
    assert [
        part.attrib["style"].count("var(--paper") for part in pattern if part.tag == "rect"
    ] == [1]
    assert not re.search(r'(fill|stroke)="#', svg)
