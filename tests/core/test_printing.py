"""What is printed for people: how a shell starts a program of this environment."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from raysel.core.printing import program

HERE = Path(sys.executable).parent


def test_a_program_is_named_as_a_shell_starts_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", f"{HERE}{os.pathsep}/usr/bin:/bin")
    assert program() == "raysel"
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for folder in (tmp_path, HERE.parent):
        monkeypatch.chdir(folder)
        for name in ("raysel", "json.tool"):  # which has no script
            shown = program(name)
            subprocess.run([*shlex.split(shown), "--help"], check=True, stdout=subprocess.DEVNULL)
    assert program() == "bin/raysel"
