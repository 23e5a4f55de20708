"""Text tables as other programs write them: what is recognised equals what pandas reads with
options.
"""

from __future__ import annotations

import csv
import gzip
import warnings
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import refusals
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine

from raysel.core.errors import DataError
from raysel.data.layouts import Modalities, Tensor
from raysel.data.loading import load_dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


pytestmark = pytest.mark.usefixtures("here")


def put(text, name="t.csv"):
    with open(name, "wb") as file:  # noqa: PTH123
        file.write(text.encode() if isinstance(text, str) else text)
    return name


def refused(text, *culprits, **options):
    refusals.refused(put(text), *culprits, **options)


def iris(label="target"):
    table = load_iris(as_frame=True).frame.iloc[::5]
    return table.assign(target=load_iris().target_names[table.target]).rename(
        columns={"target": label}
    )


NAMES = st.text(alphabet='abQ é,;"_5', min_size=1, max_size=5).filter(
    lambda name: name.strip(' ",;5é_')[:1].isalpha()
)
CLASSES = ["ant", "bee hive", "c;d", "e,f", 'g"h', "é", "two\nlines"]
WRITING = {
    "sep": st.sampled_from([",", ";", "\t", " "]),
    "decimal": st.sampled_from([".", ","]),
    "quoting": st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    "lineterminator": st.sampled_from(["\n", "\r\n"]),
    "encoding": st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "utf-16"]),
    "index": st.booleans(),
}


