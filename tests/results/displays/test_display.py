"""Figures become files with the same bytes, text as text, and no warning about letters."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET

from matplotlib.figure import Figure
from no_warnings import no_warnings

from raysel.results.displays.display import write_figure

KINDS = ("png", "svg", "pdf")
CODE = """
import sys
import numpy as np
from raysel.results.displays.confusion import Confusion
from raysel.results.displays.display import write_figure
figure = Confusion("study", np.array([[9, 1], [2, 8]]), ["one", "two"], 3).headed_figure()
for kind in ("png", "svg", "pdf"):
    write_figure(figure, f"{sys.argv[1]}/confusion.{kind}")
"""


def test_two_processes_write_the_same_bytes(tmp_path):
    for seed in ("1", "2"):
        (tmp_path / seed).mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC{seed}"}
        subprocess.run([sys.executable, "-c", CODE, str(tmp_path / seed)], check=True, env=environment)
    for kind in KINDS:
        first, second = (tmp_path / seed / f"confusion.{kind}" for seed in ("1", "2"))
        assert first.read_bytes() == second.read_bytes()
    assert (tmp_path / "1/confusion.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "1/confusion.pdf").read_bytes().startswith(b"%PDF")
    root = ET.parse(tmp_path / "1/confusion.svg").getroot()
    words = " ".join("".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text"))
    assert "predicted class" in words  # text, not outlines
    assert "study: confusion of the classes" in words


@no_warnings
def test_letters_that_no_font_has_give_no_warning_and_valid_svg(tmp_path):
    figure = Figure(figsize=(2, 1))
    figure.text(0.1, 0.5, "特徴 \U0001f9ec <&> \ue123", parse_math=False)
    paths = [write_figure(figure, tmp_path / f"letters.{kind}") for kind in KINDS]
    texts = ["".join(text.itertext()) for text in ET.parse(paths[1]).getroot().iter("{http://www.w3.org/2000/svg}text")]
    assert "特徴 \U0001f9ec <&> \ue123" in "".join(texts)


def test_the_background_is_white_and_the_resolution_150(tmp_path):
    from PIL import Image  # noqa: PLC0415

    figure = Figure(figsize=(2, 1), facecolor="none")
    image = Image.open(write_figure(figure, tmp_path / "a.png"))
    assert image.size == (300, 150)
    assert image.convert("RGBA").getpixel((5, 5)) == (255, 255, 255, 255)
