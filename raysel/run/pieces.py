"""Finished study that is restored for computing, and pieces of work on it in a journal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from raysel.core.errors import ConfigError, DirectoryError, StudyError
from raysel.core.files import make_instance
from raysel.evaluation.records import RefitRecord
from raysel.execution.executor import Executor
from raysel.execution.signals import sigterm_as_interrupt
from raysel.results.export import export_result
from raysel.results.result import StudyResult
from raysel.run.api import open_study, prepare_study
from raysel.run.launch import check_resources, make_executor, working_folder
from raysel.run.options import DEFAULTS, RunOptions
from raysel.run.recording import resumed_record
from raysel.study.definition import Study
from raysel.study.identity import changed_versions, numbers_hash, other_versions
from raysel.tracking.journal import LineWriter, read_journal
from raysel.tracking.locks import FileLock, LockHeldError
from raysel.tracking.log import Listener, Progress
from raysel.tracking.records import NodeRecord, StudyRecord, journal_line

_JOURNAL = "journal.jsonl"
#: Kind of the lines of nodes with other versions.
_NODE = "node"
#: Seconds that a piece may take in addition to its limit, e.g. to load modules in a new process.
_START_SECONDS = 5.0


@dataclass(frozen=True)
class FinishedStudy:
    """Result of a finished study and the study itself, ready to compute with.

    Of one in memory there is no lock, and its pieces stay in memory, too.
    """

    result: StudyResult
    study: Study
    record: StudyRecord
    options: RunOptions
    lock: FileLock | None
    #: Returns an executor of the study that has not been started.
    executor: Callable[[], Executor]

    @property
    def other_versions(self) -> str:
        """Sentence on the versions that compute now, where the study's numbers are of others."""
        return other_versions(self.result.stored.study.versions, self.record.versions)

    @property
    def winner(self) -> RefitRecord:
        """Record of the final model: its configuration and number of features."""
        return self.result.final

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
    options: RunOptions = DEFAULTS,
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
                f"{directory.path} is in use: its study is being resumed, or another process"
                f" computes with it ({error}). Wait until that ends."
            ) from error
        except OSError as error:
            raise DirectoryError(
                f"{directory.path} cannot be written: {error.strerror}."
            ) from error
        with lock:
            result = open_study(folder)  # another process may have written before the lock
            study = prepare_study(config, overrides, resumed=directory, tracked=False)
            study = _with_executor(study, executor, options.address)
            record = resumed_record(study, result.stored.study)
            result.stored.check_finished(study, record)
            check_resources(study, options.address)
            yield FinishedStudy(
                result,
                study,
                record=record,
                options=options,
                lock=lock,
                executor=partial(make_executor, study, options),
            )


def _with_executor(
    study: Study, executor: Literal["serial", "ray"] | None, address: str | None
) -> Study:
    """Return the study with another executor, which cannot change a number."""
    if executor not in (None, "serial", "ray"):
        raise ConfigError(f"executor={executor!r} is not known; give 'serial' or 'ray'.")
    chosen = executor or ("ray" if address else study.executor)
    search = study.config.search.model_copy(update={"executor": chosen})
    return replace(study, config=study.config.model_copy(update={"search": search}))


@dataclass(frozen=True)
class Work:
    """Pieces of work by number; each depends on study, settings and its number only."""

    #: Folder of the journal in the study's directory.
    folder: str
    function: Callable[[Study, int], Any]
    code: tuple[Callable[..., Any], ...]
    settings: Mapping[str, Any]
    unit: str
    n_limits: int = 1


@dataclass(frozen=True)
class Pieces:
    """Pieces that have ended."""

    values: dict[int, Any]
    errors: dict[int, str]
    mixed: tuple[str, ...] = ()


def run_pieces(finished: FinishedStudy, work: Work, numbers: Sequence[int]) -> Pieces:
    """Compute the pieces that the journal lacks, and return all of these numbers.

    A piece that failed in an earlier run is computed again. The values do not depend on the
    executor, the number of workers, the order in which pieces end, or where earlier runs were
    interrupted.
    """
    if finished.lock is None:
        lines: list[dict[str, Any]] = []
        if numbers:
            _compute(finished, work, missing=numbers, n_all=len(numbers), write=lines.append)
        return _ended(lines, numbers)
    folder = finished.result.path / work.folder
    journal, header = folder / _JOURNAL, _header(finished, work)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DirectoryError(f"{folder} cannot be written: {error.strerror}.") from error
    with LineWriter(journal, finished.lock) as writer:
        lines = list(read_journal(journal))
        if lines:
            _check_header(lines[0], header, folder)
        else:
            writer.write(header)
        done = {line["number"] for line in lines[1:] if "value" in line}
        missing = [number for number in numbers if number not in done]
        if missing:
            _compute(finished, work, missing=missing, n_all=len(numbers), write=writer.write)
    pieces = read_pieces(folder, numbers)
    return replace(pieces, mixed=(*filter(None, [finished.other_versions]), *pieces.mixed))


def read_pieces(folder: Path, numbers: Sequence[int]) -> Pieces:
    """Read the pieces of these numbers that have ended."""
    journal = folder / _JOURNAL
    try:
        return _ended(_pieces(journal), numbers)
    except ValueError as error:
        raise DirectoryError(f"{journal} is damaged: {error}; restore it from a copy.") from error


