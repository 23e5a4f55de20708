"""Roles of the columns of a table: label, groups, and what is left out."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from raysel.core.errors import DataError
from raysel.study.draft.roles import Roles, table_roles

N = 60


def roles(label: str | None = None, **columns: object) -> Roles:
    """Roles in a table of two measurements, a label with three classes, and the given columns."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"width": rng.normal(size=N), "height": rng.normal(size=N), **columns})
    if not {"y", "kind"} & set(frame):
        frame["y"] = np.arange(N) % 3
    return table_roles(pa.Table.from_pandas(frame, preserve_index=False), label)


def test_measurements_are_features_and_the_usual_name_is_the_label():
    assert roles() == Roles("y")


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("Unnamed: 0", np.arange(N), "an index, 0 to 59"),
        ("Unnamed: 0", np.random.default_rng(1).permutation(5 * N)[:N], "an index: unique in each row"),
        ("no", np.random.default_rng(1).permutation(N) + 1, "an index, 1 to 60"),
        ("PatientID", [f"P{i}" for i in range(N)], "an identifier: unique in each row"),
        ("record_id", np.random.default_rng(1).permutation(5 * N)[:N], "an identifier: unique in each row"),
        ("Unnamed: 32", [np.nan] * N, "it is empty"),
        ("comment", [f"seen {i}" for i in range(N)], "text, unique in each row"),
    ],
)
def test_what_tells_rows_apart_or_nothing_is_left_out_without_a_doubt(column, values, reason):
    found = roles(**{column: values})
    assert dict(found.drop) == {column: reason}
    assert not found.doubts


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("sex", ["m", "f"] * (N // 2), "text, 2 different values"),
        ("age", [np.nan, *range(20, 19 + N)], "1 of 60 cells is empty"),
        ("day", pd.date_range("2024-01-01", periods=N), "dates or times"),
        ("position", [[1.0, 2.0]] * N, "several values a cell"),
        ("share", [f"{i} %" for i in range(N)], "text, e.g. '0 %'"),
    ],
)
def test_what_could_be_a_feature_is_left_out_with_a_doubt(column, values, reason):
    found = roles(**{column: values})
    assert found.drop[column].startswith(reason)
    assert any(column in doubt for doubt in found.doubts)


def test_numbers_with_signs_or_units_are_not_to_be_encoded_as_classes():
    found = roles(crp=["<0.5", "0.71", "2.3 mg"] * (N // 3))
    assert any("crp: text that begins with a number" in doubt for doubt in found.doubts)


def test_columns_of_one_defect_share_a_doubt():
    found = roles(**{f"m{i}": [np.nan, *range(1, N)] for i in range(3)}, sex=["m", "f"] * (N // 2))
    assert [doubt.partition(": ")[2].partition(": ")[0] for doubt in found.doubts] == ["m0, m1, m2", "sex"]


def test_columns_that_number_the_measurements_remain_features_with_a_doubt():
    found = roles(trial=np.arange(N) % 10, session=np.arange(N) // 30, brain=np.arange(N) % 7)
    assert not found.drop
    assert [doubt for doubt in found.doubts if "trial, session are features" in doubt]
    assert not [doubt for doubt in found.doubts if "brain" in doubt]


def test_the_doubt_on_the_label_says_which_names_there_are():
    rng = np.random.default_rng(0)
    (doubt,) = roles(target=[0, 1] * (N // 2), y=[0, 0, 1] * (N // 3)).doubts
    assert "one of several" in doubt
    table = pa.table({"Gruppe": [1, 2] * (N // 2), "V1": rng.integers(0, 3, N), "V2": rng.integers(0, 2, N)})
    assert table_roles(table).label == "Gruppe"
    assert "as no column is called y" in table_roles(table).doubts[0]


def test_a_quantity_in_the_last_column_is_said_not_to_be_the_label():
    rng = np.random.default_rng(0)
    table = pa.table({"street": ["a", "b"] * (N // 2), "area": rng.normal(size=N), "price": rng.normal(size=N)})
    assert any("price, is a quantity" in doubt for doubt in table_roles(table).doubts)
    with pytest.raises(DataError, match="exchange rows and columns"):
        table_roles(table.drop_columns("street"))


def test_whole_numbers_that_do_not_count_the_rows_remain_features():
    rng = np.random.default_rng(2)
    found = roles(cells=rng.integers(0, 50, N), weight=rng.permutation(9 * N)[:N], mass=rng.normal(size=N))
    assert not found.drop
    assert not found.doubts


@pytest.mark.parametrize("name", ["participant_id", "SubjectID", "patient", "Mouse"])
def test_a_subject_with_several_rows_is_the_group(name):
    found = roles(**{name: np.repeat(np.arange(N // 4), 4)})
    assert (found.groups, dict(found.drop)) == (name, {})


@pytest.mark.parametrize("name", ["patient_age", "family_size"])
def test_a_measurement_of_a_subject_is_a_feature(name):
    found = roles(**{name: np.random.default_rng(3).integers(20, 40, N)})
    assert (found.groups, dict(found.drop)) == (None, {})


def test_a_subject_that_has_a_class_of_its_own_cannot_be_the_group():
    found = roles(kind=np.repeat(list("abcdef"), N // 6), subject=np.repeat(np.arange(6), N // 6))
    assert found.groups is None
    assert list(found.drop) == ["subject"]
    assert any("subject" in doubt and "too few" in doubt for doubt in found.doubts)


def test_the_named_column_is_the_label_and_an_unknown_one_is_refused_with_a_proposal():
    assert roles("kind", kind=["a", "b"] * (N // 2)).label == "kind"
    with pytest.raises(DataError, match="did you mean kind"):
        roles("kinds", kind=["a", "b"] * (N // 2))


def test_a_table_without_classes_asks_for_the_label():
    table = pa.table({"a": np.random.default_rng(0).normal(size=N), "b": np.random.default_rng(1).normal(size=N)})
    with pytest.raises(DataError, match="Name the column by label"):
        table_roles(table)


def test_columns_of_an_indicator_are_no_features_and_no_label():
    found = roles(**{"y.sky": [0, 1] * (N // 2), "y.sea": [1, 1, 0] * (N // 3), "y": [0.5] * N} | {})
    assert found.label == "y"  # a column called y comes first
    columns = {"a": np.random.default_rng(0).normal(size=N), "y.sky": [0, 1] * (N // 2), "y.sea": [1, 1, 0] * (N // 3)}
    assert table_roles(pa.table(columns)) == Roles(None)


@pytest.mark.parametrize("values", [pd.date_range("2024-01-01", periods=N), np.arange(N) * 60, ["2024-01-01"] * N])
def test_a_time_is_no_feature_and_leads_to_blocks_not_to_encoding(values):
    found = roles(timestamp=values)
    assert "timestamp" in found.drop
    (doubt,) = found.doubts
    assert "cv.blocks" in doubt
    assert not re.search("turn|encode", doubt)


def test_a_text_that_is_the_label_in_other_words_is_named_and_not_to_be_encoded():
    texts = {"a": "benign", "b": "malignant"}
    label = ["a", "b"] * (N // 2)
    other = ["m", "f", "f"] * (N // 3)
    found = roles("kind", words=[texts[name] for name in label], sex=other, kind=label)
    assert found.drop["words"] == "the label in other words"
    assert [doubt for doubt in found.doubts if "words" in doubt] == [
        "drop: words: the label in other words, which is no feature and not to be encoded."
    ]
    assert any("sex" in doubt and "encode" in doubt for doubt in found.doubts)
