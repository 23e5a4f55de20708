"""Every script under experiments/ runs to its end in its shortest form, so that its figures can
be measured again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_studies import write_digits, write_yaml

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "experiments"
#: Of two folds, without a final model.
SHORT = "--set cv.outer=2 --set cv.inner=2 --set cv.final=false"
#: Without Ray besides.
TINY = f"{SHORT} --set search.executor=serial"
#: A comparison beside the copied scripts, the only one of the tests that is killed.
COMPARISON = """
name: two
dataset: {path: few.npz, scaling: unit}
evaluation: {classifier: knn, n_features: [8, 32]}
pictures: []
compare:
  a: {solver: {name: smr, params: {max_iter: 6}, space: {alpha: [0.01, 0.1], rank: [1, 2]}}}
  b: {solver: {name: t_test}}
"""
#: Arguments of the scripts that have some which shorten them.
ARGUMENTS = {
    "claims/adaptive-search/asha.py": f"digits-smr --set solver.space.alpha=[0.1,0.3] {TINY}",
    "claims/adaptive-search/tpe.py": "--seeds 2 --budget 2",
    "claims/arrangement/run.py": "--draws 1",
    "benchmarks/cluster-scaling/run.py": (
        "--workers 1 --methods sleeping --trials 2 --seconds 0.05 --repeats 1 --megabytes 1"
    ),
    "claims/consensus/run.py": "--seeds 1 --wide 1",
    "claims/defaults/run.py": "--data iris --methods draft --anew",
    "claims/dependent-samples/run.py": "--draws 1",
    "claims/fold-overlap/run.py": "--draws 2",
    "claims/harmonise/run.py": "--seeds 1",
    "claims/leak-guards/run.py": "--seeds 1",
    "claims/rivals-accuracy/run.py": "fixed --repeats 2",
    "benchmarks/scoring-speed/run.py": "few.yaml --configurations 1",
    "benchmarks/search-overhead/comparison.py": f"--repeats 1 compare.yaml {TINY}",
    "benchmarks/search-overhead/growth.py": "--trials 2",
    "benchmarks/search-overhead/many_trials.py": "--trials 3",
    "benchmarks/search-overhead/timeline.py": f"timeline.png few.yaml {TINY}",
    "benchmarks/search-overhead/nested_orl.py": "--configurations 2 --iterations 2 --repeats 1",
    "benchmarks/search-overhead/peers.py": "--repeats 1 --ways nestedcv raysel-memory",
    "benchmarks/search-overhead/resampling.py": (
        "--repeats 1 --permutations 1 --subsamples 4 few.yaml "
        "--set cv.outer=2 --set cv.inner=2 --set solver.space.alpha=[0.1]"
    ),
    "benchmarks/search-overhead/short_trials.py": "--trials 3 --iterations 2 --repeats 1",
    "benchmarks/search-overhead/slots.py": "few.yaml --slots 2",
    "benchmarks/pipelines/run.py": "--columns 200 --cases within --repeats 1",
    "benchmarks/structure-speed/groups.py": "--repeats 1",
    "benchmarks/structure-speed/run.py": "--repeats 1",
    "benchmarks/stored-data/run.py": "--samples 300 --side 8 --compare",
    "benchmarks/search-overhead/worker_memory.py": "--samples 24",
    "claims/discoveries/run.py": (
        "--studies 2 --columns 30 --designs modules --targets quantity squares"
        " --methods covariance svm --output few.csv"
    ),
    "claims/discoveries/rivals.py": ("--studies 2 --columns 20 --designs series --output few.csv"),
    "claims/discoveries/regions.py": (
        "--studies 2 --samples images --targets quantity --output few.csv"
    ),
    "claims/smml-planted/planted.py": "2",
    "claims/structure/run.py": "--draws 1 --samples 50 --methods F-test SMR --output few.csv",
    "benchmarks/smml-speed/run.py": "solvers --limit 0.1",
    "claims/smr-start/accuracy.py": "2",
    "claims/smr-start/random_starts.py": "1",
    "claims/smr-start/run.py": "0 2",
    "claims/stability-noise/run.py": "--draws 2",
    "claims/survival/fuzz_inputs.py": "--minutes 0.02",
    "claims/survival/kill_driver.py": (
        "--kills 1 --seed 5 few.yaml --set pictures=[png] "
        "--set solver.params.max_iter=60 --set solver.params.tol=0.0"
    ),
    # The seed kills at once, before the little work is done.
    "claims/survival/kill_comparison.py": f"--kills 1 --seed 31 compare.yaml {TINY}",
}
ONE = {"N_PROCESSES = 2": "N_PROCESSES = 1"}
#: One size, of which each is a process: growth from one to the next is computed by a function that
#: they share.
GROWTH = {"(750, 1500, 3000, 6000)": "(100,)"}
#: Every 16th pixel of the images.
FEW_PIXELS = {"= load_orl_half()\n": "= load_orl_half()\n    X = X[:, ::16]\n"}
#: What their text, or that of a file beside them, says instead.
SHORTER = {
    "benchmarks/structure-speed/run.py": {
        "1e-4, 1e-6": "1e-2, 1e-3",
        "(20, 20, 20)": "(6, 6, 6)",
        "(1000, 1, 1)": "(60, 1, 1)",
    },
    "benchmarks/stored-data/run.py": {'"search": {': '"pictures": [], "search": {'},
    "claims/adaptive-search/tpe.py": {
        '"seed": seed,\n': '"seed": seed, "cv.outer": 2, "cv.inner": 2, "cv.final": False,\n'
    },
    # It uses the session of the others, which raysel starts with the same arguments.
    "benchmarks/cluster-scaling/run.py": {
        '"sleeping", 8, 0.2': '"sleeping", 2, 0.1',
        """ray.init(
                address="local", num_cpus=workers, include_dashboard=False, log_to_driver=False
            )""": ("pass"),
        "ray.shutdown()": "pass",
    },
    "claims/arrangement/run.py": {
        '"UMIST", "PIE_68x42_32x32", "ORL_28x23", "AR100_32x32"': '"ORL_28x23"',
        "(2, 3, 4, 5, 6, 10)": "(2, 10)",
        "(16, 24, 32)": "(16,)",
        "(1000, 250, 400)": "(100, 50, 40)",
        "photographs(400)": "photographs(4)",
        '"Handwritten_mfeat", "MSRCv1_6v", "MSRCv2_6v_multilabel", "Scene_multilabel"': (
            '"MSRCv1_6v",'
        ),
        'npz")["X"]\n': 'npz")["X"][:40]\n',
        "default_rng(0), 50)": "default_rng(0), 2)",
    },
    "claims/chance-level/run.py": {
        "SEEDS, N_POOL_DRAWS, EACH = 6, 3000, 10": "SEEDS, N_POOL_DRAWS, EACH = 2, 20, 5"
    },
    "claims/comparison-tests/run.py": {
        "STUDIES = 2000": "STUDIES = 3",
        "DRAWS = 40, 50, 2000": "DRAWS = 1, 2, 5",
        '600 if kind == "normal" else 400': "2",
    },
    "claims/consensus/run.py": {
        "SAMPLES, FEATURES = 120, 300": "SAMPLES, FEATURES = 40, 100",
        "WIDTH, WIDE = 8000": "WIDTH, WIDE = 300",
        "for what, draw in DRAWS.items()": "for what, draw in list(DRAWS.items())[-1:]",
    },
    "claims/consensus/even_folds.py": {"N_REPEATS = 200": "N_REPEATS = 4"},
    # One population of each plan and set of metrics.
    "claims/corrected-interval/run.py": {
        "N_SETS, N_NEW = 100, 10": "N_SETS, N_NEW = 2, 2",
        "for case in cases()": (
            "for case in {(c.plan, *c.population.metrics): c for c in cases()}.values()"
        ),
    },
    "claims/dependent-samples/run.py": {
        "TOP, PERMUTATIONS = 240, 20, 5, 19": "TOP, PERMUTATIONS = 240, 20, 5, 1",
        "10 * draws": "draws",
        "for _ in range(5)": "for _ in range(1)",
    },
    "claims/error-control/permutation.py": {
        "FIRST_SEED = 19": "FIRST_SEED = 1",
        "range(case.runs)": "range(1)",
    },
    "claims/error-control/run.py": {
        "range(case.runs)": "range(2)",
        "HALVES, THRESHOLDS = 100": "HALVES, THRESHOLDS = 10",
    },
    "claims/fold-overlap/run.py": {"20_000": "20"},
    "claims/harmonise/run.py": {"N, D, NEW, FOLDS = 160, 8000": "N, D, NEW, FOLDS = 160, 900"},
    "claims/leak-guards/run.py": {
        '("iris", "wine", "breast_cancer", "digits")': '("iris", "wine")',
        "(80, 300)": "(80,)",
        "n_features=500": "n_features=50",
        "size=(200, 500)": "size=(200, 50)",
        "(0.02, 0.2, 0.5, 1.0)": "(0.2,)",
        '"*.npz"': '"ORL.npz"',
    },
    "benchmarks/mtda-speed/run.py": {
        "REPEATS = 10, 2, 9": "REPEATS = 10, 2, 1",
        "(80, 256, 6)": "(80, 96, 6)",
        "(80, 512, 6), (80, 1024, 6), (1200, 256, 8), (1200, 512, 8), (1200, 1024, 8)": "",
        "1000, 2000, 4000, 8000, 16000, 32000, 64000": "100, 200",
    },
    "claims/rivals-accuracy/run.py": {
        "for data in PROTOCOLS": 'for data in ["USPS"]',
        "in FIXED.items()": "in list(FIXED.items())[:3]",
    },
    "benchmarks/rivals-speed/dfs.py": {"(4096, 2, 300)": "", "REPEATS = 30, 5": "REPEATS = 5, 1"},
    "benchmarks/rivals-speed/gaussian_process.py": {
        "[500, 1500, 3000, 6000]": "[100]",
        "[500, 1500]": "[100]",
    },
    "benchmarks/rivals-speed/glspfs.py": {
        "(4096, 4, 100)": "",
        "REPEATS = 30, 5": "REPEATS = 10, 1",
    },
    "benchmarks/rivals-speed/information_gain.py": {
        "REPEATS, BINS, WANTED = 7": "REPEATS, BINS, WANTED = 1",
        **FEW_PIXELS,
    },
    "benchmarks/rivals-speed/kernel_svm.py": {"[500, 1500, 3000, 6000]": "[100]"},
    "benchmarks/rivals-speed/lp_boost.py": {
        "[(600, 10, 0.5), (2400, 31, 0.1), (2400, 31, 0.5), (2400, 31, 0.9)]": "[(100, 3, 0.5)]",
        "(500, 1500, 3000, 6000)": "(100,)",
    },
    "benchmarks/rivals-speed/mcgf.py": {"(750, 1500, 3000, 6000)": "(100, 200)"},
    "benchmarks/rivals-speed/ml_knn.py": GROWTH,
    "benchmarks/rivals-speed/mlls.py": GROWTH,
    "benchmarks/rivals-speed/mkl.py": {
        '("hinge", 1, [500, 1500, 3000, 6000]),\n    ("hinge", 2, [500, 1500, 3000, 6000]),': "",
        '("squared", "inf", [500, 1500, 3000]),': "",
        "[500, 1500, 3000, 6000]": "[100, 200]",
        "[500, 1500, 3000]": "[100]",
    },
    "benchmarks/rivals-speed/mrmr.py": {
        "N_SELECTED, WANTED = 3, 5, 50": "N_SELECTED, WANTED = 1, 5, 2",
        **FEW_PIXELS,
    },
    "benchmarks/rivals-speed/rfs.py": {
        "(1024, 15, 60), (4096, 3, 500)": "(64, 15, 60)",
        "REPEATS = 30, 5": "REPEATS = 15, 1",
        "FIT_FEATURES, FIT_RATIO = 1024": "FIT_FEATURES, FIT_RATIO = 64",
        "N_SAMPLES, N_CLASSES, ALPHA = 200, 40": "N_SAMPLES, N_CLASSES, ALPHA = 40, 4",
        ', "ORL": load_orl_half()': "",
    },
    "claims/error-control/decoys.py": {"TOP = 30, 40, 30": "TOP = 2, 4, 5"},
    "benchmarks/smr-speed/starts.py": {
        '"ORL": (0.003, 0.3, 5), "UMIST": (0.003, 0.3, 5), "USPS": (0.001, 0.3, 6)': (
            '"USPS": (0.1, 0.3, 1)'
        ),
        "(2, 4, 8), (0, 3)": "(2,), (0,)",
    },
    "benchmarks/search-overhead/growth.py": {
        '"num_samples": trials}': '"num_samples": trials, "executor": "serial"}',
        '"max_iter": 5': '"max_iter": 1',
    },
    # It looks at all processes ten times a second, which is as dear as a command.
    "benchmarks/search-overhead/comparison.py": {"wait(0.1)": "wait(0.5)"},
    "benchmarks/search-overhead/peers.py": {
        "[0.003, 0.01, 0.03, 0.1, 0.3, 1.0]": "[0.003]",
        "wait(0.1)": "wait(0.5)",
    },
    "benchmarks/search-overhead/resampling.py": {"wait(0.1)": "wait(0.5)"},
    "benchmarks/search-overhead/nested_orl.py": {
        "[2, 4, 8],": (
            '[2], "dataset.classes": [1, 2, 3], "cv.outer": 2, "cv.inner": 2, "pictures": [],'
        ),
        **ONE,
    },
    "benchmarks/search-overhead/short_trials.py": {
        '"name": "short-trials",': '"name": "short-trials", "pictures": [],',
        **ONE,
    },
    "benchmarks/search-overhead/worker_memory.py": {
        '"name": "memory",': '"name": "memory", "pictures": [],',
        "(16, arguments.samples)": "(arguments.samples,)",
        "(128, 100), 4, 2\n": "(16, 10), 4, 1\n",
    },
    "claims/smml-planted/planted.py": {
        "(0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.5)": "(0.03, 0.1)",
        "np.arange(-3, 4)": "np.arange(-1, 1)",
        '"shared noise": {"shared": 0.7},\n': "",
    },
    "benchmarks/smml-speed/run.py": {
        ', ("MSRCv1_6v.npz", 10, 1), ("Handwritten_mfeat.npz", 1, 1)': ""
    },
    "claims/smr-start/accuracy.py": {
        "TOP, N_RANDOM = 50, 6": "TOP, N_RANDOM = 50, 1",
        "max_iter=40": "max_iter=4",
        "product(ranks, (0.1, 0.02))": "product(ranks[:1], (0.1,))",
        '    yield "UMIST", read("UMIST", 15, 5, draw), (2, 4)\n': "",
        '    yield "ORL", read("ORL", 20, 5, draw), (2, 4)\n': "",
    },
    "claims/smr-start/glances.py": {
        "N_RANDOM, N_LS21 = 30, 10": "N_RANDOM, N_LS21 = 20, 1",
        "for rank in ranks for alpha in (0.1, 0.02)": "for rank in ranks[:1] for alpha in (0.1,)",
        '    yield "UMIST", read("UMIST", 15, 5, draw), (2, 4)\n': "",
        '    yield "ORL", read("ORL", 20, 5, draw), (2, 4)\n': "",
        '    yield "ORL, few", *read("ORL", 20, 5), (2, 4)\n': "",
    },
    "claims/smr-start/run.py": {
        "(0.25, 0.5, 0.75, 1.0), (0.003, 0.01, 0.05, 0.2), (1, 2, 4)": "(0.5, 1.0), (0.05,), (2,)"
    },
    "benchmarks/smr-speed/run.py": {
        "[(4, 0.1, 100), (4, 0.01, 100), (10, 0.1, 50), (10, 0.01, 50)]": "[(2, 0.1, 1)]",
        "REPEATS = 9": "REPEATS = 1",
        "LITERAL_ITERATIONS = 30": "LITERAL_ITERATIONS = 2",
    },
    "benchmarks/smr-speed/order3.py": {
        "SHAPE, RANK, N_CLASSES, ZETA = 200, (16, 16, 8)": (
            "SHAPE, RANK, N_CLASSES, ZETA = 60, (4, 4, 3)"
        ),
        "REPEATS, DOUBLINGS = 10, 7, 2": "REPEATS, DOUBLINGS = 2, 1, 1",
    },
    "claims/structure/run.py": {"in product(SHAPES, NOISES": "in product(['stripes'], NOISES"},
    "claims/survival/journal_overhead.py": {"REPEATS = 0.2, 30, 200, 5": "REPEATS = 0.2, 3, 2, 1"},
}
#: Those that other tests run, or that need a cluster or another environment.
ELSEWHERE = {
    *(f"benchmarks/structure-speed/{name}.py" for name in ("group_peers", "spacenet")),
    *("examples/own_data.py", "examples/own_estimator.py", "examples/read_study.py"),
    *(
        "claims/false-claims/run.py",
        "guide/reference.py",
        "guide/run.py",
        "run.py",
        "submit.py",
    ),
    "claims/tensors/run.py",
    *(
        f"benchmarks/search-overhead/peers/{name}.py"
        for name in ("forked", "optuna_joblib", "raysel_nested")
    ),
    *(f"benchmarks/search-overhead/peers/{name}.py" for name in ("scikit_learn", "tune_functions")),
}
#: Those that share a session of Ray.
ON_RAY = [
    *(
        f"benchmarks/search-overhead/{name}.py"
        for name in ("nested_orl", "short_trials", "worker_memory")
    ),
    "benchmarks/cluster-scaling/run.py",
]

pytestmark = pytest.mark.slow


def scripts() -> list[str]:
    files = sorted(
        path for path in EXPERIMENTS.rglob("*.py") if "__main__" in path.read_text(encoding="utf-8")
    )
    names = [path.relative_to(EXPERIMENTS).as_posix() for path in files]
    return [name for name in names if name not in {*ELSEWHERE, *ON_RAY}]


def environment() -> dict[str, str]:
    """Environment in which the scripts find raysel, and the planted leaks and damaged files of
    the tests.
    """
    folders = os.pathsep.join(map(str, (ROOT, ROOT / "tests", ROOT / "tests" / "data")))
    return os.environ | {"PYTHONPATH": folders, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def shortened(name: str, folder: Path) -> list[str]:
    """Copy a script with all beside it, because some write their tables there; give its path and
    arguments.
    """
    text = (EXPERIMENTS / name).read_text(encoding="utf-8")
    needs_data = any(name in text for name in ("RAYSEL_DATA", "load_orl_half", "orl-smr"))
    if needs_data and not os.environ.get("RAYSEL_DATA"):
        pytest.skip("set RAYSEL_DATA to the folder of the real data sets")
    script = folder / "experiments" / name
    shutil.copytree((EXPERIMENTS / name).parent, script.parent, dirs_exist_ok=True)
    for long, short in SHORTER.get(name, {}).items():
        files = [
            path for path in script.parent.glob("*.py") if long in path.read_text(encoding="utf-8")
        ]
        assert files, f"nothing beside {name} says {long}"
        for path in files:
            path.write_text(path.read_text(encoding="utf-8").replace(long, short), encoding="utf-8")
    return [str(script), *ARGUMENTS.get(name, "").split()]


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[str]]:
    """The process from which scripts are forked."""
    command = [sys.executable, str(ROOT / "tests" / "script_server.py")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment(), text=True, **pipes) as process:
        yield process
        process.stdin.close()


@pytest.mark.parametrize("name", scripts())
def test_a_script_runs_to_its_end(name, server, tmp_path):
    write_digits(tmp_path / "few.npz")
    write_yaml(tmp_path / "few.yaml")
    (tmp_path / "compare.yaml").write_text(COMPARISON, encoding="utf-8")
    assert fork(server, [shortened(name, tmp_path)], tmp_path) == 0, (tmp_path / "log").read_text()[
        -3000:
    ]


def test_scripts_on_ray_run_to_their_ends(server, tmp_path):
    commands = [
        shortened(name, tmp_path / Path(name).stem) for name in ON_RAY
    ]  # a copy would replace shortened ones
    assert fork(server, commands, tmp_path, on_ray=True) == 0, (tmp_path / "log").read_text()[
        -3000:
    ]


def fork(
    server: subprocess.Popen[str], commands: list[list[str]], folder: Path, *, on_ray: bool = False
) -> int:
    """Run scripts in a process that the server forks; give its exit status."""
    asked = {
        "commands": commands,
        "folder": str(folder),
        "log": str(folder / "log"),
        "on_ray": on_ray,
    }
    print(json.dumps(asked), file=server.stdin, flush=True)
    return int(server.stdout.readline())
