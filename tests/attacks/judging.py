"""Reads attack files as raysel does, under a limit of address space, and prints what became of each as JSON.

It is run as a script: ``python judging.py FOLDER``, with the folder of each format in it.
"""

from __future__ import annotations

import json
import resource
import sys
import warnings
from pathlib import Path
from typing import Any

import h5py  # noqa: F401 - all libraries are loaded before the address space is measured
import nibabel  # noqa: F401
import numpy as np
import pyarrow.parquet  # noqa: F401
import scipy.io  # noqa: F401
import skops.io  # noqa: F401
from attack_files import LIMIT

from raysel.base.models import load_model
from raysel.config import load_config
from raysel.cv.plan import NestedPlan
from raysel.data.loading import load_dataset
from raysel.errors import ConfigError, DataError

#: Address space that is left, of which PyArrow reserves a gigabyte; what is used of it is measured.
_MORE = 64 * LIMIT
#: Events that no file may cause, and files that libraries open for writing.
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
            return NestedPlan.read(path, np.arange(4) % 2, None)
        case ".skops":
            return load_model(path)
        case ".npy":
            return load_dataset(path, labels=labels)
        case ".csv" if path.parent.name == "volumes":
            return load_dataset(path, mask=path.with_name("mask.nii"))
        case _:
            return load_dataset(path)


def main(folder: Path) -> None:
    """Judge all files."""
    happened: list[str] = []

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _FORBIDDEN or (
            event == "open"
            and isinstance(arguments[0], str)
            and isinstance(arguments[1], str)
            and set(arguments[1]) & set("wax+")
        ):
            happened.append(f"{event} {arguments[:2]}")

    names = json.loads(sys.stdin.read())
    labels = folder / "labels.txt"
    labels.write_text("cat\ndog\n" * 5)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MORE, used + _MORE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.addaudithook(watch)
    found = {}
    for name in names:
        happened.clear()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(folder / name, labels)
            kind, message = "taken", ""
        except (DataError, ConfigError) as error:
            kind, message = "refused", str(error)
        except BaseException as error:  # noqa: BLE001 - that is what is looked for
            kind, message = type(error).__name__, str(error)[:300]
        now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found[name] = [kind, message, 1024 * (now - before), list(happened)]
        before = now
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
