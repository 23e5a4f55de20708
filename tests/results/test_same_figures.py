"""Terminal, Markdown, manifest, journal, picture, report and MLflow tell the same figures to the
last digit.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from html import unescape

import pytest
from mlflow.tracking import MlflowClient
from mlflow_servers import rounded
from report_pages import Page
from rich.console import Console
from small_studies import raw_config, write_digits

import raysel
from raysel.cli.summary import print_answer
from raysel.results import texts
from raysel.results.export import markdown
from raysel.tracking.journal import read_journal


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["one_se", "mean"])
def test_all_places_tell_the_same_figures(tmp_path, rule):
    write_digits(tmp_path / "few.npz")
    config = raw_config(
        tmp_path / "few.npz",
        solver__space={"alpha": [0.1]},
        evaluation__choose_n=rule,
        cv={"outer": 3, "inner": 2},
        pictures=["svg"],
        tracking={"uri": f"sqlite:///{tmp_path}/mlflow.db"},
    )
    with contextlib.chdir(tmp_path):
        result = raysel.run_study(config, output=tmp_path / "study", progress=False)

    # Files, journal and MLflow: the numbers themselves.
    mean, interval, references = result.test_mean, result.interval, result.references
    assert set(references) == {"all features", "variance", "f_test", "chance"}
    *_, end = read_journal(result.directory.journal)
    for scores in (
        json.loads((result.directory.ranking / "manifest.json").read_text())["scores"],
        end["result"],
    ):
        assert (scores["test_mean"], scores["test_std"]) == (mean, interval.sd)
        assert (scores["interval"]["lower"], scores["interval"]["upper"]) == (
            interval.lower,
            interval.upper,
        )
        assert scores["optimism"] == result.facts.optimism
        assert scores["curve"]["test_mean"] == result.score_curves()["test_mean"].tolist()
        for name, found in references.items():
            assert scores["references"][name]["test_mean"] == found.mean
            assert scores["references"][name]["method_minus_it"]["mean"] == found.paired.mean
            assert (
                scores["references"][name]["method_minus_it"]["lower"]
                == found.paired.corrected.lower
            )
    client = MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    (run,) = client.search_runs(["1"], "tags.`raysel.kind` = 'study'")
    figures = {"": mean, "_std": interval.sd, "_lower": interval.lower, "_upper": interval.upper}
    expected = {f"test_accuracy{end}": value for end, value in figures.items()}
    expected |= {
        f"reference_{name.replace(' ', '_')}": found.mean for name, found in references.items()
    }
    assert rounded(expected).items() <= run.data.metrics.items()

    # Pages: the same text, of which the figures have three decimals.
    screen = io.StringIO()
    console = Console(file=screen, width=80, force_terminal=True, color_system=None, soft_wrap=True)
    print_answer(result, console, verbose=True)
    svg = (result.directory.ranking / "ranking.svg").read_text()
    pages = {
        "terminal": screen.getvalue(),
        "markdown": markdown(result.facts).replace("|", " ").replace("*", ""),
        "report": Page(result.directory.report.read_text()).text,
        "picture": unescape(" ".join(re.findall(r">([^<>]+)</text>", svg))),
    }
    pages = {name: " ".join(text.split()) for name, text in pages.items()}
    headline = texts.headline(result.facts)
    ends = f"{interval.lower:.3f} to {interval.upper:.3f}"
    assert (
        f"{mean:.3f} ± {interval.sd:.3f} (SD over 3 outer folds; 95 % interval {ends})" in headline
    )
    for name, text in pages.items():
        assert headline[1:] in text, name
    assert texts.references_line(result.facts)[1:] in pages["picture"]
    for name in ("terminal", "markdown", "report"):
        for row in texts.score_table(result.facts).rows:
            assert " ".join(cell for cell in row if cell) in pages[name], name
        for row in texts.curve_table(result.facts).rows:
            assert " ".join(row) in pages[name], name
        for kind, value, _ in texts.optimism_rows(result.facts):
            assert f"{kind} {value}" in pages[name].lower(), name
