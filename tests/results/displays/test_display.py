"""Figures become files with the same bytes, text as text, and no warning about letters."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from drawn import is_on_page
from matplotlib.figure import Figure
from no_warnings import no_warnings

from raysel.results.displays.confusion import Confusion
from raysel.results.displays.display import write_figure

KINDS = ("png", "svg", "pdf")
CODE = """
import sys
import numpy as np
from raysel.results.displays.confusion import Confusion
from raysel.results.displays.display import write_figure
for kind in ("png", "svg", "pdf"):
    figure = Confusion("study", np.array([[9, 1], [2, 8]]), ["one", "two"], 3).headed_figure()
    write_figure(figure, f"{sys.argv[1]}/confusion.{kind}")
"""


@pytest.mark.slow
def test_two_processes_write_the_same_bytes(tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    environment = {**os.environ, "PYTHONHASHSEED": "1", "TZ": "UTC1"}
    subprocess.run([sys.executable, "-c", CODE, str(other)], check=True, env=environment)
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path)])
    exec(CODE, {})
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        content = (tmp_path / f"confusion.{kind}").read_bytes()
        assert content.startswith(start)
        assert content == (other / f"confusion.{kind}").read_bytes()


def test_the_same_figure_has_the_same_bytes_and_its_text_is_text(tmp_path):
    for name in ("one", "two"):
        figure = Confusion("study", np.array([[9, 1], [2, 8]]), ["one", "two"], 3).headed_figure()
        for kind in KINDS:
            write_figure(figure, tmp_path / f"{name}.{kind}")
    for kind in KINDS:
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()
    root = ET.parse(tmp_path / "one.svg").getroot()
    words = " ".join(
        "".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")
    )
    assert "predicted class" in words  # text, not outlines
    assert "study: confusion of the classes" in words


def test_places_that_differ_by_a_rounding_error_give_the_same_svg(tmp_path):
    for name, left in (("one", 0.1), ("two", np.nextafter(0.1, 1))):
        figure = Figure()
        figure.add_axes((left, 0.1, 0.8, 0.8)).barh([0, 1], [1, 2])
        write_figure(figure, tmp_path / f"{name}.svg")
    drawn = (tmp_path / "one.svg").read_text()
    assert drawn == (tmp_path / "two.svg").read_text()
    (clip,) = ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}clipPath")
    assert f"url(#{clip.attrib['id']})" in drawn


def test_a_long_title_is_whole_on_several_lines_above_the_caption():
    shown = Confusion(
        "breast-cancer-wisconsin-linear_svm", np.array([[9, 1], [2, 8]]), ["one", "two"], 3
    )
    figure = shown.headed_figure()
    assert is_on_page(figure)
    head = figure.subfigs[0].texts
    first, second, caption = (text.get_window_extent() for text in head[:3])
    assert " ".join(text.get_text() for text in head[:2]) == shown.title
    assert first.y0 > second.y1 > second.y0 > caption.y1


@no_warnings
def test_letters_that_no_font_has_give_no_warning_and_valid_svg(tmp_path):
    figure = Figure(figsize=(2, 1))
    figure.text(0.1, 0.5, "特徴 \U0001f9ec <&> \ue123", parse_math=False)
    paths = [write_figure(figure, tmp_path / f"letters.{kind}") for kind in KINDS]
    texts = [
        "".join(text.itertext())
        for text in ET.parse(paths[1]).getroot().iter("{http://www.w3.org/2000/svg}text")
    ]
    assert "特徴 \U0001f9ec <&> \ue123" in "".join(texts)


def test_the_background_is_white_and_the_resolution_150(tmp_path):
    from PIL import Image  # noqa: PLC0415

    figure = Figure(figsize=(2, 1), facecolor="none")
    image = Image.open(write_figure(figure, tmp_path / "a.png"))
    assert image.size == (300, 150)
    assert image.convert("RGBA").getpixel((5, 5)) == (255, 255, 255, 255)
