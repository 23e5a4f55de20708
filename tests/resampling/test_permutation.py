"""Permutation test of a finished study: files, resuming, failures, both executors and the command."""

from __future__ import annotations

import json
import shutil
import signal

import numpy as np
import pandas as pd
import pytest

import raysel
from raysel.cli import permute
from raysel.core.errors import ConfigError, DirectoryError, StudyError
from raysel.execution.serial import SerialExecutor
from raysel.numerics.permutation import feature_p_values, permutation_p_value
from raysel.run.resampling import permutation
from raysel.tracking.journal import read_journal
from raysel.tracking.mlflow_view import end_view
from raysel.tracking.records import NodeRecord
from raysel.tracking.uploader import last_end

N = 6


@pytest.fixture(scope="module")
def tested(digits_study, tmp_path_factory):
    """Copy of the study with a test of six permutations, and what the function returned."""
    path = tmp_path_factory.mktemp("permuted") / "study"
    shutil.copytree(digits_study, path)
    return path, raysel.permutation_test(path, permutations=N, progress=False)


@pytest.fixture
def path(tested, tmp_path):
    """Copy of its directory, for tests that write to it."""
    shutil.copytree(tested[0], tmp_path / "study")
    return tmp_path / "study"


def same(one, other):
    assert one.permuted == other.permuted
    assert one.p == other.p
    assert all(np.array_equal(one.features[name], other.features[name]) for name in one.features | other.features)
    assert one.sentences() == other.sentences()


def test_the_p_values_are_those_of_the_journal(tested):
    path, found = tested
    result = raysel.open_study(path)
    pieces = {
        line["number"]: line["value"]
        for line in read_journal(path / "permutation/fixed/journal.jsonl")
        if "value" in line
    }
    means = [np.mean(list(pieces[number]["scores"].values())) for number in range(N + 1)]
    assert means[0] == found.recomputed == found.test_mean == result.test_mean
    assert list(found.permuted) == means[1:]
    assert found.p == permutation_p_value(result.test_mean, means[1:])
    scores = [permutation.unpacked(pieces[number]["feature_scores"]) for number in range(N + 1)]
    assert np.array_equal(scores[0], np.array(result.final.feature_scores, dtype=np.float32))
    expected = feature_p_values(scores[0], scores[1:], by_share=True)
    assert np.array_equal(found.features["p_value"], expected.p_value)
    assert np.array_equal(found.features["p_value_fwer"], expected.single_step)


def test_files_and_ranking_hold_what_was_found(tested):
    path, found = tested
    result = raysel.open_study(path)
    same(result.permutation_test, found)
    raw = json.loads((path / "permutation/result.json").read_text())
    assert raw["p_value"] == found.p_value == 1 / (N + 1)
    assert raw["sentences"] == found.sentences()
    tables = [pd.read_csv(path / "permutation/features.csv"), pd.read_parquet(path / "permutation/features.parquet")]
    for table in tables:
        assert table.feature.tolist() == list(result.feature_names)
        assert np.allclose(table.p_value_fwer, found.features["p_value_fwer"])
    described = json.loads((path / "ranking/manifest.json").read_text())["permutation_test"]
    assert described["p_value"] == found.p_value
    assert described["smallest_possible_p_value"] == 1 / (N + 1)
    assert described["sentences"] == found.sentences()
    status = end_view(result.stored.study, result.directory, last_end(result.directory.journal))
    assert status.metrics["permutation_p_value"] == found.p_value
    assert status.tags["raysel.permutation_test"] == " ".join(found.sentences())
    ranking = pd.read_csv(path / "ranking/ranking.csv")
    assert ranking.p_value_fwer.tolist() == found.features["p_value_fwer"][ranking["index"]].tolist()
    assert ranking.p_value.tolist() == found.features["p_value"][ranking["index"]].tolist()


def test_the_sentences_say_the_figure_and_its_limits(tested):
    first, *rest = tested[1].sentences()
    assert f"p = 0.143 (0 of {N} permutations reach the test accuracy" in first
    assert "smallest possible 0.143; configuration fixed" in first
    text = " ".join(rest)
    assert "0 of 64 features have p <= 0.05 adjusted for all features" in text
    assert "the labels of samples (80 samples" in text
    assert "6 permutations cannot give p <= 0.05; compute at least 19." in text
    assert "chosen with the true labels" in text


def test_nodes_with_other_versions_are_named_in_the_result(path, monkeypatch, capsys):
    node = NodeRecord("10.0.0.2", [["numpy", "2.4.6", "2.3.1"]])
    monkeypatch.setattr(SerialExecutor, "mixed_nodes", lambda _: [node])
    assert permute.main([str(path), "--permutations", str(N + 1), "--allow-mixed-versions"]) == 0
    assert node.sentence in " ".join(capsys.readouterr().out.split())
    assert node.sentence in raysel.open_study(path).permutation_test.sentences()


def test_a_study_without_a_test_has_none(digits_study):
    result = raysel.open_study(digits_study)
    assert result.permutation_test is None
    assert "p_value" not in result.ranking().to_table().column_names


