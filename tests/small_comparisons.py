"""Comparisons small enough for tests: a few serial studies on the same folds, run one by one or
by configuration.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from small_studies import raw_config, run_serially, timeless, write_digits

from raysel.config import config_from_dict
from raysel.run.recording import end_record, study_record
from raysel.study.definition import Study
from raysel.tracking.journal import read_journal
from raysel.tracking.records import journal_line

Record = dict[str, Any]

#: Label, solver and changes of the configuration of each member; the first is the reference.
MEMBERS: dict[str, Mapping[str, Any]] = {
    "SMR": {},
    "SMR, rank 1": {
        "solver__space": {"alpha": [0.1]},
        "solver__params": {"max_iter": 2, "rank": 1},
    },
    "all pixels": {
        "solver": {"name": "linear_svm"},
        "evaluation": {"classifier": "native"},
    },
}


def write_comparison(
    folder: Path,
    name: str = "few",
    members: Mapping[str, Mapping[str, Any]] = MEMBERS,
    **common: Any,
) -> Path:
    """Run the members one by one on the folds of the first, and write members.json."""
    folder.mkdir(parents=True)
    data = folder.parent / f"{name}.npz"
    if not data.exists():
        write_digits(data)
    listed, plan = [], None
    for number, (label, changes) in enumerate(members.items()):
        own = f"member{number}"
        config = config_from_dict(
            raw_config(data, **{"name": name, **common, **changes}, cv__plan=plan)
        )
        run_member(Study.prepare(config), folder / own)
        plan = plan or str(folder / own / "plan.json")
        listed.append(
            {
                "label": label,
                "folder": own,
                "solver": config.solver.name,
                "reconstructed": False,
                "error": None,
            }
        )
    run = {"id": "0", "experiment": name, "uri": "", "started": 0.0}
    write_members(
        folder,
        {"schema": 1, **run, "name": name, "reference": next(iter(members)), "members": listed},
    )
    return folder


def write_members(folder: Path, raw: Mapping[str, Any]) -> None:
    (folder / "members.json").write_text(json.dumps(raw))


def read_members(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "members.json").read_text())


def run_member(study: Study, folder: Path) -> None:
    """Run a study without MLflow, and write what opens as a finished one: its journal and its
    plan.
    """
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps(study.plan.to_json()))
    _, refits, journal = run_serially(study, folder)  # trials, as they ended
    lines = [journal_line(study_record(study, id_="0", uri="", started=0.0)), *journal]
    lines += [journal_line(refit.record) for refit in refits]
    write_lines(folder, [*lines, journal_line(end_record("finished", 0.0))])


def change_refits(folder: Path, change: Callable[[Record, int], None]) -> None:
    """Change the outer refits in a study's journal: the record, and the number of its outer
    fold.
    """
    lines = list(read_journal(folder / "journal.jsonl"))
    outer = [line for line in lines if line["kind"] == "refit" and line["fold"] != "final"]
    for number, line in enumerate(outer):
        change(line, number)
    write_lines(folder, lines)


def write_lines(folder: Path, lines: Iterable[Record]) -> None:
    (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def fill_in(folder: Path, seed: int = 0) -> None:
    """Give every outer refit what a study with further metrics records."""
    rng = np.random.default_rng(seed)

    def change(refit: Record, number: int) -> None:
        n = len(refit["test_scores"])
        refit["report"] = {"mean_average_precision": rng.random(n).tolist()}
        refit["redundancy"] = rng.random(n).tolist()
        refit["cpu_seconds"] = 0.01 * 2**number

    for member in read_members(folder)["members"]:
        change_refits(folder / member["folder"], change)
        lines = list(read_journal(folder / member["folder"] / "journal.jsonl"))
        lines[0]["config"]["evaluation"]["report"] = ["mean_average_precision"]
        write_lines(folder / member["folder"], lines)


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


def write_comparison_config(path: Path, **changes: Any) -> Path:
    """Write `raw_comparison` as JSON, which is YAML."""
    path.write_text(json.dumps(raw_comparison(**changes)), encoding="utf-8")
    return path


def found(study: Path) -> dict[str, Any]:
    """All numbers of a finished study, in whatever order they were found."""
    records = list(read_journal(study / "journal.jsonl"))
    ranking = study / "ranking" / "ranking.csv"
    return {
        "trials": sorted(
            (timeless(r) for r in records if r["kind"] == "trial"), key=lambda r: r["id"]
        ),
        "refits": {r["fold"]: timeless(r) for r in records if r["kind"] == "refit"},
        "traces": (study / "traces.parquet").read_bytes(),
        "ranking": ranking.read_bytes() if ranking.exists() else b"",
        "scores": json.loads((study / "ranking" / "manifest.json").read_text())["scores"],
        "plan": (study / "plan.json").read_bytes(),
    }


def members(comparison: Path) -> dict[str, dict[str, Any]]:
    """Entries of the list of members by folder."""
    return {
        entry["folder"]: entry
        for entry in json.loads((comparison / "members.json").read_text())["members"]
    }
