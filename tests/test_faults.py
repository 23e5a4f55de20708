"""What cannot be used, or goes wrong: each fault with what is typed, the exit code and what is
said, a row each.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import resource
import shlex
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.io
import yaml
from small_studies import write_digits, write_yaml

from raysel import select, tune
from raysel.config import load_config
from raysel.data.loading import load_dataset, save_dataset
from raysel.data.synthetic import make_multimodal_classification
from raysel.evaluation.records import TrialRecord
from raysel.run.course import _new_journal
from raysel.run.recording import study_record
from raysel.study.definition import Study
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.places import absolute_uri, note_place

P = ParamSpec("P")


class Fault(NamedTuple):
    """One fault.

    ``typed`` after ``raysel tune`` ends with ``code``, and the error holds what is
    ``printed``, with anything between where there are three dots. ``make`` puts the fault into the
    working directory first, or holds something as long as what it returns is open.
    """

    typed: str
    printed: str
    make: Callable[[], Any] = lambda: None
    command: Callable[[list[str]], int] = tune.main
    code: int = 2


def rows(table: str) -> Iterator[Fault]:
    """Faults of a table: below each configuration settings and options by two blanks, and what
    is printed.
    """
    config = ""
    for line in table.strip().splitlines():
        typed, arrow, printed = line.strip().partition("  ->  ")
        if not arrow:
            config = typed.removesuffix(":")
        elif config == "as typed":
            yield Fault(typed, printed)
        else:
            given = [
                part if part.startswith("--") else f"--set {shlex.quote(part)}"
                for part in typed.split("  ")
            ]
            yield Fault(" ".join([config, *filter(None, given)]), printed)


# The working directory in which everything is typed


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Path:
    """Studies of images, of modalities and of tasks, and the directory of one whose driver was
    killed.
    """
    folder = tmp_path_factory.mktemp("scene")
    with contextlib.chdir(folder):
        write_digits(Path("few.npz"))
        write_yaml(Path("few.yaml"))
        data, _ = make_multimodal_classification(
            {"image": 6, "sound": 5}, {"image": 3, "sound": 2}, 60, multilabel=True, random_state=0
        )
        views = {"view_0": data.X[:, :6], "view_1": data.X[:, 6:], "view_names": ["image", "sound"]}
        np.savez("views.npz", **views, Y=data.y, label_names=["sky", "cow", "car"])
        views_study = {
            "name": "views",
            "pictures": [],
            "dataset": {"path": "views.npz", "scaling": "zscore_sqrt_width"},
            "solver": {"name": "smml", "space": {"gamma1": [0.02, 0.2], "gamma2": [0.2]}},
            "evaluation": {"classifier": "native", "metric": "macro_f1"},
            "cv": {"outer": 2, "inner": 2},
        }
        Path("views.yaml").write_text(yaml.safe_dump(views_study))
        tasks = [{"name": "flowers", "source": "iris"}, {"name": "wines", "source": "wine"}]
        tasks_study = {
            "name": "tasks",
            "pictures": [],
            "dataset": {"tasks": tasks, "scaling": "zscore"},
            "solver": {"name": "mtda"},
            "cv": {"outer": 2, "inner": 2},
        }
        Path("tasks.yaml").write_text(yaml.safe_dump(tasks_study))
        begin()
    return folder


@pytest.fixture
def stores_unset(monkeypatch) -> None:
    monkeypatch.delenv("RAYSEL_DATA", raising=False)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture
def here(scene, stores_unset, tmp_path, monkeypatch) -> Path:  # noqa: ARG001
    shutil.copytree(scene, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def begin() -> None:
    """What a study's directory holds when its driver is killed after two trials."""
    study = Study.prepare(load_config("few.yaml"))
    directory, hold = StudyDirectory.create(Path("killed"), 0)
    begun = study_record(study, id_="0" * 32, uri=absolute_uri("sqlite:///mlflow.db"), started=0.0)
    note_place(begun.uri)
    with hold, _new_journal(study, directory, begun) as journal:
        for c in study.configurations[:2]:
            journal.append(TrialRecord(c.id, c.name, dict(c.params), "finished"))


