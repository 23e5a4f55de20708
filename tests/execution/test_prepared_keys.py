"""What is prepared of a training set is shared by configurations that agree in what it depends on, and by no others."""

from __future__ import annotations

import json

import numpy as np
import pytest
from small_studies import make_study, run_on_ray, run_serially, write_digits

from raysel.base.registry import OWN, solver_capabilities

#: The method whose preparation depends on which label stands for none.
(METHOD,) = (name for name in OWN if "unlabelled" in solver_capabilities(name).prepare_parameters)
VALUES = [None, -1, 3]


@pytest.fixture
def partly_labelled(tmp_path):
    write_digits(tmp_path / "few.npz")
    data = dict(np.load(tmp_path / "few.npz"))
    data["y"] = np.where(np.arange(len(data["y"])) % 4 == 0, -1, data["y"])
    np.savez(tmp_path / "few.npz", **data)
    return tmp_path / "few.npz"


def study_of(data, values):
    solver = {"name": METHOD, "space": {"unlabelled": values, "shrinkage": [0.1, 0.5]}}
    return make_study(data, solver=solver, evaluation={"classifier": "native"})


def by_value(records):
    """Records by the label for none, ids and names left out."""
    found = {}
    for record in records.values():
        key = json.dumps([record["params"]["unlabelled"], record["params"]["shrinkage"]])
        found[key] = {k: v for k, v in record.items() if k not in ("id", "name")}
    return found


def test_each_value_gives_what_it_gives_alone(partly_labelled, tmp_path):
    records, _, _ = run_serially(study_of(partly_labelled, VALUES), tmp_path / "all")
    assert all(record["status"] == "finished" for record in records.values())
    alone = {}
    for value in VALUES:
        found, _, _ = run_serially(study_of(partly_labelled, [value]), tmp_path / f"alone{value}")
        alone |= by_value(found)
    assert by_value(records) == alone
    curves = {json.dumps([fold["inner"][0]["objective"] for fold in r["folds"].values()]) for r in records.values()}
    assert len(curves) == len(records)  # the values matter


@pytest.mark.usefixtures("ray_here")
@pytest.mark.slow
@pytest.mark.parametrize("room", [True, False])
def test_serial_and_ray_agree_with_and_without_room_for_all(room, partly_labelled, tmp_path, monkeypatch):
    from raysel.execution.ray import executor  # noqa: PLC0415 - Ray only where it is needed

    if not room:
        monkeypatch.setattr(executor, "_STORE_SHARE", 0.0)
    study = study_of(partly_labelled, VALUES)
    records, refits, _ = run_serially(study, tmp_path / "serial")
    on_ray, ray_refits, _ = run_on_ray(study, tmp_path / "ray")
    assert records == on_ray
    assert [r.record.feature_scores for r in refits] == [r.record.feature_scores for r in ray_refits]
