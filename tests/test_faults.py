"""What cannot be used, or goes wrong: each fault with what is typed, the exit code and what is said, a row each."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re
import resource
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.io
import yaml
from small_studies import write_digits, write_yaml

from raysel import select, tune
from raysel.config import load_config
from raysel.data.formats.writers import save_dataset
from raysel.data.loading import load_dataset
from raysel.data.synthetic import make_multimodal_classification
from raysel.evaluation.records import TrialRecord
from raysel.run.course import _new_journal
from raysel.run.recording import study_record
from raysel.study.definition import Study
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.places import absolute_uri, note_place


class Fault(NamedTuple):
    """One fault.

    ``typed`` after ``python -m raysel.tune`` ends with ``code``, and the message holds what was ``said``, with
    anything between where there are three dots. ``make`` puts the fault into the working directory first, or holds
    something as long as what it returns is open.
    """

    name: str
    typed: str
    code: int
    said: str
    make: Callable[[], Any] = lambda: None
    command: Callable[[list[str]], int] = tune.main


# The working directory in which everything is typed


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Path:
    """Studies of images, of modalities and of tasks, and the directory of one whose driver was killed."""
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
        begin("killed")
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


def begin(place: str, tried: int = 2) -> None:
    """What a study's directory holds when its driver is killed after so many trials."""
    study = Study.prepare(load_config("few.yaml"))
    directory, hold = StudyDirectory.create(Path(place), 0)
    begun = study_record(study, id_="0" * 32, uri="sqlite:///mlflow.db", started=0.0)
    with hold, _new_journal(study, directory, begun) as journal:
        for c in study.configurations[:tried]:
            journal.append(TrialRecord(c.id, c.name, dict(c.params), "finished"))


def contents() -> dict[str, bytes | None]:
    """Every file below, and every folder."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


# Ways to make a fault


def write(name: str, text: str | bytes) -> Callable[[], object]:
    """A file."""

    def make() -> None:
        Path(name).write_bytes(text.encode() if isinstance(text, str) else text)

    return make


def study(text: str) -> Callable[[], object]:
    """A configuration as text."""
    return write("bad.yaml", text)


def archive(**changes: Any) -> Callable[[], object]:
    """bad.npz: the images, with arrays replaced (by a function of the array, or a value), added, or left out (None)."""

    def make() -> None:
        with np.load("few.npz") as file:
            arrays = {"X": file["X"].astype(float), "y": file["y"]}
        for name, change in changes.items():
            arrays[name] = change(arrays.get(name)) if callable(change) else change
        np.savez("bad.npz", **{name: array for name, array in arrays.items() if array is not None})

    return make


def multimodal(changes: Any) -> Callable[[], object]:
    """bad.npz: the two modalities, with arrays replaced (by those of a function of all), or left out (None)."""

    def make() -> None:
        with np.load("views.npz") as file:
            arrays = dict(file)
        arrays |= changes(arrays) if callable(changes) else changes
        np.savez("bad.npz", **{name: array for name, array in arrays.items() if array is not None})

    return make


def put(value: float) -> Callable[[Any], Any]:
    """An array with one value in the middle replaced."""

    def change(X: Any) -> Any:
        X[7, 3, 2] = value
        return X

    return change


def as_file(suffix: str) -> bytes:
    """The images as a file of this kind."""
    data, path = load_dataset("few.npz"), Path(f"whole{suffix}")
    match suffix:
        case ".npz":
            np.savez(path, X=data.X, y=data.y)
        case ".npy":
            np.save(path, data.X)
        case ".mat":
            scipy.io.savemat(path, {"X": data.X, "y": data.y})
        case ".csv":
            table = np.column_stack([data.X, data.y])
            np.savetxt(path, table, delimiter=",", header=",".join([*data.feature_names, "y"]), comments="")
        case _:
            save_dataset(data, path)
    found = path.read_bytes()
    path.unlink()
    return found


def cut(suffix: str) -> Callable[[], object]:
    """bad.*: the images, of which the last third is missing."""

    def make() -> None:
        whole = as_file(suffix)
        Path(f"bad{suffix}").write_bytes(whole[: len(whole) * 2 // 3 + 1])

    return make


def edited(change: Callable[[dict[str, Any]], object], line: int = 0) -> Callable[[], object]:
    """The killed study, a line of its journal changed."""

    def make() -> None:
        path = Path("killed/journal.jsonl")
        lines = path.read_text().splitlines()
        record = json.loads(lines[line])
        change(record)
        lines[line] = json.dumps(record)
        path.write_text("\n".join(lines) + "\n")

    return make


@contextlib.contextmanager
def little_memory(room: int) -> Iterator[None]:
    before, pages = resource.getrlimit(resource.RLIMIT_AS), int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + room, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def larger_than_memory() -> contextlib.ExitStack:
    """bad.npz: 32 MiB of bytes, 256 as float64; and less memory than that, as long as the stack is open."""
    np.savez_compressed("bad.npz", X=np.zeros((128, 512, 512), dtype=np.uint8), y=np.arange(128) % 2)
    stack = contextlib.ExitStack()
    stack.enter_context(little_memory(2**27))
    return stack


def plan(change: Callable[[dict[str, Any]], object]) -> Callable[[], object]:
    """bad.json: the folds of the killed study, changed."""

    def make() -> None:
        raw = json.loads(Path("killed/plan.json").read_text())
        change(raw)
        Path("bad.json").write_text(json.dumps(raw))

    return make


def leak(raw: dict[str, Any]) -> None:
    fold = raw["folds"][0]
    fold["inner"][0]["train"].append(fold["test"][0])


def running(place: str) -> Callable[[], object]:
    """Held as a running study holds it."""
    return lambda: StudyDirectory.create(Path(place), 0)[1]


def held(place: str) -> Callable[[], object]:
    """A begun study, held as a running one holds it."""
    return lambda: StudyDirectory(Path(place)).open(0)


def changed_data() -> None:
    """The killed study's data: one value is another."""
    archive(X=put(5.0))()
    Path("bad.npz").replace("few.npz")


