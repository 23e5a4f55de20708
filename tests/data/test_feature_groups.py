"""Groups of features from a table, lists, modalities and correlations, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from raysel.core.errors import ConfigError
from raysel.data.dataset import Dataset
from raysel.data.feature_groups import make_feature_groups
from raysel.data.layouts import Modalities, Tensor
from raysel.numerics.correlations import correlated_groups

ROWS = [("b", "one"), ("a", "two"), ("d", "one")]


def dataset(**changes: Any) -> Dataset:
    """Four columns, of which b and d correlate, and so do a and c."""
    factors, noise = np.random.default_rng(0).normal(size=(2, 30, 4))
    X = factors[:, [0, 1, 0, 1]] + 0.3 * noise
    given = {"layout": Tensor((4,)), "feature_names": ("a", "b", "c", "d"), **changes}
    return Dataset(X, np.arange(30) % 2, **given)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_and_lists_form_the_same_groups(suffix: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS, columns=["feature", "group"])
    path = tmp_path / f"groups.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    lists = make_feature_groups({"one": ["b", "d"], "two": ["a"]}, dataset())
    assert make_feature_groups(str(path), dataset()) == lists == {"one": [1, 3], "two": [0]}


def test_a_row_without_a_group_leaves_its_feature_alone(tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("feature,group\na,one\nc,\nb,one\n")
    assert make_feature_groups(str(tmp_path / "groups.csv"), dataset()) == {"one": [0, 1]}


def test_modalities_are_groups() -> None:
    parted = dataset(layout=Modalities({"mri": 1, "pet": 3}), feature_names=())
    assert make_feature_groups("modalities", parted) == {"mri": [0], "pet": [1, 2, 3]}


def test_correlated_columns_are_groups() -> None:
    found = make_feature_groups({"correlated": 0.7}, dataset())
    assert list(found.values()) == [[0, 2], [1, 3]]
    assert correlated_groups(dataset().X, 0.7).tolist() == [0, 1, 0, 1]


def test_labels_do_not_matter_to_correlated_groups() -> None:
    other = Dataset(dataset().X, np.arange(30) // 15, Tensor((4,)))
    assert make_feature_groups({"correlated": 0.7}, other) == make_feature_groups(
        {"correlated": 0.7}, dataset()
    )


def test_empty_cells_and_texts_form_groups_of_numbers_only() -> None:
    X = np.array(dataset().X)
    X[3, 0] = np.nan
    X[:, 1] = X[:, 3] > 0  # a category that follows d
    mixed = Dataset(
        X,
        np.arange(30) % 2,
        Tensor((4,)),
        feature_names=("a", "b", "c", "d"),
        categories={"b": ("no", "yes")},
        unprepared=True,
    )
    assert list(make_feature_groups({"correlated": 0.7}, mixed).values()) == [[0, 2]]


@pytest.mark.parametrize(
    ("given", "culprit", "mend"),
    [
        ({"one": ["a", "gene"]}, "'gene'", "leave it out"),
        ({"one": ["a"], "two": ["a"]}, "'a' into the group 'one' and into 'two'", "keep one"),
        ({"one": ["a", "a"]}, "'a' into the group 'one' and into 'one'", "keep one"),
        ("modalities", "modalities", "dataset.modalities"),
        ("absent.csv", "absent.csv", "columns feature and group"),
    ],
)
def test_refusals_name_the_culprit_and_the_mend(given: Any, culprit: str, mend: str) -> None:
    with pytest.raises(ConfigError) as refused:
        make_feature_groups(given, dataset())
    assert culprit in str(refused.value)
    assert mend in str(refused.value)


def test_a_table_without_its_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("gene,group\na,one\n")
    with pytest.raises(ConfigError, match="no column feature; it has gene, group"):
        make_feature_groups(str(tmp_path / "groups.csv"), dataset())
