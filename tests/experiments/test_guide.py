"""The guide's pages run as they are written, print what they say and make the pictures that they show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

from experiments.guide.run import HERE, ON_RAY, PAGES, pictures, run_page

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_written(page, tmp_path, monkeypatch, request):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    if page != ON_RAY:
        request.getfixturevalue("without_mlflow")
    if page == "volumes":
        pytest.importorskip("nibabel")
    run_page(page, tmp_path)
    for picture in pictures(page):
        with Image.open(tmp_path / picture) as made, Image.open(HERE / picture) as shown:
            assert made.size == shown.size, f"{picture}: make it anew by python -m experiments.guide.run {page}"


@pytest.mark.parametrize("page", [*sorted(HERE.glob("*.md")), ROOT / "README.md"], ids=lambda path: path.name)
def test_every_link_leads_to_a_file(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
    if page.parent == HERE and page.name == "README.md":
        assert {f"{name}.md" for name in PAGES} <= set(links)
