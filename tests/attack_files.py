"""Files that a stranger may send to exhaust the memory, have code run or have files read or written
elsewhere.

Each function writes files of one format into a folder, all small, and returns for each its name and
a part of the message that refuses it under a limit of `LIMIT` bytes.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import nibabel
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import scipy.io
import scipy.sparse
from PIL import Image

#: The limit of memory under which the files are refused, and one that only a file which claims it
#: exceeds.
LIMIT = 2**26
#: Name of the file that code in a file would write.
EXECUTED = "executed"
_TOO_MUCH = (
    "above the limit of 64.0 MiB. If you trust the file, set the environment variable"
    " RAYSEL_MAX_DATA_BYTES"
)
#: Refused by its size, or because memory for it was refused first.
_TOO_LARGE = "the limit of 64.0 MiB"
_CELLS = LIMIT // 8 + 1000  # a byte each in a file, eight bytes each in memory


class _Payload:
    """An object whose unpickling writes a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self._path / EXECUTED), "w")


def _npy(values: np.ndarray, **header: Any) -> bytes:
    """An array in NumPy's format, with another header than it should have."""
    buffer = io.BytesIO()
    described = {"descr": values.dtype.str, "fortran_order": False, "shape": values.shape} | header
    np.lib.format.write_array_header_1_0(buffer, described)
    return buffer.getvalue() + values.tobytes()


