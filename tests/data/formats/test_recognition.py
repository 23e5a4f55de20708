"""Columns that may hold the labels: those of scikit-learn's data sets are proposed first under any name."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from raysel.data.formats.recognition import (
    likely_labels,
    names_identifier,
    names_origin,
    taken_names,
)

SETS = {
    load.__name__: load(as_frame=True).frame for load in (load_iris, load_wine, load_breast_cancer)
}


@pytest.mark.parametrize("loaded", SETS)
def test_the_label_is_proposed_first(loaded):
    for name, first in product(["target", "Diagnosis", "Cell Type", "what"], [False, True]):
        table = SETS[loaded].rename(columns={"target": name})
        table = table[[name, *table.columns[:-1]]] if first else table
        for values in (
            table[name],
            table[name].map("class {}".format),
            table[name].astype(float).astype("category"),
        ):
            proposed = likely_labels(
                pa.Table.from_pandas(table.assign(**{name: values}).reset_index(names="id"))
            )
            assert proposed[0] == name


def test_measurements_identifiers_and_constants_are_not_proposed():
    rng = np.random.default_rng(0)
    columns = {
        "": np.arange(40),
        "id": [f"s{i}" for i in range(40)],
        "one": [1] * 40,
        "age": rng.normal(size=40),
    }
    assert likely_labels(pa.table(columns)) == []
    subject, arm = np.repeat(np.arange(10), 4).astype(str), np.arange(40) % 2
    assert likely_labels(pa.table({**columns, "subject": subject, "arm": arm})) == [
        "arm",
        "subject",
    ]


def test_names_that_are_taken_without_a_question():
    assert taken_names(["Y", "x", "LABEL", "diagnosis", "targets", "Class "]) == [
        "Y",
        "LABEL",
        "Class ",
    ]


@pytest.mark.parametrize(
    ("recognise", "such", "others"),
    [
        (
            names_origin,
            ["patient", "PatientID", "Subject.ID", "clinical.donor_no", "participant_ids", "Mouse"],
            ["patient_age", "family_size", "user rating", "plate.height", "session_length", "id"],
        ),
        (
            names_identifier,
            ["sample_id", "Record Nr", "uuid", "CustomerID", "row", "image.filename"],
            ["path_length", "row_sum", "file size", "width", "", "grid", "idée"],
        ),
    ],
)
def test_origins_and_identifiers_are_distinguished_from_measurements_by_their_names(
    recognise, such, others
):
    assert [name for name in such + others if recognise(name)] == such
