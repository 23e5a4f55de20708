"""The built-in study finds what was planted, and says so on one screen."""

from __future__ import annotations

import pytest
from small_studies import SCREEN_LINES, shown

from raysel import run_study
from raysel.cli.commands import BUILTIN
from raysel.data.planted_table import BATCH, PLANTED
from raysel.evaluation.confounds import CONFOUNDS
from raysel.results.page.findings import answer_sentences

pytestmark = pytest.mark.slow


def test_the_builtin_study_finds_planted_genes_and_none_of_the_batch(tmp_path):
    changes = {"search.executor": "serial", "tracking.mlflow": False, "pictures": []}
    study = run_study(BUILTIN, changes, output=tmp_path / "study", progress=False)
    found = study.facts.planted
    # By chance a third of a gene would be among the ten best; the F-test has five to six.
    assert found.best[PLANTED] >= 7
    assert found.best[BATCH] == 0
    assert study.references["all features"].paired.mean > 0
    assert study.references[CONFOUNDS].mean < study.test_mean
    text = " ".join(answer_sentences(study))
    assert f"{found.best[PLANTED]} of 10 planted genes are found" in text
    for noted in (True, False):
        lines = shown(study, terminal=True, verbose=False, noted=noted)
        assert max(map(len, lines)) <= 80
        assert len(lines) <= SCREEN_LINES
