"""Writes attack files, reads them as raysel does under a limit of address space, and prints what
became of each.

It is run as a script: ``python judging.py FOLDER``, with an empty folder.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import resource
import sys
import warnings
from pathlib import Path
from typing import Any

import h5py  # noqa: F401 - all libraries are loaded before the address space is measured
import nibabel  # noqa: F401
import pyarrow.parquet  # noqa: F401
import scipy.io  # noqa: F401
import skops.io  # noqa: F401
from attack_files import LIMIT, WRITERS

from raysel.base.models import load_model
from raysel.config import load_config
from raysel.core.errors import ConfigError, DataError
from raysel.core.machine import MAX_DATA_BYTES
from raysel.data.loading import load_dataset
from raysel.evaluation.plan import NestedPlan

#: Address space for the stacks and pools of the threads of PyArrow, which ends the process if it
#: gets none; what of it is used is measured.
_MORE = 2**32
#: Events that no file may cause, besides files that are opened by name for writing.
_FORBIDDEN = (
    "os.system",
    "os.exec",
    "pickle.find_class",
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.chmod",
    "socket.connect",
)


def read(path: Path, labels: Path) -> Any:
    """Read a file as its suffix says."""
    match path.suffix:
        case ".yaml":
            return load_config(path)
        case ".json":
            return NestedPlan.read(path)
        case ".skops":
            return load_model(path)
        case ".npy":
            return load_dataset(path, labels=labels)
        case ".csv" if path.parent.name == "volumes":
            return load_dataset(path, mask=path.with_name("mask.nii"))
        case _:
            return load_dataset(path)


def write_all(folder: Path) -> None:
    """Write the files of each format into a folder of its own, and what is to be said of them."""
    expected = {}
    for kind, write in WRITERS.items():
        (folder / kind).mkdir()
        expected |= {f"{kind}/{name}": part for name, part in write(folder / kind).items()}
    (folder / "expected.json").write_text(json.dumps(expected))


def resident(name: str) -> int:
    """Bytes of memory of this process: now (VmRSS), or the most since that was reset (VmHWM)."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def main(folder: Path) -> None:
    """Judge all files."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MORE, used + _MORE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # In another process: memory that was freed in this one would be used again, and not be counted.
    writer = multiprocessing.get_context("fork").Process(target=write_all, args=(folder,))
    writer.start()
    writer.join()
    expected = json.loads((folder / "expected.json").read_text())
    os.environ[MAX_DATA_BYTES] = str(LIMIT)
    labels = folder / "labels.txt"
    labels.write_text("cat\ndog\n" * 5)
    before = set(folder.rglob("*"))
    peak = os.open("/proc/self/clear_refs", os.O_WRONLY)
    happened: list[str] = []

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _FORBIDDEN or (
            event == "open"
            and isinstance(arguments[0], str)
            and isinstance(arguments[1], str)
            and set(arguments[1]) & set("wax+")
        ):
            happened.append(f"{event} {arguments[:2]}")

    sys.addaudithook(watch)
    found = []
    for name, part in expected.items():
        sys.stderr.write(f"{name}\n")  # the last one is that which ended the process
        happened.clear()
        os.pwrite(peak, b"5", 0)  # sets the most to what is used now
        start = resident("VmRSS")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(folder / name, labels)
            kind, message = "taken", ""
        except (DataError, ConfigError) as error:
            kind, message = "refused", str(error)
        except BaseException as error:  # noqa: BLE001 - that is what is looked for
            kind, message = type(error).__name__, str(error)[:300]
        memory = (resident("VmHWM") - start) / LIMIT
        found.append(
            {
                "name": name,
                "part": part,
                "kind": kind,
                "message": message,
                "memory": memory,
                "events": list(happened),
            }
        )
    written = sorted(str(path) for path in set(folder.rglob("*")) - before)
    sys.stdout.write(json.dumps({"files": found, "written": written}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
