"""What of a study's course may have changed its last bits is told by its journal."""

from __future__ import annotations

import json

from small_studies import raw_config, run_offline, write_digits

from raysel.results.result import StudyResult
from raysel.study.identity import MACHINE
from raysel.tracking.records import NodeRecord, journal_line


def test_nodes_of_other_versions_and_other_machines_are_remarked(tmp_path):
    write_digits(tmp_path / "few.npz")
    raw = raw_config(
        tmp_path / "few.npz", solver={"name": "variance", "space": {}}, cv={"outer": 2, "inner": 2}
    )
    before = run_offline(raw, tmp_path / "study").remarks()
    journal = tmp_path / "study/journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    versions = lines[0]["versions"]
    assert set(MACHINE) <= set(versions)
    node = journal_line(NodeRecord("10.0.0.2", [("scipy", versions["scipy"], "1.0")]))
    moved = {**lines[0], "versions": {**versions, "blas": "another"}}
    earlier = {
        **lines[0],
        "versions": {name: text for name, text in versions.items() if name not in MACHINE},
    }
    journal.write_text(
        "".join(
            f"{json.dumps(line)}\n" for line in (*lines[:-1], node, earlier, moved, node, lines[-1])
        )
    )
    assert StudyResult.open(tmp_path / "study").remarks() == [*before, *_told(versions)]
    journal.write_text(
        "".join(f"{json.dumps(line)}\n" for line in (*lines[:-1], node, moved, node, lines[-1]))
    )
    found = StudyResult.open(tmp_path / "study").remarks()
    assert (
        f"The study was resumed on another kind of machine: blas {versions['blas']} -> another."
        in found
    )
    assert set(_told(versions)) <= set(found)


def _told(versions):
    return [
        (
            "The node 10.0.0.2 computed with other versions, which was allowed: scipy 1.0 instead"
            f" of {versions['scipy']}."
        )
    ]