@given(data=st.data(), how=st.fixed_dictionaries(WRITING))
@settings(max_examples=30, derandomize=True)
def test_what_pandas_writes_is_read_as_pandas_reads_it_with_options(folder, data, how):
    if how["sep"] == ",":
        how["decimal"] = "."
    names = data.draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.strip))
    rows = data.draw(st.integers(3, 8))
    values = st.one_of(st.floats(-1e6, 1e6), st.integers(-9, 9).map(float), st.integers(-999, 999))
    columns = {
        name.strip(): data.draw(st.lists(values, min_size=rows, max_size=rows)) for name in names
    }
    known = data.draw(st.permutations(CLASSES))
    table = pd.DataFrame(columns).assign(Label=[known[i % 3] for i in range(rows)])
    path = folder / "case.txt"
    table.to_csv(path, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas 3 reads floats exactly in any case, and says so
        expected = pd.read_csv(
            path,
            sep=how["sep"],
            decimal=how["decimal"],
            encoding=how["encoding"],
            float_precision="round_trip",
        )
    result = load_dataset(path)
    assert list(result.feature_names) == list(expected.columns[:-1])
    np.testing.assert_array_equal(result.X, expected.iloc[:, :-1].to_numpy(float))
    assert result.y.tolist() == expected["Label"].tolist() == table["Label"].tolist()
    assert result.label == "Label"
    if how["index"]:
        assert result.feature_names[0] == "Unnamed: 0"
        for unnamed in ("", "Unnamed: 0"):
            assert load_dataset(path, drop=[unnamed]).feature_names == result.feature_names[1:]


@pytest.mark.parametrize("sep", [",", ";", "\t", " "])
def test_a_table_without_header_is_read_as_pandas_does(sep):
    wine = load_wine(as_frame=True).frame.iloc[::4]
    wine = wine[["target", *wine.columns[:-1]]].assign(target=wine.target + 1)  # as at UCI
    wine.to_csv("wine.data", header=False, index=False, sep=sep)
    result, expected = (
        load_dataset("wine.data", label="column0"),
        pd.read_csv("wine.data", header=None, sep=sep),
    )
    np.testing.assert_array_equal(result.X, expected.iloc[:, 1:])
    np.testing.assert_array_equal(result.y, expected[0])
    assert result.feature_names == tuple(f"column{i}" for i in range(1, 14))
    assert any("no header" in note for note in result.notes)
    refused((wine.to_csv(header=False, index=False)), "set label", "'column0'")


@pytest.mark.parametrize("delimiter", ["|", ":"])
def test_another_delimiter_is_given(delimiter):
    text = iris().to_csv(index=False, sep=delimiter)
    refused(text, "one column only", "set delimiter")
    np.testing.assert_array_equal(
        load_dataset(put(text), delimiter=delimiter).X, iris().iloc[:, :-1]
    )
    refused(iris().to_csv(index=False), "delimiter='|' does not occur", delimiter="|")


@pytest.mark.parametrize(
    ("thousands", "decimal", "sep"),
    [(".", ",", ";"), (",", ".", ","), ("'", ".", ","), (" ", ",", "\t")],
)
def test_marks_between_thousands_are_left_out_of_numbers(thousands, decimal, sep):
    marks = str.maketrans(",.", thousands + decimal)
    values = np.random.default_rng(0).lognormal(7, 3, 40).round(2)
    table = pd.DataFrame(
        {"price": [f"{value:,.2f}".translate(marks) for value in values], "y": ["a", "b"] * 20}
    )
    table.loc[40] = [f"-1{thousands}000", "b"]
    put(table.to_csv(index=False, sep=sep))
    expected = pd.read_csv("t.csv", sep=sep, thousands=thousands, decimal=decimal)
    result = load_dataset("t.csv")
    np.testing.assert_allclose(result.X[:, 0], expected["price"])
    assert any("thousands" in note and "price" in note for note in result.notes)


@pytest.mark.parametrize("cells", [["1.234.5", "2.345"], ["12,34,567", "1,234"], ["1,234", "1'2"]])
def test_other_texts_of_digits_are_no_numbers(cells):
    refused(
        pd.DataFrame({"code": cells * 3, "width": 1, "y": ["a", "b"] * 3}).to_csv(index=False),
        "'code'",
        "not a number",
    )


IRIS = iris().iloc[:, :-1].to_numpy()
OF_R = iris().to_csv(sep=" ", quoting=csv.QUOTE_NONNUMERIC).replace('"" ', "", 1)


@pytest.mark.parametrize(
    ("text", "drop", "names", "X", "note"),
    [
        (
            iris().to_csv(index=False) + ",,,,\n,,,,\n",
            [],
            None,
            IRIS,
            "2 empty rows at its end left out",
        ),
        (OF_R, [""], None, IRIS, "blanks"),
        (
            'a,b,y\n"1,25",2,u\n"0,123",3,v\n7,4,u\n',
            [],
            "a b",
            [[1.25, 2], [0.123, 3], [7, 4]],
            "decimal comma",
        ),
        ("a;b;y;\n1;2;0;\n3;4;1;\n", [], "a b", [[1, 2], [3, 4]], "its last column is empty"),
        ("a;b;y\n1;2;0;\n3;4;1;\n", [], "a b", [[1, 2], [3, 4]], "its last column is empty"),
        ("sep=;\r\na;b;y\r\n1;2;0\r\n3;4;1\r\n", [], "a b", [[1, 2], [3, 4]], "semicolons"),
        ("  a  b \t y\n 1.5   2 0\n  2  3 1  \n", [], "a b", [[1.5, 2], [2, 3]], "blanks"),
        (",Unnamed: 0,a,,y\n0,0,1,2,0\n1,1,2,3,1\n", [""], "a", [[1], [2]], "column 3 has no name"),
    ],
)
def test_a_table_as_programs_write_it(text, drop, names, X, note):
    assert OF_R.startswith('"sepal')  # no name above the names of the rows
    data = load_dataset(put(text, "t.txt"), drop=drop)
    np.testing.assert_array_equal(data.X, X)
    assert names is None or data.feature_names == tuple(names.split())
    assert any(note in one for one in data.notes)


def test_two_columns_without_a_name():
    data = load_dataset(put(",Unnamed: 0,a,,y\n0,0,1,2,0\n1,1,2,3,1\n"))
    assert data.feature_names == ("Unnamed: 0.1", "Unnamed: 0", "a", "Unnamed: 3")


def test_what_is_recognised_is_noted():
    assert load_dataset(put(iris().to_csv(index=False))).notes == ()
    notes = " ".join(load_dataset(put(iris().to_csv(sep=";", decimal=",").encode("utf-16"))).notes)
    for what in ("UTF-16", "semicolons", "decimal comma", "'Unnamed: 0'"):
        assert what in notes


SPECTRUM = ",".join(str(400 + 0.5 * i) for i in range(9))


@pytest.mark.parametrize(
    ("first", "rows", "label", "names"),
    [
        ("a,b,y", ["1,2,0", "2,2,1"], None, "a b"),
        (
            "0,1,2,species",
            ["5.5,3,2,ant", "5,4,3,bee"],
            "species",
            "0 1 2",
        ),  # as pandas names an array's columns
        ("0,1,2,3", ["5.5,3,2,0", "5,4,3,1"], "3", "0 1 2"),
        ("0,1,kind", ["5,3,2", "5,3,1"], "kind", "0 1"),  # a text above numbers
        ("2019,2020,y", ["5,3,ant", "5,4,bee"], None, "2019 2020"),  # a usual name
        ("2019,2020,kind", ["5,3,ant", "5,4,bee"], "kind", "2019 2020"),  # a name that is asked for
        (
            f"{SPECTRUM},kind",
            ["1,0,2,7,3,9,4,8,5,ant", "1,0,2,7,3,9,4,8,6,bee"],
            "kind",
            SPECTRUM.replace(",", " "),
        ),
        ("1,2,ant", ["3,1,bee", "3,2,ant"], "column2", "column0 column1"),
        ("ant,1,2", ["bee,3,4", "bee,3,5"], "column0", "column1 column2"),
        (
            "1,2,y",
            ["1,3,n", "2,3,y"],
            "column2",
            "column0 column1",
        ),  # y is a class, as it comes again
        # Below numbers that increase are numbers that do.
        (
            "0,1,3,5,6,7,8,9,11",
            ["1,2,3,4,5,6,7,8,10"] * 2,
            "column0",
            " ".join(f"column{i}" for i in range(1, 9)),
        ),
    ],
)
def test_header_or_sample(first, rows, label, names):
    result = load_dataset(put("\n".join([first, *rows, *rows])), label=label)
    assert result.feature_names == tuple(names.split())


@pytest.mark.parametrize("missing", ["", "?", "NA", "nan", " ?", "NULL", "<NA>"])
def test_a_missing_value_names_column_row_and_mend(missing):
    refused(
        f"a,b,y\n1,2,u\n1,{missing},v\n",
        "1 value is missing",
        "row 1",
        "'b' (1 of 2)",
        "drop",
        "fill",
    )
    refused(f"a,b,y\n1,2,u\n1,2,{missing}\n", "'y' has no value in row 1")


def test_labels_by_usual_names_and_by_name():
    for name in ("y", "Label", "TARGET", "class"):
        assert load_dataset(put(iris(name).to_csv(index=False))).label == name
    text = iris("diagnosis").to_csv(index=False)
    refused(text, "no column y, label, target or class", "set label (dataset.label)", "'diagnosis'")
    refused(text, "label: ", "no column Diagnosis", "did you mean `diagnosis`?", label="Diagnosis")
    assert load_dataset(put(text), label="diagnosis").y.tolist() == iris().target.tolist()
    refused(iris().assign(y=1).to_csv(index=False), "target and y may all be the labels", "drop")
    assert load_dataset("t.csv", drop=["y"]).label == "target"
    assert load_dataset("t.csv", label="target").feature_names[-1] == "y"


@pytest.mark.parametrize(
    ("column", "classes"),
    [
        ("1.0 2.0 1.0", [1, 2, 1]),
        ("True False True", [1, 0, 1]),
        ("1e0 2 1", [1, 2, 1]),
        ("1 b 1", ["1", "b", "1"]),
    ],
)
def test_kinds_of_labels(column, classes):
    rows = "".join(f"{i},{2 * i},{value}\n" for i, value in enumerate(column.split()))
    assert load_dataset(put(f"a,b,y\n{rows}")).y.tolist() == classes


@pytest.mark.parametrize("odd", [["<LOD"], ["n.d.", "<0.1", "<0.2", ">9"]])
def test_numbers_with_cells_beyond_a_limit_are_not_to_be_encoded(odd):
    cells = [*(str(i / 8) for i in range(20)), *odd * 5]
    rows = "".join(f"{i},{cell},{i % 2}\n" for i, cell in enumerate(cells))
    with pytest.raises(DataError, match=r"column 'lead' holds numbers, but .* limit") as raised:
        load_dataset(put(f"a,lead,y\n{rows}"), label="y")
    assert "encode" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "options", "culprits"),
    [
        (
            "a,site,y\n1,m,0\n2,n,1\n",
            {},
            ["column 'site'", "'m'", "row 0", "is not a number", "label", "drop"],
        ),
        ("a,site,y\n,2,0\nx,4,1\n", {}, ["column 'a'", "'x'", "row 1"]),
        ("a,day,y\n1,2024-01-31,0\n2,2024-02-01,1\n", {}, ["column 'day'", "2024-01-31", "row 0"]),
        ("a,b,y\n1,,0\n3,,1\n", {}, ["NaN", "2 values"]),
        ("a,b,y\n1,2,0\n3,inf,1\n", {}, ["infinite", "row 1", "'b'"]),
        ("a,b,y\n1,2,0\n3,4,0\n", {}, ["one class only"]),
        ("a,b,y\n", {}, ["empty"]),
        ("y\n0\n1\n", {}, ["one column only", "set delimiter"]),
        ("a,a,y\n1,2,0\n3,4,1\n", {}, ["2 features are called 'a'"]),
        ("a,site,sex,y\n1,m,f,0\n2,n,m,1\n", {}, ["column 'site'", "So do others: sex"]),
        ("a,site,y\n1,m,0\n2,n,1\n", {"groups": "Site"}, ["groups: ", "did you mean `site`?"]),
        (
            "a,site,y\n1,m,0\n2,n,1\n",
            {"drop": ["sites"]},
            ["drop: ", "no column sites", "did you mean `site`?"],
        ),
        (
            "a,site,y\n1,m,0\n2,n,1\n",
            {"drop": ["y"], "label": "y"},
            ["drop names the column 'y' of the labels"],
        ),
        (
            "a,site,y\n1,m,0\n2,n,1\n",
            {"drop": ["site"], "groups": "site"},
            ["drop names", "'site' of the groups"],
        ),
        (
            "a,b,y\n1,2,0\n2,3,1\n",
            {"drop": [""]},
            ["drop: ", "no column without a name", "it has a, b, y"],
        ),
        (
            "x,y,z\n1,2.5,0\n2,3,1\n",
            {"label": "z", "groups": "y"},
            ["column 'y' holds 2.5 in row 0", "groups takes"],
        ),
        (
            "x,y,z\n1,2.5,0\n2,3,1\n",
            {"task": "classification"},
            ["the label y holds 2.5", "no class", "dataset.task"],
        ),
        ("x,y,z\n1,a,0\n2,b,1\n", {"task": "regression"}, ["y holds a", "no number"]),
        ("x,y,z\n1,2,0\n2,3,0\n", {"label": "z"}, ["the label z holds one class only"]),
        (
            "x,y,z\n1,2,0\n2,3,1\n",
            {"task": "guess"},
            ["task='guess'", "regression or classification"],
        ),
        ("x,b,y\n1,2,2024-01-31\n2,3,2024-02-01\n", {}, ["column 'y'", "date", "2024-01-31"]),
        ("a,b,y,y\n1,2,0,0\n2,3,1,1\n", {"label": "y"}, ["two columns are called 'y'"]),
        ("a;b;y\n1,5;1.5;0\n2,5;2.5;1\n", {}, ["column 'a'", "'1,5'", "not a number"]),
        ("a,b,y\n1,2,0\n3,4\n5,6,1\n", {}, ["row 2 below the names", "2 cells", "3 columns"]),
        ("a,b,y\n1,2,0\n3,4,1,1\n5,6,1\n", {}, ["row 2 below the names", "4 cells", "3 columns"]),
        (b"a,b,y\n1,2,\x81\n3,4,z\n", {}, ["cannot be read as a text table"]),
        (b"PK\x03\x04\x14\x00\x06\x00a,b,y\n", {}, ["zero bytes"]),
        ("\ufeff", {}, ["one column only"]),
    ],
)
def test_what_cannot_be_used(text, options, culprits):
    refused(text, *culprits, **options)


