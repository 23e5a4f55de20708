"""Figures of a study as pictures of its report, each with its caption and its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysel.results.page.contents import Picture, csv_download

if TYPE_CHECKING:
    from raysel.results.displays.display import Display
    from raysel.results.result import StudyResult


def pictures(result: StudyResult, section: str) -> list[Picture]:
    """Return the pictures of a section of the report."""
    from raysel.results.displays.registry import displays_of  # noqa: PLC0415 - loads matplotlib

    return [picture(display) for display in displays_of(result, section)]


def picture(display: Display) -> Picture:
    """Return a figure as a picture of a report."""
    from raysel.results.page.svg import inline_svg  # noqa: PLC0415 - loads matplotlib

    data = None
    if display.table:
        table = display.frame()
        rows = table.astype(object).where(table.notna(), None).itertuples(index=False, name=None)
        data = csv_download(f"{display.table}.csv", list(table.columns), rows, rest=display.whole_table)
    svg = inline_svg(display.figure(), display.key, display.caption)
    return Picture(svg, display.caption, data, display.on_white)
