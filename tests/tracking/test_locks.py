"""A lock excludes other processes where the file system has locks and where it has none."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from network_files import signs_of_life

from raysel.core.errors import StudyError
from raysel.tracking import locks
from raysel.tracking.journal import LineWriter, read_journal
from raysel.tracking.locks import FileLock, LockedFile, LockHeldError, is_locked, schema_lock


@pytest.fixture
def lock(tmp_path, monkeypatch) -> Path:
    """A lock whose owners count as dead after two seconds."""
    monkeypatch.setattr(locks, "HEARTBEAT_SECONDS", 0.2)
    monkeypatch.setattr(locks, "LEASE_SECONDS", 2.0)
    return tmp_path / ".lease"


@pytest.fixture
def short_lease(monkeypatch) -> None:
    """For locks that one process at a time asks for, so that none is lost on a slow machine."""
    monkeypatch.setattr(locks, "LEASE_SECONDS", 0.3)


def claim(lock: Path, age: float, pid: int = 4711, host: str = "node7") -> None:
    """Write the lock of a process of another machine, which was last touched so long ago."""
    owner = {
        "pid": pid,
        "host": host,
        "mode": "lease",
        "token": "0" * 32,
        "duration": locks.LEASE_SECONDS,
    }
    lock.write_text(
        "\n".join(["filelock/2", *(f"{key}={value}" for key, value in owner.items()), ""])
    )
    os.utime(lock, (time.time() - age,) * 2)


def in_turn(lock, inside: Path, times: int) -> None:
    """Take a lock in three threads at once; it fails if two are inside."""

    def work(_: int) -> None:
        with lock():
            inside.touch(exist_ok=False)
            time.sleep(0.002)
            inside.unlink()

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(work, range(times)))


def test_one_process_at_a_time_holds_a_lock_and_leaves_nothing(lock):
    with FileLock(lock) as held:
        assert is_locked(lock)
        held.check()
        with pytest.raises(LockHeldError, match=rf"process {os.getpid()} on "):
            FileLock(lock)
    assert not is_locked(lock)
    assert not list(lock.parent.iterdir())
    with FileLock(lock) as held:
        assert not held.evicted
    in_turn(lambda: FileLock(lock, wait=True), lock.with_name("inside"), 12)


def test_a_killed_process_of_this_machine_holds_nothing(lock):
    script = (
        "import os, pathlib, signal\n"
        "from raysel.tracking.locks import FileLock\n"
        f"lock = FileLock(pathlib.Path({str(lock)!r}))\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    assert lock.exists()
    assert not is_locked(lock)
    FileLock(lock).close()


@pytest.mark.slow
def test_a_lock_that_a_power_cut_left_empty_is_removed(lock):
    lock.touch()
    with pytest.raises(LockHeldError):
        FileLock(lock)
    FileLock(lock, wait=True).close()
    lock.touch()
    os.utime(lock, (0, 0))
    assert not is_locked(lock)
    FileLock(lock).close()


@pytest.mark.slow
def test_a_process_of_another_machine_holds_the_lock_as_long_as_it_gives_signs_of_life(lock):
    claim(lock, age=0)
    assert is_locked(lock)
    with pytest.raises(
        LockHeldError,
        match=r"process 4711 on 'node7', whose last sign of life was . s ago; if it is",
    ):
        FileLock(lock)
    claim(lock, age=100)
    assert not is_locked(lock)
    with FileLock(lock) as held:
        assert held.evicted
        held.check()


@pytest.mark.slow
@pytest.mark.parametrize("age", [3600, -3600])
def test_a_clock_that_is_set_ends_no_lock(lock, age):
    claim(lock, age)
    with signs_of_life(lock), pytest.raises(LockHeldError):
        FileLock(lock)


def test_a_process_that_holds_a_lock_gives_signs_of_life(lock):
    with FileLock(lock):
        os.utime(lock, (0, 0))
        until = time.monotonic() + 30
        while not lock.stat().st_mtime and time.monotonic() < until:
            time.sleep(0.01)
        assert lock.stat().st_mtime > 0


def take_over(lock: Path) -> FileLock:
    """Take a lock as another machine does when this process has been silent."""
    lock.unlink()
    claim(lock, age=100)
    return FileLock(lock)


@pytest.mark.usefixtures("lock", "short_lease")
def test_a_process_that_was_taken_over_writes_nothing_more_to_the_journal(lock):
    path = lock.with_name("journal.jsonl")
    journal = LineWriter(path, FileLock(lock))
    journal.write({"number": 1})
    with take_over(lock) as held, LineWriter(path, held) as later:
        with pytest.raises(
            StudyError, match=r"another process has taken over .*writes nothing more"
        ):
            journal.write({"number": 2})
        os.write(
            journal._file.fileno(), b'{"number":2}\n'
        )  # it had asked just before it was stopped
        later.write({"number": 3})
    assert [line["number"] for line in read_journal(path)] == [1, 3]


@pytest.mark.usefixtures("lock", "short_lease")
@pytest.mark.parametrize("where", ["before the check", "after the check"])
def test_a_process_that_was_taken_over_while_it_wrote_a_file_does_not_write_it(
    lock, monkeypatch, where
):
    path = lock.with_name("progress.json")
    stopped = FileLock(lock)
    before = LockedFile(path, stopped)
    before.write("first")
    check = stopped.check

    def stop() -> None:
        if where == "after the check":
            check()
        with take_over(lock) as held:
            LockedFile(path, held).write("second")
        if where != "after the check":
            check()

    monkeypatch.setattr(stopped, "check", stop)
    with pytest.raises((StudyError, FileNotFoundError)):
        before.write("third")
    assert path.read_text() == "second"
    assert {file.name for file in lock.parent.iterdir()} == {"progress.json"}


@pytest.mark.parametrize("has_locks", [True, False])
def test_the_tables_of_a_sqlite_store_are_made_by_one_process_at_a_time(
    tmp_path, monkeypatch, has_locks
):
    if not has_locks:

        def fail(*_: object) -> None:
            raise OSError("No locks available")

        monkeypatch.setattr(fcntl, "flock", fail)
    in_turn(lambda: schema_lock(tmp_path / "mlflow.db"), tmp_path / "inside", 3)
