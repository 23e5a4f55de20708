"""API reference and keys of a configuration as HTML pages:
``python -m experiments.guide.reference FOLDER``.

The pages are made from the docstrings by pdoc, and from the schema of the configuration.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import raysel
import raysel.testing
from raysel.base.registry import OWN, solver_class
from raysel.config.keys import ConfigKey, comparison_reference, config_reference

#: What public functions return.
RESULTS = (
    "raysel.results.result:StudyResult",
    "raysel.results.comparison.result:ComparisonResult",
)
#: What authors of a method, reader, sampler or executor derive from or call.
FOR_AUTHORS = (
    "raysel.base.estimator:Estimator",
    "raysel.base.estimator:Capabilities",
    "raysel.base.classifiers:TensorSelector",
    "raysel.base.models:save_model",
    "raysel.base.models:untrusted_types",
    "raysel.base.model_types:trusted_types",
    "raysel.data.formats.files:RawData",
    "raysel.data.formats.files:ReadOptions",
    "raysel.evaluation.samplers:Sampler",
    "raysel.execution.executor:Executor",
)


def find(place: str) -> Any:
    """Return the object at a place, ``module:name``."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def page(name: str, text: str, things: dict[str, Any]) -> ModuleType:
    """Make a module of things of several modules, which pdoc shows on one page."""
    made = ModuleType(name, text)
    vars(made).update(things, __all__=list(things))
    return made


def pages() -> list[ModuleType]:
    """Return the pages of the reference, their index first."""
    public = {name: getattr(raysel, name) for name in raysel.__all__ if name != "__version__"}
    results, authors = ([find(place) for place in places] for places in (RESULTS, FOR_AUTHORS))
    methods = [solver_class(name) for name in OWN]
    made = [
        page("raysel", "Public names.", public),
        page("results", "What studies and comparisons return.", named(results)),
        page("methods", list_methods(), named(methods)),
        page("keys", list_keys(), {}),
        page("extensions", "What methods, readers and samplers build on.", named(authors)),
        raysel.testing,
    ]
    return [page("index", list_pages(made), {}), *made]


def named(things: list[Any]) -> dict[str, Any]:
    """Name classes and functions as they are defined."""
    return {thing.__name__: thing for thing in things}


def list_pages(made: list[ModuleType]) -> str:
    """List pages with their first lines."""
    lines = [
        f"- [{module.__name__}]({module.__name__}.html): {(module.__doc__ or '').splitlines()[0]}"
        for module in made
    ]
    return "\n".join([f"Reference of raysel {raysel.__version__}.", "", *lines])


def list_methods() -> str:
    """List the names of the registered methods with their classes."""
    lines = [f"| `{name}` | `{place.partition(':')[2]}` |" for name, place in OWN.items()]
    return "\n".join(
        ["Methods by their `solver.name`.", "", "| solver.name | class |", "|---|---|", *lines]
    )


def list_keys() -> str:
    """List the keys of a configuration, section by section."""
    sections: dict[str, list[str]] = {}
    for entry in [*config_reference(), *comparison_reference()]:
        section = entry.key.rpartition(".")[0] or "study"
        sections.setdefault(section, []).append(_row(entry))
    lines = ["Keys of a study's configuration; `compare` and `reference` are a comparison's."]
    for section, rows in sections.items():
        head = ["| key | values | default | meaning |", "|---|---|---|---|"]
        lines += ["", f"## {section}", "", *head, *rows]
    return "\n".join(lines)


def _row(entry: ConfigKey) -> str:
    cells = (f"`{entry.key}`", entry.type, entry.default, entry.description)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def write(folder: Path) -> None:
    """Write the pages into a folder."""
    import pdoc.doc  # noqa: PLC0415 - the lists above are used where pdoc is not installed
    import pdoc.render  # noqa: PLC0415

    pdoc.render.configure(
        docformat="numpy", include_undocumented=False, search=False, show_source=False
    )
    modules = {made.__name__: pdoc.doc.Module(made) for made in pages()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, module in modules.items():
        text = pdoc.render.html_module(module, modules)
        (folder / f"{name}.html").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
