"""All experiments can be imported: they use what raysel has now."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Runs each file without its ``__main__`` part; siblings of one folder are found, those of others
#: forgotten.
IMPORT_ALL = """
import runpy, sys, traceback
from pathlib import Path
failed = 0
for path in map(Path, sys.argv[1:]):
    before = set(sys.modules)
    sys.path.insert(0, str(path.parent))
    try:
        runpy.run_path(str(path), run_name="imported")
    except BaseException:
        print(path, traceback.format_exc(), file=sys.stderr)
        failed += 1
    sys.path.remove(str(path.parent))
    siblings = {sibling.stem for sibling in path.parent.glob("*.py")}
    for name in siblings & (set(sys.modules) - before):
        del sys.modules[name]
sys.exit(failed)
"""


@pytest.mark.slow
def test_every_experiment_can_be_imported(tmp_path):
    scripts = sorted(map(str, (ROOT / "experiments").rglob("*.py")))
    assert len(scripts) > 25
    command = [sys.executable, "-c", IMPORT_ALL, *scripts]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())
