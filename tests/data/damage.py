"""Valid files of every kind that raysel reads, ways to damage them, and what reading them must
come to.
"""

from __future__ import annotations

import gzip
import io
import random
import re
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import h5py
import nibabel
import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.io
import scipy.sparse
from matlab73 import savemat73
from PIL import Image

from raysel.config import builtin_configs, config_from_dict, load_config
from raysel.core.errors import RayselError
from raysel.data.dataset import Dataset, join_tasks
from raysel.data.layouts import Matrix, Modalities, Tasks
from raysel.data.loading import load_dataset, save_dataset

#: The kinds of files, by their suffix. One of HDF5 is read by a process of its own, which takes its
#: time. .dat is a file of labels, .png an image of a folder of images.
KINDS = (
    "yaml",
    "npz",
    "npy",
    "dat",
    "mat",
    "csv",
    "data",
    "parquet",
    "arrow",
    "nii",
    "nii.gz",
    "png",
    "h5",
)

N = 10
IMAGES = np.random.default_rng(0).integers(0, 256, (N, 3, 2)).astype(np.uint8)
LABELS, WORDS, PERSONS = np.arange(N) % 3, np.array(["cat", "dog"] * (N // 2)), np.arange(N) // 2
INDICATOR = np.stack([LABELS == 0, LABELS == 1], 1).astype(np.int64)

STUDY = """\
name: demo
seed: 3
dataset: {source: digits, exclude_labels: [sky], scaling: zscore}
solver:
  name: smr
  params: {max_iter: 20, tol: 1e-4}
  space: {alpha: {logspace: [0.01, 1, 3]}, rank: {randint: [1, 2]}, p: {uniform: [0.1, 1]}}
evaluation: {classifier: knn, n_neighbors: 3, n_features: [4, 8], metric: accuracy}
cv: {outer: 3, inner: 4, repeats: 2, groups: subject, plan: plan.json}
search: {method: sobol, num_samples: 16, early_stopping: asha, time_budget: 60.0, max_failures: 1}
tracking: {uri: "sqlite:///a.db", experiment: trying}
output: somewhere
"""

FILE_STUDY = """\
name: table
dataset:
  {path: wards.txt, label: ward, labels: y.npy, drop: [id, ""], keep: [r0, "1"], classes: [a, 2, "3"], delimiter: ";",
  exclude_classes: [b, 4], shape: [3, 2], order: F, only: [hog], modalities: {hog: 4, lbp: 2}, background: mean.png}
solver: {name: smr}
"""
TASKS_STUDY = """\
name: tasks
dataset:
  tasks:
    - {name: a, path: a.csv, label: k, drop: [i], keep: [j], classes: [1, 2], delimiter: "\\t"}
    - {name: b, path: b.npy, labels: b.txt, exclude_classes: [c], shape: [2, 2], order: F}
solver: {name: mtda}
"""
NIFTI_STUDY = """\
name: volumes
dataset: {source: nifti, path: volumes.csv, mask: mask.nii.gz, background: mean.nii}
solver: {name: linear_svm}
"""

# Lengths, counts and offsets that a reader may trust.
NUMBERS = (0, 1, 2, 3, 4, 7, 8, 15, 16, 64, 127, 128, 255, 256, 1000, 65535, 65536)
NUMBERS += (2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1)
FIGURES = (
    *map(str, NUMBERS),
    "-1",
    "-2147483648",
    "1e999",
    "1e-999",
    "nan",
    "-inf",
    "0x10",
    "1_000",
    "00",
    "1.5",
    "",
)

# What means something in a file of each kind.
_STORED = "raysel¦tensor¦tasks¦modalities¦[]¦{}¦null¦pandas¦arrow.fixed_shape_tensor"
_TOKENS = {
    "yaml": (
        ": ¦- ¦? ¦&a ¦*a ¦!!int ¦!!binary ¦!x ¦<<: ¦---\n¦...\n¦%YAML 9.9\n¦@¦`¦>\n¦|\n¦\t¦ "
        " ¦{¦}¦[¦]¦,¦'¦\"¦\\¦#¦\0¦\ufeff¦\u2028¦\u00fc¦~¦null¦.nan¦-.inf¦2001-01-01¦yes¦on: ¦name:"
        " ¦dataset: ¦path: ¦tasks: ¦solver: ¦space: ¦params: ¦uniform: ¦logspace: ¦randint:"
        " ¦loguniform: ¦modalities: ¦search: ¦method: tpe¦method: path¦plan: ¦groups: ¦label:"
        " ¦labels: ¦drop: ¦keep: ¦classes: ¦exclude_classes: ¦delimiter: ¦order: F¦mask: ¦source:"
        " nifti¦background: ¦only: "
    ),
    "csv": (
        ",¦\"¦'¦\n¦\r¦\r\n¦;¦\t¦"
        " ¦\0¦\ufeff¦\u00fc¦y¦y.¦y.sky¦label¦target¦nan¦inf¦true¦2024-01-31¦12:00:00¦0x1f¦1_000"
    ),
    "npz": (
        "'|O8'¦'<U5'¦'|S3'¦'>f2'¦'<f16'¦'<c16'¦'<M8[s]'¦'|V8'¦'|b1'¦'<u8'¦[('a',"
        " '<i4')]¦True¦(2,)¦()¦(-1,)¦(10, 99999999)¦(0, 3)¦(9223372036854775807,"
        " 2)¦\x93NUMPY\x03\x00"
    ),
    "npy": (
        "'|O'¦'<U5'¦'|S3'¦'>f2'¦'<c16'¦'<M8[s]'¦'|V8'¦[('a', '<i4')]¦True¦(3,)¦()¦(-1, 3)¦(10,"
        " 99999999)¦(0, 3)"
    ),
    "h5": "\x89HDF\r\n\x1a\n¦TREE¦HEAP¦SNOD¦OHDR¦FRHP¦X¦y¦MATLAB_class¦double¦char¦cell",
    "mat": "\x0e¦\x0f¦\x05¦\x06¦\x07¦\x10¦\x01\x00\x04\x00¦IM¦MI¦MATLAB 5.0¦X¦y",
    "parquet": f"PAR1¦{_STORED}",
    "arrow": f"ARROW1¦{_STORED}",
    "dat": ',¦"¦\n¦\r¦;¦\t¦ ¦\0¦\ufeff¦label¦y¦person¦nan¦1.0¦cat',
    "png": (
        "\x89PNG\r\n\x1a\n¦IHDR¦IDAT¦PLTE¦tRNS¦iCCP¦eXIf¦acTL¦fcTL¦zTXt¦II*\0¦MM\0*¦P5 3 2"
        " 255\n¦P1¦BM"
    ),
    "nii": "n+1\0¦ni1\0¦n+2\0\r\n\x1a\n¦\0\0\xc0\x7f¦\0\0\x80\x3f¦\x5c\x01\0\0¦\x1c\x02\0\0",
}
_AS = {"data": "csv", "nii.gz": "nii"}


@cache
def seeds(kind: str) -> list[bytes]:
    """Valid files of a kind."""
    with tempfile.TemporaryDirectory() as folder:
        path, found = Path(folder, f"seed.{kind}"), []
        for write in _WRITERS[kind]:
            write(path)
            found.append(path.read_bytes())
        return found


def damaged(kind: str, draw: random.Random) -> bytes:
    """A file of a kind, damaged in one to six places."""
    raw, hurt = draw.choice(seeds(kind)), _Damage(kind, draw)
    if kind == "npz" and draw.randrange(8):  # else the archive's checksum would tell all
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        hit = draw.choice(sorted(members))
        members[hit] = hurt(members[hit])
        if not draw.randrange(10):
            members[draw.choice(("X.npy", "y.npy", "Y.npy", "view_2.npy", "label_names"))] = (
                members.pop(hit)
            )
        return _zipped(members, draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    if kind == "nii.gz" and draw.randrange(4):  # else the checksum would tell all
        return gzip.compress(hurt(gzip.decompress(raw)), mtime=0)
    raw = hurt(raw)
    return _compressed(raw) if kind == "mat" and not draw.randrange(4) else raw


class _Damage:
    """One to six random changes of some bytes."""

    def __init__(self, kind: str, draw: random.Random) -> None:
        self._kind, self._draw = kind, draw

    def __call__(self, raw: bytes) -> bytes:
        ways = (
            self._flip,
            self._number,
            self._number,
            self._cut,
            self._drop,
            self._repeat,
            self._splice,
        )
        ways += (self._token, self._token, self._figures)
        for _ in range(self._draw.choice((1, 1, 1, 2, 3, 6))):
            raw = self._draw.choice(ways)(raw)
        return raw

    def _place(self, raw: bytes) -> int:
        """Anywhere, but the first bytes, where the headers are, more often."""
        return self._draw.randrange(
            max(1, len(raw) if self._draw.randrange(3) else min(len(raw), 200))
        )

    def _flip(self, raw: bytes) -> bytes:
        at = self._place(raw)
        return (
            raw[:at]
            + bytes(byte ^ 1 << self._draw.randrange(8) for byte in raw[at : at + 1])
            + raw[at + 1 :]
        )

    def _number(self, raw: bytes) -> bytes:
        """A number of 1, 2, 4 or 8 bytes, often where one stands."""
        size = self._draw.choice((1, 2, 4, 8))
        step = self._draw.choice((1, size))
        at = self._place(raw) // step * step
        number = self._draw.choice(NUMBERS) % 256**size
        return (
            raw[:at]
            + number.to_bytes(size, self._draw.choice(("little", "big")))
            + raw[at + size :]
        )

    def _figures(self, raw: bytes) -> bytes:
        """A number in figures, where one stands."""
        found = [match.span() for match in re.finditer(rb"\d+", raw)]
        if not found:
            return raw
        start, end = self._draw.choice(found)
        return raw[:start] + self._draw.choice(FIGURES).encode() + raw[end:]

    def _cut(self, raw: bytes) -> bytes:
        return raw[: self._place(raw)]

    def _drop(self, raw: bytes) -> bytes:
        at = self._place(raw)
        return raw[:at] + raw[at + 1 + self._draw.randrange(64) :]

    def _repeat(self, raw: bytes) -> bytes:
        at, size = self._place(raw), 1 + self._draw.randrange(64)
        return (
            raw[: at + size]
            + raw[at : at + size] * self._draw.choice((1, 1, 2, 50))
            + raw[at + size :]
        )

    def _splice(self, raw: bytes) -> bytes:
        """A part of another valid file."""
        other = self._draw.choice(seeds(self._kind))
        start = self._place(other)
        return self._put(raw, other[start : start + 1 + self._draw.randrange(200)])

    def _token(self, raw: bytes) -> bytes:
        return self._put(
            raw, self._draw.choice(_TOKENS[_AS.get(self._kind, self._kind)].split("¦")).encode()
        )

    def _put(self, raw: bytes, part: bytes) -> bytes:
        at = self._place(raw)
        return raw[:at] + part + raw[at + self._draw.choice((0, len(part))) :]


def _zipped(members: dict[str, bytes], how: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", how) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def _compressed(raw: bytes) -> bytes:
    """A MATLAB file with each of its variables compressed, as far as they can be told apart."""
    found, at = raw[:128], 128
    while at + 8 <= len(raw):
        size = 8 + struct.unpack_from("<I", raw, at + 4)[0]
        packed = zlib.compress(raw[at : at + size])
        found, at = found + struct.pack("<II", 15, len(packed)) + packed, at + size
    return found


# Valid files


def _table() -> pd.DataFrame:
    return pd.DataFrame(IMAGES.reshape(N, -1), columns=[f"p{i}" for i in range(6)])


def _parts() -> pd.DataFrame:
    columns = ["hog.0", "hog.1", "hog.2", "lbp.0", "lbp.1", "lbp.2"]
    return (
        _table()
        .set_axis(columns, axis=1)
        .assign(**{"y.sky": INDICATOR[:, 0], "y.cow": INDICATOR[:, 1]})
    )


def _images() -> Dataset:
    return Dataset(IMAGES.reshape(N, -1), WORDS, Matrix(3, 2), groups=PERSONS)


def _labelled() -> Dataset:
    X, names = IMAGES.reshape(N, -1), ("sky", "cow")
    return Dataset(X, INDICATOR, Modalities({"hog": 4, "lbp": 2}), label_names=names)


def _tasks() -> Dataset:
    iris, rows = load_dataset("iris"), np.r_[:4, 60:64]
    few = Dataset(iris.X[rows], iris.y[rows], iris.layout)
    return join_tasks({"images": _images_of_numbers(), "flowers": few})


def _images_of_numbers() -> Dataset:
    return Dataset(IMAGES.reshape(N, -1), LABELS, Matrix(3, 2))


def _other_arrow(path: Path, **options: object) -> None:
    X = pa.FixedShapeTensorArray.from_numpy_ndarray(IMAGES)
    dictionary = pa.array(WORDS).dictionary_encode()
    table = pa.table({"X": X, "label": dictionary, "person": PERSONS})
    with pa.ipc.new_file(
        str(path), table.schema, options=pa.ipc.IpcWriteOptions(**options)
    ) as writer:
        writer.write_table(table, max_chunksize=4)


def _other_parquet(path: Path) -> None:
    decimal = pa.array([str(i) for i in range(N)]).cast(pa.decimal128(10, 2))
    nulls = pa.array([None] * N)
    lists = pa.array([[1.0, 2.0]] * N)
    table = {
        "a": decimal,
        "b": pa.array([True, None] * (N // 2)),
        "c": nulls,
        "d": lists,
        "label": pa.array(WORDS),
    }
    pa.parquet.write_table(
        pa.table(table), path, data_page_version="2.0", compression="snappy", row_group_size=4
    )


def _hdf5(path: Path, **arrays: np.ndarray) -> None:
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            packed = (
                {"compression": "gzip", "shuffle": True, "chunks": True} if values.ndim == 2 else {}
            )
            file.create_dataset(name, data=values, **packed)


def _volume(path: Path, kind: type, dtype: str) -> None:
    values = (np.arange(24).reshape(2, 3, 4) * 7 % 11).astype(dtype)
    nibabel.save(kind(values, np.diag([2.0, 2.5, 3.0, 1.0])), path)


def _image(path: Path, mode: str, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned
    Image.fromarray(IMAGES[0]).convert(mode).save(path, kind, exif=exif)


_FLAT = IMAGES.reshape(N, -1) * 1.0
_VIEWS = {
    "view_0": IMAGES[:, 0],
    "view_1": IMAGES.reshape(N, 6),
    "view_names": ["hog", "lbp"],
    "Y": INDICATOR,
}
_WRITERS: dict[str, list[Callable[[Path], object]]] = {
    "yaml": [
        *(partial(shutil.copyfile, config) for config in builtin_configs().values()),
        *(
            partial(Path.write_text, data=text)
            for text in (STUDY, FILE_STUDY, TASKS_STUDY, NIFTI_STUDY)
        ),
    ],
    "npz": [
        lambda path: np.savez(path, X=IMAGES, y=LABELS, person=PERSONS),
        lambda path: np.savez_compressed(path, X=np.asfortranarray(IMAGES.astype(float)), y=WORDS),
        lambda path: np.savez(path, **_VIEWS, label_names=["sky", "cow"]),
    ],
    "npy": [
        lambda path: np.save(path, IMAGES),
        lambda path: np.save(path, np.asfortranarray(_FLAT)),
    ],
    "dat": [
        partial(Path.write_text, data=text)
        for text in ("cat\ndog\n" * 5, "label;person\n" + "1;a\n0;b\n" * 5, "1.0\n2.0\n" * 5)
    ],
    "png": [
        *(partial(_image, mode=mode, kind="PNG") for mode in ("L", "RGBA", "P", "I;16")),
        *(partial(_image, mode=mode, kind="TIFF") for mode in ("L", "F")),
        *(partial(_image, mode=mode, kind="JPEG") for mode in ("RGB", "CMYK")),
        partial(_image, mode="1", kind="BMP"),
        partial(_image, mode="L", kind="PPM"),
    ],
    "h5": [
        lambda path: _hdf5(path, X=IMAGES, y=LABELS, person=PERSONS),
        lambda path: _hdf5(path, a=_FLAT, b=_FLAT[:, :2], label=WORDS.astype("S")),
        lambda path: savemat73(path, {"X": IMAGES * 1.0, "y": LABELS, "s": [LABELS]}),
        lambda path: savemat73(path, {"X": scipy.sparse.csc_matrix(_FLAT), "y": WORDS}),
    ],
    "mat": [
        lambda path: scipy.io.savemat(path, {"X": IMAGES, "y": LABELS, "person": PERSONS}),
        lambda path: scipy.io.savemat(
            path, {"fea": IMAGES.reshape(N, -1), "gnd": LABELS.astype(float)}, format="4"
        ),
        lambda path: scipy.io.savemat(path, {**_VIEWS, "label_names": ["sky", "cow"]}),
        lambda path: scipy.io.savemat(path, {"X": scipy.sparse.csc_matrix(_FLAT), "y": LABELS}),
        lambda path: scipy.io.savemat(
            path, {"X": scipy.sparse.csc_matrix(_FLAT), "y": LABELS}, format="4"
        ),
        lambda path: scipy.io.savemat(
            path, {"X": IMAGES * 1.0, "y": WORDS, "s": {"a": 1, "b": ["c", 2]}}
        ),
        lambda path: scipy.io.savemat(path, {"X": IMAGES, "y": LABELS}, do_compression=True),
    ],
    "csv": [
        lambda path: _table().assign(y=LABELS, person=PERSONS).to_csv(path, index=False),
        lambda path: (_table() / 7).assign(label=WORDS).to_csv(path, index=False),
        lambda path: _parts().to_csv(path, index=False),
        lambda path: (_table() / 7).assign(label=WORDS).to_csv(path, sep=";", decimal=","),
        lambda path: (
            (_table() / 7).assign(label=WORDS).to_csv(path, sep=" ", header=False, index=False)
        ),
    ],
    "parquet": [
        lambda path: save_dataset(_images(), path),
        lambda path: save_dataset(_labelled(), path),
        lambda path: save_dataset(_tasks(), path),
        lambda path: _table().assign(target=pd.Categorical(WORDS)).to_parquet(path),
        lambda path: _parts().to_parquet(path),
        _other_parquet,
    ],
    "arrow": [
        lambda path: save_dataset(_images(), path),
        lambda path: save_dataset(_labelled(), path),
        lambda path: save_dataset(_tasks(), path),
        lambda path: (
            _table().assign(y=WORDS, person=PERSONS).to_feather(path, compression="uncompressed")
        ),
        lambda path: _other_arrow(path, compression="lz4"),
        _other_arrow,
    ],
    "data": [
        lambda path: _table().assign(label=WORDS).to_csv(path, header=False, index=False),
        lambda path: _table().assign(label=WORDS).to_csv(path, sep="\t", index=False),
        lambda path: path.write_text(
            _table().assign(label=LABELS).to_string(index=False), encoding="utf-8"
        ),
    ],
    "nii": [
        lambda path: _volume(path, nibabel.Nifti1Image, "<f4"),
        lambda path: _volume(path, nibabel.Nifti1Image, ">i2"),
        lambda path: _volume(path, nibabel.Nifti2Image, "<f8"),
    ],
    "nii.gz": [lambda path: _volume(path, nibabel.Nifti1Image, "<f4")],
}


# Reading of a file that may be damaged

#: Options of `load_dataset` to read a damaged data file with; most often none.
OPTIONS: tuple[dict[str, Any], ...] = (
    *({},) * 4,
    {"groups": "person"},
    {"label": "column6"},
    {"label": "label", "drop": [""]},
    {"label": "label", "delimiter": ";"},
    {"shape": [3, 2]},
    {"modalities": {"a": 4, "b": 2}},
    {"exclude_labels": ["sky"]},
    {"shape": [3, 2], "order": "F"},
    {"classes": ["0", 1], "label": "y"},
    {"exclude_classes": ["dog", 2]},
    {"only": ["hog"], "drop": ["person"]},
)


def _of_image(path: Path) -> Dataset:
    """Data set of a folder of an image that may be damaged, once in each of two classes."""
    folder = path.parent / "images"
    for name in ("cat", "dog"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "1.png").write_bytes(path.read_bytes())
    return load_dataset(folder)


def _of_labels(path: Path) -> Dataset:
    """Data set of ten samples with labels that may be damaged."""
    samples = path.with_name("samples.npy")
    if not samples.exists():
        samples.write_bytes(seeds("npy")[0])
    return load_dataset(samples, labels=path)


def _of_volume(path: Path) -> Dataset:
    """Data set of a volume that may be damaged and of one that is not, which is the mask too."""
    good, table = path.parent / "good" / "volume.nii", path.with_suffix(".volumes.csv")
    if not good.exists():
        good.parent.mkdir(exist_ok=True)
        good.write_bytes(seeds("nii")[0])
    table.write_text(f"file,label\n{good},0\n{path},1\n", encoding="utf-8")
    return load_dataset(table, mask=good)


def judge(path: Path, options: dict[str, Any]) -> str:
    """Read a file as raysel does."""
    try:
        if path.suffix == ".yaml":
            config = load_config(path)
            assert config_from_dict(config.to_dict()).hash == config.hash
            return "taken"
        if path.suffix == ".npy":
            labels = path.with_name("labels.txt")
            labels.write_text("cat\ndog\n" * 5, encoding="utf-8")
            options = {**options, "labels": labels}
        readers = {".nii": _of_volume, ".gz": _of_volume, ".png": _of_image, ".dat": _of_labels}
        data = (
            readers[path.suffix](path) if path.suffix in readers else load_dataset(path, **options)
        )
    except RayselError as error:
        return "refused" if str(error) else f"a {type(error).__name__} without words"
    assert isinstance(data.layout, Tasks) or np.isfinite(data.X).all()
    assert len(data.y) == len(data.X) == data.n_samples
    assert len(data.feature_names) == data.n_features
    assert data.content_hash
    return "taken"
