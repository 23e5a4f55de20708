"""Finished study that is restored for computing, from its directory alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from raysel.core.errors import ConfigError, DirectoryError
from raysel.evaluation.records import RefitRecord
from raysel.execution.executor import Executor
from raysel.results.export import export_result
from raysel.results.result import StudyResult
from raysel.run.api import open_study, prepare_study
from raysel.run.launch import check_resources, make_executor, working_folder
from raysel.run.recording import resumed_record
from raysel.study.definition import Study
from raysel.tracking.locks import FileLock, LockHeldError
from raysel.tracking.records import StudyRecord


@dataclass(frozen=True)
class FinishedStudy:
    """Result of a finished study and the study itself, ready to compute with."""

    result: StudyResult
    study: Study
    record: StudyRecord
    address: str | None
    allow_mixed_versions: bool
    lock: FileLock

    @property
    def winner(self) -> RefitRecord:
        """Record of the final model: its configuration and number of features."""
        return self.result.final

    def executor(self) -> Executor:
        """Return an executor of the study that has not been started."""
        return make_executor(self.study, self.address, allow_mixed_versions=self.allow_mixed_versions)

    def export(self) -> None:
        """Write the ranking and the report again, with what the directory holds now."""
        from raysel.results.page.report import write_final_report  # noqa: PLC0415 - loads matplotlib

        result = StudyResult.open(self.result.path)
        export_result(result, result.directory.ranking)
        write_final_report(result)


@contextmanager
def finished_study(
    path: str | Path,
    config: str | Path | Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    executor: Literal["serial", "ray"] | None = None,
    address: str | None = None,
    allow_mixed_versions: bool = False,
) -> Iterator[FinishedStudy]:
    """Restore a finished study for computing and lock its directory."""
    with working_folder(path, new=False) as folder:
        result = open_study(folder)
        _ = result.final  # raises if there is none
        directory = result.directory
        try:
            lock = FileLock(directory.lock)
        except LockHeldError as error:
            raise DirectoryError(
                f"{directory.path} is in use: its study is being resumed, or another process computes with it "
                f"({error}). Wait until that ends."
            ) from error
        except OSError as error:
            raise DirectoryError(f"{directory.path} cannot be written: {error.strerror}.") from error
        with lock:
            result = open_study(folder)  # again, because another process may have written before the lock
            study = prepare_study(config, overrides, resumed=directory, tracked=False)
            study = _with_executor(study, executor, address)
            record = resumed_record(study, result.stored.study)
            result.stored.check(study, record)
            check_resources(study, address)
            yield FinishedStudy(result, study, record, address, allow_mixed_versions, lock)


def _with_executor(study: Study, executor: Literal["serial", "ray"] | None, address: str | None) -> Study:
    """Return the study with another executor, which cannot change a number."""
    if executor not in (None, "serial", "ray"):
        raise ConfigError(f"executor={executor!r} is not known; give 'serial' or 'ray'.")
    chosen = executor or ("ray" if address else study.config.search.executor)
    search = study.config.search.model_copy(update={"executor": chosen})
    return replace(study, config=study.config.model_copy(update={"search": search}))
