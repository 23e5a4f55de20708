"""The guide's pages and README.md run as they are written, print what they say and make the
pictures that they show.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from experiments.guide.run import HERE, PAGES, TRACKED, pictures, run_page

ROOT = Path(__file__).parents[2]
#: Runs a page in a process of its own, with uploads that are forked and without a report, because
#: each takes seconds.
RUN = """
import os, pathlib, sys
sys.path.append(os.path.abspath("tests"))
from experiments.guide.run import run_page
from forked_uploads import forking
from raysel.results.page import report
from raysel.tracking import upload_process
upload_process.subprocess = forking
report.write_final_report = lambda _: None
run_page(sys.argv[1], pathlib.Path(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("without_report")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_written(page, tmp_path, monkeypatch, request):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    if page == "volumes":
        pytest.importorskip("nibabel")
    if page == TRACKED:
        # MLflow keeps one connection an address in a process, and this page's address is relative
        # to its folder.
        subprocess.run([sys.executable, "-c", RUN, page, str(tmp_path)], cwd=ROOT, check=True)
    else:
        request.getfixturevalue("without_mlflow")
        run_page(page, tmp_path)
    for picture in pictures(page):
        with Image.open(tmp_path / picture) as made, Image.open(HERE / picture) as shown:
            assert made.size == shown.size, (
                f"{picture}: make it anew by python -m experiments.guide.run {page}"
            )


@pytest.mark.parametrize(
    "page", [*sorted(HERE.glob("*.md")), ROOT / "README.md"], ids=lambda path: path.name
)
def test_every_link_leads_to_a_file(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
    if page.name == "README.md":
        linked = {(page.parent / link).resolve() for link in links}
        assert {path for path in HERE.glob("*.md") if path.name != "README.md"} <= linked
