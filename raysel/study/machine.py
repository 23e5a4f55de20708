"""Libraries and processor features on which the last bits of a number depend, in one process."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

#: Folders in which the wheels of numpy and scipy keep their BLAS. Other packages may load further ones.
_WHEELS = ("numpy.libs", "scipy.libs", ".dylibs")
#: Parts of `machine_versions` that an environment variable changes, with how to set it.
_REMEDIES = {
    "blas": "for another kernel of OpenBLAS set OPENBLAS_CORETYPE, e.g. to Haswell, before the study starts",
    "simd": "for other instructions in numpy set NPY_DISABLE_CPU_FEATURES before the study starts",
}


def machine_versions() -> dict[str, str]:
    """Return what of this process can change the last bits of a number, besides raysel's own code."""
    modules = {"numpy": "numpy", "scipy": "scipy", "scikit-learn": "sklearn"}
    found = {name: str(importlib.import_module(module).__version__) for name, module in modules.items()}
    return {
        "python": platform.python_version(),
        **found,
        "blas": _blas(),
        "simd": _simd(),
        "libc": " ".join(platform.libc_ver()).strip(),
    }


def differing(here: Mapping[str, str], there: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """List what differs between two processes and can change a number."""
    for name in dict.fromkeys((*here, *there)):
        if here.get(name) != there.get(name):
            yield name, here.get(name) or "none", there.get(name) or "none"


def remedies(names: Iterable[str]) -> str:
    """Return how to make versions equal that differ."""
    known = [_REMEDIES[name] for name in names if name in _REMEDIES]
    return "; ".join(["use the same image or environment on all nodes", *known])


def _blas() -> str:
    """Name, version, kernel and threading layer of each BLAS of numpy and scipy."""
    importlib.import_module("scipy.linalg")  # loads SciPy's BLAS, which threadpoolctl finds only then
    found = [library for library in threadpool_info() if library["user_api"] == "blas"]
    own = [library for library in found if Path(library["filepath"]).parent.name in _WHEELS]
    keys = ("internal_api", "version", "architecture", "threading_layer")
    return ", ".join(sorted({" ".join(str(one[key]) for key in keys if one.get(key)) for one in own or found}))


def _simd() -> str:
    """Processor's architecture and the instructions that numpy found and may use."""
    shown = np.show_config(mode="dicts")
    extensions = shown.get("SIMD Extensions", {}) if isinstance(shown, dict) else {}
    names = [*extensions.get("baseline", ()), *extensions.get("found", ())]
    return " ".join((platform.machine(), *names))
