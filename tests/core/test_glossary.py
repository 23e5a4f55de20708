"""The glossary is short, and help, report and guide print the same one."""

from __future__ import annotations

from pathlib import Path

from small_studies import streams_of

from raysel.core.glossary import TERMS
from raysel.results.page.contents import glossary

GUIDE = Path(__file__).resolve().parents[2] / "experiments/guide/glossary.md"


def test_it_has_at_most_twelve_terms_of_one_short_sentence_each():
    assert len(TERMS) <= 12
    for meaning in TERMS.values():
        assert len(meaning.split()) <= 25
        assert meaning.endswith(".")
        assert ". " not in meaning


def test_guide_help_and_report_print_it():
    page = GUIDE.read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("| ")][1:] == [
        f"| {term} | {meaning} |" for term, meaning in TERMS.items()
    ]
    status, out, _ = streams_of("--help")
    assert status == 0
    words = " ".join(out.split())
    assert all(f"{term} {meaning}" in words for term, meaning in TERMS.items())
    (table,) = glossary().blocks
    assert [tuple(row) for row in table.rows] == list(TERMS.items())
