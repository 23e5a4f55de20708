"""Rendering of a report as one HTML file."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from raysel.display.page.contents import Page, printable


def render_page(page: Page) -> str:
    """Return a report as HTML that needs neither network nor scripts.

    All texts are escaped; only the figures' SVG and the package's own style sheet are put in as they are. A content
    security policy in the file forbids scripts and all requests.
    """
    environment = Environment(
        loader=PackageLoader("raysel.display.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    template = environment.get_template("report.html")
    style = files("raysel.display.page").joinpath("report.css").read_text(encoding="utf-8")
    return template.render(page=page, style=style)


def _finalized(value: Any) -> Any:
    """Make a text printable; markup is left as it is."""
    return printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
