"""A study for clusters: its fits wait while a file says so, so that it can be stopped between
two trials.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_studies import raw_config, resume_offline, run_offline, timeless, write_digits

#: A method of the user's own, in the folder of the study. While the file is there each fit takes so
#: long that an outer fold is a batch of its own, which no waiting one keeps back; while the file
#: holds anything, no fit goes on.
_METHOD = """
import os, time
from contextlib import suppress
from raysel import SMR

HOLD = "{hold}"

class Held(SMR):
    def _updates(self, X, y, prepared):
        with suppress(FileNotFoundError):
            os.stat(HOLD)
            time.sleep(0.6)
            while os.stat(HOLD).st_size:
                time.sleep(0.05)
        yield from super()._updates(X, y, prepared)
"""
#: The module ``sitecustomize`` by which ``python -m raysel.tune`` uploads and reports nothing.
_BARE = f"""
import sys
if "raysel.tune" in sys.orig_argv:
    sys.path.append("{Path(__file__).parent}")
    import bare_process
"""
_SPACE = {"alpha": [0.01, 0.03, 0.1], "rank": [1, 2]}


def write_study(work: Path, hold: Path) -> None:
    """Write the data, the configuration and the method of the study."""
    write_digits(work / "few.npz")
    raw = raw_config(
        solver__name="held.Held", solver__params={"max_iter": 20}, solver__space=_SPACE, search={}
    )
    (work / "study.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    (work / "held.py").write_text(_METHOD.format(hold=hold), encoding="utf-8")


def bare_commands(folder: Path, more: str = "") -> str:
    """Write what makes commands upload and report nothing, and more, and return their
    PYTHONPATH.
    """
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(_BARE + more, encoding="utf-8")
    return f"{Path(__file__).parents[1]}:{folder}"


def run_alone(work: Path, folder: Path) -> None:
    """Compute the study in this process."""
    with _in_this_process(work) as raw:
        run_offline(raw, folder)


def go_on_alone(work: Path, folder: Path) -> None:
    """Compute in this process what a study that was interrupted elsewhere lacks."""
    with _in_this_process(work) as raw:
        resume_offline(raw, folder)


@contextmanager
def _in_this_process(work: Path) -> Iterator[dict[str, Any]]:
    """Give the study's configuration to this process, which may have no method of another study,
    and never waits.
    """
    sys.modules.pop("held", None)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(work)
        patch.chdir(work)
        patch.setattr("held.HOLD", "/nowhere")
        patch.setattr("raysel.results.page.report.write_final_report", lambda _: None)
        yield yaml.safe_load(Path("study.yaml").read_text(encoding="utf-8"))
    del sys.modules["held"]


def records(study: Path) -> list[dict[str, Any]]:
    """The study's journal, which may not exist yet."""
    journal = study / "journal.jsonl"
    text = journal.read_text(encoding="utf-8") if journal.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def trials(study: Path) -> dict[str, dict[str, Any]]:
    """The journal's trials without their times."""
    found = [timeless(record) for record in records(study) if record["kind"] == "trial"]
    assert len({record["id"] for record in found}) == len(found)
    return {record["id"]: record for record in found}


def ranking(study: Path) -> bytes:
    """The study's ranking."""
    return (study / "ranking/ranking.csv").read_bytes()


def ends(study: Path) -> list[str]:
    """How the study's runs ended."""
    return [record["status"] for record in records(study) if record["kind"] == "end"]


def wait_for(
    what: str | Callable[[], str], true: Callable[[], Any], seconds: float = 240, every: float = 0.2
) -> Any:
    """Wait until something holds, for which it looks every so many seconds, and return it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(every)
    raise AssertionError(f"{what if isinstance(what, str) else what()}: not within {seconds} s")
