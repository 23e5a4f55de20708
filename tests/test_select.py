"""``python -m raysel.select``: what it exports is what the journal says, recomputed here."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import raysel
from raysel.config import load_config
from raysel.data.loading import load_dataset
from raysel.select import main
from raysel.tracking.journal import read_journal

PICTURES = {f"{name}.png" for name in ("ranking", "scores", "stability", "search", "profile")}
FILES = PICTURES | {"ranking.csv", "ranking.parquet", "model.skops", "manifest.json"}
COLUMNS = ["feature", "index", "row", "column", "score", "rank", "rank_outer0", "rank_outer1", "selection_frequency"]


@pytest.fixture
def exported(finished_study, tmp_path, capsys) -> Path:
    assert main([str(finished_study.study), "--top", "5", "--output", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    return tmp_path / "out"


def refits(study: Path) -> dict[str, dict]:
    return {r["fold"]: r for r in read_journal(study / "journal.jsonl") if r["kind"] == "refit"}


def test_it_writes_its_files_straight_into_the_folder(exported):
    assert {path.name for path in exported.iterdir()} == FILES
    assert (exported / "ranking.png").read_bytes().startswith(b"\x89PNG")


def test_the_table_is_the_journals_scores_ranked(finished_study, exported):
    table = pyarrow.parquet.read_table(exported / "ranking.parquet").to_pydict()
    assert list(table)[: len(COLUMNS)] == COLUMNS
    found = refits(finished_study.study)
    X = load_dataset(finished_study.study.parent / "few.npz").X
    constant = np.ptp(X, axis=0) == 0
    assert constant.any()

    def places(scores):
        """Rank by score, ties to the lower index; features without one share the mean of the last ranks."""
        without = constant | (np.array(scores) == 0)
        order = sorted(range(64), key=lambda i: (without[i], -scores[i], i))
        last = 64 - (without.sum() - 1) / 2
        return {feature: last if without[feature] else place for place, feature in enumerate(order, start=1)}

    index = table["index"]
    assert sorted(index) == list(range(64))
    assert table["rank"] == sorted(table["rank"])
    assert table["score"] == [found["final"]["feature_scores"][i] for i in index]
    assert table["rank"] == [places(found["final"]["feature_scores"])[i] for i in index]
    by_fold = {fold: places(found[fold]["feature_scores"]) for fold in ("outer0", "outer1")}
    for fold, ranks in by_fold.items():
        assert table[f"rank_{fold}"] == [ranks[i] for i in index]
    assert table["selection_frequency"] == [np.mean([ranks[i] <= 5 for ranks in by_fold.values()]) for i in index]
    assert [(r, c) for r, c in zip(table["row"], table["column"], strict=True)] == [divmod(i, 8) for i in index]
    assert set(index[-constant.sum() :]) == set(np.flatnonzero(constant))
    with (exported / "ranking.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == list(table)
    kinds = [type(values[0]) for values in table.values()]
    assert [[kind(cell) for kind, cell in zip(kinds, row, strict=True)] for row in rows] == [
        list(row) for row in zip(*table.values(), strict=True)
    ]


def test_the_manifest_is_the_journal_recomputed(finished_study, exported):
    manifest = json.loads((exported / "manifest.json").read_text())
    study, found = finished_study.study, refits(finished_study.study)
    config = load_config(study / "config.yaml")
    first = next(read_journal(study / "journal.jsonl"))
    assert manifest["config"] == config.to_dict() == first["config"]
    assert manifest["config_hash"] == config.hash
    assert manifest["data_hash"] == load_dataset(study.parent / "few.npz").content_hash
    assert len(bytes.fromhex(manifest["data_hash"])) == hashlib.sha256().digest_size
    assert manifest["seed"] == 3
    assert manifest["versions"]["raysel"] == raysel.__version__
    assert re.fullmatch(r"[0-9a-f]{16}", manifest["versions"]["numbers"])
    assert manifest["versions"]["numpy"] == np.__version__
    assert manifest["winners"] == {fold: refit["params"] for fold, refit in found.items()}
    test = [float(np.mean(found[fold]["test_scores"])) for fold in ("outer0", "outer1")]
    assert manifest["scores"] == {
        "test_mean": pytest.approx(sum(test) / 2, abs=1e-15),
        "test_std": pytest.approx(abs(test[0] - test[1]) / 2**0.5, abs=1e-15),
        "test": test,
        "inner": [found[fold]["inner_score"] for fold in ("outer0", "outer1")],
    }
    # The winners again, from the trials alone.
    trials = [r for r in read_journal(study / "journal.jsonl") if r["kind"] == "trial"]
    for fold in ("outer0", "outer1", "final"):
        scores = {
            trial["id"]: np.mean([np.mean(inner["scores"][-1]) for inner in trial["folds"][fold]["inner"]])
            for trial in trials
            if not trial["folds"][fold]["null"]
        }
        assert scores[found[fold]["trial"]] == pytest.approx(max(scores.values()), abs=1e-12)


def test_the_model_predicts_and_ranks_as_the_table_says(finished_study, exported):
    model = raysel.load_model(exported / "model.skops")
    data = load_dataset(finished_study.study.parent / "few.npz")
    assert (model.predict(data.X) == data.y).mean() > 0.9
    assert model.named_steps["solver"].scores_.tolist() == refits(finished_study.study)["final"]["feature_scores"]


def test_without_arguments_it_takes_the_newest_study_below(finished_study, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([]) == 2
    assert "there is no study at or below" in capsys.readouterr().err
    for name, age in (("old", 1000), ("new", 10), ("older", 2000)):
        copy = tmp_path / "raysel-studies" / name
        shutil.copytree(finished_study.study, copy, ignore=shutil.ignore_patterns("ranking"))
        moment = (copy / "journal.jsonl").stat().st_mtime - age
        os.utime(copy / "journal.jsonl", (moment, moment))
    assert main([]) == 0
    out = capsys.readouterr().out
    assert out.startswith("few in raysel-studies/new: alpha=")
    folder = tmp_path / "raysel-studies" / "new" / "ranking"
    assert {path.name for path in folder.iterdir()} == FILES
    assert json.loads((folder / "manifest.json").read_text())["top"] == 8  # the middle one of n_features
    # The same as what the study itself wrote.
    for name in FILES:
        assert (folder / name).read_bytes() == (finished_study.study / "ranking" / name).read_bytes(), name


def test_what_cannot_be_exported_is_refused_in_a_sentence(finished_study, tmp_path, capsys):
    def refusal(*arguments: str) -> str:
        assert main(list(arguments)) == 2
        said = capsys.readouterr().err
        assert said.startswith("error: ")
        assert "Traceback" not in said
        return said

    study = str(finished_study.study)
    for top in ("0", "65", "-3"):
        assert f"top={top} must be a whole number between 1 and the 64 features" in refusal(study, "--top", top)
    assert "holds no readable journal" in refusal(str(tmp_path / "nowhere"))
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refusal(study, "--output", str(tmp_path / "file"))

    lines = (finished_study.study / "journal.jsonl").read_bytes().splitlines(keepends=True)
    broken = tmp_path / "broken"
    broken.mkdir()
    for text, said in {
        b"".join(lines[:4]): "has not finished: 3 of 6 trials are done",
        b"".join(lines[:4]) + lines[4][:50]: "3 of 6 trials are done",
        b"": "has no record of a study",
        lines[0] + b"{}\n": "line 2: a record has no 'kind'",
        lines[0] + b"not JSON\n" + lines[1]: "line 2: damaged",
    }.items():
        (broken / "journal.jsonl").write_bytes(text)
        assert said in refusal(str(broken))
    assert {path.name for path in broken.iterdir()} == {"journal.jsonl"}

    (broken / "journal.jsonl").write_bytes(b"".join(lines))
    assert main([str(broken)]) == 0
    assert "There is no model.skops: it was removed or could not be written" in capsys.readouterr().out
    written = {path.name for path in (broken / "ranking").iterdir()}
    assert written == (FILES - {"model.skops", "profile.png"})