def _zip(path: Path, members: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def npy(folder: Path) -> dict[str, str]:
    """Headers that claim more than the file holds, a file of holes, and a pickle."""
    few = np.zeros(3)
    (folder / "claims.npy").write_bytes(_npy(few, shape=(10**6, 10**6)))
    (folder / "nothing.npy").write_bytes(_npy(few, descr="<U0", shape=(10**15,)))
    (folder / "negative.npy").write_bytes(_npy(few, shape=(-1,)))
    (folder / "nested.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000
    )
    with (folder / "holes.npy").open("wb") as file:  # takes a block of the disk
        file.write(_npy(np.zeros(0), shape=(2**37,)))
        file.truncate(2**41)
    np.save(folder / "pickle.npy", np.array([_Payload(folder)], dtype=object), allow_pickle=True)
    return {
        "claims.npy": "claims 8000000000000 bytes, of which the file holds 24",
        "nothing.npy": "whose values have 0 bytes",
        "negative.npy": "an array of shape (-1,)",
        "nested.npy": "cannot be read as a NumPy array",
        "holes.npy": _TOO_MUCH,
        "pickle.npy": "pickled Python objects, which raysel does not load",
    }


def npz(folder: Path) -> dict[str, str]:
    """Zip bombs, and members that are no arrays or claim to lie elsewhere."""
    few, y = _npy(np.zeros((4, 2))), _npy(np.arange(4) % 2)
    _zip(folder / "bomb.npz", {"X.npy": _npy(np.zeros(_CELLS, np.uint8)), "y.npy": y})
    _zip(
        folder / "two.npz",
        {f"{name}.npy": _npy(np.zeros((4, _CELLS // 6))) for name in "ab"} | {"y.npy": y},
    )
    for name, member in {
        "up": "../../y.npy",
        "root": "/tmp/y.npy",
        "escape": "\x1b[2J.npy",
        "long": "y" * 2000,
    }.items():
        _zip(folder / f"{name}.npz", {"X.npy": few, member: y})
    _zip(folder / "lzma.npz", {"X.npy": few, "y.npy": y}, zipfile.ZIP_LZMA)
    _zip(folder / "twice.npz", {"X.npy": few, "y.npy": y, "y": y})
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", bytes(LIMIT // 2))
    _zip(folder / "nested.npz", {"X.npy": inner.getvalue(), "y.npy": y})
    link = zipfile.ZipInfo("X.npy")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(folder / "link.npz", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    _zip(folder / "same.npz", {"X.npy": few, "z.npy": few, "y.npy": y})
    raw = bytearray((folder / "same.npz").read_bytes())
    second = [at for at in range(len(raw)) if raw[at : at + 4] == b"PK\x01\x02"][1]
    raw[second + 42 : second + 46] = bytes(4)  # both begin at the start of the file
    (folder / "same.npz").write_bytes(raw)
    raw = bytearray((folder / "two.npz").read_bytes())
    first = raw.index(b"PK\x01\x02")
    raw[first + 24 : first + 28] = struct.pack("<I", 2**31)
    (folder / "size.npz").write_bytes(raw)
    entry = b"PK\x01\x02" + struct.pack(
        "<4B4H3L5H2L", 20, 3, 20, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0
    )
    directory = b"".join(entry + b"%05x" % i for i in range(2**16))
    end = b"PK\x05\x06" + struct.pack("<4H2LH", 0, 0, 65535, 65535, len(directory), 0, 0)
    (folder / "many.npz").write_bytes(directory + end)
    return {
        "bomb.npz": _TOO_MUCH,
        "two.npz": _TOO_MUCH,
        "up.npz": "leads out of the archive",
        "root.npz": "leads out of the archive",
        "escape.npz": r"the member '\x1b[2J.npy' has a name that cannot be printed",
        "long.npz": "has a name of more than 1000 characters",
        "lzma.npz": "is compressed by another method than deflate",
        "twice.npz": "has 2 members called y",
        "nested.npz": "cannot be read as a NumPy archive",
        "link.npz": "is a symbolic link",
        "same.npz": "share bytes of the file",
        "size.npz": "claims 2147483648 bytes, more than its",
        "many.npz": "the most that is read is 65535",
    }


def mat(folder: Path) -> dict[str, str]:
    """Compressed variables that claim, or unpack to, more than the memory, and sparse matrices
    without values.
    """
    y = np.arange(4) % 2
    scipy.io.savemat(
        folder / "bomb.mat",
        {"X": np.zeros((4, _CELLS // 4), np.uint8), "y": y},
        do_compression=True,
    )
    for version in ("4", "5"):
        empty = scipy.sparse.coo_matrix(([1.0], ([2**30], [5])), (2**30 + 1, 6))
        scipy.io.savemat(folder / f"sparse{version}.mat", {"X": empty, "y": y}, format=version)
    scipy.io.savemat(folder / "twice.mat", {"X": np.zeros((4, 2)), "y": y})
    raw = (folder / "twice.mat").read_bytes()
    sides = struct.pack("<2i", 4, 2)
    (folder / "claims.mat").write_bytes(raw.replace(sides, struct.pack("<2i", 2**16, 2**16), 1))
    packed = zlib.compress(raw[128:].replace(sides, struct.pack("<2i", 2**30, 2**30), 1))
    (folder / "packed.mat").write_bytes(raw[:128] + struct.pack("<II", 15, len(packed)) + packed)
    (folder / "twice.mat").write_bytes(raw + raw[128:])
    return {
        "bomb.mat": _TOO_MUCH,
        "sparse4.mat": _TOO_MUCH,
        "sparse5.mat": _TOO_MUCH,
        "claims.mat": _TOO_MUCH,
        "packed.mat": _TOO_MUCH,
        "twice.mat": "two variables are called X",
    }


def hdf5(folder: Path) -> dict[str, str]:
    """Compressed arrays, a chunk that unpacks to a gigabyte, texts of very different lengths, a
    sparse matrix.
    """
    y = np.arange(4) % 2
    with h5py.File(folder / "bomb.h5", "w") as file:
        file.create_dataset(
            "X",
            data=np.zeros((4, _CELLS // 4), np.uint8),
            compression="gzip",
            chunks=(1, _CELLS // 4),
        )
        file["y"] = y
    with h5py.File(folder / "chunk.h5", "w") as file:
        X = file.create_dataset("X", (4, 2), "f4", chunks=(4, 2), compression="gzip")
        X.id.write_direct_chunk((0, 0), _deflated(2**10))
        file["y"] = y
    with h5py.File(folder / "texts.h5", "w") as file:
        file["X"] = np.zeros((2000, 2))
        file.create_dataset("y", data=["a" * 10000] + ["b"] * 1999, dtype=h5py.string_dtype())
    with h5py.File(folder / "sparse.h5", "w") as file:
        file.create_group("X").attrs["MATLAB_class"] = np.bytes_("double")
        file["X"].attrs["MATLAB_sparse"] = np.uint64(2**60)
        file["X/jc"], file["y"] = np.zeros(3, np.uint64), y
    return {
        "bomb.h5": _TOO_MUCH,
        "chunk.h5": "cannot be read as an HDF5 file",
        "texts.h5": _TOO_MUCH,
        "sparse.h5": _TOO_MUCH,
    }


def _deflated(n_mib: int) -> bytes:
    """A deflate stream of zeros, of which a part is repeated."""
    packer = zlib.compressobj()
    first, part = (
        packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2)
    )
    return first + part * (n_mib - 1) + b"\x03\x00" + bytes(4)


def tables(folder: Path) -> dict[str, str]:
    """Parquet and Arrow files of which some bytes stand for millions of values, and text tables
    of many columns.
    """
    ones = pa.array(np.ones(_CELLS, np.int8))
    pa.parquet.write_table(pa.table({"a": ones, "y": ones}), folder / "rle.parquet")
    pa.parquet.write_table(
        pa.table({"a": pa.nulls(_CELLS), "y": pa.nulls(_CELLS)}), folder / "nulls.parquet"
    )
    text = pa.DictionaryArray.from_arrays(np.zeros(2000, np.int32), ["a" * 10**5])
    for name, schema in (("categories", True), ("texts", False)):
        table = pa.table({"a": np.zeros(2000), "y": text})
        pa.parquet.write_table(
            table, folder / f"{name}.parquet", compression="zstd", store_schema=schema
        )
    rows = pa.ListArray.from_arrays([0, _CELLS], pa.array(np.ones(_CELLS)))
    pa.parquet.write_table(pa.table({"a": rows, "y": [1]}), folder / "list.parquet")
    arrow = {
        "zstd": (pa.table({"a": np.zeros(_CELLS)}), "zstd"),
        "nulls": (pa.table({"a": pa.nulls(_CELLS)}), None),
        "runs": (
            pa.table({"a": pa.RunEndEncodedArray.from_arrays(pa.array([10**9]), pa.array([1.0]))}),
            None,
        ),
        "texts": (pa.table({"a": np.zeros(2000), "y": text}), "zstd"),
    }
    for name, (table, how) in arrow.items():
        options = pa.ipc.IpcWriteOptions(compression=how)
        with pa.ipc.new_file(
            str(folder / f"{name}.arrow"), table.schema, options=options
        ) as writer:
            writer.write_table(table)
    few = pa.table({"a": [1.0, 2.0], "y": ["b", "c"]})
    notes = {
        "notes": "[" * 10**5,
        "layout": '{"layout": [1]}',
        "other": "[1]",
        "kind": '{"layout": {"kind": "a"}}',
    }
    for name, note in notes.items():
        pa.parquet.write_table(
            few.replace_schema_metadata({"raysel": note}), folder / f"{name}.parquet"
        )
    wide = "a," * 5000 + "y\n"
    (folder / "wide.csv").write_text(wide + "0," * 5000 + "1\n")
    (folder / "line.csv").write_text("0," * 10**6)
    (folder / "label.csv").write_text(f"a,y\n1,{'x' * 10000}\n" + "2,z\n" * 2000)
    (folder / "zeros.csv").write_bytes(b"a,y\n1,\0\n")
    return {
        "rle.parquet": _TOO_MUCH,
        "nulls.parquet": _TOO_MUCH,
        "categories.parquet": _TOO_MUCH,
        "texts.parquet": _TOO_LARGE,
        "list.parquet": _TOO_LARGE,
        "notes.parquet": "nested too deeply",
        "layout.parquet": "cannot be read as a Parquet file",
        "other.parquet": "cannot be read as a Parquet file",
        "kind.parquet": "kind.parquet: the layout {'kind': 'a'} has an unknown kind",
        "zstd.arrow": _TOO_MUCH,
        "nulls.arrow": _TOO_MUCH,
        "runs.arrow": _TOO_MUCH,
        "texts.arrow": _TOO_MUCH,
        "wide.csv": _TOO_MUCH,
        "line.csv": _TOO_MUCH,
        "label.csv": _TOO_MUCH,
        "zeros.csv": "it holds zero bytes",
    }


def images(folder: Path) -> dict[str, str]:
    """Folders with an image that is a bomb, with links to one image, and with links to folders
    and to themselves.
    """
    for name in ("bomb", "links", "loop", "itself"):
        for kind in ("cat", "dog"):
            (folder / name / kind).mkdir(parents=True)
            Image.new("L", (1000, 1000)).save(folder / name / kind / "1.png")
    Image.new("1", (9000, 9000)).save(folder / "bomb" / "cat" / "1.png")
    for i in range(2, 10):
        (folder / "links" / "dog" / f"{i}.png").symlink_to("1.png")
    (folder / "loop" / "dog" / "again").symlink_to("..")
    (folder / "itself" / "dog" / "2.png").symlink_to("2.png")
    return {
        "bomb": _TOO_MUCH,
        "links": _TOO_MUCH,
        "loop": "dog, a class, holds the folder again",
        "itself": "2.png cannot be read",
    }


def volumes(folder: Path) -> dict[str, str]:
    """A compressed volume that is a bomb, and a table that names one volume many times."""
    nibabel.save(
        nibabel.Nifti1Image(np.ones((20, 20, 20), np.uint8), np.eye(4)), folder / "mask.nii"
    )
    header = nibabel.Nifti1Image(np.zeros((1, 1, 1), np.uint8), np.eye(4)).header
    header.set_data_shape((512, 512, 512))
    content = header.binaryblock + bytes(4 + 2**20)
    (folder / "bomb.nii.gz").write_bytes(gzip.compress(content))
    (folder / "bomb.csv").write_text("file,y\nmask.nii,0\nbomb.nii.gz,1\n")
    (folder / "often.csv").write_text("file,y\n" + "mask.nii,0\nmask.nii,1\n" * 600)
    return {"bomb.csv": _TOO_MUCH, "often.csv": _TOO_MUCH}


def models(folder: Path) -> dict[str, str]:
    """Model files with bombs as members and as schemas, and with a pickle: none is opened."""
    members = {"schema.json": b"{}", "a.npy": _npy(np.zeros(_CELLS, np.uint8))}
    _zip(folder / "bomb.skops", members)
    _zip(folder / "pickle.skops", members | {"a.npy": _pickled(folder)})
    _zip(folder / "schema.skops", {"schema.json": b"[" + b"[]," * 10**6 + b"[]]"})
    return dict.fromkeys(("bomb.skops", "pickle.skops", "schema.skops"), "is not trusted")


def _pickled(folder: Path) -> bytes:
    start = _npy(np.zeros(0), descr="|O", shape=(1,))
    return start + pickle.dumps(np.array([_Payload(folder)], dtype=object))


def configurations(folder: Path) -> dict[str, str]:
    """YAML that expands, nests or runs code; what else is refused is in
    ``tests/config/test_loading.py``.
    """
    laughs = "a: &a [x, x]\n" + "".join(
        f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    files = {
        "laughs": (laughs, "line 2: aliases are not allowed"),
        "deep": ("a: " + "[" * 10**5, "line 1: nested too deeply; at most 32 levels"),
        "code": (
            f"name: !!python/object/apply:os.mkdir ['{folder / EXECUTED}']\n",
            "line 1: tags are not allowed",
        ),
        "sixty": (f"seed: 1{':1' * 10**5}\n", "line 1: YAML takes"),
    }
    for name, (text, _) in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return {f"{name}.yaml": message for name, (_, message) in files.items()}


def plans(folder: Path) -> dict[str, str]:
    """Plan files that are nested deeply, or hold numbers that no count is."""
    plan = {
        "n_samples": 4,
        "folds": [
            {"name": "outer0", "repeat": 0, "index": 0, "train": [0], "test": [1], "inner": []}
        ],
    }
    texts = {
        "deep": "[" * 10**5,
        "huge": json.dumps(plan).replace('"repeat": 0', '"repeat": 1' + "0" * 5000),
        "infinite": json.dumps(plan).replace('"repeat": 0', '"repeat": Infinity'),
        "number": json.dumps(plan).replace('"train": [0]', '"train": [1e400]'),
    }
    for name, text in texts.items():
        (folder / f"{name}.json").write_text(text)
    return {f"{name}.json": "cannot be read as the plan.json of a study" for name in texts}


#: Writers of the files, by the folder that they are written to.
WRITERS: dict[str, Callable[[Path], dict[str, str]]] = {
    writer.__name__: writer
    for writer in (npy, npz, mat, hdf5, tables, images, volumes, models, configurations, plans)
}
