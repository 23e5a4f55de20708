"""A build backend of a few lines, so that pip installs this folder without setuptools and
without a network.
"""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).parent


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # noqa: ARG001 - PEP 517's names
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    groups = "".join(
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
        for group, points in project["entry-points"].items()
    )
    info = {
        "METADATA": (
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        ),
        "WHEEL": (
            "Wheel-Version: 1.0\nGenerator: wheel_backend\nRoot-Is-Purelib: true\nTag:"
            " py3-none-any\n"
        ),
        "entry_points.txt": groups,
    }
    files = {"raysel_sample.py": (HERE / "raysel_sample.py").read_text(encoding="utf-8")}
    files |= {f"{stem}.dist-info/{name}": text for name, text in info.items()}
    files[f"{stem}.dist-info/RECORD"] = "".join(
        f"{name},,\n" for name in [*files, f"{stem}.dist-info/RECORD"]
    )
    wheel = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel
