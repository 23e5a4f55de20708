"""The process that reads files by libraries which a damaged file may crash."""

from __future__ import annotations

import base64
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
from pyarrow import feather
from pyarrow.parquet import encryption
from refusals import refused

from raysel.data.dataset import Dataset
from raysel.data.formats import isolated, isolated_child
from raysel.data.formats.array_files import open_arrays
from raysel.data.layouts import Tensor
from raysel.data.loading import load_dataset, save_dataset

pytestmark = pytest.mark.usefixtures("here")
ROOT = Path(__file__).parents[3]
SCRIPT = isolated._SCRIPT
X, Y = np.random.default_rng(0).normal(size=(10, 10**4)), np.arange(10) % 2


def write(path: Path) -> Path:
    match path.suffix:
        case ".h5":
            with h5py.File(path, "w") as file:
                file["X"], file["y"] = X, Y
        case ".mat":
            scipy.io.savemat(path, {"X": X, "y": Y})
        case _:
            save_dataset(Dataset(X=X, y=Y, layout=Tensor((10**4,)), name="t"), path)
    return path


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Program that stands for the process that reads."""
    script = tmp_path / "script.py"
    monkeypatch.setattr(isolated, "_SCRIPT", script)
    monkeypatch.setattr(isolated, "_READER", isolated._Reader())
    return script


def test_large_arrays_of_all_kinds_are_read_by_several_threads_in_turn():
    paths = [write(Path(f"large{suffix}")) for suffix in (".h5", ".mat", ".parquet")] * 2
    with ThreadPoolExecutor(len(paths)) as pool:
        for data in pool.map(load_dataset, paths):
            np.testing.assert_array_equal(data.X, X)


def test_one_process_reads_one_file_after_another_and_two_that_are_read_in_turns(monkeypatch):
    """A process whose answer is not read to its end is not asked again."""
    started = []

    class Counted(isolated._Child):
        def __init__(self):
            super().__init__()
            started.append(self)

    monkeypatch.setattr(isolated, "_READER", isolated._Reader())
    monkeypatch.setattr(isolated, "_Child", Counted)
    path = write(Path("t.parquet"))
    whole = load_dataset(path)
    batches = isolated.IsolatedBatches(path, 8 * 3 * 10**4)
    assert [sum(map(len, batches)) for _ in range(3)] == [10] * 3
    assert len(started) == 1
    pairs = list(zip(batches, batches, strict=True))
    assert len(started) == 2
    assert all(one.equals(other) for one, other in pairs)
    next(iter(batches))
    assert any(child.returncode is not None for child in started)
    np.testing.assert_array_equal(load_dataset(path).X, whole.X)


def test_a_relative_path_is_that_of_the_working_directory(tmp_path, monkeypatch):
    for i in range(2):  # the process keeps the working directory in which it was started
        folder = tmp_path / str(i)
        folder.mkdir()
        monkeypatch.chdir(folder)
        write(Path("a.mat"))
        with open_arrays(Path("a.mat")) as file:
            np.testing.assert_array_equal(file.get("X"), X)


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "-11"),
        pytest.param(
            "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass",
            "-9",
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.parametrize("suffix", [".h5", ".mat", ".parquet"])
def test_a_file_that_crashes_or_never_leaves_the_library_is_refused(
    stand_in, suffix, program, status
):
    """What stands for the process that reads is ended by a signal, or by the limit of its
    processor time.
    """
    path = write(Path(f"a{suffix}"))
    stand_in.write_text(program)
    refused(path, path.name, "cannot be read as a", f"ended early, with status {status}")


#: Stands for the process that reads: sends bytes of a stream, and an answer.
SENDS = """
import os, sys
sys.stdin.readline()
pipe = sys.stdout.buffer
pipe.write(b'{"stream": true}\\n' + bytes.fromhex("STREAM"))
pipe.flush()
END
pipe.write(b'{"largest": 64}\\n')
"""


def other_table() -> bytes:
    """Stream of a table that no file here holds."""
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_table_is_what_the_process_hands_over(stand_in, in_memory):
    """The file is read once: what it holds does not matter any more."""
    path = write(Path("t.parquet"))
    stand_in.write_text(SENDS.replace("STREAM", other_table().hex()).replace("END", ""))
    data = load_dataset(path, in_memory=in_memory)
    np.testing.assert_array_equal(data.y, [0, 1, 0, 1])
    assert data.n_features == 1


@pytest.mark.parametrize("in_memory", [True, False])
def test_half_a_table_is_refused(stand_in, in_memory):
    half = other_table()[:-60].hex()
    stand_in.write_text(SENDS.replace("STREAM", half).replace("END", "os.kill(os.getpid(), 11)"))
    path = write(Path("t.parquet"))
    refused(path, path.name, "ended early, with status -11", in_memory=in_memory)


def test_an_answer_that_was_not_waited_for_is_not_taken_for_the_next(stand_in, monkeypatch):
    path = write(Path("t.parquet"))
    stand_in.write_text('import time; input(); time.sleep(0.5); print(\'{"error": "late"}\')')
    former = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            load_dataset(path)
    finally:
        signal.signal(signal.SIGALRM, former)
    monkeypatch.setattr(isolated, "_SCRIPT", SCRIPT)
    np.testing.assert_array_equal(load_dataset(path).X, X)


#: Reads a file, ends the process that looks at such files first, and reads it again.
READ_TWICE = """
import gc, pathlib, signal, sys, os
from raysel.data.loading import load_dataset
load_dataset(sys.argv[1])
(child,) = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
os.kill(int(child), signal.SIGTERM)
os.waitid(os.P_PID, int(child), os.WEXITED | os.WNOWAIT)
try:
    load_dataset(sys.argv[1])
