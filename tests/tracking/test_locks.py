"""A lock excludes other processes where the file system has locks, has them for one machine alone, and has none."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from raysel.core.errors import StudyError
from raysel.tracking import locks
from raysel.tracking.journal import LineWriter, read_journal
from raysel.tracking.locks import FileLock, LockedFile, LockHeldError, Owner, is_locked, schema_lock

ELSEWHERE = replace(Owner.current(flock=True), host="node7", boot="11111111-aaaa", pid=4711)


@pytest.fixture(params=["flock", errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EIO, errno.ESTALE])
def file_system(request, monkeypatch):
    """Locks of the operating system, and each way to have none."""
    if request.param != "flock":
        without_flock(monkeypatch, request.param)


def without_flock(monkeypatch, number: int = errno.ENOLCK) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", fail)


@pytest.fixture
def lock(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(locks, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(locks, "_WATCH_SECONDS", 0.1)
    return tmp_path / ".lock"


def claim_of(owner: Owner | str, lock: Path, age: float = 0.0) -> Path:
    """Write the claim of another process, whose last sign of life was so long ago."""
    path = lock.with_name(f"{lock.name}.{'0' * 15}1")
    path.write_text(owner if isinstance(owner, str) else json.dumps(asdict(owner)))
    os.utime(path, (time.time() - age,) * 2)
    return path


@pytest.mark.usefixtures("file_system")
def test_one_lock_at_a_time_and_nothing_is_left(lock):
    with FileLock(lock) as held:
        assert is_locked(lock)
        held.check()
        with pytest.raises(LockHeldError, match=rf"process {os.getpid()} on "):
            FileLock(lock)
    assert not is_locked(lock)
    assert [path.name for path in lock.parent.iterdir()] == [".lock"]
    FileLock(lock).close()


@pytest.mark.parametrize("file_system", ["flock", errno.ENOLCK], indirect=True)
@pytest.mark.usefixtures("file_system")
def test_of_many_that_want_the_lock_at_once_one_has_it(lock):
    inside, faults, taken = lock.with_name("inside"), [], []

    def work() -> None:
        for _ in range(4):
            with FileLock(lock, wait=True):
                try:
                    inside.touch(exist_ok=False)
                    time.sleep(0.001)
                    inside.unlink()
                    taken.append(1)
                except OSError as fault:
                    faults.append(fault)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert len(taken) == 12


@pytest.mark.parametrize("file_system", ["flock", errno.ENOLCK], indirect=True)
@pytest.mark.usefixtures("file_system")
def test_a_killed_process_of_this_machine_holds_nothing(lock):
    script = (
        "import fcntl, os, pathlib, signal\n"
        "from raysel.tracking.locks import FileLock\n"
        f"FileLock(pathlib.Path({str(lock)!r}))\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    assert len(list(lock.parent.iterdir())) == 2  # it has left its claim
    with FileLock(lock) as held:
        assert not held.evicted


def test_the_process_that_got_the_id_of_a_dead_one_is_another(lock, monkeypatch):
    without_flock(monkeypatch)
    here = Owner.current(flock=False)
    assert here.is_alive()
    claim_of(replace(here, start="1"), lock)
    FileLock(lock).close()


def test_in_another_container_of_this_machine_the_lock_of_the_operating_system_decides(lock):
    claim_of(replace(Owner.current(flock=True), namespace="pid:[1]", host="container", pid=1), lock)
    FileLock(lock).close()


def test_in_another_container_without_that_lock_its_signs_of_life_decide(lock, monkeypatch):
    without_flock(monkeypatch)
    other = replace(Owner.current(flock=False), namespace="pid:[1]", host="container", pid=1)
    claim_of(other, lock)
    with pytest.raises(LockHeldError, match="process 1 on 'container'"):
        FileLock(lock)
    claim_of(other, lock, age=1000)
    FileLock(lock).close()


@pytest.mark.usefixtures("file_system")
@pytest.mark.parametrize("owner", [ELSEWHERE, "", '{"host": 3}'], ids=["another machine", "half", "damaged"])
def test_a_process_of_another_machine_holds_the_lock_as_long_as_it_gives_signs_of_life(lock, owner):
    path = claim_of(owner, lock, age=50)
    assert is_locked(lock)
    said = (
        "process 4711 on 'node7', whose last sign of life was 5. s ago; if it is dead, try again in [67]. s, or remove"
    )
    with pytest.raises(LockHeldError, match=said if owner is ELSEWHERE else "does not name"):
        FileLock(lock)
    assert path.exists()
    claim_of(owner, lock, age=200)
    assert not is_locked(lock)
    with FileLock(lock) as held:
        assert held.evicted
        assert not path.exists()


@pytest.mark.parametrize("age", [3600, -3600])
def test_a_clock_that_is_set_ends_no_lock(lock, monkeypatch, age):
    monkeypatch.setattr(locks, "_WATCH_SECONDS", 30.0)
    path = claim_of(ELSEWHERE, lock, age)
    beat = threading.Timer(0.2, os.utime, (path,))
    beat.start()
    with pytest.raises(LockHeldError, match="node7"):
        FileLock(lock)
    beat.join()


def test_signs_of_life_are_given(lock, monkeypatch):
    monkeypatch.setattr(locks, "HEARTBEAT_SECONDS", 0.01)
    with FileLock(lock):
        (claim,) = (path for path in lock.parent.iterdir() if path != lock)
        os.utime(claim, (0, 0))
        until = time.monotonic() + 30
        while not claim.stat().st_mtime and time.monotonic() < until:
            time.sleep(0.01)
        assert claim.stat().st_mtime > 0


def test_who_was_taken_over_writes_nothing_more(lock):
    path = lock.with_name("journal.jsonl")
    stopped = FileLock(lock)
    journal = LineWriter(path, stopped)
    journal.write({"number": 1})
    stopped._file.close()  # as seen from another machine, flock of this one is free
    (claim,) = (file for file in lock.parent.iterdir() if file.name.startswith(".lock."))
    claim.rename(claim_of(ELSEWHERE, lock))
    claim_of(ELSEWHERE, lock, age=500)
    with FileLock(lock) as held, LineWriter(path, held) as later:
        with pytest.raises(StudyError, match=r"another process has taken over .*writes nothing more"):
            journal.write({"number": 2})
        os.write(journal._file.fileno(), b'{"number":2}\n')  # it had asked just before it was stopped
        later.write({"number": 3})
    assert [line["number"] for line in read_journal(path)] == [1, 3]


@pytest.mark.parametrize("where", ["before the check", "after the check"])
def test_who_was_stopped_while_it_wrote_a_file_and_taken_over_does_not_write_it(lock, monkeypatch, where):
    path = lock.with_name("progress.json")
    stopped = FileLock(lock)
    before = LockedFile(path, stopped)
    before.write("first")
    check = stopped.check

    def take_over() -> None:
        if where == "after the check":
            check()
        stopped._file.close()  # as seen from another machine, flock of this one is free
        (claim,) = (file for file in lock.parent.iterdir() if file.name.startswith(".lock."))
        claim.rename(claim_of(ELSEWHERE, lock))
        claim_of(ELSEWHERE, lock, age=500)
        with FileLock(lock) as held:
            LockedFile(path, held).write("second")
        if where != "after the check":
            check()

    monkeypatch.setattr(stopped, "check", take_over)
    with pytest.raises((StudyError, FileNotFoundError)):
        before.write("third")
    assert path.read_text() == "second"
    assert {file.name for file in lock.parent.iterdir()} == {".lock", "progress.json"}


def test_a_folder_that_does_not_list_new_files_is_no_place_for_a_lock(lock, monkeypatch):
    monkeypatch.setattr(locks, "claims", lambda _: iter(()))
    with pytest.raises(OSError, match="missing in the list"):
        FileLock(lock)
    assert [path.name for path in lock.parent.iterdir()] == [".lock"]


@pytest.mark.parametrize("has_locks", [True, False])
def test_a_sqlite_store_s_tables_are_made_by_one_at_a_time(tmp_path, monkeypatch, has_locks):
    if not has_locks:
        without_flock(monkeypatch)
    inside, faults = tmp_path / "inside", []

    def work() -> None:
        with schema_lock(f"sqlite:///{tmp_path}/mlflow.db"):
            try:
                inside.touch(exist_ok=False)
                time.sleep(0.002)
                inside.unlink()
            except OSError as fault:
                faults.append(fault)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