def fewer_data() -> None:
    """The killed study's data: one sample is missing."""
    archive(X=lambda X: X[:-1], y=lambda y: y[:-1])()
    Path("bad.npz").replace("few.npz")


def mat(**variables: Any) -> Callable[[], object]:
    """bad.mat"""
    return lambda: scipy.io.savemat("bad.mat", variables)


def array(path: str, shape: tuple[int, ...] = (80,)) -> Callable[[], object]:
    """An .npy file."""
    return lambda: np.save(path, np.zeros(shape))


def both() -> None:
    """bad.csv and y.npy."""
    table("3,4,0")()
    array("y.npy")()


def flat() -> None:
    """bad.npz: the images as rows."""
    archive(X=lambda X: X.reshape(len(X), -1))()


def no_lines() -> None:
    """X.npy and labels without a line."""
    array("X.npy")()
    write("y.txt", "\n\n")()


def pickled() -> None:
    """X.npy of objects."""
    write("y.txt", "1\n")()
    np.save("X.npy", np.array([{}]), allow_pickle=True)


def broken_link() -> None:
    """images/cat/1.png, which leads nowhere."""
    folder("images/cat")()
    Path("images/cat/1.png").symlink_to("nowhere.png")


def folder(path: str) -> Callable[[], object]:
    """An empty folder."""
    return lambda: Path(path).mkdir(parents=True)


def table(row: str) -> Callable[[], object]:
    """bad.csv: columns a, b and y, of whose rows this is the second."""
    return write("bad.csv", f"a,b,y\n1,2,1\n{row}\n5,6,1\n7,8,0\n")


def parquet(a: list[Any]) -> Callable[[], object]:
    """bad.parquet: columns a and y."""
    return lambda: pa.parquet.write_table(pa.table({"a": a, "y": [0, 1]}), "bad.parquet")


def three_axes(X: Any) -> Any:
    return X.reshape(-1, 2, 4, 8)


def without_cow(arrays: dict[str, Any]) -> dict[str, Any]:
    return {"Y": arrays["Y"] * [1, 0, 1]}


def of_other_data(raw: dict[str, Any]) -> None:
    raw["n_samples"] = 90


