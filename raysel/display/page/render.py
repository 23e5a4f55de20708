"""Rendering of a report as one HTML file."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from raysel.display.page.contents import Page, printable


def render_page(page: Page) -> str:
    """Return a report as HTML that needs neither network nor scripts.

    All texts are escaped; only the figures' SVG and the package's own style sheet are put in as they are. A content
    security policy in the file forbids scripts and all requests.

    Parameters
    ----------
    page : Page
        Contents of the report.

    Returns
    -------
    str
        The document, to be encoded as UTF-8.
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
    style = environment.get_template("report.css").render()
    return template.render(page=page, style=Markup(style), markup=Markup)  # noqa: S704 - our own file and figures


def _finalized(value: Any) -> Any:
    """Make a text printable; markup is left as it is."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else printable(value)