except Exception as error:
    print(error)
load_dataset(sys.argv[1])
gc.collect()
"""


@pytest.mark.slow
def test_a_process_that_ended_leaves_no_pipe_open(tmp_path):
    path = write(tmp_path / "t.parquet")
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", READ_TWICE, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    assert "ended early, with status" in done.stdout
    assert done.stderr == ""


def test_an_arrow_stream_is_named_as_one():
    """The files of Hugging Face's data sets are streams."""
    path, table = Path("stream.arrow"), pa.table({"x": X[:, 0], "y": Y})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    refused(path, "an Arrow IPC stream")


@pytest.mark.parametrize("is_plain", [False, True])
def test_an_encrypted_parquet_file_is_named_as_one(is_plain):
    """Its footer, or the columns alone."""
    path, table = Path("secret.parquet"), pa.table({"x": X[:, 0], "y": Y})
    factory = encryption.CryptoFactory(lambda _: _Kms())
    how = encryption.EncryptionConfiguration(
        footer_key="key", column_keys={"key": ["x"]}, plaintext_footer=is_plain
    )
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), how)
    pq.write_table(table, path, encryption_properties=properties)
    refused(path, "it is encrypted")


class _Kms(encryption.KmsClient):
    """Keys that are not secret."""

    def wrap_key(self, key_bytes, master_key_identifier):
        return base64.b64encode(key_bytes)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_categories_of_numbers_are_these_numbers(suffix):
    path, codes = Path(f"codes{suffix}"), np.array([2, 7, 2, 7, 2, 7, 7, 2, 2, 7])
    table = pa.table({"x": pa.array(codes).dictionary_encode(), "y": Y})
    if suffix == ".parquet":
        pq.write_table(table, path)
    else:
        feather.write_feather(table, path)
    np.testing.assert_array_equal(load_dataset(path).X[:, 0], codes)


def test_rows_that_a_small_file_declares_are_counted_before_they_are_decoded(monkeypatch):
    n = 10**6
    path, zeros = Path("rows.parquet"), np.zeros(n, dtype=np.int8)
    x = pa.DictionaryArray.from_arrays(pa.array(zeros), pa.array([1.5]))
    pq.write_table(pa.table({"x": x, "y": zeros}), path)
    assert path.stat().st_size < 10**4
    monkeypatch.setenv("RAYSEL_MAX_DATA_BYTES", str(3 * 8 * n))
    refused(path, f"its table of {n} rows and 2 columns would take")
    refused(path, "dataset.in_memory: false")


@pytest.mark.parametrize(
    "names", ["abcdef", ["a", "a.b", "b", "c", "d", "e"], ["a", "a", "b", "b", "c", "c"]]
)
def test_columns_that_are_read_some_at_a_time_are_those_of_the_file(names, monkeypatch):
    """Names with a point, and names twice, stand for several columns."""
    values = [X[:, 0], Y, list("0123456789"), [[1.0]] * 10, [{"x": 1, "y": 2}] * 10, X[:, 1]]
    arrays = [pa.array(each) for each in values]
    arrays[2] = arrays[2].dictionary_encode()
    path, table = Path("t.parquet"), pa.Table.from_arrays(arrays, names=list(names))
    pq.write_table(table, path, row_group_size=3)
    monkeypatch.setattr(isolated_child, "_AT_A_TIME", 2)
    assert isolated_child._read_columns(pq.ParquetFile(path)).equals(table)
    flat = table.select([0, 1, 2, 3, 5])
    pq.write_table(flat, path, row_group_size=3)
    assert isolated_child._read_columns(pq.ParquetFile(path)).equals(flat)
