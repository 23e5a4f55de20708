"""What a driver ships to a cluster, and that its nodes compute with the driver's versions."""

from __future__ import annotations

import json
import pickle
import sys
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from small_studies import make_study, write_digits

from raysel.core.errors import ConfigError
from raysel.execution.ray import shipping
from raysel.execution.ray.shipping import ShippedCode, environment, runtime_env, shipped_code
from raysel.execution.ray.versions import (
    MixedVersionsError,
    NodeCheck,
    other_versions,
    versions_here,
)
from raysel.study.identity import machine_versions


@pytest.fixture
def own_code(tmp_path, monkeypatch):
    """A working directory with a solver, what it imports, and what it does not."""
    code = tmp_path / "code"
    for name, text in {
        "mine/__init__.py": "",
        "mine/methods.py": (
            "import beside, numpy\nfrom sklearn.svm import LinearSVC\nclass Mine(LinearSVC): pass\n"
        ),
        "mine/.gitignore": "methods.py",
        "mine/.git/config": "",
        "mine/__pycache__/methods.pyc": "",
        "beside.py": "import deeper.inner\n",
        "deeper/inner.py": "",
        "unrelated.py": "",
    }.items():
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text(text)
    monkeypatch.syspath_prepend(code)
    yield code
    for name in [
        name for name in sys.modules if name.partition(".")[0] in ("mine", "beside", "deeper")
    ]:
        del sys.modules[name]


@pytest.fixture
def study(own_code, tmp_path):  # noqa: ARG001 - the solver is found there
    write_digits(tmp_path / "few.npz")
    return make_study(
        tmp_path / "few.npz", solver={"name": "mine.methods.Mine", "space": {"C": [0.1]}}
    )


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_solver_is_shipped_with_what_it_imports_and_no_more(study, tmp_path):
    code = shipped_code([study])
    assert (code.modules["raysel"] / "tune.py").is_file()
    assert set(code.modules) >= {"raysel", "mine", "beside", "deeper"}
    assert not {"unrelated", "numpy", "sklearn"} & set(code.modules)
    (tmp_path / "staged").mkdir()
    paths = code.stage(tmp_path / "staged")
    assert {Path(path).name for path in paths} >= {"raysel", "mine", "beside.py", "deeper"}
    staged = files(tmp_path / "staged")
    assert {"mine/methods.py", "raysel/tune.py"} <= staged
    assert not [name for name in staged if ".git" in name or name.endswith(".pyc")]


def test_the_module_of_an_installed_package_is_not_shipped(study):
    other = study.config.solver.model_copy(update={"name": "sklearn_extra.svm.Other"})
    assert shipping._is_installed(Path(pytest.__file__))
    assert not shipping._is_installed(Path(__file__))
    object.__setattr__(study, "config", study.config.model_copy(update={"solver": other}))
    assert "sklearn_extra" not in shipped_code([study]).modules


def test_a_folder_of_more_than_code_is_refused_with_its_size(study, own_code):
    with (own_code / "mine/data.bin").open("wb") as file:
        file.truncate(150 * 2**20)
    with pytest.raises(
        ConfigError,
        match=r"the module mine is the folder .* of 150 MiB, and at most 100 MiB of code",
    ):
        shipped_code([study]).stage(own_code)


def test_entry_points_are_found_where_only_the_shipped_files_are(tmp_path):
    info = tmp_path / "site/some_plugin-2.0.egg-info"
    info.mkdir(parents=True)
    (info / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: some-plugin\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[raysel.estimators]\nnew = some_plugin.deep:New\n")
    (tmp_path / "staged").mkdir()
    (path,) = ShippedCode({}, [PathDistribution(info)]).stage(tmp_path / "staged")
    actual = PathDistribution(Path(path))
    assert (actual.name, actual.version) == ("some-plugin", "2.0")
    assert [(point.name, point.value) for point in actual.entry_points] == [
        ("new", "some_plugin.deep:New")
    ]


def test_workers_get_threads_and_no_secrets(study):
    driver = {
        "OMP_NUM_THREADS": "3",
        "OPENBLAS_CORETYPE": "Haswell",
        "RAYSEL_DATA": "data",
        "RAYSEL_TOKEN": "secret",
        "MLFLOW_TRACKING_PASSWORD": "secret",
        "RAY_AUTH_TOKEN": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "HOME": "home",
    }
    actual = environment([study], driver)
    assert actual["OMP_NUM_THREADS"] == "3"
    assert actual["OPENBLAS_NUM_THREADS"] == str(study.config.search.cpus_per_trial)
    assert (actual["OPENBLAS_CORETYPE"], actual["RAYSEL_DATA"]) == ("Haswell", "data")
    assert "secret" not in actual.values()
    assert "HOME" not in actual


def test_a_job_s_modules_and_variables_are_kept(study, tmp_path, monkeypatch):
    job = {
        "working_dir": "gcs://a.zip",
        "py_modules": ["gcs://b.zip"],
        "env_vars": {"OMP_NUM_THREADS": "2"},
    }
    monkeypatch.setenv(
        "RAY_JOB_CONFIG_JSON_ENV_VAR", json.dumps({"runtime_env": job, "metadata": {}})
    )
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    (tmp_path / "staged").mkdir()
    actual = runtime_env(shipped_code([study]), tmp_path / "staged", [study])
    assert actual.keys() == {"py_modules", "env_vars"}  # Ray adds the working directory of the job
    assert actual["py_modules"][-1] == "gcs://b.zip"
    assert "OMP_NUM_THREADS" not in actual["env_vars"]
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "not JSON")
    assert shipping.job_runtime_env() == {}


STUDY = {"any": "object"}


def test_a_study_is_restored_where_the_versions_are_the_same():
    check = NodeCheck(("raysel",), allowed=False)
    assert pickle.loads(pickle.dumps(check.guard(STUDY))) == STUDY


def test_elsewhere_it_is_not_and_both_versions_are_named():
    check = NodeCheck(("raysel",), allowed=False)
    check.expected = {**check.expected, "numpy": "1.0", "simd": "x86_64 X86_V9"}
    stored = pickle.dumps(check.guard(STUDY))
    here = machine_versions()
    with pytest.raises(
        MixedVersionsError, match=f"numpy {here['numpy']} instead of 1.0, simd .*NPY_DISABLE"
    ) as caught:
        pickle.loads(stored)
    text = (
        "ray.exceptions.RaySystemError: System error\n"
        f"raysel.execution.ray.versions.MixedVersionsError: {caught.value}\nend"
    )
    actual = other_versions(RuntimeError(text))
    assert isinstance(actual, MixedVersionsError)
    assert str(actual).startswith("the node ")
    assert other_versions(RuntimeError("the node died")) is None


def test_it_is_restored_everywhere_if_mixed_versions_are_allowed():
    check = NodeCheck(("raysel",), allowed=True)
    check.expected = {"numpy": "1.0"}
    assert pickle.loads(pickle.dumps(check.guard(STUDY))) == STUDY


def test_the_code_of_a_module_is_compared(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "one_file.py").write_text("a = 1")
    before = versions_here(("raysel", "one_file", "nowhere"))
    (tmp_path / "one_file.py").write_text("a = 2")
    after = versions_here(("raysel", "one_file", "nowhere"))
    assert before["code of raysel"] == after["code of raysel"]
    assert before["code of one_file"] != after["code of one_file"]
    assert after["code of nowhere"] == "missing"
