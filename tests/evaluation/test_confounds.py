"""Confounds beside the features of every source: how they are read, taken out, and scored alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.metrics import get_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from small_studies import run_offline

from raysel.config import load_config
from raysel.core.errors import ConfigError, DataError
from raysel.data.loading import load_dataset, save_dataset
from raysel.data.targets import Quantities
from raysel.evaluation.confounds import has_confounds, score_confounds
from raysel.evaluation.ranking_files import selection_mask
from raysel.results import texts
from raysel.results.displays.preview_data import DataPreview, preview_parts
from raysel.results.displays.probability import ProbabilityMap
from raysel.run.api import open_study, prepare_study
from raysel.run.permutation import permutation_test
from raysel.run.stability import stability_selection
from raysel.study.definition import Study

N, SIDE = 40, 4
AGE_AND_SITE = ["age", "site"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAYSEL_DATA", raising=False)
    return tmp_path


def people() -> tuple[pd.DataFrame, np.ndarray]:
    """Age and site of 40 samples, which tell the class, and images of 4 x 4 pixels, which age
    and site change.
    """
    rng = np.random.default_rng(0)
    y = np.sort(np.arange(N) % 2)
    age = rng.normal(60, 8, N).round() + 9 * y
    site = np.array(["Oslo", "Rome", "Ulm"])[rng.integers(0, 3, N)]
    X = rng.normal(128, 20, (N, SIDE, SIDE)) + (age - 60)[:, None, None] * rng.normal(
        size=(SIDE, SIDE)
    )
    X = X.clip(0, 255).round()
    return pd.DataFrame({"diagnosis": y, "age": age, "site": site}), X


def as_volumes(frame: pd.DataFrame, X: np.ndarray) -> dict[str, Any]:
    """Volumes of one slice, and the table of scans."""
    nibabel = pytest.importorskip("nibabel")
    for i, values in enumerate(X):
        nibabel.save(nibabel.Nifti1Image(values[..., None], np.eye(4)), f"{i}.nii")
    nibabel.save(nibabel.Nifti1Image(np.ones((SIDE, SIDE, 1)), np.eye(4)), "mask.nii")
    frame.assign(scan=[f"{i}.nii" for i in range(N)]).to_csv("scans.csv", index=False)
    return {"source": "nifti", "path": "scans.csv", "mask": "mask.nii", "label": "diagnosis"}


def as_arrays(frame: pd.DataFrame, X: np.ndarray) -> dict[str, Any]:
    np.savez("X.npz", X=X, diagnosis=frame.diagnosis, age=frame.age, site=frame.site.to_numpy(str))
    return {"path": "X.npz", "label": "diagnosis"}


def as_arrays_and_labels(frame: pd.DataFrame, X: np.ndarray) -> dict[str, Any]:
    np.save("X.npy", X)
    frame.to_csv("clinic.csv", index=False)
    return {"path": "X.npy", "labels": "clinic.csv", "label": "diagnosis"}


def as_arrays_and_table(frame: pd.DataFrame, X: np.ndarray) -> dict[str, Any]:
    np.savez("X.npz", X=X, y=frame.diagnosis)
    frame.to_parquet("people.parquet")
    return {"path": "X.npz", "table": "people.parquet"}


def as_images(frame: pd.DataFrame, X: np.ndarray) -> dict[str, Any]:
    """A folder of images, and a table whose rows have another order."""
    paths = []
    for i, values in enumerate(X):
        path = f"faces/{frame.diagnosis[i]}/{i:02d}.png"
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(values.astype(np.uint8)).save(path)
        paths.append(path.removeprefix("faces/"))
    order = np.random.default_rng(1).permutation(N)
    frame.assign(image=paths).iloc[order].to_csv("people.csv", index=False)
    return {"path": "faces", "table": "people.csv"}


def as_cells_of_a_table(frame: pd.DataFrame, X: np.ndarray) -> dict[str, Any]:
    cells = pd.DataFrame(X.reshape(N, -1), columns=[f"cell{i}" for i in range(SIDE**2)])
    pd.concat([frame, cells], axis=1).to_csv("cells.csv", index=False)
    return {"path": "cells.csv", "label": "diagnosis", "shape": [SIDE, SIDE]}


def as_modalities(frame: pd.DataFrame, X: np.ndarray) -> dict[str, Any]:
    cells = pd.DataFrame(
        X.reshape(N, -1), columns=[f"{'left' if i < 8 else 'right'}.{i}" for i in range(SIDE**2)]
    )
    pd.concat([frame, cells], axis=1).to_csv("cells.csv", index=False)
    return {"path": "cells.csv", "label": "diagnosis"}


SOURCES = [
    as_volumes,
    as_arrays,
    as_arrays_and_labels,
    as_arrays_and_table,
    as_images,
    as_cells_of_a_table,
    as_modalities,
]


def config_of(source: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "name": "people",
        "dataset": {"scaling": "zscore", **source},
        "solver": {"name": "fisher_score"},
        "evaluation": {"estimator": "knn", "n_features": [4]},
        "search": {"executor": "serial"},
        "cv": {"outer": 3, "inner": 2},
        "pictures": [],
        **changes,
    }


def residuals(frame: pd.DataFrame, X: np.ndarray) -> np.ndarray:
    """The pixels without the least-squares fit on age and indicators of the site."""
    beside = np.column_stack([frame.age, pd.get_dummies(frame.site)])
    pixels = X.reshape(N, -1)
    return pixels - LinearRegression().fit(beside, pixels).predict(beside)


@pytest.mark.parametrize("write", SOURCES, ids=lambda write: write.__name__)
def test_columns_beside_every_source_are_taken_out_and_are_no_features(write):
    frame, X = people()
    source = write(frame, X)
    keys = {"confounds": AGE_AND_SITE, "prepare": ["residualise"]}
    study = Study.prepare(load_config(config_of(source | keys)))
    data = study.dataset
    assert data.feature_names[-2:] == ("age", "site")
    assert data.layout.n_features - data.layout.n_beside == SIDE**2
    prepared = study.preparation().fit_transform(data.X)
    np.testing.assert_allclose(prepared, residuals(frame, X), atol=1e-6)
    assert sum(column.stop - column.start for column in data.layout.slices().values()) in (0, 16)


@pytest.mark.parametrize("write", [as_volumes, as_images])
def test_the_site_of_harmonise_stands_beside_the_source_too(write):
    source = write(*people())
    config = config_of(source | {"prepare": [{"harmonise": "site"}]}, cv={"outer": 5, "inner": 5})
    study = Study.prepare(load_config(config))
    assert study.preparation().fit_transform(study.dataset.X).shape == (N, SIDE**2)
    assert study.dataset.feature_names[-1] == "site"


def alone(frame: pd.DataFrame, y: Any, train: Any, test: Any, metric: str) -> float:
    """Score of age and site on the test samples, by scikit-learn."""
    encoder = make_column_transformer(
        (StandardScaler(), ["age"]), (OneHotEncoder(handle_unknown="ignore"), ["site"])
    )
    if y.dtype.kind == "f":
        models = [RidgeCV((0.1, 1.0, 10.0, 100.0, 1000.0))]
    else:
        models = [LogisticRegression(class_weight=w, max_iter=1000) for w in (None, "balanced")]
    score = get_scorer(metric)
    fitted = [make_pipeline(encoder, m).fit(frame.iloc[train], y[train]) for m in models]
    best = max(fitted, key=lambda model: score(model, frame.iloc[train], y[train]))
    return score(best, frame.iloc[test], y[test])


@pytest.mark.parametrize(
    ("metric", "steps"),
    [
        ("roc_auc", ["residualise"]),
        pytest.param("balanced_accuracy", [], marks=pytest.mark.slow),
        pytest.param("neg_log_loss", ["residualise"], marks=pytest.mark.slow),
    ],
)
def test_the_confounds_alone_are_scored_within_the_same_outer_folds(here, metric, steps):
    frame, X = people()
    source = as_images(frame, X) | {"confounds": AGE_AND_SITE, "prepare": steps}
    evaluation = {"estimator": "sklearn.linear_model.LogisticRegression", "n_features": [4]}
    result = run_offline(
        config_of(source, evaluation={**evaluation, "metric": metric}), here / "study"
    )
    y = frame.diagnosis.to_numpy()
    found = [refit.references["confounds alone"] for refit in result.outer]
    study = Study.prepare(
        load_config(config_of(source, evaluation={**evaluation, "metric": metric}))
    )
    for (score,), fold in zip(found, study.plan.outer, strict=True):
        assert score == pytest.approx(alone(frame, y, fold.train, fold.test, metric), abs=1e-3)
    reference = result.references["confounds alone"]
    assert reference.scores == [score for (score,) in found]
    line = next(row for row in texts.score_table(result.facts).rows if "alone" in row[0])
    assert line[0] == "confounds alone (age, site)"
    assert f"{reference.mean:.3f}" in line[2]
    assert result.facts.n_features == SIDE**2


def test_confounds_count_as_no_features_in_rankings_and_bounds(here):
    frame, X = people()
    source = as_images(frame, X) | {"confounds": AGE_AND_SITE, "prepare": ["residualise"]}
    evaluation = {"estimator": "knn", "n_features": [4]}
    config = config_of(source, evaluation=evaluation, solver={"name": "fisher_score"})
    result = run_offline(config, here / "study")
    ranking = result.ranking()
    assert ranking.n_candidates == SIDE**2
    assert f"of {SIDE**2} features" in texts.feature_table(ranking).title
    selection = stability_selection(here / "study", subsamples=4, executor="serial")
    assert selection.p == SIDE**2
    assert selection.theta == 4 / SIDE**2
    assert open_study(here / "study").stability_selection.p == selection.p


def test_no_table_has_a_row_of_a_confound(here):
    frame, X = people()
    source = as_images(frame, X) | {"confounds": AGE_AND_SITE, "prepare": ["residualise"]}
    evaluation = {"estimator": "knn", "n_features": [4]}
    config = config_of(source, evaluation=evaluation, solver={"name": "fisher_score"})
    run_offline(config, here / "study")
    stability_selection(here / "study", subsamples=4, executor="serial")
    test = permutation_test(here / "study", permutations=2, executor="serial")
    result = open_study(here / "study")
    features = set(result.feature_names) - set(AGE_AND_SITE)
    assert len(features) == SIDE**2
    tables = sorted((here / "study").rglob("*.csv"))
    names = {table.relative_to(here / "study").as_posix() for table in tables}
    assert names >= {"ranking/ranking.csv", "stability/selection.csv", "permutation/features.csv"}
    assert names >= {f"folds/{refit.fold}.csv" for refit in result.outer}
    for table in tables:
        assert sorted(pd.read_csv(table).feature) == sorted(features)
    assert set(test.table().feature) == features
    assert f"of {SIDE**2} features are claimed" in " ".join(test.sentences())
    assert len(ProbabilityMap.from_facts(result.facts).frame()) == SIDE**2
    ranking = result.ranking()
    assert set(ranking.to_frame().feature) == features
    chosen = {result.feature_names[i] for i in ranking.top()}
    mask = selection_mask(ranking, result.layout)
    assert mask.shape == (SIDE, SIDE)
    assert mask.sum() == len(chosen) == 4
    assert chosen <= features
    with pytest.raises(ConfigError):
        result.ranking(top=SIDE**2 + 1)
    # As earlier versions wrote them: a row for each column.
    for path in ("permutation/features.parquet", "stability/selection.parquet"):
        old = pd.read_parquet(here / "study" / path)
        more = old.iloc[:2].assign(feature=AGE_AND_SITE)
        numbers = {name: 0 for name in old.columns if old[name].dtype.kind in "iufb"}
        more = more.assign(**numbers)
        if "index" in old:
            more["index"] = [SIDE**2, SIDE**2 + 1]
        pd.concat([old, more]).astype(old.dtypes).to_parquet(here / "study" / path, index=False)
    again = open_study(here / "study")
    np.testing.assert_array_equal(
        again.stability_selection.counts, result.stability_selection.counts
    )
    assert again.permutation_test.table().equals(test.table())


def test_a_picture_of_the_data_draws_no_confound():
    frame, X = people()
    table = frame.assign(**{f"c{i}": column for i, column in enumerate(X.reshape(N, -1).T)})
    table.to_csv("table.csv", index=False)
    data = load_dataset("table.csv", label="diagnosis", confounds=AGE_AND_SITE, unprepared=True)
    preview = DataPreview.from_data(data, {})
    assert f"x {SIDE**2} features" in preview.caption
    (part,) = preview_parts(data)
    assert sorted(part.names) == sorted(f"c{i}" for i in range(SIDE**2))


def test_a_quantity_is_told_by_ridge_regression_of_the_confounds():
    frame, X = people()
    height = np.random.default_rng(2).normal(size=N) + 0.1 * frame.age.to_numpy()
    table = frame.drop(columns="diagnosis").assign(
        **{f"c{i}": column for i, column in enumerate(X.reshape(N, -1).T)}, height=height
    )
    config = config_of({"confounds": AGE_AND_SITE, "prepare": ["residualise"]})
    config["evaluation"] = {"estimator": "ridge", "n_features": [4], "metric": "r2"}
    config["solver"] = {"name": "f_test"}
    study = prepare_study(config, X=table.drop(columns="height"), y=height)
    assert study.dataset.target == Quantities()
    fold = study.plan.outer[0]
    split = study.split(fold)
    assert has_confounds(split)
    expected = alone(frame, height, fold.train, fold.test, "r2")
    assert score_confounds(split, "r2") == pytest.approx(expected, abs=1e-9)


def test_a_stored_data_set_keeps_its_confounds_apart():
    source = as_images(*people())
    data = load_dataset("faces", table=source["table"], confounds=["age", "si*"], unprepared=True)
    save_dataset(data, "people.parquet")
    again = load_dataset("people.parquet", unprepared=True)
    assert again.content_hash == data.content_hash
    assert again.layout == data.layout


def test_what_is_not_there_is_named_with_the_mend():
    frame, X = people()
    table, images = as_volumes(frame, X), as_images(frame, X)
    arrays = as_arrays_and_table(frame, X)
    for source, words in (
        (table | {"confounds": ["weight"]}, "scans.csv has no column weight; it has"),
        (table | {"confounds": ["diagnosis"]}, "diagnosis is the column of the label"),
        (table | {"confounds": ["age"], "table": "people.csv"}, "leave table out"),
        ({"path": "faces", "confounds": ["age"]}, "by dataset.table"),
        (images | {"confounds": ["weight"]}, "people.csv has no column weight"),
        (images | {"confounds": ["age"], "table": "scans.csv"}, "path of each image in"),
        ({"path": "X.npz", "confounds": ["age"]}, "X.npz has no column age; name a table"),
    ):
        with pytest.raises(DataError, match=words):
            Study.prepare(load_config(config_of(source)))
    frame.iloc[:-1].to_parquet("people.parquet")
    with pytest.raises(DataError, match=r"has 39 rows, and .* has 40 samples"):
        Study.prepare(load_config(config_of(arrays | {"confounds": ["age"]})))
    with pytest.raises(ConfigError, match="`table` holds columns of `confounds`"):
        load_config(config_of(images))
