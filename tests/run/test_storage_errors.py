"""Data, disks and stores that fail while a study runs: it ends, no trial is to blame, and a
resume gives the same.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from small_studies import NoUpload, make_study, raw_config, timeless, write_digits

from raysel.config import config_from_dict
from raysel.core.errors import StorageError
from raysel.data.dataset import Dataset
from raysel.data.layouts import Tensor
from raysel.data.loading import load_dataset, save_dataset
from raysel.execution.serial import SerialExecutor
from raysel.run import course
from raysel.run.api import resume_comparison, run_comparison
from raysel.study.definition import Study
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory

SMR = {"name": "smr", "params": {"max_iter": 3, "rank": 2}, "space": {"alpha": [0.01, 0.1]}}


class Disturber:
    """Listener that does something to a file at the n-th event of a study."""

    def __init__(self, path: Path, action, at: int) -> None:
        self.path, self.action, self.left = path, action, at

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def message(self, text: str) -> None:
        pass

    def show(self, _: object) -> None:
        self.left -= 1
        if self.left == 0:
            self.action(self.path)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\0" * 8)


def overwrite(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


def replace(path: Path) -> None:
    few = load_dataset(path)
    path.unlink()
    save_dataset(Dataset(few.X[::-1], few.y[::-1], few.layout, "few"), path)


WAYS = [cut, grow, overwrite, replace, Path.unlink, lambda path: os.truncate(path, 0)]


@pytest.fixture(scope="module")
def few():
    """Two classes that differ in two of eight features."""
    y = np.arange(120) % 2
    X = np.random.default_rng(0).normal(size=(120, 8))
    X[:, :2] += y[:, None]
    return Dataset(X, y, Tensor((2, 4)), "few")


def stored_study(path: Path) -> Study:
    raw = raw_config(
        path,
        solver=SMR,
        evaluation={"estimator": "native", "references": "chance"},
        dataset__in_memory=False,
    )
    return Study.prepare(config_from_dict(raw))


def run(study: Study, folder: Path, *listeners):
    return course.run(study, folder, SerialExecutor(study), listeners, NoUpload)


def resume(study: Study, folder: Path):
    directory = StudyDirectory(folder)
    return course.resume(study, directory, SerialExecutor(study), start_upload=NoUpload)


def found(result) -> list:
    return [timeless(record.to_json()) for record in (*result.records, *result.refits)]


@pytest.fixture(autouse=True)
def _no_report(monkeypatch):
    monkeypatch.setattr("raysel.results.page.report.write_final_report", lambda _: None)


@pytest.mark.parametrize("suffix", [pytest.param("parquet", marks=pytest.mark.slow), "arrow"])
def test_a_file_that_changes_ends_the_study_and_fails_no_trial(few, tmp_path, suffix):
    path = tmp_path / f"few.{suffix}"
    save_dataset(few, path)
    shutil.copy2(path, tmp_path / "kept")
    whole = found(run(stored_study(path), tmp_path / "whole"))
    for number, way in enumerate(WAYS):
        folder = tmp_path / f"{number}"
        with pytest.raises(StorageError, match=rf"few\.{suffix}"):
            run(stored_study(path), folder, Disturber(path, way, at=5 + number % 3))
        stored = StoredStudy.read(StudyDirectory(folder))
        assert {trial.status for trial in stored.trials} <= {"finished", "null"}
        assert stored.n_trials < 2
        shutil.copy2(tmp_path / "kept", path)
        if way in (cut, replace):
            assert found(resume(stored_study(path), folder)) == whole


@pytest.mark.slow
@pytest.mark.parametrize("way", [cut, replace, Path.unlink])
def test_a_file_that_changes_ends_a_comparison_which_resumes_as_undisturbed(few, tmp_path, way):
    """It changes while the second member runs."""
    path = tmp_path / "few.arrow"
    save_dataset(few, path)
    shutil.copy2(path, tmp_path / "kept")
    raw = raw_config(
        path,
        evaluation={"estimator": "native", "references": "chance"},
        dataset__in_memory=False,
        tracking={"mlflow": False},
        compare={"first": {"solver": SMR}, "second": {"solver": SMR | {"space": {"alpha": [0.2]}}}},
    )
    del raw["solver"]
    whole = run_comparison(raw, output=tmp_path / "whole", progress=False)
    with pytest.raises(StorageError, match=r"few\.arrow"):
        run_comparison(raw, output=tmp_path / "cut", progress=Disturber(path, way, at=50))
    shutil.copy2(tmp_path / "kept", path)
    resumed = resume_comparison(tmp_path / "cut", progress=False)
    for name, study in whole.studies.items():
        assert found(resumed.studies[name]) == found(study)


def is_mapped(path: Path) -> bool:
    """Whether the file is in this process's memory, so that its end would be a SIGBUS."""
    return str(path) in Path("/proc/self/maps").read_text(encoding="utf-8")


@pytest.mark.parametrize("largest", [100, 2**28])
def test_a_file_that_is_cut_while_it_is_read_raises_an_error(tmp_path, monkeypatch, largest):
    """Batches of more bytes than ``largest`` are mapped, by a process that ends of it."""
    monkeypatch.setattr("raysel.data.formats.tables._READ_WHOLE", largest)
    monkeypatch.setattr("raysel.data.formats.tables._BATCH", 8 * 20_000)
    path = tmp_path / "long.arrow"
    batch = pa.record_batch({"x": np.zeros(50_000), "y": np.arange(50_000) % 2})
    with pa.ipc.new_file(path, batch.schema) as writer:
        for _ in range(4):
            writer.write_batch(batch)
    whole, stored = load_dataset(path), load_dataset(path, in_memory=False)
    assert stored.X.source.mapped is (largest < 1000)
    blocks = stored.X.source.blocks()
    next(blocks)
    assert not is_mapped(path)
    os.truncate(path, 4096)
    assert whole.X.sum() == 0
    with pytest.raises(StorageError):
        list(blocks)


class FullDisk(LogisticRegression):
    """A classifier whose third fit finds the disk full, or says that its parameter is wrong."""

    n_fits, number = 0, errno.ENOSPC

    def fit(self, X, y):
        FullDisk.n_fits += 1
        if FullDisk.n_fits == 3:
            try:
                raise OSError(FullDisk.number, os.strerror(FullDisk.number), "cache")
            except OSError as error:
                raise ValueError("no cache") from error
        return super().fit(X, y)


def test_only_an_error_that_no_configuration_causes_ends_the_study(tmp_path, monkeypatch):
    write_digits(tmp_path / "few.npz")
    solver = {"name": f"{__name__}.FullDisk", "space": {"C": [0.1, 1.0]}}
    evaluation = {"estimator": "knn", "n_features": [4], "references": "chance"}
    study = make_study(tmp_path / "few.npz", solver=solver, evaluation=evaluation)
    monkeypatch.setattr(FullDisk, "n_fits", 10)
    whole = found(run(study, tmp_path / "whole"))
    monkeypatch.setattr(FullDisk, "n_fits", 0)
    with pytest.raises(StorageError, match="cache: No space left on device"):
        run(study, tmp_path / "disk")
    assert found(resume(study, tmp_path / "disk")) == whole
    monkeypatch.setattr(FullDisk, "n_fits", 0)
    monkeypatch.setattr(FullDisk, "number", errno.EINVAL)
    result = run(study, tmp_path / "parameter")
    assert sorted(trial.status for trial in result.records) == ["failed", "finished"]
