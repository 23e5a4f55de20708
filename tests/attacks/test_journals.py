"""A journal that is damaged or forged: one message that names the place, and no traceback."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from attack_studies import change_journal, lines_of, write_journal

import raysel
from raysel.cli.main import main as run_command
from raysel.core.errors import DataError, DirectoryError, RayselError
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import journal_lines, open_journal
from raysel.tracking.journal_upload import tracking_status
from raysel.tracking.records import SCHEMA

#: Lines that no study writes, and what is said of them.
LINES = {
    "deep": ("[" * 100_000, "nested too deeply"),
    "deep mappings": ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deeply"),
    "NaN": (
        '{"kind": "search", "n_tried": NaN, "n_planned": 1, "cut": false}',
        "NaN is not a number",
    ),
    "infinity": (
        '{"kind": "search", "n_tried": -Infinity, "n_planned": 1, "cut": false}',
        "not a number",
    ),
    "many digits": ('{"kind": "search", "n_tried": ' + "9" * 5000 + "}", "damaged"),
    "text": ("\x1b[2J not JSON", "damaged"),
    "list": ("[1, 2]", "not a record"),
    "status": (
        '{"kind": "end", "status": "\\u001b[2J", "started": 1, "ended": 2}',
        "'status' is none of",
    ),
    "time": (
        '{"kind": "end", "status": "failed", "started": 1e300, "ended": 2}',
        "'started' is not a time",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_that_no_study_writes_is_named(stranger, name, capfd):
    line, message = LINES[name]
    with (stranger / "journal.jsonl").open("a") as journal:
        journal.write(f"{line}\n")
    number = len((stranger / "journal.jsonl").read_text().splitlines())
    for command in ("select", "report"):
        assert run_command([command, str(stranger)]) == 2
        err = capfd.readouterr().err
        assert message in err
        assert f"line {number}" in err
        assert "Traceback" not in err
        assert "\x1b[2J" not in err


def _set(**values):
    return lambda line: line.update(values)


#: Forged records: kind, change, and what is said.
FORGERIES = {
    "feature scores": (
        "refit",
        lambda r: r["feature_scores"].pop(),
        "'feature_scores' has 63 values, not 64",
    ),
    "a text as score": (
        "refit",
        lambda r: r["feature_scores"].__setitem__(0, "x"),
        "'feature_scores.0': Input should",
    ),
    "infinite score": ("refit", lambda r: r["objective"].append(1e400), "Infinity is not a number"),
    "scores of a fit": (
        "trial",
        lambda r: r["folds"]["outer0"]["inner"][0]["scores"][-1].append(0.5),
        "3 scores",
    ),
    "no scores": (
        "trial",
        lambda r: r["folds"]["outer0"]["inner"][0].update(scores=[]),
        "has no scores",
    ),
    "position": ("refit", _set(position=7), "'position' is out of range"),
    "chosen number": ("refit", _set(n_features=10**6), "'n_features' is out of range"),
    "confusion": ("refit", _set(confusion=[[1, 2, 3, 4]] * 3), "'confusion' has 3 values"),
    "unknown fold": ("refit", _set(fold="outer9"), "the study has no fold 'outer9'"),
    "fold of a trial": (
        "trial",
        lambda r: r["folds"].update({"../x": r["folds"]["outer0"]}),
        "has no fold",
    ),
    "constant": ("study", _set(constant=[64]), "out of range"),
    "layout": (
        "study",
        _set(layout={"kind": "tensor", "shape": [9, 9]}),
        "the layout has 81 features",
    ),
    "huge layout": (
        "study",
        _set(layout={"kind": "tensor", "shape": [2**62, 2**62]}),
        "the layout has",
    ),
    "mask": (
        "study",
        _set(
            layout={
                "kind": "volume",
                "shape": [10**5] * 3,
                "runs": [10**15],
                "affine": np.eye(4).tolist(),
            }
        ),
        "voxels",
    ),
    "tasks without scores": (
        "study",
        _set(layout={"kind": "tasks", "tasks": {f"t{i}": 1 for i in range(64)}}),
        "not one label for each task",
    ),
    "kind of layout": ("study", _set(layout={"kind": "\x1b[2J"}), "unknown kind"),
    "no features": ("study", _set(feature_names=[], constant=[]), "0 are named"),
    "features": ("study", lambda s: s["feature_names"].append(7), r"'feature_names\.64'"),
    "seed": ("study", lambda s: s["config"].pop("seed"), "has no seed"),
    "configuration": ("study", lambda s: s["config"]["cv"].update(outer="\x1b[2J"), "cv.outer"),
    "file to read": (
        "study",
        lambda s: s["config"]["search"].update(configurations="/etc/passwd"),
        "names a file",
    ),
    "metric": ("study", _set(metric="$\\frac{"), "its name or metric"),
    "another name": ("study", _set(name="../other"), "its name or metric"),
    "id": ("study", _set(id="x' OR 1=1"), "its id"),
    "folds": ("study", lambda s: s["folds"].append("outer0"), "the same name"),
    "labels": ("study", lambda s: s["labels"].pop(), "one label for each number"),
    "newer schema": ("study", _set(schema=SCHEMA + 1), "written by a newer version of raysel"),
    "no schema": ("study", _set(schema="\x1b[2J"), "written by a newer version"),
    "versions": ("study", _set(versions={}), "version of raysel"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_record_is_named(stranger, name):
    kind, change, message = FORGERIES[name]
    change_journal(stranger, kind, change)
    with pytest.raises(DirectoryError, match=message) as error:
        raysel.open_study(stranger)
    assert "journal.jsonl, line" in str(error.value)
    assert "\x1b" not in str(error.value)


def test_two_records_of_a_trial_are_refused_unless_the_first_failed(stranger):
    lines = lines_of(stranger)
    trial = next(line for line in lines if line["kind"] == "trial")
    write_journal(stranger, [lines[0], trial, *lines[1:]])
    with pytest.raises(DirectoryError, match="two records of the trial"):
        raysel.open_study(stranger)
    failed = {**trial, "status": "failed", "error": "lost", "folds": {}}
    write_journal(stranger, [lines[0], failed, *lines[1:]])
    assert [record.status for record in raysel.open_study(stranger).records] == ["finished"]


def test_a_million_tiny_records_take_seconds_at_most(stranger):
    n = 50_000
    lines = lines_of(stranger)
    tiny = b'{"kind":"x"}\n'
    with (stranger / "journal.jsonl").open("ab") as journal:
        journal.write(tiny * n)
    began = time.process_time()
    assert len(raysel.open_study(stranger).records) == sum(
        line["kind"] == "trial" for line in lines
    )
    assert (time.process_time() - began) * 10**6 / n < 60  # CPU seconds of a million


@pytest.mark.slow
def test_a_line_without_an_end_is_read_up_to_a_limit(stranger):
    path = stranger / "journal.jsonl"
    with path.open("ab") as journal:
        journal.truncate(2**40)  # a terabyte of zeros, which takes no space
    with (
        open_journal(path) as journal,
        pytest.raises(DirectoryError, match="a line is longer than 256 MiB"),
    ):
        list(journal_lines(journal, path))


@pytest.mark.parametrize(
    "content",
    [
        "[" * 10**5,
        "7",
        '{"logged": "x", "error": 7, "view": "../x", "study_run_id": "\\u001b[2J"}',
        "",
    ],
)
def test_a_forged_state_of_the_upload_is_ignored(stranger, content):
    (stranger / "tracking.json").write_text(content)
    assert tracking_status(StudyDirectory(stranger)) == {
        "complete": False,
        "logged": 0,
        "error": "",
    }


@pytest.mark.slow
def test_forged_files_beside_the_journal_get_a_message_or_are_left_out(stranger):
    result = raysel.open_study(stranger)
    header = repr({"descr": "<f8", "fortran_order": False, "shape": (2**58,)}).encode().ljust(117)
    for name in ("preview.json", "preview.npz", "mean_sample.npy"):
        (stranger / name).write_text("[" * 10**5)
    (stranger / "model_example.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00" + header + b"\n")
    assert run_command(["report", str(stranger)]) == 0
    (stranger / "mean_sample.npy").write_bytes((stranger / "model_example.npy").read_bytes())
    assert run_command(["report", str(stranger)]) == 0
    for folder, name in (("stability", "stability_selection"), ("permutation", "permutation_test")):
        (stranger / folder).mkdir()
        (stranger / folder / "result.json").write_text("[" * 10**5)
        with pytest.raises(DirectoryError, match=name.replace("_", " ")):
            getattr(raysel.open_study(stranger), name)
    (stranger / "model.skops").write_bytes(b"PK\x03\x04 not an archive")
    with pytest.raises(DataError):
        _ = result.model


def test_the_journal_of_an_honest_study_is_read(stranger):
    result = raysel.open_study(stranger)
    assert result.status == "finished"
    assert (
        json.loads((stranger / "ranking/manifest.json").read_text())["scores"]["test"]
        == result.test_scores
    )
    with pytest.raises(RayselError):
        result.ranking(by="../x")