def test_names_of_modalities_and_names_with_a_stray_point():
    rows = "\n1,2,3,4,u\n5,6,7,8,v\n"
    result = load_dataset(put("hog.0,hog.1,lbp.0,lbp.1,y" + rows))
    assert result.layout == Modalities({"hog": 2, "lbp": 2})
    assert any("2 modalities: hog (2), lbp (2)" in note for note in result.notes)
    for header in (
        "hog.0,hog,lbp,age,y",
        "hog.0,hog.1,lbp.0,age,y",
        "a.x,b.x,c.x,d.x,y",
        "40.5,40.7,41.5,41.7,y",
    ):
        assert load_dataset(put(header + rows)).layout == Tensor((4,))


def test_a_header_longer_than_the_part_that_is_looked_at_first(tmp_path):
    X = np.arange(3 * 1200.0).reshape(3, -1) / 7
    table = pd.DataFrame(X, columns=[f"{'g' * 1000}{i}" for i in range(1200)]).assign(
        y=["a", "b", "a"]
    )
    table.to_csv(tmp_path / "wide.csv", index=False)
    assert len(",".join(table.columns)) > 2**20
    np.testing.assert_array_equal(load_dataset(tmp_path / "wide.csv").X, X)


def test_the_file_of_a_spreadsheet_is_to_be_saved_as_a_text_table():
    refusals.refused(put(b"PK", "t.xlsx"), "Save the table as .csv")