def contents() -> dict[str, bytes | None]:
    """Every file below, and every folder."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


# Ways to make a fault


def way(make: Callable[P, Any]) -> Callable[P, Callable[[], Any]]:
    """Let a function that makes a fault be called later, in the working directory."""
    return lambda *arguments, **changes: partial(make, *arguments, **changes)


@way
def all_of(*makes: Callable[[], object]) -> None:
    for make in makes:
        make()


@way
def write(name: str, text: str | bytes) -> None:
    Path(name).write_bytes(text.encode() if isinstance(text, str) else text)


@way
def folder(path: str) -> None:
    Path(path).mkdir(parents=True)


@way
def remove(path: str) -> None:
    shutil.rmtree(path) if Path(path).is_dir() else Path(path).unlink()


def study(text: str) -> Callable[[], object]:
    """A configuration as text."""
    return write("bad.yaml", text)


def table(row: str) -> Callable[[], object]:
    """bad.csv: columns a, b and y, of whose rows this is the second."""
    return write("bad.csv", f"a,b,y\n1,2,1\n{row}\n5,6,1\n7,8,0\n")


@way
def archive(source: str = "few.npz", to: str = "bad.npz", **changes: Any) -> None:
    """An archive with arrays replaced (by a function of the array, or a value), added, or left
    out (None).
    """
    with np.load(source) as file:
        arrays = {name: file[name].astype(float) if name == "X" else file[name] for name in file}
    for name, change in changes.items():
        arrays[name] = change(arrays.get(name)) if callable(change) else change
    np.savez(to, **{name: array for name, array in arrays.items() if array is not None})


multimodal = partial(archive, "views.npz")


@way
def array(path: str, shape: tuple[int, ...] = (80,)) -> None:
    np.save(path, np.zeros(shape))


@way
def mat(**variables: Any) -> None:
    scipy.io.savemat("bad.mat", variables)


@way
def parquet(a: list[Any]) -> None:
    pa.parquet.write_table(pa.table({"a": a, "y": [0, 1]}), "bad.parquet")


def put(value: float) -> Callable[[Any], Any]:
    """An array with one value in the middle replaced."""

    def change(X: Any) -> Any:
        X[7, 3, 2] = value
        return X

    return change


@way
def cut(suffix: str) -> None:
    """bad.*: the images as a file of this kind, of which the last third is missing."""
    data, path = load_dataset("few.npz"), Path(f"bad{suffix}")
    match suffix:
        case ".npz":
            np.savez(path, X=data.X, y=data.y)
        case ".npy":
            np.save(path, data.X)
        case ".mat":
            scipy.io.savemat(path, {"X": data.X, "y": data.y})
        case ".csv":
            cells = np.column_stack([data.X, data.y])
            np.savetxt(
                path, cells, delimiter=",", header=",".join([*data.feature_names, "y"]), comments=""
            )
        case _:
            save_dataset(data, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3 + 1])


@way
def edited(change: Callable[[dict[str, Any]], object], line: int = 0) -> None:
    """The killed study, a line of its journal changed."""
    path = Path("killed/journal.jsonl")
    lines = path.read_text().splitlines()
    record = json.loads(lines[line])
    change(record)
    lines[line] = json.dumps(record)
    path.write_text("\n".join(lines) + "\n")


def version(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda record: record["versions"].update({name: "0.0.1+0"})


@way
def plan(change: Callable[[dict[str, Any]], object]) -> None:
    """bad.json: the folds of the killed study, changed."""
    raw = json.loads(Path("killed/plan.json").read_text())
    change(raw)
    Path("bad.json").write_text(json.dumps(raw))


def leak(raw: dict[str, Any]) -> None:
    fold = raw["folds"][0]
    fold["inner"][0]["train"].append(fold["test"][0])


def larger_than_memory() -> contextlib.ExitStack:
    """bad.npz: 32 MiB of bytes, 256 as float64; and less memory than that, as long as the stack
    is open.
    """
    np.savez_compressed(
        "bad.npz", X=np.zeros((128, 512, 512), dtype=np.uint8), y=np.arange(128) % 2
    )
    before, pages = (
        resource.getrlimit(resource.RLIMIT_AS),
        int(Path("/proc/self/statm").read_text().split()[0]),
    )
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**27, before[1]))
    stack = contextlib.ExitStack()
    stack.callback(resource.setrlimit, resource.RLIMIT_AS, before)
    return stack


def running(place: str) -> Callable[[], object]:
    """Held as a running study holds it."""
    return lambda: StudyDirectory.create(Path(place), 0)[1]


def held(place: str) -> Callable[[], object]:
    """A begun study, held as a running one holds it."""
    return lambda: StudyDirectory(Path(place)).open(0)


#: The killed study: one value of its data is another, one sample of them is missing, its journal's
#: first line damaged.
changed_data = archive(to="few.npz", X=put(5.0))
fewer_data = archive(to="few.npz", X=lambda X: X[:-1], y=lambda y: y[:-1])
garbled = write("killed/journal.jsonl", "{\n{}\n")


def few(*settings: str, arguments: str = "") -> str:
    """The study of images with these settings."""
    return (
        shlex.join(["few.yaml", *(part for setting in settings for part in ("--set", setting))])
        + f" {arguments}"
    )


def views(*settings: str) -> str:
    """The study of modalities with these settings."""
    return few(*settings).replace("few.yaml", "views.yaml")


def tasks(*settings: str) -> str:
    """The study of tasks with these settings."""
    return few(*settings).replace("few.yaml", "tasks.yaml")


BAD, CSV, MAT = (few(f"dataset.path=bad.{suffix}") for suffix in ("npz", "csv", "mat"))
VIEWS = views("dataset.path=bad.npz")

WINE = "dataset.tasks=[{{name: wines, source: wine, {}}}, {{name: b, source: iris}}]"
PAST_COUNTING = {key: {"randint": [1, 2**53]} for key in ("alpha", "rank", "p", "zeta")}

# The tables

CONFIGURATION = [
    *rows("""