def test_an_interrupted_test_continues_and_more_permutations_keep_those_before(path, tested):
    journal = path / "permutation/fixed/journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    same(raysel.permutation_test(path, permutations=N, progress=False), tested[1])
    more = raysel.permutation_test(path, permutations=N + 2, progress=False)
    assert more.permuted[:N] == tested[1].permuted
    assert [line["number"] for line in read_journal(journal) if "value" in line] == list(range(N + 3))


def test_another_seed_is_refused_and_a_new_search_has_a_folder_of_its_own(path):
    with pytest.raises(DirectoryError, match="permutation seed: 3 -> 4"):
        raysel.permutation_test(path, permutations=N, seed=4, progress=False)
    found = raysel.permutation_test(path, permutations=2, retune=True, seed=4, progress=False)
    assert (found.retune, found.seed, found.recomputed) == (True, 4, found.test_mean)
    assert "configurations searched again" in found.sentences()[0]
    assert not any("chosen with the true labels" in sentence for sentence in found.sentences())
    assert (path / "permutation/fixed/journal.jsonl").exists()
    assert raysel.open_study(path).permutation_test.retune


def test_failed_permutations_count_against_the_result_and_are_said(path):
    journal = path / "permutation/fixed/journal.jsonl"
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    for entry in entries:
        if entry.get("number") in (0, 2):
            del entry["value"]
            entry["error"] = "FloatingPointError: planted"
    entries = [entry for entry in entries if entry.get("number") != 5]
    from raysel.numerics.permutation import LabelPermutations  # noqa: PLC0415
    from raysel.run.resampling.finished import finished_study  # noqa: PLC0415
    from raysel.run.resampling.permutation import _evaluated  # noqa: PLC0415
    from raysel.run.resampling.pieces import read_pieces  # noqa: PLC0415

    journal.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    pieces = read_pieces(journal.parent, range(5))
    with finished_study(path) as finished:
        labels = LabelPermutations(finished.study.dataset.y)
        found = _evaluated(finished, pieces, labels, retune=False, seed=3, n=4)
        with pytest.raises(StudyError, match="FloatingPointError: planted"):
            _evaluated(finished, read_pieces(journal.parent, [2]), labels, retune=False, seed=3, n=2)
    assert (found.p_value, found.p.n_failed, found.permuted[1]) == (2 / 5, 1, None)
    assert found.features["p_value"].min() >= 2 / 5
    text = " ".join(found.sentences())
    assert "1 of 4 permutations reach the test accuracy" in text
    assert "1 of them because they failed" in text
    assert "number 2: FloatingPointError: planted" in text
    assert "could not be computed again" in text


def test_a_result_of_other_winners_or_damaged_files_are_not_shown(path):
    file = path / "permutation/result.json"
    raw = json.loads(file.read_text())
    file.write_text(json.dumps(raw | {"of": raw["of"] | {"test_scores": [0.5, 0.5]}}))
    assert raysel.open_study(path).permutation_test is None
    file.write_text(json.dumps({"of": raw["of"]}))
    with pytest.raises(DirectoryError, match="permutation cannot be read"):
        _ = raysel.open_study(path).permutation_test


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"permutations": 0}, "permutations=0"),
        ({"permutations": 2.5}, "permutations=2.5"),
        ({"permutations": True}, "permutations=True"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_arguments_are_checked_before_anything_is_read(change, named, tmp_path):
    with pytest.raises(ConfigError, match=named):
        raysel.permutation_test(tmp_path / "nothing", **change)


def test_the_command_prints_the_sentences_and_its_errors(path, tested, capsys):
    assert permute.main([str(path), "--permutations", str(N), "--executor", "serial"]) == 0
    out = capsys.readouterr().out
    for sentence in tested[1].sentences():
        assert sentence in out
    assert permute.main([str(path), "--permutations", str(N), "--executor", "serial", "--quiet"]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert permute.main([str(path), "--permutations", "0"]) == 2
    assert "permutations=0 must be a whole number" in capsys.readouterr().err
    assert permute.main([str(path / "folds")]) == 2
    assert "holds no readable journal" in capsys.readouterr().err


def test_the_command_says_how_to_finish_a_study_and_that_it_was_terminated(path, capsys, monkeypatch):
    monkeypatch.setattr(permute, "ProgressLine", lambda _: Terminates())
    assert permute.main([str(path), "--permutations", str(N + 2), "--executor", "serial"]) == 143
    assert f"resume with: python -m raysel.permute {path} --permutations {N + 2}" in capsys.readouterr().err
    lines = (path / "journal.jsonl").read_text().splitlines(keepends=True)
    (path / "journal.jsonl").write_text("".join(line for line in lines if '"kind":"end"' not in line))
    assert permute.main([str(path)]) == 2
    assert f"python -m raysel.tune --resume {path}" in capsys.readouterr().err


class Terminates:
    """Listener that sends SIGTERM to its process once a permutation has ended."""

    def show(self, progress):
        if progress.phase.startswith(f"{N + 2}/"):
            signal.raise_signal(signal.SIGTERM)

    def message(self, text):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
@pytest.mark.parametrize("retune", [False, True])
def test_ray_computes_the_same(copied, retune, tmp_path):
    shutil.copytree(copied, tmp_path / "other")
    serial = raysel.permutation_test(copied, permutations=4, retune=retune, progress=False)
    same(
        raysel.permutation_test(tmp_path / "other", permutations=4, retune=retune, executor="ray", progress=False),
        serial,
    )
