"""Damaged files are taken, or refused in a sentence.

The long form is experiments/claims/survival/fuzz_inputs.py; what it found once stands here.
"""

from __future__ import annotations

import io
import os
import re
import struct
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from damage import KINDS, OPTIONS, damaged, judge, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from refusals import refused

from raysel.core.errors import DataError
from raysel.data.formats.array_files import open_arrays
from raysel.data.loading import load_dataset

X, Y = np.arange(12.0).reshape(6, 2), np.arange(6) % 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("damaged")


@given(
    kind=st.sampled_from(KINDS[:-1]),
    options=st.sampled_from(OPTIONS),
    draw=st.randoms(use_true_random=False),
)
@settings(max_examples=120, derandomize=True)
def test_a_damaged_file_is_taken_or_refused(folder, kind, options, draw):
    path = folder / f"case.{kind}"
    path.write_bytes(damaged(kind, draw))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of SciPy, on a variable that is there twice
        assert judge(path, options) in {"taken", "refused"}


@pytest.mark.slow
@given(options=st.sampled_from(OPTIONS), draw=st.randoms(use_true_random=False))
@settings(max_examples=50, derandomize=True)
def test_a_damaged_hdf5_file_is_taken_or_refused(folder, options, draw):
    path = folder / "case.h5"
    path.write_bytes(damaged("h5", draw))
    assert judge(path, options) in {"taken", "refused"}


# Found by the long form


@pytest.mark.parametrize("code", [8, 19, 0xFFFF])
@pytest.mark.parametrize("complex_", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_strange_type_code_does_not_crash_scipys_reader(tmp_path, code, complex_):
    path = tmp_path / "code.mat"
    scipy.io.savemat(path, {"X": X + 1j if complex_ else X, "y": Y})
    raw = bytearray(path.read_bytes())
    first = raw.index(
        (9).to_bytes(4, "little") + X.nbytes.to_bytes(4, "little")
    )  # 9: double precision
    assert raw.count(raw[first : first + 8]) == 1 + complex_
    raw[first : first + 4] = code.to_bytes(4, "little")
    path.write_bytes(raw)
    refused(path, path.name, "cannot be read as a MATLAB file")


@pytest.mark.parametrize(("code", "size"), [(5, 0), (5, 2), (5, 4), (5, 6), (1, 8)])
def test_text_without_its_two_dimensions_does_not_crash(tmp_path, code, size):
    path = tmp_path / "dimensions.mat"
    scipy.io.savemat(path, {"X": X, "y": Y, "names": ["hog", "lbp"]})
    raw = bytearray(path.read_bytes())
    place = raw.rindex(struct.pack("<4i", 5, 8, 2, 3))
    raw[place : place + 8] = struct.pack("<2i", code, size)
    path.write_bytes(raw)
    with suppress(DataError), open_arrays(path) as file:
        file.get("names")


@pytest.mark.parametrize("part", ["indices", "indptr"])
@pytest.mark.parametrize(
    ("place", "index"), [*((1, i) for i in (-1, 12, 59, 2**31 - 1)), (-1, -1), (-1, 59)]
)
def test_a_sparse_matrix_whose_indices_lead_out_of_it_does_not_crash(tmp_path, part, place, index):
    path = tmp_path / "sparse.mat"
    matrix = scipy.sparse.csc_matrix(X)
    scipy.io.savemat(path, {"X": matrix, "y": Y})
    raw, stored = path.read_bytes(), getattr(matrix, part).astype("<i4")
    strange = stored.copy()
    strange[place] = index
    assert raw.count(stored.tobytes()) == 1
    path.write_bytes(raw.replace(stored.tobytes(), strange.tobytes()))
    refused(path, path.name, "cannot be read as a MATLAB file")


def test_a_sparse_matrix_that_claims_to_be_empty_at_its_end_does_not_crash(tmp_path):
    path, matrix = (
        tmp_path / "sparse.mat",
        scipy.sparse.csc_matrix(np.arange(1.0, 61.0).reshape(10, 6)),
    )
    scipy.io.savemat(path, {"X": matrix, "y": np.arange(10) % 2})
    raw, stored = path.read_bytes(), matrix.indptr.astype("<i4")
    path.write_bytes(raw.replace(stored.tobytes(), np.array([*stored[:-1], 0], "<i4").tobytes()))
    refused(path, path.name, "column starts of a sparse matrix decrease")


@pytest.mark.parametrize("point", [0xD800, 0xDFFF, 0x110000, 2**32 - 1])
def test_text_that_is_none_is_not_followed_into_python(tmp_path, point):
    path = tmp_path / "text.npz"
    words = np.array(["cat", "dog"] * 3)
    words.view(np.uint32)[4] = point
    np.savez(path, X=X, y=words)
    refused(path, path.name, "invalid Unicode code points")
    words.view(np.uint32)[4] = 0x10FFFF  # the last there is
    np.savez(path, X=X, y=words)
    assert load_dataset(path).n_samples == 6


def test_a_header_that_claims_a_terabyte_is_no_traceback(tmp_path):
    path = tmp_path / "claims.npz"
    np.savez(path, X=X, y=Y)
    with zipfile.ZipFile(path) as archive:
        header, y = archive.read("X.npy"), archive.read("y.npy")
    claimed, start = b"(6, 999999999999), }", header.index(b"(6, 2), }")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", header[:start] + claimed + header[start + len(claimed) :])
        archive.writestr("y.npy", y)
    refused(
        path, path.name, "damaged"
    )  # where memory is promised without being there, the data end too early


def test_labels_without_names_of_their_own_are_refused_where_some_are_left_out(tmp_path):
    path = tmp_path / "names.npz"
    np.savez(path, X=X, Y=np.eye(2, dtype=int)[Y], label_names=["sky", "cow", "car"])
    refused(path, path.name, "2 labels have 3 names", exclude_labels=["sky"])


# Files that would have another file read, or never end


@pytest.mark.parametrize(
    "name", ["~no-such-user/x.nii", "../../../../etc/hostname.nii", "link.nii", f"{'x' * 999}.nii"]
)
def test_a_table_of_volumes_reads_nothing_but_volumes(tmp_path, name):
    good, table = tmp_path / "good.nii", tmp_path / "t.csv"
    good.write_bytes(seeds("nii")[0])
    (tmp_path / "secret").write_text("secret " * 99)
    (tmp_path / "link.nii").symlink_to("secret")
    table.write_text(f"file,label\ngood.nii,0\n{name},1\n")
    message = refused(table, mask=good)
    assert re.search("there is no file|has no valid header", message)
    assert "secret" not in message


@pytest.mark.parametrize("place", ["pipe", "zero", "nowhere"])
def test_an_image_that_is_no_file_is_refused_at_once(tmp_path, place):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(seeds("png")[0])
    image = tmp_path / "dog" / "2.png"
    if place == "pipe":
        os.mkfifo(image)
    else:
        image.symlink_to("/dev/zero" if place == "zero" else place)
    with pytest.raises(DataError, match=r"2\.png (is empty|cannot be read: No such file)"):
        load_dataset(tmp_path)


def test_an_image_that_claims_more_pixels_than_its_file_can_hold_is_refused(tmp_path):
    """A TIFF of 140 bytes, whose one strip of three rows Pillow takes for the first of 16
    million.
    """
    buffer = io.BytesIO()
    Image.new("L", (2, 3)).save(buffer, "TIFF")
    raw = buffer.getvalue()
    height = struct.pack("<HHII", 257, 4, 1, 3)
    assert raw.count(height) == 1
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.tif").write_bytes(
            raw.replace(height, struct.pack("<HHII", 257, 4, 1, 2**24 + 3))
        )
    refused(tmp_path, "1.tif claims 16777219 x 2 pixels")