few.yaml:
    evalution.metric=x  ->  evalution: unknown key; did you mean `evaluation`?
    cv.outr=3  ->  cv.outr: unknown key; did you mean `outer`?
    cv.zzz=3  ->  cv.zzz: unknown key; known here: outer, inner, repeats
    cv.outer=three  ->  cv.outer: ...whole number from 2 on or n_samples, not 'three'
    cv.outer='3'  ->  cv.outer: ...whole number from 2 on or n_samples, not '3'
    cv.inner=2.5  ->  cv.inner: ...whole number, not 2.5
    cv.outer=1  ->  cv.outer: ...whole number from 2 on or n_samples, not 1
    seed=-1  ->  seed: ...greater than or equal to 0, not -1
    seed=true  ->  seed: ...whole number, not True
    seed=4294967296  ->  seed: ...less than 4294967296
    solver.params.tol=.inf  ->  solver.params.tol: inf is not a valid value: give
    name=a/b  ->  name: ...not 'a/b'
    solver.name=null  ->  solver.name: this key is required
    cv=3  ->  cv: give its keys (outer, inner,...), not 3
    seed.first=3  ->  override seed.first=3: `seed` is set to a value
    cv.outer  ->  override cv.outer: ...must have the form key=value
    dataset.source=digits  dataset.path=few.npz  ->  dataset: give exactly one of `source`
    dataset.path=null  ->  dataset: give exactly one of `source`
    dataset.scaling=minimax  ->  dataset.scaling: ...'minmax'...not 'minimax'
    dataset.label=3  ->  dataset.label: 3 is not the name of a column or array
    dataset.label=''  ->  dataset.label: '' is not the name of a column or array
    dataset.path=''  ->  dataset.path: ...at least 1 character
    dataset.drop=a  ->  dataset.drop: ...list, not 'a'
    dataset.keep=a  ->  dataset.keep: ...list, not 'a'
    dataset.classes=[0]  ->  dataset.classes: ...at least 2 items
    dataset.classes=[0, 1.5]  ->  dataset.classes.1: 1.5 is not a class: give its name
    dataset.exclude_classes=[yes]  ->  exclude_classes.0: true is not a class: ...in quotes
    dataset.delimiter=;;  ->  dataset.delimiter: ...at most 1 character
    dataset.order=G  ->  dataset.order: ...'C' or 'F', not 'G'
    dataset.mask=''  ->  dataset.mask: ...at least 1 character
    dataset={source: nifti, mask: m.nii}  ->  `source: nifti` needs `mask`, a NIfTI file, and `path`
    evaluation.classifier=knm  ->  evaluation.estimator: ...'knn'...not 'knm'
    solver.space.alpha={logunifrom: [1, 2]}  ->  did you mean `loguniform`?
    solver.space.alpha=[]  ->  solver.space.alpha: the list is empty; give at
    solver.space.alpha=[1, 1.0]  ->  solver.space.alpha: [1, 1.0] has a value twice
    solver.space.alpha={uniform: [1, 0]}  ->  [1, 0]: the lower ...less than
    solver.space.alpha={loguniform: [0, 1]}  ->  solver.space.alpha: ...must be positive
    solver.space.alpha={logspace: [1, 2, 1e9]}  ->  alpha: ...up to 10000
    solver.params.rank=2  ->  solver: rank stands in ...; keep one
    evaluation.n_features=[8, 4]  ->  evaluation: `n_features` [8, 4] must increase
    evaluation.n_features=null  ->  evaluation: `n_features` is needed...e.g.
    cv.train_per_class=3  ->  cv: `train_per_class` ...e.g. repeats: 10
    cv.repeats=1000000000000  ->  cv.repeats: ...less than or equal to 1000, not
    search.num_samples=999999  ->  num_samples: ...less than or equal to 100000
    search.time_budget=0  ->  search.time_budget: ...greater than 0
    search.max_failures=-1  ->  search.max_failures: ...equal to 0, not -1
    dataset.tasks=[{name: a, source: iris}]  ->  dataset.tasks: list ...at least 2 items
tasks.yaml:
    dataset.tasks=[{name: a, source: nifti}, {name: b, source: iris}]  ->  dataset.tasks.0: ...cannot be a task
    dataset.tasks=[{name: a, source: wine, mask: m.nii}, {name: b, source: iris}]  ->  tasks.0.mask: unknown key
    dataset.classes=[0, 1]  ->  dataset: `classes` is for one file ...the tasks
    dataset.tasks=[{name: a, source: iris}, {name: a, source: wine}]  ->  task a is named twice