# Compressed, with comments, and with numbers as people write them


@pytest.mark.parametrize(
    "name",
    [
        "t.csv.gz",
        "t.tsv.bz2",
        "t.txt.xz",
        "t.CSV.zst",
        "t.csv.zip",
        "t.csv.tar",
        "t.tar.gz",
        "t.gz",
    ],
)
def test_a_table_is_read_compressed_as_pandas_reads_it(name):
    kind = {"zst": "gzip"}.get(name[-3:], "infer")
    if name.endswith("zst"):
        with pa.CompressedOutputStream(name, "zstd") as file:
            file.write(iris().to_csv(index=False).encode())
    else:
        iris().to_csv(name, index=False, compression=kind)
    expected, result = iris(), load_dataset(name)
    np.testing.assert_array_equal(result.X, expected.iloc[:, :-1])
    assert result.y.tolist() == expected["target"].tolist()
    assert result.name == "t"


def test_a_compressed_table_is_refused_in_words(monkeypatch):
    text = iris().to_csv(index=False)
    with zipfile.ZipFile("two.zip", "w") as archive:
        archive.writestr("a.csv", text)
        archive.writestr("b.csv", text)
    refusals.refused("two.zip", "several files, e.g. a.csv and b.csv", "unpack it")
    with zipfile.ZipFile("mac.zip", "w") as archive:
        archive.writestr("a/t.csv", text)
        archive.writestr("__MACOSX/a/._t.csv", "x")
    assert load_dataset("mac.zip").n_samples == 30
    with gzip.open("t.npz.gz", "wb") as file:
        file.write(b"x")
    refusals.refused("t.npz.gz", "unpack the file first")
    cut = gzip.compress(text.encode())[:-20]
    refusals.refused(put(cut, "cut.csv.gz"), "cut.csv.gz", "damaged")
    refusals.refused(put(text, "no.csv.gz"), "no.csv.gz", "Not a gzipped file")
    monkeypatch.setenv("RAYSEL_MAX_DATA_BYTES", "1e6")
    refusals.refused(
        put(gzip.compress(b"0,1\n" * 10**6), "bomb.csv.gz"), "unpacked content", "above the limit"
    )


