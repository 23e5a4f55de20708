"""Columns that may hold the labels: those of scikit-learn's data sets are proposed first under
any name.
"""

from __future__ import annotations

import tracemalloc
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from raysel.data.formats.columns import labels
from raysel.data.formats.nifti import volume_columns
from raysel.data.formats.recognition import (
    counted_texts,
    likely_labels,
    names_identifier,
    names_origin,
    numbered_texts,
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


@pytest.mark.parametrize("n_chunks", [1, 3])
@pytest.mark.parametrize("is_category", [False, True])
def test_numbered_texts_are_the_cells(n_chunks, is_category):
    cells = ["b", None, "a", "", "b", "ü"]
    parts = np.array_split(np.array(cells, dtype=object), n_chunks)
    column = pa.chunked_array([pa.array(list(part), pa.string()) for part in parts])
    texts, numbers = numbered_texts(column.dictionary_encode() if is_category else column)
    assert [texts[number] for number in numbers] == cells
    assert counted_texts(column) == {"b": 2, "a": 1, "ü": 1}


def test_millions_of_cells_of_few_texts_do_not_become_objects_of_python():
    """A Parquet file of a few kB may hold as many; an object takes 50 bytes and more."""
    n = 300_000
    column = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(n, dtype=np.int8) % 2), pa.array(["sick", "well"])
    )
    table = pa.table({"y": column, "x": np.zeros(n)})
    tracemalloc.start()
    y = labels(table, "y", "a table")
    assert volume_columns(table) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert y.tolist()[:3] == ["sick", "well", "sick"]
    assert peak < 2 * y.nbytes