as typed:
    no-such.yaml  ->  no configuration at no-such.yaml. Built-in studies: ...digits-smr
    digit-smr  ->  no configuration at digit-smr. Did you mean `digits-smr`?
    .  ->  . is no study's YAML file; to write a study for data: raysel init .
    few.npz  ->  few.npz is no study's YAML file; to write a study for data: raysel init few.npz
"""),
    Fault(few(f"seed={'9' * 30}"), "override seed=...whole numbers must lie between"),
    Fault(few(f"seed={'9' * 5000}"), "override seed=99..., line 1: ...cannot be read"),
    Fault("bad.yaml", "bad.yaml holds no configuration; give keys such as name", study("")),
    Fault("bad.yaml", "bad.yaml holds no configuration", study("[1, 2]")),
    Fault("bad.yaml", "bad.yaml, line 2: this is not valid YAML", study("name: [a\n")),
    Fault(
        "bad.yaml", "bad.yaml, line 2: the key `name` is written twice", study("name: a\nname: b")
    ),
    Fault(
        "bad.yaml", "bad.yaml, line 2: aliases are not allowed", study("cv: &cv {}\nsearch: *cv\n")
    ),
    Fault("bad.yaml", "bad.yaml, line 1: ...leave out", study("name: !!python/name:os.system\n")),
    Fault("bad.yaml", "bad.yaml, line 1: nested too deeply", study("a: " + "[" * 500 + "]" * 500)),
    Fault("bad.yaml", "bad.yaml, line 1: ...control character", study('name: "a\\0b"\n')),
]


def of_every_format() -> Iterator[Fault]:
    for suffix in (".npz", ".npy", ".mat", ".csv", ".parquet", ".arrow"):
        bad, other = f"bad{suffix}", write(f"bad{suffix}", bytes(range(256)) * 20)
        typed = few(f"dataset.path={bad}")
        yield Fault(typed, f"there is no data file {bad}: looked at ...Give a table")
        yield Fault(typed, f"{bad} is empty (0 bytes); write or copy it", write(bad, ""))
        yield Fault(typed, f"{bad}...truncated", cut(suffix))
        yield Fault(typed, f"{bad} ...of another format; write", other)


DATA = [
    *rows("""
