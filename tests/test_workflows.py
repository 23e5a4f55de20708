"""The workflows may only read, name their actions by major version, and start what is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))


def read(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow: dict) -> list[dict]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_workflow_reads_only_and_ends(path):
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())
    actions = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", action) for action in actions)


def test_the_checks_run_on_the_oldest_python():
    workflow = read(ROOT / ".github/workflows/ci.yml")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = workflow["jobs"]["checks"]["strategy"]["matrix"]["python"][0]
    assert f">={oldest}" == project["requires-python"]
    assert {"run": ".ci/run"} in steps(workflow)
    assert f"venv -q --python {oldest} " in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_the_reference_is_made_by_what_is_there():
    lines = [step.get("run", "") for step in steps(read(ROOT / ".github/workflows/docs.yml"))]
    (module,) = re.findall(r"python .*-m (experiments[\w.]+)", "\n".join(lines))
    assert (ROOT / module.replace(".", "/")).with_suffix(".py").is_file()
