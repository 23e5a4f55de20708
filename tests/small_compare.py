"""Comparisons small enough for tests: three members on a few digits, computed in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from small_studies import raw_config

from raysel.testing.checks import timeless
from raysel.tracking.journal import read_journal

SPACE = {"alpha": [0.01, 0.1], "rank": [1, 2]}


def raw_comparison(path: Path | str = "few.npz", **changes: Any) -> dict[str, Any]:
    """A small comparison of a file as plain data; a change is named as for `raw_config`."""
    raw = raw_config(path, **changes)
    del raw["solver"]
    smr = {"name": "smr", "params": {"max_iter": 6}, "space": SPACE}
    return raw | {
        "compare": {
            "SMR, small": {"solver": smr},
            "SVM": {"solver": {"name": "linear_svm"}, "evaluation": {"classifier": "native"}},
            "z": {"solver": smr, "dataset.scaling": "zscore"},
        }
    }


def write_comparison(path: Path, **changes: Any) -> Path:
    """Write `raw_comparison` as JSON, which is YAML."""
    path.write_text(json.dumps(raw_comparison(**changes)), encoding="utf-8")
    return path


def found(study: Path) -> dict[str, Any]:
    """All numbers of a finished study, in whatever order they were found."""
    records = list(read_journal(study / "journal.jsonl"))
    ranking = study / "ranking" / "ranking.csv"
    return {
        "trials": sorted((timeless(r) for r in records if r["kind"] == "trial"), key=lambda r: r["id"]),
        "refits": {r["fold"]: timeless(r) for r in records if r["kind"] == "refit"},
        "traces": (study / "traces.parquet").read_bytes(),
        "ranking": ranking.read_bytes() if ranking.exists() else b"",
        "scores": json.loads((study / "ranking" / "manifest.json").read_text())["scores"],
        "plan": (study / "plan.json").read_bytes(),
    }


def members(comparison: Path) -> dict[str, dict[str, Any]]:
    """Entries of the list of members by folder."""
    return {entry["folder"]: entry for entry in json.loads((comparison / "members.json").read_text())["members"]}
