"""Words that cannot be printed: the study goes on, and its results are those of one whose words
were read.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_studies import NoUpload, make_study, write_digits, write_yaml

from raysel.execution.serial import SerialExecutor
from raysel.results.result import StudyResult
from raysel.run import course
from raysel.select import main as select_main
from raysel.tune import main

STREAMS = ("ascii", "latin-1", "full disk", "closed pipe", "closed", "none")


@contextmanager
def output(kind: str) -> Iterator[io.BytesIO]:
    """Make the standard output a stream of an encoding, or one that cannot be written."""
    kept = io.BytesIO()
    if kind == "full disk":
        stream = open("/dev/full", "w", encoding="utf-8")  # noqa: PTH123, SIM115
    elif kind == "closed pipe":
        read, write = os.pipe()
        os.close(read)
        stream = os.fdopen(write, "w", encoding="utf-8")
    else:
        encoding = "utf-8" if kind in ("closed", "none") else kind
        stream = io.TextIOWrapper(kept, encoding=encoding, write_through=True)
    if kind == "closed":
        stream.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", None if kind == "none" else stream)
        yield kept
    if kind in ("ascii", "latin-1", "utf-8"):
        stream.detach()
    else:
        with suppress(OSError):  # what the full disk could not take
            stream.close()


@pytest.fixture(autouse=True)
def _quick_report(monkeypatch) -> None:
    """Write a report without figures, which take seconds."""
    monkeypatch.setattr(
        "raysel.results.page.report.write_final_report",
        lambda result: result.directory.report.write_text("report"),
    )


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A working directory with a table whose columns have names beyond Latin-1."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 15)
    X = rng.normal(size=(30, 4)) + y[:, None]
    frame = pd.DataFrame(X, columns=["β-actin", "Ωmega", "c", "d"]).assign(label=y)
    frame.to_csv("table.csv", index=False)
    write_yaml(
        tmp_path / "s.yaml",
        dataset={"path": "table.csv", "label": "label"},
        solver={"name": "fisher_score"},
        evaluation={"n_features": [2], "estimator": "knn", "references": "chance"},
        tracking={"mlflow": False},
    )
    return tmp_path


def kept(folder: Path) -> bytes:
    """The ranking of a finished study, all of whose results are written."""
    assert StudyResult.open(folder).stored.status == "finished"
    for name in ("report.html", "ranking/manifest.json", "ranking/model.skops"):
        assert (folder / name).exists(), name
    return (folder / "ranking" / "ranking.csv").read_bytes()


@pytest.mark.slow
def test_a_study_whose_words_cannot_be_printed_leaves_all_its_results(here, capsys):
    assert main(["s.yaml", "--output", "read"]) == 0
    capsys.readouterr()
    for kind in STREAMS:
        with output(kind) as printed:
            assert main(["s.yaml", "--output", kind]) == 0, kind
        assert kept(here / kind) == kept(here / "read"), kind
        if kind == "latin-1":
            assert "\\u03b2-actin" in printed.getvalue().decode("latin-1")
            assert "±" in printed.getvalue().decode("latin-1")
        if kind == "ascii":
            assert " +/- " in printed.getvalue().decode("ascii")
        said = capsys.readouterr().err
        assert ("No space left" in said) == (kind == "full disk"), said


def test_an_error_in_what_shows_a_result_leaves_a_finished_study(tmp_path):
    def fail(_: StudyResult) -> None:
        raise RuntimeError("cannot show")

    write_digits(tmp_path / "few.npz")
    study = make_study(tmp_path / "few.npz", solver__space={"alpha": [0.1]})
    with pytest.raises(RuntimeError, match="cannot show"):
        course.run(
            study, tmp_path / "study", SerialExecutor(study), start_upload=NoUpload, show=fail
        )
    assert kept(tmp_path / "study")


@pytest.mark.usefixtures("here")
def test_names_for_a_program_are_whole_or_refused(capsys):
    main(["s.yaml", "--output", "study", "--quiet"])
    capsys.readouterr()
    with output("closed pipe"):
        assert select_main(["study", "--names"]) == 0
    with output("utf-8") as printed:
        assert select_main(["study", "--names", "--top", "4"]) == 0
    assert set(printed.getvalue().decode().split()) == {"β-actin", "Ωmega", "c", "d"}
    for kind, reason in (("latin-1", "PYTHONIOENCODING"), ("full disk", "No space left")):
        with output(kind) as printed:
            assert select_main(["study", "--names", "--top", "4"]) == 2
        assert not printed.getvalue()
        assert reason in capsys.readouterr().err
    Path("ü").mkdir()
    with output("ascii") as printed:
        assert main(["s.yaml", "--output", "ü/study", "--quiet"]) == 0
    assert os.fsdecode(printed.getvalue()) == "ü/study\n"
