"""Files as strangers have them: the drafted study reads them right, and scores them as
scikit-learn does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.io
from matlab73 import savemat73
from PIL import Image
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from small_studies import run_offline

from raysel.config import StudyConfig
from raysel.data.layouts import Tensor
from raysel.study.definition import Study
from raysel.study.draft.draft import init_study

WINE, CANCER, DIGITS = load_wine(), load_breast_cancer(), load_digits()
WORDS = np.array(["zero", "one", "two", "three", "four", "five"])
RealData = Callable[[str], Path]


class Content(NamedTuple):
    """What a reader should find in a file."""

    name: str
    #: Clean arrays, the images row by row.
    X: np.ndarray
    y: np.ndarray
    #: Keys of the drafted section ``dataset``, without path, scaling and comments.
    dataset: dict[str, Any] = {}  # noqa: RUF012 - not changed
    label: str | None = None
    solver: str = "linear_svm"
    groups: np.ndarray | None = None
    cv_groups: str | None = None


def frame(bunch: Any) -> pd.DataFrame:
    return pd.DataFrame(bunch.data, columns=[str(name) for name in bunch.feature_names])


def images(path: Path, classes: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    """The first images of the first classes of a real set, shuffled."""
    with np.load(path) as data:
        X, y = data["X"], data["y"]
    chosen = np.concatenate([np.flatnonzero(y == c)[:each] for c in range(classes)])
    chosen = np.random.default_rng(0).permutation(chosen)
    return X[chosen], y[chosen]


def pandas_index(_: RealData) -> Content:
    """`df.to_csv` with its index, rows sorted by class."""
    frame(WINE).assign(target=WINE.target).to_csv("wine_index.csv")
    keys = {"label": "target", "drop": ["Unnamed: 0"]}
    return Content("wine_index.csv", WINE.data, WINE.target, keys, "target")


def semicolons(_: RealData) -> Content:
    """Excel in a country of decimal commas; an identifier; the label in words."""
    table, y = frame(CANCER), np.array(["M", "B"])[CANCER.target]
    table.insert(0, "id", np.random.default_rng(0).permutation(10**6)[: len(table)])
    table.insert(1, "diagnosis", y)
    table.to_csv("breast;cancer.csv", sep=";", decimal=",", index=False)
    return Content(
        "breast;cancer.csv", CANCER.data, y, {"label": "diagnosis", "drop": ["id"]}, "diagnosis"
    )


def participants(_: RealData) -> Content:
    """Rows sorted by class, three nearly equal ones a participant."""
    rng = np.random.default_rng(0)
    X, y = np.repeat(WINE.data, 3, axis=0), np.array(["a", "b", "c"])[np.repeat(WINE.target, 3)]
    X = X + 0.1 * X.std(axis=0) * rng.standard_normal(X.shape)
    groups = np.repeat([f"P{i:03d}" for i in rng.permutation(len(WINE.data))], 3)
    table = pd.DataFrame(X, columns=WINE.feature_names).assign(condition=y)
    table.insert(0, "participant_id", groups)
    table.to_csv("visits.csv", index=False)
    return Content(
        "visits.csv",
        X,
        y,
        {"label": "condition"},
        "condition",
        groups=groups,
        cv_groups="participant_id",
    )


def pandas_parquet(_: RealData) -> Content:
    """`df.to_parquet` of a frame that was shuffled, with its old index and the label as a
    category.
    """
    y = CANCER.target_names[CANCER.target].astype(str)
    table = frame(CANCER).assign(label=pd.Categorical(y)).sample(frac=1, random_state=0)
    table.to_parquet("tumours.parquet")
    order = table.index.to_numpy()
    return Content("tumours.parquet", CANCER.data[order], y[order], {"label": "label"}, "label")


def uci(_: RealData) -> Content:
    """wine.data as UCI has it: no header, the class, 1 to 3, first."""
    table = pd.DataFrame(np.column_stack([WINE.target + 1, WINE.data])).astype({0: int})
    table.to_csv("wine.data", header=False, index=False)
    return Content("wine.data", WINE.data, WINE.target + 1, {"label": "column0"}, "column0")


def image_stack(real_data: RealData) -> Content:
    """An archive with X of shape (n, h, w)."""
    X, y = images(real_data("UMIST.npz"), 10, 19)
    np.savez("faces.npz", X=X, y=y)
    return Content("faces.npz", X, y, label="y", solver="smr")


def scikit_feature(real_data: RealData) -> Content:
    """A .mat file of images as rows, column by column, and labels from 1 on as one column of
    doubles.
    """
    X, y = images(real_data("ORL.npz"), 20, 10)
    columns = X.transpose(0, 2, 1).reshape(len(X), -1)
    scipy.io.savemat(
        "orlraws.mat", {"X": columns.astype(float), "Y": (y[:, None] + 1).astype(float)}
    )
    return Content("orlraws.mat", X, y + 1, {"shape": [32, 32], "order": "F"}, "Y", "smr")


def matlab_73(real_data: RealData) -> Content:
    """A .mat file of version 7.3: HDF5, in which every array stands transposed."""
    X, y = images(real_data("USPS.npz"), 6, 60)
    columns = X.transpose(0, 2, 1).reshape(len(X), -1)
    savemat73(
        Path("usps.mat"), {"fea": columns.astype(float), "gnd": (y[:, None] + 1).astype(float)}
    )
    return Content("usps.mat", X, y + 1, {"shape": [16, 16], "order": "F"}, "gnd", "smr")


def picture_folder(_: RealData) -> Content:
    """One folder of PNG files for each class."""
    chosen = np.concatenate([np.flatnonzero(DIGITS.target == c)[:40] for c in range(6)])
    X, y = (DIGITS.images[chosen] * 15).astype(np.uint8), WORDS[DIGITS.target[chosen]]
    for number, (image, name) in enumerate(zip(X, y, strict=True)):
        place = Path("pictures", name)
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / f"{number:04d}.png")
    order = np.argsort(y, kind="stable")
    return Content("pictures", X[order], y[order], solver="smr")


def modality_arrays(real_data: RealData) -> Content:
    """An archive with one array for each modality, under its own name."""
    with np.load(real_data("MSRCv1_6v.npz")) as data:
        names, y = data["view_names"].tolist(), data["y"]
        views = {name.lower(): data[f"view_{names.index(name)}"] for name in ("CM", "HOG", "SIFT")}
    np.savez("scenes.npz", **views, labels=y)
    return Content("scenes.npz", np.hstack(list(views.values())), y, label="labels", solver="smml")


TABLES = (pandas_index, semicolons, participants, pandas_parquet, uci)
ARRAYS = (image_stack, scikit_feature, matlab_73, picture_folder, modality_arrays)
every_file = pytest.mark.parametrize("make", [*TABLES, *ARRAYS], ids=lambda make: make.__name__)

#: Few configurations, in this process.
SPACES = {
    "linear_svm": {"C": [0.03], "penalty": ["l1", "l2"]},
    "smr": {"alpha": [0.03], "rank": [2]},
    "smml": {"gamma1": [0, 0.01], "gamma2": [0.01, 0.03]},
}


@every_file
def test_the_draft_reads_the_file_as_it_is_meant(make, tmp_path, monkeypatch, real_data):
    monkeypatch.chdir(tmp_path)
    content = make(real_data)
    path = tmp_path / content.name
    config = init_study(path).config
    data = Study.prepare(config).dataset
    keys = config.to_dict()["dataset"]
    del keys["scaling"]
    assert {key: value for key, value in keys.items() if value} == {
        "path": str(path),
        **content.dataset,
    }
    assert (config.solver.name, config.cv.groups) == (content.solver, content.cv_groups)
    np.testing.assert_array_equal(data.X, content.X.reshape(len(content.X), -1).astype(float))
    np.testing.assert_array_equal(data.y, content.y)
    assert data.label == content.label
    if content.X.ndim > 2:
        assert data.layout == Tensor(content.X.shape[1:])
    assert (data.groups is None) == (content.groups is None)


def reference_scores(
    X: np.ndarray, y: np.ndarray, groups: np.ndarray | None, config: StudyConfig
) -> np.ndarray:
    """Score of each outer fold by scikit-learn: F-test and classifier on tables and images, SVM
    on modalities.
    """
    name, grid = config.evaluation.estimator, {"select__k": list(config.evaluation.n_features)}
    steps: list[tuple[str, Any]] = [] if name == "knn" else [("scale", StandardScaler())]
    if name == "native":
        steps, grid = (
            [*steps, ("classify", LinearSVC(dual=True, max_iter=5000))],
            {"classify__C": [1e-4, 1e-3, 1e-2, 0.1]},
        )
    else:
        classify = (
            KNeighborsClassifier(config.evaluation.n_neighbors)
            if name == "knn"
            else LinearSVC(dual=False)
        )
        steps += [("select", SelectKBest(f_classif)), ("classify", classify)]
    splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
    scores = []
    for train, test in splitter(config.cv.outer, shuffle=True, random_state=1).split(X, y, groups):
        inner = splitter(config.cv.inner, shuffle=True, random_state=1)
        splits = list(inner.split(X[train], y[train], None if groups is None else groups[train]))
        search = GridSearchCV(Pipeline(steps), grid, cv=splits, scoring=config.evaluation.metric)
        scores.append(search.fit(X[train], y[train]).score(X[test], y[test]))
    return np.array(scores)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [semicolons, image_stack, modality_arrays], ids=lambda f: f.__name__
)
def test_the_study_scores_as_nested_cross_validation_of_the_clean_arrays_does(
    make, tmp_path, monkeypatch, real_data
):
    monkeypatch.chdir(tmp_path)
    content = make(real_data)
    config = init_study(tmp_path / content.name).config
    raw: dict[str, Any] = config.to_dict()
    raw["solver"]["space"] = SPACES[content.solver]
    raw |= {"search": {**raw["search"], "executor": "serial"}, "pictures": []}
    raw["cv"] |= {"outer": 3, "inner": 2, "final": False}
    changed = config.model_copy(
        update={"cv": config.cv.model_copy(update={"outer": 3, "inner": 2})}
    )
    with warnings.catch_warnings(action="ignore"):
        result = run_offline(raw, tmp_path / "study")
        expected = reference_scores(
            content.X.reshape(len(content.X), -1), content.y, content.groups, changed
        )
    scores = result.summary()[f"test_{config.evaluation.metric}"]
    # The folds differ: both means have an error, and so have the methods of ranking.
    error = np.hypot(scores.std(), expected.std(ddof=1)) / np.sqrt(3)
    assert abs(scores.mean() - expected.mean()) < 2.5 * error + 0.03
