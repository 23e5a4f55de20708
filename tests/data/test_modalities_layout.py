"""The Modalities layout: whose columns are whose, kept in order and read back from JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from raysel.core.errors import DataError
from raysel.data.layouts import Modalities, layout_from_json


def test_columns_know_their_modality():
    layout = Modalities({"lbp": np.int64(2), "hog": 3})
    assert layout.n_features == 5
    assert layout.slices() == {"lbp": slice(0, 2), "hog": slice(2, 5)}
    coordinates = layout.coordinates()
    assert coordinates["modality"].tolist() == ["lbp", "lbp", "hog", "hog", "hog"]
    assert coordinates["column"].tolist() == [0, 1, 0, 1, 2]
    assert layout.default_names()[-1] == "hog[2]"


def test_json_keeps_order_and_widths():
    layout = Modalities({"z": 2, "a": 1})
    read = layout_from_json(json.loads(json.dumps(layout.to_json())))
    assert read == layout
    assert list(read.modalities) == ["z", "a"]


@pytest.mark.parametrize(
    ("modalities", "message"),
    [
        ({}, "modalities is empty"),
        ({"a": 0}, "'a' has 0 columns"),
        ({"a": 2.5}, "'a' has 2.5 columns"),
        ({"a": True}, "'a' has True columns"),
        ([("a", 1), ("a", 2)], "'a' is named twice"),
    ],
)
def test_what_is_no_layout_is_refused(modalities, message):
    with pytest.raises(DataError, match=message):
        Modalities(modalities)
