"""The public names are found when they are first used, and a missing library is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import raysel


def test_every_public_name_is_listed_and_found():
    assert set(raysel.__all__) == {*raysel._HOME, "__version__"}
    assert set(raysel.__all__) <= set(dir(raysel))
    assert all(getattr(raysel, name).__name__ == name for name in raysel._HOME)
    with pytest.raises(AttributeError, match="has no attribute 'SMRR'"):
        raysel.SMRR  # noqa: B018


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("pyarrow.lib", r"raysel.SMR needs the module pyarrow.lib, which is not installed"),
        ("raysel.gone", "^gone$"),
    ],
)
def test_a_missing_library_is_named_and_a_missing_module_of_raysel_is_no_library(
    missing, told, monkeypatch
):
    def fail(_):
        raise ModuleNotFoundError("gone", name=missing)

    monkeypatch.setattr(raysel, "import_module", fail)
    with pytest.raises(ModuleNotFoundError, match=told) as error:
        raysel.SMR  # noqa: B018
    assert error.value.name == missing


def test_the_citation_names_this_version():
    cited = yaml.safe_load((Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(cited)  # that CFF 1.2.0 requires
    assert (cited["cff-version"], cited["version"], cited["license"]) == (
        "1.2.0",
        raysel.__version__,
        "Apache-2.0",
    )
