"""What is computed of a finished study after an upgrade: it runs, says whose numbers are whose,
and mixes none.
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from attack_studies import change_journal

import raysel
from raysel.cli.main import main as run_command
from raysel.core.errors import DirectoryError
from raysel.study.identity import other_versions

NOW = raysel.__version__


def upgraded(study, target):
    """Copy of a study as an earlier raysel would have left it, whose test scores and rankings
    were others.
    """
    shutil.copytree(study, target, ignore=shutil.ignore_patterns(".lease"))
    change_journal(
        target, "study", lambda line: line["versions"].update(raysel="0.1.9", numbers="of old")
    )
    return target


def with_other_scores(study):
    def change(line):
        line["test_scores"] = [score / 2 for score in line["test_scores"]]
        line["feature_scores"] = line["feature_scores"][::-1]

    change_journal(study, "refit", change)
    return study


def test_stability_selection_is_that_of_the_version_that_runs_and_says_so(
    digits_study, copied, tmp_path, capsys
):
    of_today = raysel.stability_selection(copied, subsamples=6, progress=False)
    old = upgraded(digits_study, tmp_path / "old")
    assert run_command(["stability", str(old), "--subsamples", "6"]) == 0
    said = f"Computed by raysel {NOW}; the study's own scores are by raysel 0.1.9 and may differ"
    assert said in " ".join(capsys.readouterr().out.split())
    found = raysel.open_study(old).stability_selection
    assert found.counts.tolist() == of_today.counts.tolist()
    assert [said in remark for remark in found.remarks()].count(True) == 1
    assert not any("Computed by" in remark for remark in of_today.remarks())


def test_permuted_labels_are_compared_with_true_ones_of_the_same_version(
    digits_study, copied, tmp_path, capsys
):
    of_today = raysel.permutation_test(copied, permutations=4, progress=False)
    old = with_other_scores(upgraded(digits_study, tmp_path / "old"))
    assert run_command(["permute", str(old), "--permutations", "4"]) == 0
    assert "own scores are by raysel 0.1.9" in " ".join(capsys.readouterr().out.split())
    found = raysel.open_study(old).permutation_test
    assert (found.p, found.test_mean) == (of_today.p, of_today.test_mean)
    for name, values in of_today.features.items():
        np.testing.assert_array_equal(found.features[name], values)


def test_halves_of_two_versions_are_not_mixed(digits_study, tmp_path):
    old = upgraded(digits_study, tmp_path / "old")
    raysel.stability_selection(old, subsamples=4, progress=False)
    journal = old / "stability/journal.jsonl"
    journal.write_text(journal.read_text().replace('"numpy":"', '"numpy":"0.'))
    with pytest.raises(DirectoryError):
        raysel.stability_selection(old, subsamples=6, progress=False)


def test_a_study_that_is_resumed_still_needs_its_version(digits_study, tmp_path):
    old = upgraded(digits_study, tmp_path / "old")
    with pytest.raises(DirectoryError, match=r"(?s)numbers: .*install raysel 0\.1\.9"):
        raysel.resume_study(old, progress=False)


def test_the_sentence_names_each_version_that_differs():
    before = {"python": "3.11.1", "numpy": "2.0", "raysel": "0.8.0", "numbers": "a"}
    assert not other_versions(before, {**before, "raysel": "0.9.0"})  # no number has changed
    said = other_versions(before, {**before, "numpy": "2.1"})
    assert said.startswith("Computed by numpy 2.1; the study's own scores are by numpy 2.0 and")
    said = other_versions(before, {**before, "numbers": "b"})
    assert "other source code of raysel 0.8.0" in said
