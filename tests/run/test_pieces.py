"""Numbered pieces of work: the journal, what it refuses, and that nothing is computed twice or
differently.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from small_studies import Watcher

from raysel.core.errors import DirectoryError, StudyError, UnfinishedStudyError
from raysel.execution.serial import SerialExecutor
from raysel.run.options import RunOptions
from raysel.run.pieces import Work, finished_study, run_pieces
from raysel.tracking.journal import read_journal
from raysel.tracking.records import NodeRecord


def draw(scale, study, number):
    """A number that depends on the settings, the data, the seed and its own number; 3 fails."""
    if number == 3:
        raise FloatingPointError("overflow")
    return [
        scale * float(study.dataset.X[number].sum()),
        np.random.default_rng((study.config.seed, number)).random(),
    ]


@pytest.fixture(scope="module")
def restored(digits_study):
    with finished_study(digits_study) as study:
        yield study


@pytest.fixture
def run(restored, tmp_path):
    """The function that computes pieces in a new folder."""
    work = Work(str(tmp_path / "draws"), partial(draw, 2.0), (draw,), {"scale": 2.0}, "draws")

    def run(numbers, listeners=()):
        told = replace(restored, options=RunOptions(listeners=listeners))
        return run_pieces(told, work, numbers)

    return run


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "draws" / "journal.jsonl"


def test_pieces_are_computed_once_wherever_they_stop(run, journal):
    whole = run(range(6))
    assert list(whole.values) == [0, 1, 2, 4, 5]
    assert whole.errors == {3: "FloatingPointError: overflow"}
    first = journal.read_bytes().splitlines(keepends=True)
    for cut in (0, 1, 4, len(first)):
        torn = b"".join(first[:cut]) + (first[cut][:-5] if cut < len(first) else b"")
        journal.write_bytes(torn)
        assert run(range(6)) == whole
        numbers = [line["number"] for line in read_journal(journal) if "value" in line]
        assert sorted(numbers) == [0, 1, 2, 4, 5]
    more = run(range(8))
    assert {number: more.values[number] for number in whole.values} == whole.values
    assert len(more.values) == 7


def test_an_interrupt_keeps_what_has_ended(run, journal):
    with pytest.raises(KeyboardInterrupt):
        run(range(6), listeners=[Watcher(phase="2/6 ")])
    lines = list(read_journal(journal))
    assert [line.get("number") for line in lines] == [None, 0, 1]
    listener = Watcher()
    assert list(run(range(6), listeners=[listener]).values) == [0, 1, 2, 4, 5]
    assert listener.lines[0] == "2/6 draws"
    assert listener.lines[-1] == "6/6 draws · 1 failed"


def test_nodes_with_other_versions_are_named_once_and_stay_with_what_they_computed(
    run, journal, monkeypatch
):
    node = NodeRecord("10.0.0.2", [("numpy", "2.4.6", "2.3.1")])
    with monkeypatch.context() as patched:
        patched.setattr(SerialExecutor, "mixed_nodes", lambda _: [node])
        assert run(range(2)).mixed == run(range(6)).mixed == (node.sentence,)
    assert [line["kind"] for line in read_journal(journal)].count("node") == 2  # one of each run
    assert run(range(8)).mixed == (node.sentence,)
    assert list(run(range(8)).values) == [0, 1, 2, 4, 5, 6, 7]
    journal.write_text(journal.read_text().replace('["numpy","2.4.6","2.3.1"]', "[1]"))
    with pytest.raises(DirectoryError, match=r"damaged: 'versions\.0\.0'"):
        run(range(8))


def change_header(journal, change):
    first, rest = journal.read_text().split("\n", 1)
    header = json.loads(first)
    change(header)
    journal.write_text(json.dumps(header) + "\n" + rest)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda header: header["settings"].update(scale=3.0), "scale: 3.0 -> 2.0"),
        (lambda header: header.update(data_hash="0"), "the hash of the data: 0 -> "),
        (lambda header: header.update(winner={"alpha": 5}), "the final model: {'alpha': 5} -> "),
        (lambda header: header["versions"].update(numpy="1.0"), "numpy: 1.0 -> "),
        (
            lambda header: header["versions"].update(pieces="0"),
            "source code that computes the pieces",
        ),
    ],
)
def test_a_change_that_makes_other_values_is_refused(run, journal, change, named):
    run(range(2))
    change_header(journal, change)
    before = journal.read_bytes()
    with pytest.raises(DirectoryError, match=f"(?s){named}.*remove .*draws"):
        run(range(2))
    assert journal.read_bytes() == before


def test_a_damaged_journal_is_refused(run, journal):
    run(range(2))
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([lines[0], '{"number": "x"}', *lines[2:]]) + "\n")
    with pytest.raises(DirectoryError, match=r"line 2: not a piece of work"):
        run(range(2))


def test_one_process_at_a_time(copied):
    with (
        finished_study(copied),
        pytest.raises(DirectoryError, match="is in use"),
        finished_study(copied),
    ):
        pass


def test_an_unfinished_study_is_refused(copied):
    journal = copied / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(UnfinishedStudyError), finished_study(copied):
        pass


def test_other_data_are_refused(copied, digits_study, tmp_path):
    with np.load(digits_study.parent / "few.npz") as data:
        np.savez(tmp_path / "other.npz", X=data["X"] + 1, y=data["y"])
    with (
        pytest.raises(StudyError),
        finished_study(copied, overrides={"dataset.path": str(tmp_path / "other.npz")}),
    ):
        pass


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_a_piece_that_hangs_is_ended_after_the_time_limit_of_the_study(
    copied, tmp_path, monkeypatch
):
    monkeypatch.setattr("raysel.run.pieces._START_SECONDS", 1.0)
    monkeypatch.setattr("raysel.execution.ray.tasks.MAX_RETRIES", 0)  # it hangs once, not thrice

    def hang_at_two(study, number):  # noqa: ARG001 - here, because Ray's workers cannot import this module
        time.sleep(600 * (number == 2))
        return number

    overrides = {"search.trial_timeout": 0.5}
    with finished_study(copied, overrides=overrides, executor="ray") as finished:
        work = Work(str(tmp_path / "hangs"), hang_at_two, (hang_at_two,), {}, "pieces")
        found = run_pieces(finished, work, range(4))
    assert list(found.values) == [0, 1, 3]
    assert "one that takes over 1.75 s is ended" in found.errors[2]
