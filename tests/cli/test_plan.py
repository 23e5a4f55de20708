"""The plan tells of the data what NumPy and pandas count in the file, and wraps without losing a
word.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from small_studies import make_study, write_digits, write_yaml

from raysel.cli.plan import announce, describe, notes, notes_section, refit_bytes, section
from raysel.core.errors import ConfigError
from raysel.results.description import method_facts
from raysel.run.course import OneStudy
from raysel.study import cost
from raysel.tracking.directory import StudyDirectory
from raysel.tune import main

SVM = {"name": "linear_svm", "params": {"tol": 1e-3}, "space": {"C": {"logspace": [0.01, 1.0, 3]}}}


@pytest.fixture(autouse=True)
def _short_pilot(monkeypatch):
    monkeypatch.setattr(cost, "_PILOT_SECONDS", 0.0)


def described(study):
    """Sections of the plan of a study by title, each a headline and its texts by term."""
    sections: dict[str, tuple[str, dict[str, str]]] = {}
    for line in describe(OneStudy.of(study)):
        term, _, text = line.strip().partition("  ")
        if line.startswith(" "):
            next(reversed(sections.values()))[1][term] = text.strip()
        else:
            sections[term] = (text.strip(), {})
    return sections


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        rng.normal(size=(60, 4)), columns=["weight", "height, sitting", "flat", "age"]
    )
    frame["flat"] = 2.5
    frame["patient"] = np.repeat(np.arange(9), 7)[:60]
    frame["y"] = rng.choice(["ill", "well"], 60, p=[0.3, 0.7])
    frame.to_csv(tmp_path / "own.csv", index=False)
    return frame, tmp_path / "own.csv"


def test_the_data_are_told_as_pandas_counts_them(table):
    frame, path = table
    changes = {"cv": {"outer": 2, "inner": 2, "groups": "patient"}, "dataset__scaling": "zscore"}
    found = described(make_study(path, solver=SVM, evaluation={"classifier": "native"}, **changes))
    headline, rows = found["data"]
    X = frame.drop(columns=["patient", "y"])
    assert headline == f"own: {len(frame)} samples x {X.shape[1]} features"
    assert rows["read from"] == str(path)
    assert rows["label"] == "y"
    counts = frame["y"].value_counts().sort_index()
    each = f"{counts.min()} to {counts.max()} samples each"
    assert rows["classes"] == f"2, {each}: ill ({counts['ill']}), well ({counts['well']})"
    sizes = frame["patient"].value_counts()
    assert rows["groups"].startswith(
        f"patient: {len(sizes)} groups of {sizes.min()} to {sizes.max()} samples;"
    )
    assert rows["features"] == "4: weight, 'height, sitting', flat, age"
    assert rows["layout"] == "each sample is a row of a table"
    assert (
        rows["values"]
        == f"{X.min().min():.4g} to {X.max().max():.4g}, mean {X.to_numpy().mean():.4g}"
    )
    assert "constant" not in rows  # a note says it, once
    (note,) = [text for text in found["checks"][1].values() if "constant" in text]
    assert note.startswith(
        f"{int((X.nunique() == 1).sum())} of 4 columns is constant, which tells nothing of the"
        " label: flat"
    )
    assert found["method"][1]["searched"] == "C (3 values from 0.01 to 1 in equal ratios)"
    assert found["method"][1]["fixed"] == "tol = 0.001"
    assert (
        "zscore (each feature to mean 0 and variance 1); fitted on the training"
        in found["method"][1]["scaling"]
    )


def test_a_column_of_drop_that_is_read_as_a_confound_is_not_told_as_left_out(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 4)), columns=[*"abcd"])
    frame.assign(site=[*"mn"] * 40, y=np.arange(80) // 2 % 2).to_csv(
        tmp_path / "t.csv", index=False
    )
    beside = {"dataset__label": "y", "dataset__confounds": ["site"]}
    beside |= {"solver": {"name": "fisher_score"}, "dataset__drop": ["site", "d"]}
    study = make_study(tmp_path / "t.csv", evaluation__n_features=[1, 3], **beside)
    assert described(study)["data"][1]["left out"] == "columns d (dataset.drop)"
    with pytest.raises(ConfigError):
        make_study(tmp_path / "t.csv", evaluation__n_features=[1, 4], **beside)


def test_what_is_left_out_and_what_the_reader_says_are_told(tmp_path):
    write_digits(tmp_path / "few.npz")
    study = make_study(tmp_path / "few.npz", dataset__exclude_classes=[3])
    object.__setattr__(study.dataset, "notes", ("The table's first line is a header.",))
    rows = described(study)["data"][1]
    assert rows["left out"] == "classes 3 (dataset.exclude_classes)"
    assert rows["reader"] == "The table's first line is a header."
    assert rows["layout"] == "each sample is 8 x 8 (rows x columns); read in order C, row by row"
    assert rows["classes"] == "3, 20 samples each: 0, 1, 2"
    found = list(notes_section(["one thing.", "another."], None))
    assert found == ["checks        2 notes", "  note        one thing.", "  note        another."]


def test_several_labels_are_counted_and_tasks_by_task(tmp_path):
    X, y = load_digits(return_X_y=True)
    Y = np.stack([y < 3, y % 2 == 0, y == 5], axis=1).astype(int)[:90]
    np.savez(
        tmp_path / "some.npz",
        view_0=X[:90, :32],
        view_1=X[:90, 32:],
        Y=Y,
        view_names=["up", "down"],
    )
    smml = {"name": "smml", "space": {"gamma1": [0.1]}}
    found = described(
        make_study(tmp_path / "some.npz", solver=smml, evaluation={"classifier": "native"})
    )
    counts = Y.sum(axis=0)
    named = ", ".join(f"{i} ({count})" for i, count in enumerate(counts))
    without = int((Y.sum(axis=1) == 0).sum())
    assert (
        found["data"][1]["labels"]
        == f"3, {counts.min()} to {counts.max()} samples each: {named}; {without} samples without"
        " any label"
    )
    assert found["data"][1]["layout"] == "2 modalities: up (32), down (32)"
    assert found["data"][1]["values"].startswith(
        f"up {X[:90, :32].min():.4g} to {X[:90, :32].max():.4g} (mean "
    )
    tasks = [{"name": "iris", "source": "iris"}, {"name": "wine", "source": "wine"}]
    mtda = {"name": "mtda", "space": {"shrinkage": [0.1]}}
    changes = {"dataset": {"tasks": tasks}, "solver": mtda, "evaluation": {"classifier": "native"}}
    rows = described(make_study(tmp_path / "some.npz", **changes))["data"][1]
    assert rows["classes"] == "6: iris 3 (50 samples each), wine 3 (48 to 71 samples each)"
    assert rows["layout"].endswith("iris (4, 150 samples), wine (13, 178 samples)")
    assert rows["read from"] == "iris: iris, built into raysel; wine: wine, built into raysel"


@pytest.mark.parametrize("width", [40, 72, 300])
def test_texts_are_wrapped_at_spaces_and_lose_nothing(width):
    text = "names such as " + ", ".join(f"a-very_long.name[{i}]" for i in range(40))
    lines = list(section("title", text, [("term", text), ("longer term", "short")], width))
    assert max(map(len, lines)) <= min(width, 110)
    assert " ".join(" ".join(lines).split()) == f"title {text} term {text} longer term short"
    assert {line[:14].strip() for line in lines} == {"title", "term", "longer term", ""}


def test_what_a_study_says_at_its_start_is_wrapped(tmp_path):
    write_digits(tmp_path / "few.npz")
    study = make_study(tmp_path / "few.npz")
    whole = " ".join(announce(study, tmp_path, None)).split()
    lines = list(announce(study, tmp_path, None, 60))
    told, end = " ".join(lines).split(), whole.index("About")  # the cost is estimated anew
    assert told[:end] == whole[:end]
    # Constant pixels question no score: only the dry run and the report tell of them.
    assert "constant" not in told
    assert any("are constant" in note for note in notes(study))
    assert all(len(line) <= 60 or str(tmp_path) in line for line in lines)


def test_a_dry_run_draws_the_data_into_a_folder_that_a_study_may_use(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "few.npz")
    write_yaml(tmp_path / "few.yaml")
    assert main(["few.yaml", "--dry-run"]) == 0
    assert "--output DIR" in capsys.readouterr().out
    assert main(["few.yaml", "--dry-run", "--output", "one"]) == 0
    assert "one/preview.png" in capsys.readouterr().out
    assert main(["few.yaml", "--dry-run", "--output", "one/two"]) == 0
    first, second = (tmp_path / name / "preview.png" for name in ("one", "one/two"))
    assert first.read_bytes() == second.read_bytes()
    assert [path.name for path in second.parent.iterdir()] == ["preview.png"]
    StudyDirectory.create(second.parent, 0)[1].close()  # is not refused
    assert main(["few.yaml", "--dry-run", "--output", "few.npz/below"]) == 2
    assert "few.npz/below cannot be created: Not a directory" in capsys.readouterr().err
    assert main(["few.yaml", "--dry-run", "--set", "tracking.uri=ftp://host"]) == 2
    assert "MLflow does not support the scheme 'ftp' of ftp://host" in capsys.readouterr().err


def test_lists_among_the_values_of_a_parameter_keep_their_brackets():
    config = {
        "solver": {
            "params": {"shape": [8, 8], "max_iter": 12345678},
            "space": {"k": [[7, 7], [9, 9]], "C": [1, 0.5]},
        },
        "dataset": {"scaling": "none"},
        "evaluation": {"estimator": "native", "metric": "accuracy"},
    }
    facts = dict(method_facts(config))
    assert facts["searched"] == "k ([7, 7], [9, 9]), C (1, 0.5)"
    assert facts["fixed"] == "shape = [8, 8], max_iter = 12345678"


def test_the_memory_of_a_refit_grows_with_the_square_of_its_samples(table):
    """Twice the samples of a pilot fit; a transductive one held the samples to predict, which
    are the other half.
    """
    _, path = table
    for name, factor in (("kernel_svm", 4), ("mcgf", 1)):
        study = make_study(
            path,
            solver={"name": name},
            evaluation={"classifier": "native"},
            cv={"outer": 2, "inner": 2},
        )
        found = cost.estimate_cost(study)
        assert len(study.largest[0].inner[study.largest[1]].train) == 30
        n_prepared = round(10 * study.n_largest)
        known = replace(found, fit_bytes=100, prepared_bytes=n_prepared)
        assert refit_bytes(study, known) == pytest.approx(110 * factor, abs=2)
        assert refit_bytes(study, replace(found, fit_bytes=None)) is None