def test_labels_are_read_compressed_and_with_a_comment():
    np.save("X.npy", iris().iloc[:, :-1].to_numpy())
    expected = iris()["target"]
    np.savetxt("y.csv.gz", expected.to_numpy(), fmt="%s", header="drawn by hand")
    assert load_dataset("X.npy", labels="y.csv.gz").y.tolist() == expected.tolist()
    both = np.column_stack([expected, np.arange(30) // 3])
    np.savetxt("y.csv", both, fmt="%s", header="label,person", delimiter=",")
    found = load_dataset("X.npy", labels="y.csv", groups="person")
    assert found.y.tolist() == expected.tolist()
    assert found.groups.tolist() == both[:, 1].tolist()


COMMENTS = {
    "above": ("# made by a program, version 3\n#\n\n# of 2020; units: cm, cm\n", "", ""),
    "of a spreadsheet": ('"# made, by hand",,,,\n', "", ""),
    "of MATLAB": ("% made by a program\n", "", ""),
    "of GEO": ('!Series_title\t"A"\n!series_table_begin\n', "", "!series_table_end\n"),
    "of C": ("// made\n", "// between\n", "// below\n"),
    "everywhere": ("# above\n", "#4.9,3.0,1.4,0.2,setosa\n# between\n", "# below, after"),
}


@pytest.mark.parametrize("where", COMMENTS)
def test_comment_lines_are_left_out(where):
    above, between, below = COMMENTS[where]
    lines = iris().to_csv(index=False).splitlines(keepends=True)
    result = load_dataset(put("".join([above, *lines[:9], between, *lines[9:], below])))
    np.testing.assert_array_equal(result.X, iris().iloc[:, :-1])
    assert result.y.tolist() == iris()["target"].tolist()
    assert result.feature_names == tuple(iris().columns[:-1])
    n_comments = sum(bool(line.strip()) for part in COMMENTS[where] for line in part.splitlines())
    assert any(note.startswith(f"{n_comments} comment line") for note in result.notes)


@pytest.mark.parametrize("sep", [" ", ",", "\t"])
@pytest.mark.parametrize("header", ["a{0}b{0}c{0}d{0}y", "made by hand\na{0}b{0}c{0}d{0}y"])
def test_a_comment_may_name_the_columns_as_numpy_writes_it(sep, header):
    X, y = load_iris(return_X_y=True)
    np.savetxt("t.txt", np.column_stack([X, y]), header=header.format(sep), delimiter=sep)
    result = load_dataset("t.txt")
    np.testing.assert_array_equal(result.X, X)
    assert result.feature_names == ("a", "b", "c", "d")


def test_a_sign_of_comments_may_be_the_start_of_a_name_or_cell():
    table = iris("y")
    table.insert(0, "#id", [f"#{i}" for i in range(30)])
    result = load_dataset(put(table.to_csv(index=False)), drop=["#id"])
    assert result.n_samples == 30
    table["#id"] = [*("#%!/" * 3), *"abcdefghijklmnopqr"]
    assert load_dataset(put(table.to_csv(index=False)), drop=["#id"]).n_samples == 30
    quoted = iris("y").assign(note="two\n# lines")
    assert load_dataset(put(quoted.to_csv(index=False)), drop=["note"]).n_samples == 30


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize(
    "written", ["{}%", "{} %", "$ {}", "{} €", "€{}", "{}°", "{} °C", "{}\u2030", "£{}"]
)
def test_one_sign_of_a_unit_is_left_out_of_numbers(written, decimal):
    values = np.random.default_rng(0).normal(0, 2000, 30).round(2)
    cells = [written.format(value).replace(".", decimal) for value in values.tolist()]
    table = pd.DataFrame({"width": cells, "y": ["a", "b"] * 15})
    table.loc[30] = ["", "a"]
    result = load_dataset(put(table.to_csv(index=False)), unprepared=True)
    np.testing.assert_array_equal(result.X[:-1, 0], values)
    assert any(written.format("").strip() in note and "width" in note for note in result.notes)


def test_percents_without_a_header_are_no_header():
    text = "".join(f"{i}%,{i / 2}%,{'ab'[i % 2]}\n" for i in range(1, 9))
    result = load_dataset(put(text), label="column2")
    np.testing.assert_array_equal(result.X[:, 0], np.arange(1, 9))


@pytest.mark.parametrize("cells", [["12%", "12"], ["$1", "€1"], ["12kg", "13kg"], ["%", "%"]])
def test_cells_of_several_units_or_none_are_no_numbers(cells):
    table = pd.DataFrame({"code": cells * 3, "width": 1, "y": ["a", "b"] * 3})
    refused(table.to_csv(index=False), "'code'", "not a number")


@pytest.mark.parametrize("sign", "\u2212\u2013\u2011\uff0d")
@pytest.mark.parametrize("sep", [",", ";", "\t", " "])
def test_the_minus_sign_of_print_is_read_as_a_hyphen(sign, sep):
    X = np.random.default_rng(0).normal(0, 1e-3, (30, 3))
    table = pd.DataFrame(X, columns=list("abc")).assign(y=["pre\u2013x", "b"] * 15)
    put(table.to_csv(index=False, sep=sep).replace("-", sign))
    result = load_dataset("t.csv")
    np.testing.assert_array_equal(result.X, X)
    assert result.y.tolist() == table["y"].tolist()
