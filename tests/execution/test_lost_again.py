"""A resume runs again what an earlier version recorded as failed because a worker, perhaps its whole node, was lost."""

from __future__ import annotations

import json

import pytest
from small_studies import NoUpload, make_study, raw_config, run_offline, write_digits

from raysel.execution.serial import SerialExecutor
from raysel.run import course
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory

OLD = "the worker process ended 3 times (killed, or out of memory)"
NEW = "the worker process died 3 times (killed, or out of memory)"
PATH = {
    "solver": {"name": "smml", "params": {"tol": 1e-2}, "space": {"gamma1": [0.1, 2.0]}},
    "evaluation": {"classifier": "native"},
    "search": {"method": "path", "executor": "serial"},
}


def stored(folder):
    return StoredStudy.read(StudyDirectory(folder))


def comparable(record):
    return {key: value for key, value in record.to_json().items() if key not in ("started", "ended", "cpu_seconds")}


def fail(folder, kind, error):
    """Let the first record of a kind say that it failed, and the study be interrupted after its search."""
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    first = next(line for line in lines if line["kind"] == kind)
    first |= {"status": "failed", "error": error, **({"folds": {}} if kind == "trial" else {"fits": {}})}
    kept = [line for line in lines if line["kind"] in ("study", "trial", "path", "search")]
    (folder / "journal.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in kept))


def resume(data, folder, **changes):
    study = make_study(data, **changes)
    study = type(study).prepare(study.config, StudyDirectory(folder).plan)
    course.resume(study, StudyDirectory(folder), SerialExecutor(study), start_upload=NoUpload)
    return stored(folder)


@pytest.fixture
def data(tmp_path):
    write_digits(tmp_path / "few.npz")
    return tmp_path / "few.npz"


@pytest.mark.parametrize(("kind", "changes"), [("trial", {}), ("path", PATH)])
def test_what_was_lost_runs_again_and_ends_as_if_it_had_not_been(kind, changes, data, tmp_path):
    run_offline(raw_config(data, **changes), tmp_path / "study")
    calm = stored(tmp_path / "study")
    fail(tmp_path / "study", kind, OLD)
    found = resume(data, tmp_path / "study", **changes)
    key = {record.id: comparable(record) for record in calm.trials}
    assert {record.id: comparable(record) for record in found.trials} == key
    assert len(found.trials) == len(calm.trials)
    for fold, refit in calm.refits.items():
        assert comparable(found.refits[fold]) == comparable(refit)


def test_what_failed_by_itself_is_not_run_again(data, tmp_path):
    run_offline(raw_config(data), tmp_path / "study")
    fail(tmp_path / "study", "trial", NEW)
    found = resume(data, tmp_path / "study")
    assert [record.error for record in found.trials if record.status == "failed"] == [NEW]
