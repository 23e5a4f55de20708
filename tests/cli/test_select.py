"""``raysel select``: what it exports is what the journal says, recomputed here."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

import raysel
from raysel.config import load_config
from raysel.data.loading import load_dataset
from raysel.select import main
from raysel.tracking.journal import read_journal

CURVES = ("roc", "precision_recall", "calibration")
PICTURES = {
    f"{name}.png"
    for name in ("ranking", "scores", "stability", "search", "confusion", *CURVES, "profile")
}
MODEL = {"model.skops", "model.skops.hmac"}
FILES = PICTURES | MODEL | {"ranking.csv", "ranking.parquet", "manifest.json"}
#: What a folder of a selection holds: of the pictures only that of its ranking.
SELECTED = (FILES - PICTURES) | {"ranking.png"}
COLUMNS = [
    "feature",
    "index",
    "row",
    "column",
    "score",
    "rank",
    "rank_outer0",
    "rank_outer1",
    "selection_frequency",
]


@pytest.fixture(scope="module")
def exported(finished_study, tmp_path_factory) -> Path:
    study = shutil.copytree(finished_study.study, tmp_path_factory.mktemp("exported") / "study")
    assert main([str(study), "--top", "5"]) == 0
    return study / "selection-top5"


def run(capsys, *arguments: object, status: int = 0) -> tuple[str, str]:
    """Run the command; return what it printed to both streams."""
    assert main([str(argument) for argument in arguments]) == status
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.out, captured.err


@pytest.fixture
def study(finished_study, tmp_path) -> Path:
    """A copy of the study, to write into."""
    return Path(shutil.copytree(finished_study.study, tmp_path / "study"))


def refits(study: Path) -> dict[str, dict]:
    return {r["fold"]: r for r in read_journal(study / "journal.jsonl") if r["kind"] == "refit"}


def test_the_table_is_the_journals_scores_ranked(finished_study, exported):
    table = pyarrow.parquet.read_table(exported / "ranking.parquet").to_pydict()
    assert list(table)[: len(COLUMNS)] == COLUMNS
    found = refits(finished_study.study)
    X = load_dataset(finished_study.study.parent / "few.npz").X
    constant = np.ptp(X, axis=0) == 0
    assert constant.any()

    def places(scores):
        """Rank by score, ties to the lower index; features without one share the mean of the
        last ranks.
        """
        without = constant | (np.array(scores) == 0)
        order = sorted(range(64), key=lambda i: (without[i], -scores[i], i))
        last = 64 - (without.sum() - 1) / 2
        return {
            feature: last if without[feature] else place
            for place, feature in enumerate(order, start=1)
        }

    index = table["index"]
    assert sorted(index) == list(range(64))
    assert table["consensus_place"] == sorted(table["consensus_place"])
    assert table["score"] == [found["final"]["feature_scores"][i] for i in index]
    assert table["rank"] == [places(found["final"]["feature_scores"])[i] for i in index]
    by_fold = {fold: places(found[fold]["feature_scores"]) for fold in ("outer0", "outer1")}
    for fold, ranks in by_fold.items():
        assert table[f"rank_{fold}"] == [ranks[i] for i in index]
    assert table["selection_frequency"] == [
        np.mean([ranks[i] <= 5 for ranks in by_fold.values()]) for i in index
    ]
    assert [(r, c) for r, c in zip(table["row"], table["column"], strict=True)] == [
        divmod(i, 8) for i in index
    ]
    assert set(index[-constant.sum() :]) == set(np.flatnonzero(constant))
    with (exported / "ranking.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == list(table)
    kinds = [type(values[0]) for values in table.values()]
    assert [[kind(cell) for kind, cell in zip(kinds, row, strict=True)] for row in rows] == [
        list(row) for row in zip(*table.values(), strict=True)
    ]


def one_se_score(scores: np.ndarray) -> float:
    """Mean at the smallest number of features within one standard error of the best mean."""
    means = scores.mean(axis=0)
    best = means.argmax()
    error = scores[:, best].std(ddof=1) / len(scores) ** 0.5
    return means[means >= means[best] - error - 1e-12][0]


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
    test = [found[fold]["test_scores"][found[fold]["position"]] for fold in ("outer0", "outer1")]
    scores = manifest["scores"]
    assert scores["n_features"] == {fold: refit["n_features"] for fold, refit in found.items()}
    curve = np.mean([found[fold]["test_scores"] for fold in ("outer0", "outer1")], axis=0)
    assert scores["curve"]["test_mean"] == pytest.approx(curve.tolist(), abs=1e-15)
    recorded = {"all features": "all features", "variance": "variance", "f_test": "f_test"}
    recorded["chance"] = scores["references"]["chance"]["guess"]
    folds = [found["outer0"], found["outer1"]]
    for name, own in recorded.items():
        at = [fold["references"][own][fold["reference_positions"].get(own, 0)] for fold in folds]
        assert scores["references"][name]["test"] == at
        assert scores["references"][name]["method_minus_it"]["mean"] == pytest.approx(
            np.mean(np.subtract(test, at))
        )
    assert {key: scores[key] for key in ("test_mean", "test_std", "test", "inner")} == {
        "test_mean": pytest.approx(sum(test) / 2, abs=1e-15),
        "test_std": pytest.approx(abs(test[0] - test[1]) / 2**0.5, abs=1e-15),
        "test": test,
        "inner": [found[fold]["inner_score"] for fold in ("outer0", "outer1")],
    }
    # The winners again, from the trials alone.
    trials = [r for r in read_journal(study / "journal.jsonl") if r["kind"] == "trial"]
    for fold in ("outer0", "outer1", "final"):
        scores = {
            trial["id"]: one_se_score(
                np.array([inner["scores"][-1] for inner in trial["folds"][fold]["inner"]])
            )
            for trial in trials
            if not trial["folds"][fold]["null"]
        }
        assert scores[found[fold]["trial"]] == pytest.approx(max(scores.values()), abs=1e-12)


def test_the_model_predicts_and_ranks_as_the_table_says(finished_study, exported):
    assert {path.name for path in (finished_study.study / "ranking").iterdir()} == FILES
    assert {path.name for path in exported.iterdir()} == SELECTED
    assert (exported / "ranking.png").read_bytes().startswith(b"\x89PNG")
    model = raysel.load_model(exported / "model.skops")
    data = load_dataset(finished_study.study.parent / "few.npz")
    assert (model.predict(data.X) == data.y).mean() > 0.9
    assert (
        model.named_steps["selector"].scores_.tolist()
        == refits(finished_study.study)["final"]["feature_scores"]
    )


def test_without_arguments_it_takes_the_newest_study_below(
    finished_study, tmp_path, monkeypatch, capsys
):
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
    chosen = refits(finished_study.study)["final"]["n_features"]
    new = tmp_path / "raysel-studies" / "new"
    folder = new / f"selection-top{chosen}"
    assert not (new / "ranking").exists()
    assert {path.name for path in folder.iterdir()} == SELECTED
    assert json.loads((folder / "manifest.json").read_text())["top"] == chosen
    # The same as what the study itself wrote; the command names the files of the copy.
    for name in SELECTED:
        written = (folder / name).read_bytes().replace(bytes(new), bytes(finished_study.study))
        assert written == (finished_study.study / "ranking" / name).read_bytes(), name


def test_what_cannot_be_exported_is_refused_in_a_sentence(finished_study, tmp_path, capsys):
    def refusal(*arguments: str) -> str:
        assert main(list(arguments)) == 2
        said = capsys.readouterr().err
        assert said.startswith("error: ")
        assert "Traceback" not in said
        return said

    study = str(finished_study.study)
    for top in ("0", "65", "-3"):
        assert f"top={top} must be a whole number between 1 and the 64 features" in refusal(
            study, "--top", top
        )
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
        lines[0] + b"{}\n": "line 2: a record of kind None is damaged",
        lines[0] + b"not JSON\n" + lines[1]: "line 2: damaged",
    }.items():
        (broken / "journal.jsonl").write_bytes(text)
        assert said in refusal(str(broken))
    assert {path.name for path in broken.iterdir()} == {"journal.jsonl"}

    (broken / "journal.jsonl").write_bytes(b"".join(lines))
    assert main([str(broken)]) == 0
    assert "Resume the study to write model.skops" in capsys.readouterr().out
    (folder,) = broken.glob("selection-top*")
    written = {path.name for path in folder.iterdir()}
    assert written == {"ranking.csv", "ranking.parquet", "ranking.png", "manifest.json"}


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.slow
def test_it_writes_beside_what_is_there_and_replaces_nothing_unless_told(study, capsys):
    before = contents(study)
    run(capsys, study, "--top", 5)
    run(capsys, study, "--top", 5)  # the same again is no conflict
    folder = study / "selection-top5"
    assert {path.name for path in folder.iterdir()} == SELECTED
    (folder / "ranking.csv").write_text("mine")
    said = run(capsys, study, "--top", 5, "--format", "csv,json", status=2)[1]
    assert "holds another ranking.csv; nothing was written" in said
    assert "--output" in said
    assert (folder / "ranking.csv").read_text() == "mine"
    assert {path.name for path in folder.iterdir()} == SELECTED
    run(capsys, study, "--top", 5, "--format", "csv,json", "--output", folder)
    assert (folder / "ranking.csv").read_text() != "mine"
    assert (folder / "ranking.json").exists()
    after = contents(study)
    assert {name: after[name] for name in before} == before
    assert {Path(name).parts[0] for name in after.keys() - before.keys()} == {"selection-top5"}
    assert not list(study.glob(".selection*"))


def test_it_prints_the_names_alone(study, capsys):
    before = contents(study)
    table = pd.read_csv(study / "ranking/ranking.csv")
    out, err = run(capsys, study, "--names", "--top", 6)
    assert out.splitlines() == table.feature[:6].tolist()
    assert "did not reach tol" in err
    assert contents(study) == before
    chosen = refits(study)["final"]["n_features"]
    assert len(run(capsys, study, "--names")[0].splitlines()) == chosen


def test_it_ranks_by_the_consensus_of_the_folds(study, capsys):
    out, _ = run(capsys, study, "--consensus", "--top", 6)
    folder = study / "selection-top6-consensus"
    # The model has another ranking.
    assert {path.name for path in folder.iterdir()} == SELECTED - MODEL
    assert "ranking of the consensus, top 6 (as given)" in out
    table = pd.read_parquet(folder / "ranking.parquet")
    ranks = table[["rank_outer0", "rank_outer1"]]
    # Features without a score share a rank in a fold, and count as the last; the median of two is
    # their mean.
    by_fold = ranks.apply(lambda row: row.where(~row.duplicated(keep=False), 64)).mean(axis=1)
    assert table["rank"].tolist() == sorted(table["rank"])
    best = table[table.score > 0]
    keys = by_fold[best.index].tolist()
    assert keys == sorted(keys)
    places = [1 + sum(other < key for other in keys) for key in keys]
    np.testing.assert_array_equal(best.score, 65 - np.array(places))
    np.testing.assert_allclose(table.consensus_rank, by_fold)
    assert (
        run(capsys, study, "--consensus", "--names", "--top", 6)[0].splitlines()
        == table.feature[:6].tolist()
    )
    assert json.loads((folder / "manifest.json").read_text())["ranking_of"] == "consensus"


def test_it_ranks_by_an_outer_fold(study, capsys):
    out, _ = run(capsys, study, "--fold", "outer1")
    found = refits(study)["outer1"]
    folder = study / f"selection-top{found['n_features']}-outer1"
    table = pd.read_parquet(folder / "ranking.parquet")
    assert table.score.tolist() == [found["feature_scores"][i] for i in table["index"]]
    assert table["rank"].tolist() == table.rank_outer1.tolist()
    assert "chosen by the inner scores of outer1" in out
    final = run(capsys, study, "--fold", "final", "--names")[0]
    assert final == run(capsys, study, "--names")[0]


@pytest.mark.parametrize("name", ["mask.npy", "mask.nii.gz"])
def test_it_writes_a_mask_of_a_sample_s_shape(study, tmp_path, capsys, name):
    if name.endswith("gz"):
        nibabel = pytest.importorskip("nibabel")
    path = tmp_path / name
    out, _ = run(capsys, study, "--names", "--top", 6, "--mask", path)
    mask = (
        np.load(path)
        if name.endswith("npy")
        else np.asarray(nibabel.load(path).dataobj).astype(bool)
    )
    names = {f"r{row}c{column}" for row, column in np.argwhere(mask)}
    assert (mask.shape, names) == ((8, 8), set(out.split()))
    out, _ = run(capsys, study, "--top", 6, "--mask", path)  # the same content is no conflict
    assert ("affine: identity" in out) == name.endswith("gz")
    said = run(capsys, study, "--top", 7, "--mask", path, status=2)[1]
    assert "exists with other content" in said
    assert not (study / "selection-top7").exists()


def test_it_writes_the_formats_that_are_asked_for(study, capsys):
    run(capsys, study, "--top", 5, "--format", "json,npz", "--format", "json")
    folder = study / "selection-top5"
    assert {path.name for path in folder.iterdir()} == {
        "ranking.json",
        "ranking.npz",
        "ranking.png",
        *MODEL,
        "manifest.json",
    }
    names = run(capsys, study, "--names", "--top", 64)[0].split()
    rows = json.loads((folder / "ranking.json").read_text())
    with np.load(folder / "ranking.npz", allow_pickle=False) as columns:
        assert columns["feature"].tolist() == [row["feature"] for row in rows]
        assert columns["feature"].tolist()[: len(names)] == names


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--fold", "outer0", "--consensus"), "leave one of them out"),
        (("--fold", "outer7"), "--fold outer7 is not a fold of the study; it has outer0, outer1"),
        (("--fold", ""), "the argument after --fold is empty"),
        (("--names", "--output", "out"), "--output has no effect"),
        (("--names", "--format", "csv"), "--format has no effect"),
        (
            ("--format", "csv,pdf"),
            "'pdf' is not a format of a ranking; choose from csv, parquet, json, npz",
        ),
        (("--format", ""), "the argument after --format is empty"),
        (("--mask", "mask.png"), "must end in .npy or .nii.gz"),
        (("--mask", "nowhere/mask.npy"), "there is no folder nowhere; create it first"),
        (("--top", "65", "--names"), "top=65 must be a whole number between 1 and the 64 features"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_written(
    study, monkeypatch, capsys, arguments, said
):
    monkeypatch.chdir(study)
    before = contents(study)
    assert said in run(capsys, study, *arguments, status=2)[1]
    assert contents(study) == before