def version(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda record: record["versions"].update({name: "0.0.1+0"})


def garbled() -> None:
    """The killed study's journal: its first line is damaged."""
    path = Path("killed/journal.jsonl")
    path.write_bytes(b"{" + path.read_bytes())


def few(*settings: str, arguments: str = "") -> str:
    """The study of images with these settings."""
    return shlex.join(["few.yaml", *(part for setting in settings for part in ("--set", setting))]) + f" {arguments}"


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

# The table

CONFIGURATION = [
    Fault("a misspelt section", few("evalution.metric=x"), 2, "evalution: unknown key; did you mean `evaluation`?"),
    Fault("a misspelt key", few("cv.outr=3"), 2, "cv.outr: unknown key; did you mean `outer`?"),
    Fault("a key like no other", few("cv.zzz=3"), 2, "cv.zzz: unknown key; known here: outer, inner, repeats"),
    Fault("a word for a count", few("cv.outer=three"), 2, "cv.outer: ...whole number, not 'three'"),
    Fault("a count in quotes", few("cv.outer='3'"), 2, "cv.outer: ...whole number, not '3'"),
    Fault("a fraction for a count", few("cv.inner=2.5"), 2, "cv.inner: ...whole number, not 2.5"),
    Fault("one fold", few("cv.outer=1"), 2, "cv.outer: ...greater than or equal to 2, not 1"),
    Fault("a seed below zero", few("seed=-1"), 2, "seed: ...greater than or equal to 0, not -1"),
    Fault("true for a seed", few("seed=true"), 2, "seed: ...whole number, not True"),
    Fault("a seed that is too large", few("seed=4294967296"), 2, "seed: ...less than 4294967296"),
    Fault("a number of 30 digits", few(f"seed={'9' * 30}"), 2, "override seed=...whole numbers must lie between"),
    Fault("a number of 5000 digits", few(f"seed={'9' * 5000}"), 2, "override seed=99..., line 1: ...cannot be read"),
    Fault("an infinite number", few("solver.params.tol=.inf"), 2, "solver.params.tol: inf is not a valid value: give"),
    Fault("a name with a slash", few("name=a/b"), 2, "name: ...not 'a/b'"),
    Fault("a needed key unset", few("solver.name=null"), 2, "solver.name: this key is required"),
    Fault("a value for a section", few("cv=3"), 2, "cv: give its keys (outer, inner,...), not 3"),
    Fault("keys for a value", few("seed.first=3"), 2, "override seed.first=3: `seed` is set to a value"),
    Fault("a setting without a value", few("cv.outer"), 2, "override cv.outer: ...must have the form key=value"),
    Fault(
        "path and source",
        few("dataset.source=digits", "dataset.path=few.npz"),
        2,
        "dataset: give exactly one of `source`",
    ),
    Fault("neither path nor source", few("dataset.path=null"), 2, "dataset: give exactly one of `source`"),
    Fault("an unknown scaling", few("dataset.scaling=minimax"), 2, "dataset.scaling: ...'minmax'...not 'minimax'"),
    Fault("label a number", few("dataset.label=3"), 2, "dataset.label: ...string, not 3"),
    Fault("an empty label", few("dataset.label=''"), 2, "dataset.label: ...at least 1 character"),
    Fault("an empty path", few("dataset.path=''"), 2, "dataset.path: ...at least 1 character"),
    Fault("a word to drop", few("dataset.drop=a"), 2, "dataset.drop: ...list, not 'a'"),
    Fault("a word to keep", few("dataset.keep=a"), 2, "dataset.keep: ...list, not 'a'"),
    Fault("one of the classes", few("dataset.classes=[0]"), 2, "dataset.classes: ...at least 2 items"),
    Fault("half a class", few("dataset.classes=[0, 1.5]"), 2, "dataset.classes.1: 1.5 is not a class: give its name"),
    Fault(
        "yes for a class",
        few("dataset.exclude_classes=[yes]"),
        2,
        "exclude_classes.0: true is not a class: ...in quotes",
    ),
    Fault("a long delimiter", few("dataset.delimiter=;;"), 2, "dataset.delimiter: ...at most 1 character"),
    Fault("an unknown order", few("dataset.order=G"), 2, "dataset.order: ...'C' or 'F', not 'G'"),
    Fault("an empty mask", few("dataset.mask=''"), 2, "dataset.mask: ...at least 1 character"),
    Fault(
        "NIfTI without a table",
        few("dataset={source: nifti, mask: m.nii}"),
        2,
        "`source: nifti` needs `mask`, a NIfTI file, and `path`",
    ),
    Fault(
        "NIfTI as a task",
        tasks("dataset.tasks=[{name: a, source: nifti}, {name: b, source: iris}]"),
        2,
        "dataset.tasks.0: `source: nifti` ...cannot be a task",
    ),
    Fault(
        "a mask of a task",
        tasks("dataset.tasks=[{name: a, source: wine, mask: m.nii}, {name: b, source: iris}]"),
        2,
        "dataset.tasks.0.mask: unknown key",
    ),
    Fault(
        "classes of all tasks", tasks("dataset.classes=[0, 1]"), 2, "dataset: `classes` is for one file ...the tasks"
    ),
    Fault("an unknown classifier", few("evaluation.classifier=knm"), 2, "evaluation.classifier: ...'knn'...not 'knm'"),
    Fault("an unknown domain", few("solver.space.alpha={logunifrom: [1, 2]}"), 2, "did you mean `loguniform`?"),
    Fault(
        "nothing to try",
        few("solver.space.alpha=[]"),
        2,
        "solver.space.alpha: the list is empty; give at",
    ),
    Fault("a value twice", few("solver.space.alpha=[1, 1.0]"), 2, "solver.space.alpha: [1, 1.0] has a value twice"),
    Fault("bounds turned round", few("solver.space.alpha={uniform: [1, 0]}"), 2, "[1, 0]: the lower ...less than"),
    Fault("log of zero", few("solver.space.alpha={loguniform: [0, 1]}"), 2, "solver.space.alpha: ...must be positive"),
    Fault("a billion values", few("solver.space.alpha={logspace: [1, 2, 1e9]}"), 2, "alpha: ...up to 10000"),
    Fault("a parameter fixed and searched", few("solver.params.rank=2"), 2, "solver: rank stands in ...; keep one"),
    Fault("numbers that fall", few("evaluation.n_features=[8, 4]"), 2, "evaluation: `n_features` [8, 4] must increase"),
    Fault("no number of features", few("evaluation.n_features=null"), 2, "evaluation: `n_features` is needed...e.g."),
    Fault("one draw only", few("cv.train_per_class=3"), 2, "cv: `train_per_class` ...e.g. repeats: 10"),
    Fault("repeats without end", few("cv.repeats=1000000000000"), 2, "cv.repeats: ...less than or equal to 1000, not"),
    Fault("samples without end", few("search.num_samples=999999"), 2, "num_samples: ...less than or equal to 100000"),
    Fault("no time at all", few("search.time_budget=0"), 2, "search.time_budget: ...greater than 0"),
    Fault("failures below zero", few("search.max_failures=-1"), 2, "search.max_failures: ...equal to 0, not -1"),
    Fault("one task", few("dataset.tasks=[{name: a, source: iris}]"), 2, "dataset.tasks: list ...at least 2 items"),
    Fault(
        "tasks of one name",
        tasks("dataset.tasks=[{name: a, source: iris}, {name: a, source: wine}]"),
        2,
        "task a is named twice",
    ),
    Fault("no file", "no-such.yaml", 2, "no configuration at no-such.yaml. Built-in studies: ...digits-smr"),
    Fault("nearly a built-in study", "digit-smr", 2, "no configuration at digit-smr. Did you mean `digits-smr`?"),
    Fault("a directory", ".", 2, "no configuration at ., which is a directory"),
    Fault("an empty file", "bad.yaml", 2, "bad.yaml holds no configuration; give keys such as name", study("")),
    Fault("a list", "bad.yaml", 2, "bad.yaml holds no configuration", study("[1, 2]")),
    Fault("an archive", "few.npz", 2, "few.npz cannot be read: it is not UTF-8 text; give the YAML"),
    Fault("broken YAML", "bad.yaml", 2, "bad.yaml, line 2: this is not valid YAML", study("name: [a\n")),
    Fault("a key twice", "bad.yaml", 2, "bad.yaml, line 2: the key `name` is written twice", study("name: a\nname: b")),
    Fault("an alias", "bad.yaml", 2, "bad.yaml, line 2: aliases are not allowed", study("cv: &cv {}\nsearch: *cv\n")),
    Fault("a tag", "bad.yaml", 2, "bad.yaml, line 1: ...leave out", study("name: !!python/name:os.system\n")),
    Fault("lists 500 deep", "bad.yaml", 2, "bad.yaml, line 1: nested too deeply", study("a: " + "[" * 500 + "]" * 500)),
    Fault("a control character", "bad.yaml", 2, "bad.yaml, line 1: ...control character", study('name: "a\\0b"\n')),
]


def of_every_format() -> Iterator[Fault]:
    for suffix in (".npz", ".npy", ".mat", ".csv", ".parquet", ".arrow"):
        bad, other = f"bad{suffix}", write(f"bad{suffix}", bytes(range(256)) * 20)
        typed = few(f"dataset.path={bad}")
        yield Fault(f"no {suffix}", typed, 2, f"there is no data file {bad}. Looked at ...A data file is")
        yield Fault(f"an empty {suffix}", typed, 2, f"{bad} is empty (0 bytes); write or copy it", write(bad, ""))
        yield Fault(f"a {suffix} cut short", typed, 2, f"{bad} ...truncated...write", cut(suffix))
        yield Fault(f"a {suffix} of another kind", typed, 2, f"{bad} ...of another format; write", other)


DATA = [
    *of_every_format(),
    Fault("an unknown suffix", few("dataset.path=few.xyz"), 2, "few.xyz is neither ...nor a file of a known ...(.npz"),
    Fault("an unknown built-in set", few("dataset={source: digist}"), 2, "digist is neither ... Did you mean digits?"),
    Fault("a data set with a recipe", "orl-smr", 2, "there is no data file ORL.npz. ...np.savez"),
    Fault("no X", BAD, 2, "bad.npz has no array X, nor another ...80 rows; it holds y. A data file", archive(X=None)),
    Fault("no y", BAD, 2, "bad.npz has no array y for the labels; it holds X...dataset.labels", archive(y=None)),
    Fault("NaN", BAD, 2, "data set 'bad': X holds 1 values that are NaN ...row 7, column 26", archive(X=put(np.nan))),
    Fault("infinity", BAD, 2, "data set 'bad': X holds 1 values that are NaN or infinite", archive(X=put(np.inf))),
    Fault("pickled labels", BAD, 2, "bad.npz: the array y holds pickled ...y.astype(str)", archive(y=np.array([{}]))),
    Fault("pickled images", BAD, 2, "bad.npz: the array X holds pickled ...", archive(X=np.array([{}]))),
    Fault("images of text", BAD, 2, "data set 'bad': X has dtype <U32; give", archive(X=lambda X: X.astype(str))),
    Fault("complex images", BAD, 2, "data set 'bad': X has dtype complex128; give", archive(X=lambda X: X + 1j)),
    Fault("one image", BAD, 2, "X is of shape (64,); give a non-empty array", archive(X=np.arange(64.0))),
    Fault("no images", BAD, 2, "X is empty, of shape (0, 8, 8); give", archive(X=lambda X: X[:0], y=lambda y: y[:0])),
    Fault("a label missing", BAD, 2, "X has 80 rows but y has 79; X must be", archive(y=lambda y: y[:-1])),
    Fault(
        "labels that are no numbers",
        BAD,
        2,
        "y holds 0.5, which is no class...Give whole numbers",
        archive(y=lambda y: y / 2),
    ),
    Fault("images larger than memory", BAD, 2, "bad.npz is too large for the memory...256. MiB", larger_than_memory),
    Fault("one class", BAD, 2, "y holds one class only (0); at least two are needed", archive(y=lambda y: 0 * y)),
    Fault(
        "a class of one sample", BAD, 2, "class 7 has 1 sample...exclude_classes: [7]", archive(y=lambda y: [7, *y[1:]])
    ),
    Fault("no home", few("dataset.path=~no-such-user/few.npz"), 2, "no data file ~no-such-user/few.npz"),
    Fault("an endless name", few(f"dataset.path={'x' * 999}.npz"), 2, "there is no data file xxx"),
    Fault("no such array of labels", few("dataset.label=zz"), 2, "few.npz has no array zz for the labels; it holds X"),
    Fault("nothing to drop", few("dataset.drop=[a]"), 2, "drop names columns of a table, and ...few.npz is no table"),
    Fault(
        "cells of no table", few("dataset.delimiter=;"), 2, "delimiter is for text tables, and ...few.npz is no such"
    ),
    Fault("nothing to keep", few("dataset.keep=[zz]"), 2, "keep: few has no column zz; it has r0c0"),
    Fault(
        "an unknown class", few("dataset.classes=[0, 9]"), 2, "classes: ...few.npz has no class 9; it has 0, 1, 2, 3"
    ),
    Fault("one class twice", few("dataset.classes=[0, '0']"), 2, "leave only class 0 of ...few.npz; leave two or more"),
    Fault(
        "no class left", few("dataset.exclude_classes=[0, 1, 2, 3]"), 2, "leave no class of ...leave two or more of 0"
    ),
    Fault("no other class", few("dataset.exclude_classes=[zz]"), 2, "exclude_classes: ...has no class zz; it has 0, 1"),
    Fault(
        "no column for labels", CSV + "--set dataset.label=k", 2, "label: ...bad.csv has no column k", table("3,4,0")
    ),
    Fault("no column to drop", CSV + "--set dataset.drop=[k]", 2, "drop: ...bad.csv has no column k", table("3,4,0")),
    Fault(
        "the labels dropped",
        CSV + "--set dataset.drop=[y]",
        2,
        "bad.csv has no column y...It holds a, b",
        table("3,4,0"),
    ),
    Fault("another delimiter", CSV + "--set 'dataset.delimiter=;'", 2, "delimiter=';' does not occur", table("3,4,0")),
    Fault(
        "a label of a built-in set", few("dataset={source: digits, label: y}"), 2, "label is for data files; leave it"
    ),
    Fault("a column of a task", tasks(WINE.format("drop: [k]")), 2, "drop is for data files; leave"),
    Fault(
        "a class of a task", tasks(WINE.format("classes: [0, 7]")), 2, "classes: wine has no class 7; it has 0, 1, 2"
    ),
    Fault(
        "a column kept of a task",
        tasks(WINE.format("keep: [k]")),
        2,
        "keep: wines + b has no column wines/k; did you mean",
    ),
    Fault("labels of no lines", few("dataset.labels=y.txt", "dataset.path=X.npy"), 2, "y.txt has no lines", no_lines),
    Fault("pickled X.npy", few("dataset.labels=y.txt", "dataset.path=X.npy"), 2, "X.npy: ...pickled ...", pickled),
    Fault("a broken link", few("dataset.path=images"), 2, "1.png cannot be read: No such file", broken_link),
    Fault("a class folder in bytes", few("dataset.path=images"), 2, "is not UTF-8; rename it", folder("images/\udcff")),
    Fault("a wrong shape", few("dataset.shape=[8, 9]"), 2, "shape [8, 9] has 72 cells...64 features...[8, 8]"),
    Fault("groups that are not there", few("cv.groups=writer"), 2, "few.npz has no array writer for the groups"),
    Fault("too few groups", few("cv.groups=g", "dataset.path=bad.npz"), 2, "there are 1 groups", archive(g=[0] * 80)),
    Fault(
        "groups of two values",
        few("cv.groups=g", "dataset.path=bad.npz"),
        2,
        "groups has shape (80, 2); give one",
        archive(g=np.ones((80, 2))),
    ),
    Fault("a group a class", few("cv.groups=y"), 2, "cv.outer, fold 0: class ...is missing from its training set"),
    Fault("labels to leave out of none", few("dataset.exclude_labels=[a]"), 2, "exclude_labels requires an indicator"),
    Fault("no variable X in .mat", MAT, 2, "bad.mat has no array X, nor...it holds y", mat(y=[1, 2])),
    Fault("a cell array", MAT, 2, "bad.mat: y is a cell array", mat(X=np.eye(2), y=[["a"], {}])),
    Fault("MATLAB 7.3", MAT, 2, "bad.mat ...truncated, damaged...write", write("bad.mat", "MATLAB 7.3 MAT-file")),
    Fault("samples on a middle axis", BAD, 2, "bad.npz: X has shape (8, 80, 8)", archive(X=lambda X: X.swapaxes(0, 1))),
    Fault(
        "no labels beside .npy", few("dataset.path=X.npy"), 2, "X.npy has no array y...dataset.labels", array("X.npy")
    ),
    Fault("no file of labels", few("dataset.labels=y.npy"), 2, "there is no data file y.npy"),
    Fault("labels twice", few("dataset.labels=y.npy"), 2, "few.npz has labels of its own...leave", array("y.npy")),
    Fault("labels of a table", few("dataset.labels=y.npy", "dataset.path=bad.csv"), 2, "bad.csv has its own", both),
    Fault(
        "labels of other samples",
        few("dataset.labels=y.txt", "dataset.path=X.npy"),
        2,
        "y.txt has 2 lines for 80 samples",
        lambda: array("X.npy", (80, 64))() or write("y.txt", "1\n2\n")(),
    ),
    Fault(
        "order without shape", few("dataset.order=F", "dataset.path=bad.npz"), 2, "order=F...[8, 8] or [4, 16]", flat
    ),
    Fault("a folder without folders", few("dataset.path=images"), 2, "images holds no folders", folder("images")),
    Fault("a class without images", few("dataset.path=images"), 2, "folder cat holds no images", folder("images/cat")),
    Fault(
        "a damaged image",
        few("dataset.path=images"),
        2,
        "1.png cannot be read as an image",
        lambda: folder("images/cat")() or write("images/cat/1.png", bytes(99))(),
    ),
    Fault("text among numbers", CSV, 2, "column 'b' holds 'x' in row 1", table("3,x,0")),
    Fault("an empty cell", CSV, 2, "1 value is missing ...row 1 ...column 'b'", table("3,,0")),
    Fault("a row without label", CSV, 2, "column 'y' has no value in row 1", table("3,4,")),
    Fault("a short row", CSV, 2, "bad.csv cannot be read ...Expected 3 columns", table("3,4")),
    Fault("no header", CSV, 2, "bad.csv has no column y", write("bad.csv", "1,2,0\n3,4,1\n")),
    Fault("numbers as text", few("dataset.path=bad.parquet"), 2, "column 'a' holds '1' in row 0", parquet(["1", "2"])),
    Fault("views of unequal length", VIEWS, 2, "view_1 has shape", multimodal(lambda d: {"view_1": d["view_1"][1:]})),
    Fault("two views of a name", VIEWS, 2, "view_names holds image twice", multimodal({"view_names": ["image"] * 2})),
    Fault("a name without view", VIEWS, 2, "view_names holds 3 names for 2 ", multimodal({"view_names": list("abc")})),
    Fault("no view", VIEWS, 2, "bad.npz has no array X", multimodal({"view_0": None, "view_1": None})),
    Fault("counts for labels", VIEWS, 2, "give ...a 0/1 indicator", multimodal(lambda d: {"Y": 3 * d["Y"]})),
    Fault("negative counts", VIEWS, 2, "give ...a 0/1 indicator", multimodal(lambda d: {"Y": d["Y"] - np.eye(60, 3)})),
    Fault(
        "a label of all",
        VIEWS,
        2,
        "same value of label car; exclude it",
        multimodal(lambda d: {"Y": d["Y"] | [0, 0, 1]}),
    ),
    Fault("a label without positives", VIEWS, 2, "same value of label cow; exclude it", multimodal(without_cow)),
    Fault("no such label", views("dataset.exclude_labels=[sly]"), 2, "exclude_labels: ...sly; did you mean sky?"),
    Fault("one label left", views("dataset.exclude_labels=[sky, cow]"), 2, "give ...at least two labels"),
    Fault("widths that do not add up", few("dataset.modalities={a: 60, b: 6}"), 2, "66 columns ...must sum to 64"),
    Fault("a modality without columns", few("dataset.modalities={a: 64, b: 0}"), 2, "dataset.modalities.b: ...not 0"),
    Fault(
        "a task without file", tasks("dataset.tasks=[{name: a, path: a.npz}, {name: b, source: iris}]"), 2, "file a.npz"
    ),
]

SOLVERS = [
    Fault("an unknown solver", few("solver.name=smrr"), 2, "solver.name: unknown solver 'smrr'; did you mean `smr`?"),
    Fault("an unknown parameter", few("solver.space.alhpa=[1]"), 2, "no parameter `alhpa`; did you mean `alpha`?"),
    Fault("the data's parameter", few("solver.params.shape=[8, 8]"), 2, "`shape` is set from the data...remove it"),
    Fault("a seed of its own", few("solver.params.random_state=1"), 2, "`random_state` is set from the study's seed"),
    Fault("a rank too high", few("solver.space.rank=[1, 9]"), 2, "rank=9 exceeds ...8 x 8: take at most 8"),
    Fault("half a rank", few("solver.space.rank=[1.5]"), 2, "'rank' parameter of SMR must be an int"),
    Fault("alpha of zero", few("solver.space.alpha=[0.1, 0]"), 2, "configuration alpha=0 rank=1: ...'alpha' parameter"),
    Fault("alpha below zero", few("solver.space.alpha=[-0.1]"), 2, "'alpha' parameter of SMR must be a float"),
    Fault("alpha a word", few("solver.space.alpha=[big]"), 2, "'alpha' parameter of SMR must be a float"),
    Fault("p above one", few("solver.params.p=2"), 2, "'p' parameter of SMR must be a float in the range (0.0, 1.0]"),
    Fault("no iteration", few("solver.params.max_iter=0"), 2, "'max_iter' parameter of SMR must be an int"),
    Fault("an unknown start", few("solver.params.init=zero"), 2, "'init' parameter of SMR must be a str among"),
    Fault("images of three axes", BAD, 2, "at most 2 axes...2 x 4 x 8...set dataset.shape to", archive(X=three_axes)),
    Fault("NIfTI without a mask", few("dataset.source=nifti"), 2, "dataset: `source: nifti` needs `mask`"),
    Fault("a mask for no volumes", few("dataset.mask=few.npz"), 2, "dataset: `source: nifti` needs `mask`"),
    Fault(
        "volumes in an archive",
        few("dataset.source=nifti", "dataset.mask=few.npz"),
        2,
        "few.npz is no NIfTI file by its name",
    ),
    Fault("no background", few("dataset.background=no.png"), 2, "dataset.background: there is no data file no.png"),
    Fault("a strange background", few("dataset.background=few.npz"), 2, "few.npz has an unknown suffix"),
    Fault("too many to select", few("solver.params.n_features_to_select=65"), 2, "65 exceeds the 64 features"),
    Fault("too many to score", few("evaluation.n_features=[4, 65]"), 2, "n_features: 65 exceeds the 64 features"),
    Fault("too many neighbours", few("evaluation.n_neighbors=99"), 2, "n_neighbors=99 exceeds the 20 samples"),
    Fault("an unknown metric", few("evaluation.metric=acuracy"), 2, "evaluation.metric: ...mean `accuracy`?"),
    Fault("a gamma below zero", views("solver.space.gamma1=[-1]"), 2, "'gamma1' parameter of SMML must be a float"),
    Fault("no gamma", views("solver.space={gamma1: [0], gamma2: [0]}"), 2, "gamma1=0 and gamma2=0 leave nothing"),
    Fault("labels for one class", views("solver={name: smr}"), 2, "solver.name: smr takes one label ...smml"),
    Fault("a metric of classes", views("evaluation.metric=balanced_accuracy"), 2, "metric: ...take accuracy"),
    Fault("three classes", tasks("solver={name: lda, params: {n_components: 3}}"), 2, "give at most 2"),
    Fault("four features", tasks("solver.params.n_components=5"), 2, "n_components=5 ...'flowers' ...give at most 4"),
    Fault(
        "three weights", tasks("solver.params.task_weights=[1, 1, 1]"), 2, "task_weights=(1, 1, 1) must be 2 ...numbers"
    ),
    Fault("neighbours of tasks", tasks("evaluation={n_features: [2]}"), 2, "classifier knn ...take `native`"),
    Fault("a scaling of modalities", tasks("dataset.scaling=row_unit"), 2, "'row_unit' does not support several"),
    Fault("a solver of one task", tasks("solver={name: linear_svm}"), 2, "linear_svm does not take the layout tasks"),
]

SEARCH = [
    Fault("tpe without number", few("search.method=tpe"), 2, "`num_samples` is needed by method tpe, e.g."),
    Fault(
        "tpe without space", few("search={method: tpe, num_samples: 4}", "solver.space=null"), 2, "needs solver.space"
    ),
    Fault("random without number", few("search.method=random"), 2, "search.num_samples is needed by ...random, e.g."),
    Fault("Sobol without number", few("search.method=sobol"), 2, "search.num_samples is needed by ...sobol, e.g."),
    Fault(
        "random without space",
        few("search={method: random, num_samples: 4}", "solver.space=null"),
        2,
        "needs solver.space",
    ),
    Fault("a grid of an interval", few("solver.space.alpha={uniform: [0.1, 1]}"), 2, "has no grid; give a list"),
    Fault("a solver without path", few("search.method=path"), 2, "path: smr has no path ...use grid"),
    Fault("a path of unlike models", views("search.method=path", "solver.space.tol=[0.1, 0.2]"), 2, "tol ...use grid"),
    Fault("a path cut short", views("search={method: path, early_stopping: asha}"), 2, "search: `early_stopping`"),
    Fault(
        "early stops without scores",
        few("search.early_stopping=asha", "evaluation.classifier=linear_svm"),
        2,
        "search.early_stopping ...linear_svm ...use knn or native",
    ),
    Fault("a grid without end", few("solver.space.rank={randint: [1, 9999999]}"), 2, "29999997 points; give shorter"),
    Fault("a grid past counting", few(f"solver.space={PAST_COUNTING}"), 2, "points; give shorter"),
    Fault("an unknown search", few("search.method=hyperband"), 2, "search.method: ...'grid'...not 'hyperband'"),
    Fault("all to be stopped", few("search.reduction_factor=1"), 2, "search.reduction_factor: ...equal to 2, not 1"),
    Fault("more CPUs than there are", few("search.cpus_per_trial=4096"), 2, "search.cpus_per_trial: 4096 exceeds the"),
]

FOLDS = [
    Fault(
        "more folds than samples",
        few("cv.outer=21"),
        2,
        "class 0 has 20 samples, too few for cv.outer=21 ...at most 20",
    ),
    Fault("more inner folds than samples", few("cv.inner=11"), 2, "class 0 has 10 ...cv.inner=11 ...at most 10"),
    Fault("nothing left to test", few("cv={train_per_class: 20, repeats: 2}"), 2, "class 0 ...set at most 19"),
    Fault("no plan", few("cv.plan=no.json"), 2, "cv.plan: no.json"),
    Fault("a plan that is none", few("cv.plan=few.yaml"), 2, "cv.plan: few.yaml cannot be read as the plan.json"),
    Fault("a plan of other data", few("cv.plan=bad.json"), 2, "made for 90 samples...has 80", plan(of_other_data)),
    Fault("a plan that leaks", few("cv.plan=bad.json"), 2, "outer0, inner fold 0 uses ...outside", plan(leak)),
    Fault("a plan without end", few("cv.plan=bad.json"), 2, "the fold `final`", plan(lambda p: p["folds"].pop())),
]

DIRECTORIES = [
    Fault("a file for a directory", few(arguments="--output few.npz"), 2, "be written to few.npz: ...output directory"),
    Fault("a directory in a file", few(arguments="--output few.npz/study"), 2, "to few.npz/study: ...output directory"),
    Fault("a directory of the system", few("output=/proc/study"), 2, "be written to /proc/study: ...output directory"),
    Fault("a study is there", few(arguments="--output killed"), 2, "killed already holds a study...Resume that study"),
    Fault("another study is there", views("output=killed"), 2, "killed already holds a study...output directory"),
    Fault("a study runs there", few(arguments="--output busy"), 2, "running in busy: process ...Wait", running("busy")),
    Fault("it still runs", "--resume killed", 2, "running in killed: process ...Wait", held("killed")),
    Fault(
        "its directory was named",
        few(arguments="--output killed"),
        2,
        "running in killed: process ...Wait",
        held("killed"),
    ),
    Fault("nothing to resume", "--resume no-such", 2, "no-such holds no study; give --resume the directory"),
    Fault("a directory without study", "--resume .", 2, ". holds no study; give --resume the directory"),
    Fault("other folds", "--resume killed --set cv.outer=3", 2, "killed cannot be resumed...cv.outer: 2 -> 3...Undo"),
    Fault("another seed", few("seed=4", arguments="--resume killed"), 2, "killed cannot be ...seed: 3 -> 4...Undo"),
    Fault("another study", "views.yaml --resume killed", 2, "killed cannot be resumed...made for 80 samples...60"),
    Fault(
        "another solver",
        "--resume killed --set 'solver={name: linear_svm, space: {C: [1]}}'",
        2,
        "name: smr -> linear_svm...Undo",
    ),
    Fault(
        "a smaller grid",
        "--resume killed --set solver.space.rank=[2]",
        2,
        "1 of the configurations that were tried ...Undo",
    ),
    Fault("a changed value", "--resume killed", 2, "killed cannot be resumed...the data of few...Undo", changed_data),
    Fault("a sample less", "--resume killed", 2, "killed cannot be resumed...80 samples...79", fewer_data),
    Fault("no data any more", "--resume killed", 2, "no data file few.npz", lambda: Path("few.npz").unlink()),
    Fault("other code", "--resume killed", 2, "cannot be resumed...numbers: ...0.0.1+0 by", edited(version("numbers"))),
    Fault("another NumPy", "--resume killed", 2, "cannot be resumed...numpy: 0.0.1+0 -> ", edited(version("numpy"))),
    Fault("a damaged config", "--resume killed", 2, "config.yaml, line 1: ", write("killed/config.yaml", "a: [")),
    Fault(
        "damaged folds",
        "--resume killed",
        2,
        "killed/plan.json cannot be read as the plan.json",
        write("killed/plan.json", "{"),
    ),
    Fault(
        "folds gone",
        "--resume killed",
        2,
        "killed cannot be resumed: ...plan.json",
        lambda: Path("killed/plan.json").unlink(),
    ),
    Fault("the journal gone", "--resume killed", 2, "killed holds no", lambda: Path("killed/journal.jsonl").unlink()),
    Fault("an empty journal", "--resume killed", 2, "has no record of a study", write("killed/journal.jsonl", "")),
    Fault("a damaged line", "--resume killed", 2, "journal.jsonl, line 1: damaged...restore", garbled),
    Fault(
        "another tool's line",
        "--resume killed",
        2,
        "line 2: a record of kind None is damaged",
        edited(lambda r: r.pop("kind"), 1),
    ),
    Fault(
        "a study without data",
        "--resume killed",
        2,
        "a record of kind 'study' is damaged: 'data_hash': Field required",
        edited(lambda r: r.pop("data_hash")),
    ),
    Fault(
        "a trial without name",
        "--resume killed",
        2,
        "line 2: a record of kind 'trial' is damaged: 'id': Field required",
        edited(lambda r: r.pop("id"), 1),
    ),
    Fault(
        "a newer journal",
        "--resume killed",
        2,
        "line 1: written by a newer version of raysel (schema 3); update",
        edited(lambda r: r.update(schema=3)),
    ),
    Fault("a damaged line where to go", few(arguments="--output killed"), 2, "line 1: damaged", garbled),
    Fault("nothing to replay", "--replay no-such", 2, "no-such holds no readable journal"),
    Fault("a replay of what runs", "--replay killed", 2, "running in killed: process ...Wait", held("killed")),
    Fault("a replay with settings", "--replay killed --set cv.outer=3", 2, "--replay ...tracking.uri"),
]

ELSEWHERE = [
    Fault(
        "a Ray that is not there",
        few("search={}", arguments="--address 127.0.0.1:1"),
        2,
        "no Ray cluster answers there ...HOST:PORT",
    ),
    Fault("an address that is none", few("search={}", arguments="--address me:ray"), 2, "address me:ray: ...HOST:PORT"),
    Fault("an MLflow of no kind", few("tracking.uri=ftp://host"), 2, "tracking.uri: ...'ftp' ...e.g. sqlite"),
    Fault(
        "a replay to no MLflow",
        "--replay killed --set tracking.uri=ftp://host",
        2,
        "tracking.uri: ...'ftp' ...e.g. sqlite",
    ),
]

SELECT = [
    Fault("no study to select from", "no-such", 2, "no-such holds no readable journal", command=select.main),
    Fault("no study below", "", 2, "no study at or below", lambda: shutil.rmtree("killed"), command=select.main),
    Fault("a study without end", "killed", 2, "has not finished: 2 of 6 ...--resume killed", command=select.main),
    Fault("a damaged journal", "killed", 2, "line 1: damaged", garbled, command=select.main),
]

# These need Ray.

OF_A_FINISHED_STUDY = [
    Fault(
        "run again",
        few(arguments="--output study"),
        2,
        "study already holds a study...Resume...directory",
    ),
    Fault("another seed at last", "--resume study --set seed=4", 2, "study cannot be resumed...seed: 3 -> 4...Undo"),
    Fault("changed data at last", "--resume study", 2, "study cannot be resumed...the data of few...", changed_data),
    Fault("no top", "study --top 0", 2, "top=0 must be ...between 1 and the 64 features", command=select.main),
    Fault(
        "more than all",
        "study --top 65",
        2,
        "top=65 must be ...between 1 and the 64 features",
        command=select.main,
    ),
    Fault("a file for a folder", "study --output few.npz", 2, "cannot be written to few.npz", command=select.main),
]

OF_TRIALS = [
    Fault(
        "every configuration fails",
        few("solver.params={alpha_scale: absolute, p: 0.5, zeta: 1e+300}", "solver.space.alpha=[1e+250, 2e+250]"),
        2,
        "solver: all ... configurations fail on the ... samples of the largest inner training set: ...became inf",
    ),
    Fault(
        "an MLflow that does not answer",
        "--replay killed --set tracking.uri=http://127.0.0.1:1",
        1,
        "the upload failed: MLflow at http://127.0.0.1:1 cannot be reached...Try again later",
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
    assert status == fault.code, f"{fault.name}: {said}"
    assert said.startswith("error: "), fault.name
    assert "Traceback" not in said, fault.name
    assert re.search(".*".join(map(re.escape, fault.said.split("..."))), said, re.DOTALL), f"{fault.name}: {said}"


@pytest.mark.usefixtures("stores_unset")
@pytest.mark.parametrize("group", GROUPS)
def test_a_fault_is_refused_in_a_sentence_and_changes_nothing(group, scene, tmp_path, capfd):
    for i, fault in enumerate(GROUPS[group]):
        shutil.copytree(scene, tmp_path / str(i))
        with contextlib.chdir(tmp_path / str(i)):
            assert_refused(fault, capfd)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.name) for fault in OF_A_FINISHED_STUDY])
def test_a_finished_study_stays_as_it_is(fault, finished_study, tmp_path, monkeypatch, capfd):
    shutil.copytree(finished_study.study.parent, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    note_place(absolute_uri("sqlite:///runs/mlflow.db"))  # the store has moved with the study
    assert_refused(fault, capfd)


@pytest.mark.slow
@pytest.mark.usefixtures("here", "ray_here")
@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.name) for fault in OF_TRIALS])
def test_a_study_that_fails_says_why(fault, capfd):
    """Its directory is there, and MLflow's store once it has begun."""
    assert fault.command(shlex.split(fault.typed)) == fault.code
    said = capfd.readouterr().err
    assert said.startswith("error: ")
    assert "Traceback" not in said
    assert re.search(".*".join(map(re.escape, fault.said.split("..."))), said, re.DOTALL), said


def test_the_table_names_each_fault_once():
    faults = [*itertools.chain(*GROUPS.values()), *OF_A_FINISHED_STUDY, *OF_TRIALS]
    assert len({fault.name for fault in faults}) == len(faults) >= 60