few.yaml:
    dataset.path=few.xyz  ->  few.xyz is neither ...nor a file of a known ...(.npz
    dataset={source: digist}  ->  digist is neither ... Did you mean digits?
    dataset.path=~no-such-user/few.npz  ->  no data file ~no-such-user/few.npz
    dataset.label=zz  ->  few.npz has no array zz for the labels; it holds X
    dataset.drop=[a]  ->  drop names columns of a table, and ...few.npz is no table
    dataset.delimiter=;  ->  delimiter is for text tables, and ...few.npz is no such
    dataset.keep=[zz]  ->  keep: few has no column zz; it has r0c0
    dataset.classes=[0, 9]  ->  classes: ...few.npz has no class 9; it has 0, 1, 2, 3
    dataset.classes=[0, '0']  ->  leave only class 0 of ...few.npz; leave two or more
    dataset.exclude_classes=[0, 1, 2, 3]  ->  leave no class of ...leave two or more of 0
    dataset.exclude_classes=[zz]  ->  exclude_classes: ...has no class zz; it has 0, 1
    dataset={source: digits, label: y}  ->  label is for data files; leave it
    dataset.shape=[8, 9]  ->  shape [8, 9] has 72 cells...64 features...[8, 8]
    cv.groups=writer  ->  few.npz has no array writer for the groups
    cv.groups=y  ->  class 0 has 1 group, too few for cv.outer=2 folds
    dataset.exclude_labels=[a]  ->  exclude_labels requires an indicator
    dataset.labels=y.npy  ->  there is no data file y.npy
    dataset.modalities={a: 60, b: 6}  ->  66 columns ...must sum to 64
    dataset.modalities={a: 64, b: 0}  ->  dataset.modalities.b: ...not 0
as typed:
    orl-smr  ->  there is no data file ORL.npz: ...np.savez
views.yaml:
    dataset.exclude_labels=[sly]  ->  exclude_labels: ...sly; did you mean `sky`?
    dataset.exclude_labels=[sky, cow]  ->  give ...at least two labels
tasks.yaml:
    dataset.tasks=[{name: a, path: a.npz}, {name: b, source: iris}]  ->  file a.npz
"""),
    *of_every_format(),
    Fault(
        BAD,
        "bad.npz has no array X, nor another ...80 rows; it holds y. Give",
        archive(X=None),
    ),
    Fault(
        BAD, "bad.npz has no array y for the labels; it holds X...dataset.labels", archive(y=None)
    ),
    Fault(
        BAD,
        "data set 'bad': X holds 1 values that are NaN ...row 7, column 26",
        archive(X=put(np.nan)),
    ),
    Fault(BAD, "data set 'bad': X holds 1 values that are NaN or infinite", archive(X=put(np.inf))),
    Fault(BAD, "bad.npz: the array y holds pickled ...y.astype(str)", archive(y=np.array([{}]))),
    Fault(BAD, "bad.npz: the array X holds pickled ...", archive(X=np.array([{}]))),
    Fault(BAD, "data set 'bad': X has dtype <U32; give", archive(X=lambda X: X.astype(str))),
    Fault(BAD, "data set 'bad': X has dtype complex128; give", archive(X=lambda X: X + 1j)),
    Fault(BAD, "X is of shape (64,); give a non-empty array", archive(X=np.arange(64.0))),
    Fault(
        BAD, "X is empty, of shape (0, 8, 8); give", archive(X=lambda X: X[:0], y=lambda y: y[:0])
    ),
    Fault(
        BAD,
        "X has 80 rows but y has 79; give one value for each sample",
        archive(y=lambda y: y[:-1]),
    ),
    Fault(
        few("dataset.path=bad.npz", "dataset.task=classification"),
        "y holds 0.5, which is no class: give whole numbers",
        archive(y=lambda y: y / 2),
    ),
    Fault(BAD, "bad.npz is too large for the memory...256. MiB", larger_than_memory),
    Fault(BAD, "y holds one class only (0); at least two are needed", archive(y=lambda y: 0 * y)),
    Fault(BAD, "class 7 has 1 sample...exclude_classes: [7]", archive(y=lambda y: [7, *y[1:]])),
    Fault(few(f"dataset.path={'x' * 999}.npz"), "there is no data file xxx"),
    Fault(CSV + "--set dataset.label=k", "label: ...bad.csv has no column k", table("3,4,0")),
    Fault(CSV + "--set dataset.drop=[k]", "drop: ...bad.csv has no column k", table("3,4,0")),
    Fault(
        CSV + "--set dataset.drop=[y]", "bad.csv has no column y...It holds a, b", table("3,4,0")
    ),
    Fault(CSV + "--set 'dataset.delimiter=;'", "delimiter=';' does not occur", table("3,4,0")),
    Fault(tasks(WINE.format("drop: [k]")), "drop is for data files; leave"),
    Fault(tasks(WINE.format("classes: [0, 7]")), "classes: wine has no class 7; it has 0, 1, 2"),
    Fault(tasks(WINE.format("keep: [k]")), "keep: wines + b has no column wines/k; did you mean"),
    Fault(
        few("dataset.labels=y.txt", "dataset.path=X.npy"),
        "y.txt has no lines",
        all_of(array("X.npy", (80, 3)), write("y.txt", "\n\n")),
    ),
    Fault(
        few("dataset.labels=y.txt", "dataset.path=X.npy"),
        "X.npy: ...pickled ...",
        all_of(write("y.txt", "1\n"), lambda: np.save("X.npy", np.array([{}]), allow_pickle=True)),
    ),
    Fault(
        few("dataset.path=images"),
        "1.png cannot be read: No such file",
        all_of(folder("images/cat"), lambda: Path("images/cat/1.png").symlink_to("nowhere.png")),
    ),
    Fault(few("dataset.path=images"), "is not UTF-8; rename it", folder("images/\udcff")),
    Fault(few("cv.groups=g", "dataset.path=bad.npz"), "there are 1 groups", archive(g=[0] * 80)),
    Fault(
        few("cv.groups=g", "dataset.path=bad.npz"),
        "groups has shape (80, 2); give one",
        archive(g=np.ones((80, 2))),
    ),
    Fault(MAT, "bad.mat has no array X, nor...it holds y", mat(y=[1, 2])),
    Fault(MAT, "bad.mat: y is a cell array", mat(X=np.eye(2), y=[["a"], {}])),
    Fault(MAT, "bad.mat ...truncated, damaged...write", write("bad.mat", "MATLAB 7.3 MAT-file")),
    Fault(BAD, "bad.npz: X has shape (8, 80, 8)", archive(X=lambda X: X.swapaxes(0, 1))),
    Fault(few("dataset.path=X.npy"), "X.npy has no array y...dataset.labels", array("X.npy")),
    Fault(few("dataset.labels=y.npy"), "few.npz has labels of its own...leave", array("y.npy")),
    Fault(
        few("dataset.labels=y.npy", "dataset.path=bad.csv"),
        "bad.csv is a table: add the labels to it as a column",
        all_of(table("3,4,0"), array("y.npy")),
    ),
    Fault(
        few("dataset.labels=y.txt", "dataset.path=X.npy"),
        "y.txt has 2 lines for 80 samples",
        all_of(array("X.npy", (80, 64)), write("y.txt", "1\n2\n")),
    ),
    Fault(
        few("dataset.order=F", "dataset.path=bad.npz"),
        "order=F...[8, 8] or [4, 16]",
        archive(X=lambda X: X.reshape(len(X), -1)),
    ),
    Fault(few("dataset.path=images"), "images holds no folders", folder("images")),
    Fault(few("dataset.path=images"), "folder cat holds no images", folder("images/cat")),
    Fault(
        few("dataset.path=images"),
        "1.png cannot be read as an image",
        all_of(folder("images/cat"), write("images/cat/1.png", bytes(99))),
    ),
    Fault(CSV, "column 'b' holds 'x' in row 1", table("3,x,0")),
    Fault(CSV, "1 value is missing ...row 1 ...column 'b'", table("3,,0")),
    Fault(CSV, "column 'y' has no value in row 1", table("3,4,")),
    Fault(CSV, "bad.csv: row 2 ...has 2 cells...3 columns. Correct the row", table("3,4")),
    Fault(CSV, "bad.csv has no column y", write("bad.csv", "1,2,0\n3,4,1\n")),
    Fault(few("dataset.path=bad.parquet"), "column 'a' holds '1' in row 0", parquet(["1", "2"])),
    Fault(VIEWS, "view_1 has shape", multimodal(view_1=lambda view: view[1:])),
    Fault(VIEWS, "view_names holds image twice", multimodal(view_names=["image"] * 2)),
    Fault(VIEWS, "view_names holds 3 names for 2 ", multimodal(view_names=list("abc"))),
    Fault(VIEWS, "bad.npz has no array X", multimodal(view_0=None, view_1=None)),
    Fault(VIEWS, "give ...a 0/1 indicator", multimodal(Y=lambda Y: 3 * Y)),
    Fault(VIEWS, "give ...a 0/1 indicator", multimodal(Y=lambda Y: Y - np.eye(60, 3))),
    Fault(VIEWS, "same value of label car; exclude it", multimodal(Y=lambda Y: Y | [0, 0, 1])),
    Fault(VIEWS, "same value of label cow; exclude it", multimodal(Y=lambda Y: Y * [1, 0, 1])),
]

SOLVERS = [
    *rows("""
few.yaml:
    solver.name=smrr  ->  solver.name: unknown solver 'smrr'; did you mean `smr`?
    solver.space.alhpa=[1]  ->  no parameter `alhpa`; did you mean `alpha`?
    solver.params.shape=[8, 8]  ->  `shape` is set from the data...remove it
    solver.params.random_state=1  ->  `random_state` is set from the study's seed
    solver.space.rank=[1, 9]  ->  rank=9 exceeds ...8 x 8: take at most 8
    solver.space.rank=[1.5]  ->  'rank' parameter of SMR must be an int
    solver.space.alpha=[0.1, 0]  ->  configuration alpha=0 rank=1: ...'alpha' parameter
    solver.space.alpha=[-0.1]  ->  'alpha' parameter of SMR must be a float
    solver.space.alpha=[big]  ->  'alpha' parameter of SMR must be a float
    solver.params.p=2  ->  'p' parameter of SMR must be a float in the range (0.0, 1.0]
    solver.params.max_iter=0  ->  'max_iter' parameter of SMR must be an int
    solver.params.init=zero  ->  'init' parameter of SMR must be a str among
    dataset.source=nifti  ->  dataset: `source: nifti` needs `mask`
    dataset.mask=few.npz  ->  dataset: `source: nifti` needs `mask`
    dataset.source=nifti  dataset.mask=few.npz  ->  few.npz is no NIfTI file by its name
    dataset.background=no.png  ->  dataset.background: there is no data file no.png
    dataset.background=few.npz  ->  few.npz has an unknown suffix
    solver.params.n_features_to_select=65  ->  65 exceeds the 64 features
    evaluation.n_features=[4, 65]  ->  n_features: 65 exceeds the 64 features
    evaluation.n_neighbors=99  ->  n_neighbors=99 exceeds the 20 samples
    evaluation.metric=acuracy  ->  evaluation.metric: ...mean `accuracy`?
views.yaml:
    solver.space.gamma1=[-1]  ->  'gamma1' parameter of SMML must be a float
    solver.space={gamma1: [0], gamma2: [0]}  ->  gamma1=0 and gamma2=0 leave nothing
    solver={name: smr}  ->  solver.name: smr takes one label ...smml
    evaluation.metric=balanced_accuracy  ->  metric: ...take accuracy
tasks.yaml:
    solver={name: lda, params: {n_components: 3}}  ->  give at most 2
    solver.params.n_components=5  ->  n_components=5 ...'flowers' ...give at most 4
    solver.params.task_weights=[1, 1, 1]  ->  task_weights=(1, 1, 1) must be 2 ...numbers
    evaluation={n_features: [2]}  ->  estimator knn ...take `native`
    dataset.scaling=row_unit  ->  'row_unit' does not support several
    solver={name: linear_svm}  ->  linear_svm does not take the layout tasks
"""),
]

SEARCH = [
    *rows("""
few.yaml:
    search.method=tpe  ->  search.num_samples is needed by ...tpe, e.g.
    search={method: tpe, num_samples: 4}  solver.space=null  ->  needs solver.space
    search.method=random  ->  search.num_samples is needed by ...random, e.g.
    search.method=sobol  ->  search.num_samples is needed by ...sobol, e.g.
    search={method: random, num_samples: 4}  solver.space=null  ->  needs solver.space
    solver.space.alpha={uniform: [0.1, 1]}  ->  has no grid; give a list
    search.method=path  ->  path: smr has no path ...use grid
    search.early_stopping=asha  evaluation.classifier=linear_svm  ->  early_stopping ...linear_svm ...use knn or native
    solver.space.rank={randint: [1, 9999999]}  ->  29999997 points; give shorter
    search.method=hyperband  ->  search.method: unknown search 'hyperband'; known: grid
    search.reduction_factor=1  ->  search.reduction_factor: ...equal to 2, not 1
    search.cpus_per_trial=4096  ->  search.cpus_per_trial: 4096 exceeds the
views.yaml:
    search.method=path  solver.space.tol=[0.1, 0.2]  ->  tol ...use grid
    search={method: path, early_stopping: asha}  ->  search: `early_stopping`
"""),
    Fault(few(f"solver.space={PAST_COUNTING}"), "points; give shorter"),
]

FOLDS = [
    *rows("""
few.yaml:
    cv.outer=21  ->  class 0 has 20 samples, too few for cv.outer=21 ...at most 20
    cv.inner=11  ->  class 0 has 10 ...cv.inner=11 ...at most 10
    cv={train_per_class: 20, repeats: 2}  ->  class 0 ...set at most 19
    cv.plan=no.json  ->  cv.plan: no.json
    cv.plan=few.yaml  ->  cv.plan: few.yaml cannot be read as the plan.json
"""),
    Fault(
        few("cv.plan=bad.json"),
        "made for 90 samples...has 80",
        plan(lambda raw: raw.update(n_samples=90)),
    ),
    Fault(few("cv.plan=bad.json"), "outer0, inner fold 0 uses ...outside", plan(leak)),
    Fault(few("cv.plan=bad.json"), "the fold `final`", plan(lambda p: p["folds"].pop())),
]

DIRECTORIES = [
    *rows("""
few.yaml:
    --output few.npz  ->  be written to few.npz: ...output directory
    --output few.npz/study  ->  to few.npz/study: ...output directory
    output=/proc/study  ->  be written to /proc/study: ...output directory
    --output killed  ->  killed already holds a study...Resume that study
    seed=4  --resume killed  ->  killed cannot be ...seed: 3 -> 4...Undo
views.yaml:
    output=killed  ->  killed already holds a study...output directory
as typed:
    --resume no-such  ->  no-such holds no study; give --resume the directory
    --resume .  ->  . holds no study; give --resume the directory
    --resume killed --set cv.outer=3  ->  killed cannot be resumed...cv.outer: 2 -> 3...Undo
    views.yaml --resume killed  ->  killed cannot be resumed...made for 80 samples...60
    --resume killed --set 'solver={name: linear_svm, space: {C: [1]}}'  ->  name: smr -> linear_svm...Undo
    --resume killed --set solver.space.rank=[2]  ->  1 of the configurations that were tried ...Undo
    --replay no-such  ->  no-such holds no readable journal
    --replay killed --set cv.outer=3  ->  --replay ...tracking.uri
"""),
    Fault(few(arguments="--output busy"), "running in busy: process ...Wait", running("busy")),
    Fault("--resume killed", "running in killed: process ...Wait", held("killed")),
    Fault(few(arguments="--output killed"), "running in killed: process ...Wait", held("killed")),
    Fault("--resume killed", "killed cannot be resumed...the data of few...Undo", changed_data),
    Fault("--resume killed", "killed cannot be resumed...80 samples...79", fewer_data),
    Fault("--resume killed", "no data file few.npz", remove("few.npz")),
    Fault(
        "--resume killed", "cannot be resumed...numbers: ...0.0.1+0 by", edited(version("numbers"))
    ),
    Fault("--resume killed", "cannot be resumed...numpy: 0.0.1+0 -> ", edited(version("numpy"))),
    Fault("--resume killed", "config.yaml, line 1: ", write("killed/config.yaml", "a: [")),
    Fault(
        "--resume killed",
        "killed/plan.json cannot be read as the plan.json",
        write("killed/plan.json", "{"),
    ),
    Fault("--resume killed", "killed cannot be resumed: ...plan.json", remove("killed/plan.json")),
    Fault("--resume killed", "killed holds no", remove("killed/journal.jsonl")),
    Fault("--resume killed", "has no record of a study", write("killed/journal.jsonl", "")),
    Fault("--resume killed", "journal.jsonl, line 1: damaged...restore", garbled),
    Fault(
        "--resume killed",
        "line 2: a record of kind None is damaged",
        edited(lambda r: r.pop("kind"), 1),
    ),
    Fault(
        "--resume killed",
        "a record of kind 'study' is damaged: 'data_hash': Field required",
        edited(lambda r: r.pop("data_hash")),
    ),
    Fault(
        "--resume killed",
        "line 2: a record of kind 'trial' is damaged: 'id': Field required",
        edited(lambda r: r.pop("id"), 1),
    ),
    Fault(
        "--resume killed",
        "line 1: written by a newer version of raysel (schema 4); update",
        edited(lambda r: r.update(schema=4)),
    ),
    Fault(few(arguments="--output killed"), "line 1: damaged", garbled),
    Fault("--replay killed", "running in killed: process ...Wait", held("killed")),
]

ELSEWHERE = [
    *rows("""
few.yaml:
    search={}  --address 127.0.0.1:1  ->  no Ray cluster answers there ...HOST:PORT
    search={}  --address me:ray  ->  address me:ray: ...HOST:PORT
    tracking.uri=ftp://host  ->  tracking.uri: ...'ftp' ...e.g. sqlite
as typed:
    --replay killed --set tracking.uri=ftp://host  ->  tracking.uri: ...'ftp' ...e.g. sqlite
"""),
]

SELECT = [
    Fault("no-such", "no-such holds no readable journal", command=select.main),
    Fault("", "no study at or below", remove("killed"), command=select.main),
    Fault("killed", "has not finished: 2 of 6 ...--resume killed", command=select.main),
    Fault("killed", "line 1: damaged", garbled, command=select.main),
]

# These need Ray.

OF_A_FINISHED_STUDY = [
    *rows("""
few.yaml:
    --output study  ->  study already holds a study...Resume...directory
as typed:
    --resume study --set seed=4  ->  study cannot be resumed...seed: 3 -> 4...Undo
"""),
    Fault("--resume study", "study cannot be resumed...the data of few...", changed_data),
]

OF_TRIALS = [
    Fault(
        few(
            "solver.params={alpha_scale: absolute, p: 0.5, zeta: 1e+300}",
            "solver.space.alpha=[1e+250, 2e+250]",
        ),
        "solver: all ... configurations fail on the ... samples of the largest inner training set:"
        " ...became inf",
    ),
    Fault(
        "--replay killed --set tracking.uri=http://127.0.0.1:1",
        "the upload failed: MLflow at http://127.0.0.1:1 cannot be reached...Repeat the command"
        " once that is mended",
        code=1,
    ),
]

GROUPS = {
    "configuration": CONFIGURATION,
    "data": DATA,
    "solvers": SOLVERS,
    "search": SEARCH,
    "folds": FOLDS,
    "directories": DIRECTORIES,
    "other places": ELSEWHERE,
    "select": SELECT,
}


def assert_refused(fault: Fault, capfd: pytest.CaptureFixture[str]) -> None:
    with contextlib.closing(fault.make() or io.StringIO()):
        before = contents()
        status = fault.command(shlex.split(fault.typed))
        said = capfd.readouterr().err
        assert contents() == before
    assert status == fault.code, f"{fault.typed}: {said}"
    assert said.startswith("error: "), fault.typed
    assert "Traceback" not in said, fault.typed
    assert re.search(".*".join(map(re.escape, fault.printed.split("..."))), said, re.DOTALL), (
        f"{fault.typed}: {said}"
    )


@pytest.mark.usefixtures("stores_unset")
@pytest.mark.parametrize("group", GROUPS)
def test_a_fault_is_refused_in_a_sentence_and_changes_nothing(group, scene, tmp_path, capfd):
    for i, fault in enumerate(GROUPS[group]):
        shutil.copytree(scene, tmp_path / str(i))
        with contextlib.chdir(tmp_path / str(i)):
            assert_refused(fault, capfd)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [pytest.param(fault, id=fault.typed) for fault in OF_A_FINISHED_STUDY]
)
def test_a_finished_study_stays_as_it_is(fault, finished_study, tmp_path, monkeypatch, capfd):
    shutil.copytree(finished_study.study.parent, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    note_place(absolute_uri("sqlite:///runs/mlflow.db"))  # the store has moved with the study
    assert_refused(fault, capfd)


@pytest.mark.slow
@pytest.mark.usefixtures("here", "ray_here")
@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.typed) for fault in OF_TRIALS])
def test_a_study_that_fails_says_why(fault, capfd):
    """Its directory is there, and MLflow's store once it has begun."""
    assert fault.command(shlex.split(fault.typed)) == fault.code
    said = capfd.readouterr().err
    assert said.startswith("error: ")
    assert "Traceback" not in said
    assert re.search(".*".join(map(re.escape, fault.printed.split("..."))), said, re.DOTALL), said
