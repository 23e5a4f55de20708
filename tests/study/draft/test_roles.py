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


SHUFFLED = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("column", "values", "reason", "is_doubtful"),
    [
        ("Unnamed: 0", np.arange(N), "an index, 0 to 59", False),
        ("Unnamed: 0", SHUFFLED.permutation(5 * N)[:N], "an index: unique in each row", False),
        ("no", SHUFFLED.permutation(N) + 1, "an index, 1 to 60", False),
        ("PatientID", [f"P{i}" for i in range(N)], "an identifier: unique in each row", False),
        ("record_id", SHUFFLED.permutation(5 * N)[:N], "an identifier: unique in each row", False),
        ("Unnamed: 32", [np.nan] * N, "it is empty", False),
        (
            "comment",
            [f"seen {i}" for i in range(N)],
            "text, unique in each row, e.g. 'seen 0'",
            False,
        ),
        ("town", ["here"] * N, "one text in all rows, e.g. 'here'", False),
        ("patient_no", [np.nan, *range(20, 19 + N)], "an identifier", False),
        # What could be a feature
        (
            "ticket",
            [f"a{i // 2}" for i in range(N - 4)] + list("bcde"),
            "text, 32 different values, e.g. 'a0'",
            True,
        ),
        ("age", [np.nan] * 25 + [*range(20, N - 5)], "25 of 60 cells are empty", True),
        ("cabin", [None] * 25 + ["a", "b", "c", "d", "e"] * 7, "25 of 60 cells are empty", True),
        (
            "batch",
            ["b1", *SHUFFLED.permutation(["b1", "b2", "b3"] * (N // 3))[1:]],
            "text, 3 different values, e.g. 'b1'",
            True,
        ),
        (
            "Plate",
            ["p1", "p2", None, "p2", "p1"] * (N // 5),
            "text, 2 different values, e.g. 'p1'",
            True,
        ),
        (
            "day",
            pd.date_range("2024-01-01", periods=N),
            "dates or times, e.g. 2024-01-01 00:00:00",
            True,
        ),
        ("position", [[1.0, 2.0]] * N, "several values a cell, e.g. [1.0, 2.0]", True),
        ("share", [f"{i} %" for i in range(N)], "text, e.g. '0 %'", True),
        (
            "weight",
            [*map(str, range(40, 38 + N)), "?kg", "<5"],
            "numbers, but '?kg', '<5' in 2 of 60 cells",
            True,
        ),
        (
            "cadmium",
            [*(f"{i / 7:.3f}" for i in range(45)), *["<LOD"] * 15],
            "numbers, but '<LOD' in 15 of 60 cells",
            True,
        ),
        (
            "lead",
            [*(str(i) for i in range(20)), *["n.d."] * 30, *["> 200"] * 10],
            "numbers, but 'n.d.', '> 200' in 40 of 60 cells",
            True,
        ),
        (
            "zinc",
            [*(f"{i / 9:.2f}" for i in range(48)), *(f"<0.{i}" for i in range(1, 5))] + ["<1"] * 8,
            "numbers, but '<0.1', '<0.2', '<0.3', ... (5 in all) in 12 of 60 cells",
            True,
        ),
        (
            "copper",
            [*(f"{i / 9:.2f}" for i in range(40)), *["n.d."] * 8, *["<0.1", "<0.2", ">9"] * 4],
            "numbers, but 'n.d.', '<0.1', '<0.2', ... (4 in all) in 20 of 60 cells",
            True,
        ),
    ],
)
def test_a_column_that_is_no_feature_is_left_out_with_a_doubt_if_it_could_be_one(
    column, values, reason, is_doubtful
):
    result = roles(**{column: values})
    assert dict(result.drop) == {column: reason}
    assert [column in doubt for doubt in result.doubts] == [True] * is_doubtful
    told = [re.split(r"(?<=[.])\s+", doubt) for doubt in result.doubts]
    assert max((len(part.split()) for parts in told for part in parts), default=0) <= 25


@pytest.mark.parametrize("name", ["batch", "plate", "chip", "Hospital_ID", "sequencing lane"])
def test_numbers_that_may_tell_a_batch_are_features_with_a_doubt(name):
    result = roles(**{name: [i % 3 for i in range(60)]})
    assert not result.drop
    doubts = [doubt for doubt in result.doubts if doubt.startswith("groups or confounds:")]
    assert len(doubts) == 1
    assert name in doubts[0]


def test_columns_of_one_defect_share_a_doubt():
    empty = {f"m{i}": [np.nan] * 30 + [*range(30, N)] for i in range(3)}
    result = roles(
        **empty,
        site=["m", "f"] * (N // 2),
        crp=SHUFFLED.permutation(["<0.5", "0.71", "2.3 mg"] * (N // 3)),
    )
    columns, mends = zip(
        *(doubt.removeprefix("drop: ").split(": ", 1) for doubt in result.doubts), strict=True
    )
    assert columns == ("m0, m1, m2", "site", "crp")
    assert all(word in mends[1] for word in ("cv.groups", "dataset.confounds", "harmonise"))
    assert mends[2].startswith("text that begins with a number")


def test_columns_that_a_study_can_prepare_are_features():
    gap, text = [np.nan, *range(20, 19 + N)], SHUFFLED.permutation(["m", "f", None] * (N // 3))
    grade = [*"1234" * (N // 4 - 1), *"123X"]  # few numbers may be codes
    assert roles(age=gap, sex=["m", "f"] * (N // 2), smoker=text, grade=grade) == Roles("y")


def test_rows_without_a_label_are_left_out_and_the_other_columns_judged_without_them():
    words = np.array(["no", "yes"])[np.arange(N) % 2].astype(object)
    label = np.where(np.arange(N) == 7, np.nan, np.arange(N) % 2)
    result = roles("kind", kind=label, words=words)
    assert result.unlabelled == "1 row has no label and is left out (row 7, counted from 0)"
    assert result.drop == {"words": "the label in other words"}


def test_columns_that_number_the_measurements_remain_features_with_a_doubt():
    result = roles(trial=np.arange(N) % 10, session=np.arange(N) // 30, brain=np.arange(N) % 7)
    assert not result.drop
    assert [doubt for doubt in result.doubts if "trial, session are taken for features" in doubt]
    assert [doubt for doubt in result.doubts if doubt.startswith("groups or confounds: session")]
    assert not [doubt for doubt in result.doubts if "brain" in doubt]


def test_the_doubt_on_the_label_names_what_there_is():
    rng = np.random.default_rng(0)
    (doubt,) = roles(target=[0, 1] * (N // 2), y=[0, 0, 1] * (N // 3)).doubts
    assert "one of several" in doubt
    table = pa.table(
        {"Gruppe": [1, 2] * (N // 2), "V1": rng.integers(0, 3, N), "V2": rng.integers(0, 2, N)}
    )
    assert table_roles(table).label == "Gruppe"
    assert "as no column is called y" in table_roles(table).doubts[0]


def test_a_quantity_is_named_beside_classes_and_taken_where_there_are_none():
    rng = np.random.default_rng(0)
    table = pa.table(
        {"street": ["a", "b"] * (N // 2), "area": rng.normal(size=N), "price": rng.normal(size=N)}
    )
    assert any("price, is a quantity" in doubt for doubt in table_roles(table).doubts)
    alone = table_roles(table.drop_columns("street"))
    assert (alone.label, alone.doubts[0]) == (
        "price",
        "label: price was taken, the last column of numbers; name another by label.",
    )
    named = table.rename_columns(["street", "response", "price"])
    assert table_roles(named).label == "response"
    with pytest.raises(DataError, match="exchange rows and columns"):
        table_roles(
            table.select(["street"]).append_column("id", pa.array(range(N))).drop_columns("street")
        )


def test_measurements_remain_features_without_a_doubt():
    rng = np.random.default_rng(2)
    columns = {
        "cells": rng.integers(0, 50, N),
        "weight": rng.permutation(9 * N)[:N],
        "mass": rng.normal(size=N),
    }
    columns |= {name: rng.integers(20, 40, N) for name in ("patient_age", "family_size")}
    assert roles(**columns) == Roles("y")


@pytest.mark.parametrize("name", ["participant_id", "SubjectID", "patient", "Mouse"])
def test_a_subject_with_several_rows_is_the_group(name):
    result = roles(**{name: np.repeat(np.arange(N // 4), 4)})
    assert (result.groups, dict(result.drop)) == (name, {})


@pytest.mark.parametrize("empty", [1, 20])
def test_a_subject_with_empty_cells_is_the_group_which_a_study_then_refuses(empty):
    for subject in (
        np.repeat(np.arange(N // 4), 4).astype(float),
        np.repeat([f"s{i}" for i in range(N // 4)], 4),
    ):
        result = roles(subject=[*[None] * empty, *subject[empty:].tolist()])
        assert (result.groups, dict(result.drop)) == ("subject", {})


def test_a_subject_that_has_a_class_of_its_own_cannot_be_the_group():
    result = roles(kind=np.repeat(list("abcdef"), N // 6), subject=np.repeat(np.arange(6), N // 6))
    assert result.groups is None
    assert list(result.drop) == ["subject"]
    assert any("subject" in doubt and "too few" in doubt for doubt in result.doubts)


def test_the_named_column_is_the_label_and_an_unknown_one_is_refused_with_a_proposal():
    assert roles("kind", kind=["a", "b"] * (N // 2)).label == "kind"
    with pytest.raises(DataError, match="did you mean `kind`"):
        roles("kinds", kind=["a", "b"] * (N // 2))


def test_columns_of_an_indicator_are_no_features_and_no_label():
    result = roles(
        **{"y.sky": [0, 1] * (N // 2), "y.sea": [1, 1, 0] * (N // 3), "y": [0.5] * N} | {}
    )
    assert result.label == "y"  # a column called y comes first
    columns = {
        "a": np.random.default_rng(0).normal(size=N),
        "y.sky": [0, 1] * (N // 2),
        "y.sea": [1, 1, 0] * (N // 3),
    }
    assert table_roles(pa.table(columns)) == Roles(None)


@pytest.mark.parametrize(
    "values", [pd.date_range("2024-01-01", periods=N), np.arange(N) * 60, ["2024-01-01"] * N]
)
def test_a_time_is_no_feature_and_leads_to_blocks_not_to_encoding(values):
    result = roles(timestamp=values)
    assert "timestamp" in result.drop
    (doubt,) = result.doubts
    assert "cv.blocks" in doubt
    assert not re.search("turn|encode", doubt)


def test_a_text_that_is_the_label_in_other_words_is_named_and_not_to_be_encoded():
    texts = {"a": "benign", "b": "malignant"}
    label = ["a", "b"] * (N // 2)
    other = ["m", "f", "f"] * (N // 3)
    gaps = [None, *(texts[name] for name in label[1:])]
    result = roles("kind", words=[texts[name] for name in label], sex=other, gaps=gaps, kind=label)
    assert result.drop["words"] == "the label in other words"
    assert [doubt for doubt in result.doubts if "words" in doubt] == [
        "drop: words, gaps: the label in other words, which is no feature and not to be encoded."
    ]
    assert "sex" not in result.drop


# What is no feature, and named as what it may be


def survival(time="time", event="event"):
    rng = np.random.default_rng(2)
    return {time: rng.exponential(500, N).round(), event: np.arange(N) % 2}


@pytest.mark.parametrize("names", [("time", "event"), ("OS_time", "OS_event"), ("T", "E")])
def test_an_event_is_not_taken_for_the_label_without_its_time(names):
    columns = {"width": np.random.default_rng(0).normal(size=N), **survival(*names)}
    with pytest.raises(DataError, match=f"{names[0]} is the time to an event, and {names[1]}"):
        table_roles(pa.table(columns))


def test_a_time_and_event_beside_another_label_are_no_reason_to_refuse():
    assert roles(**survival()).label == "y"


@pytest.mark.parametrize("name", ["sample_weight", "weights", "fnlwgt", "Survey Weight", "case_wt"])
def test_weights_of_samples_are_left_out_with_a_doubt(name):
    result = roles(**{name: np.random.default_rng(1).uniform(size=N)})
    assert list(result.drop) == [name]
    assert any(name in doubt and "how much each sample counts" in doubt for doubt in result.doubts)


@pytest.mark.parametrize("name", ["weight", "birth_weight", "weight_kg", "weighting_scheme"])
def test_other_weights_are_features(name):
    assert not roles(**{name: np.random.default_rng(1).uniform(size=N)}).drop


def test_wells_of_a_plate_are_left_out_with_a_doubt_whatever_the_name():
    wells = [f"{row}{column:02d}" for row in "ABC" for column in range(1, 11)] * 2
    result = roles(position=wells)
    assert dict(result.drop) == {"position": "wells of a plate, e.g. 'A01'"}
    assert any("where on a plate" in doubt for doubt in result.doubts)
    assert not roles(grade=["A1", "B2", "C3", "D4"] * (N // 4)).drop


@pytest.mark.parametrize("values", [np.arange(N) % 5, np.random.default_rng(0).normal(size=N)])
def test_y_beside_x_is_a_place_where_another_column_may_be_the_label(values):
    columns = {"x": values[::-1], "y": values, "width": np.random.default_rng(1).normal(size=N)}
    kinds = np.array(["a", "b"])[np.arange(N) % 2]
    result = table_roles(pa.table({**columns, "kind": kinds}))
    assert result.label == "kind"
    assert any("y may be a place" in doubt for doubt in result.doubts)
    assert table_roles(pa.table(columns)).label == "y"