def _ended(lines: Iterable[Mapping[str, Any]], numbers: Sequence[int]) -> Pieces:
    """Return the pieces of these numbers; the last line of a piece counts."""
    wanted, by_number, mixed = set(numbers), {}, []
    for line in lines:
        if line.get("kind") == _NODE:
            mixed.append(make_instance(NodeRecord, line).sentence)
        elif line["number"] in wanted:
            by_number[line["number"]] = line
    ordered = [by_number[number] for number in sorted(by_number)]
    return Pieces(
        {line["number"]: line["value"] for line in ordered if "value" in line},
        {line["number"]: line["error"] for line in ordered if "error" in line},
        tuple(dict.fromkeys(mixed)),
    )


def _pieces(journal: Path) -> Iterator[dict[str, Any]]:
    for position, line in enumerate(read_journal(journal), start=1):
        if position == 1:
            continue
        if line.get("kind") != _NODE and (
            type(line.get("number")) is not int or ("value" in line) == ("error" in line)
        ):
            raise DirectoryError(
                f"{journal}, line {position}: not a piece of work; restore the file from a copy, or"
                f" remove the folder {journal.parent} to compute everything again."
            )
        yield line


def _compute(
    finished: FinishedStudy,
    work: Work,
    missing: Sequence[int],
    n_all: int,
    write: Callable[[dict[str, Any]], object],
) -> None:
    """Compute pieces and write the line of each as it ends."""
    listeners = finished.options.listeners
    with ExitStack() as stack:
        stack.enter_context(sigterm_as_interrupt())
        for listener in listeners:
            stack.enter_context(listener)
        n_before = n_all - len(missing)
        progress = _PieceProgress(n_all, "", finished=n_before, unit=work.unit, n_before=n_before)
        _show(progress, listeners)
        executor = stack.enter_context(finished.executor())
        timeout = finished.study.config.search.trial_timeout
        limit = None
        if timeout is not None:
            limit = 1.5 * timeout * work.n_limits + _START_SECONDS
        recorded: set[str] = set()
        for ended in executor.run_tasks(work.function, missing, limit):
            for node in executor.mixed_nodes():
                if node.node not in recorded:
                    recorded.add(node.node)
                    write(journal_line(node))
            piece: dict[str, Any] = {"kind": "piece", "number": ended.argument}
            if ended.error:
                piece["error"] = ended.error
            else:
                piece["value"] = ended.value
            write({**piece, "cpu_seconds": ended.cpu_seconds})
            progress.count(failed=bool(ended.error))
            _show(progress, listeners)


def _show(progress: Progress, listeners: Sequence[Listener]) -> None:
    for listener in listeners:
        listener.show(progress)


@dataclass
class _PieceProgress(Progress):
    """Counts of the pieces, of which only the ends are known."""

    #: Number of pieces that an earlier run has computed.
    n_before: int = 0
    #: Time when the first one ended: until then the executor mostly starts.
    first_ended: float = 0.0

    def count(self, *, failed: bool) -> None:
        """Count a piece that has ended."""
        self.failed += failed
        self.finished += not failed
        if self.n_ended == self.n_before + 1:
            self.first_ended = self.clock()

    @property
    def seconds_left(self) -> float | None:
        n_timed, left = self.n_ended - self.n_before - 1, self.total - self.n_ended
        if n_timed < 1 or not left:
            return None
        return (self.clock() - self.first_ended) / n_timed * left


def _header(finished: FinishedStudy, work: Work) -> dict[str, Any]:
    """Return the first line of the journal: all that the values depend on."""
    header = {
        "kind": "start",
        "settings": work.settings,
        "winner": finished.winner.params,
        "seed": finished.study.config.seed,
        "data_hash": finished.record.data_hash,
        "versions": dict(finished.record.versions) | {"pieces": _code_hash(work.code)},
    }
    return json.loads(json.dumps(header))


@cache
def _code_hash(code: tuple[Callable[..., Any], ...]) -> str:
    return numbers_hash(code)


def _check_header(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Raise an error that lists what differs between the journal's first line and now."""
    settings, versions = before.get("settings", {}), before.get("versions", {})
    changes = [
        f"{name}: {settings.get(name)} -> {now['settings'].get(name)}"
        for name in sorted(settings.keys() | now["settings"].keys())
        if settings.get(name) != now["settings"].get(name)
    ]
    for key, text in (
        ("winner", "the final model"),
        ("seed", "seed"),
        ("data_hash", "the hash of the data"),
    ):
        if before.get(key) != now[key]:
            changes.append(f"{text}: {before.get(key)} -> {now[key]}")
    changes += changed_versions(versions, now["versions"])
    if versions.get("pieces") != now["versions"]["pieces"] and not any(
        c.startswith("numbers") for c in changes
    ):
        changes.append("the source code that computes the pieces has changed")
    if changes:
        raise DirectoryError(
            f"{folder} holds results that these changes invalidate:\n"
            + "".join(f"  {change}\n" for change in changes)
            + f"Undo the change, or remove {folder} to compute everything again."
        )


def all_failed(pieces: Pieces, unit: str) -> StudyError:
    """Return the error to raise if too few pieces are left for a result."""
    number, reason = next(iter(pieces.errors.items()))
    return StudyError(
        f"{len(pieces.errors)} of {len(pieces.errors) + len(pieces.values)} {unit} failed, which"
        f" leaves too few; number {number} first: {reason.strip().splitlines()[0]}"
    )