def test_a_header_that_is_too_long_is_not_taken_for_a_pickle(tmp_path):
    path = tmp_path / "header.npy"
    np.save(path, np.zeros(6, dtype=[(f"a_long_name_{i}", "f8") for i in range(500)]))
    refused(path, "cannot be read as a NumPy array", labels=path)


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".csv"])
def test_classes_are_named_as_they_are_shown_however_numbers_are_stored(tmp_path, suffix):
    path, classes = tmp_path / f"a{suffix}", np.arange(6) % 3 + 1.0
    if suffix == ".npz":
        np.savez(path, X=X, y=classes)
    elif suffix == ".mat":
        scipy.io.savemat(path, {"X": X, "y": classes})
    else:
        np.savetxt(path, np.column_stack([X, classes]), delimiter=",", header="a,b,y", comments="")
    for chosen in ({"classes": [1, "3"]}, {"exclude_classes": [2.0]}):
        data = load_dataset(path, **chosen)
        assert (data.classes.tolist(), data.n_samples) == ([1, 3], 4)


# The files of SciPy's own tests, most of them written by MATLAB

OF_SCIPY = Path(scipy.io.__file__).parent / "matlab" / "tests" / "data"


@pytest.mark.slow
@pytest.mark.skipif(
    not OF_SCIPY.is_dir(), reason="SciPy is installed without the files of its tests"
)
def test_every_matrix_that_scipy_reads_is_read():
    n_read = 0
    for path in sorted(OF_SCIPY.glob("*.mat")):
        try:
            if scipy.io.matlab.matfile_version(path)[0] == 2:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                variables = {
                    k: v for k, v in scipy.io.loadmat(path).items() if not k.startswith("__")
                }
        except Exception:  # damaged on purpose  # noqa: BLE001
            continue
        with open_arrays(path) as file:
            assert set(file.names) == set(variables), path.name
            for name, value in variables.items():
                if scipy.sparse.issparse(value) or (
                    isinstance(value, np.ndarray) and not value.dtype.hasobject
                ):
                    expected = value.toarray() if scipy.sparse.issparse(value) else value
                    np.testing.assert_array_equal(
                        file.get(name), expected, err_msg=f"{path.name} {name}"
                    )
                    n_read += 1
                else:
                    with pytest.raises(DataError, match="is a cell array or a struct"):
                        file.get(name)
    assert n_read > 50
