"""Files of maps: read by name, never unpickled, refused with what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from raysel.core.errors import ConfigError
from raysel.solvers.mtda.aligned_mtda import read_maps

MAPS = {"faces": np.arange(6.0).reshape(3, 2), "digits": np.eye(4, 2, dtype=np.float32)}


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("maps.npz", **MAPS)
    return "maps.npz"


def test_maps_are_read_in_the_order_of_the_tasks(path):
    digits, faces = read_maps(path, ["digits", "faces"])
    np.testing.assert_array_equal(faces, MAPS["faces"])
    np.testing.assert_array_equal(digits, MAPS["digits"])
    assert digits.dtype == np.float64


def test_a_file_of_one_map_needs_no_name(path):
    np.savez("one.npz", W=MAPS["faces"])
    (found,) = read_maps("one.npz", [""])
    np.testing.assert_array_equal(found, MAPS["faces"])
    with pytest.raises(ConfigError, match=r"has 2 maps for one task without a name; it holds faces, digits"):
        read_maps(path, [""])


def test_the_data_folder_is_looked_at(path, monkeypatch, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("RAYSEL_DATA", str(tmp_path))
    assert len(read_maps(path, ["faces"])) == 1


@pytest.mark.usefixtures("path")
def test_what_is_no_file_of_maps_is_refused():
    with pytest.raises(ConfigError, match=r"aligned='maps\.npz' has no map of task 'wine'; it holds faces, digits\. A"):
        read_maps("maps.npz", ["faces", "wine"])
    with pytest.raises(
        ConfigError, match=r"aligned='gone\.npz': there is no data file .* A file of maps is \.npz with"
    ):
        read_maps("gone.npz", ["faces"])
    Path("broken.npz").write_bytes(b"PK no maps")
    with pytest.raises(ConfigError, match=r"broken\.npz is not a complete \.npz archive"):
        read_maps("broken.npz", ["faces"])
    np.savez("pickled.npz", faces=np.array([{"code": "that would run"}], dtype=object))
    with pytest.raises(ConfigError, match=r"pickled\.npz: the array faces holds pickled Python objects"):
        read_maps("pickled.npz", ["faces"])
    np.savez("words.npz", faces=np.array([["a"]]))
    with pytest.raises(ConfigError, match=r"words\.npz cannot be read as a file of maps"):
        read_maps("words.npz", ["faces"])
    np.save("plain.npy", np.eye(2))
    with pytest.raises(ConfigError, match=r"plain\.npy is not a complete \.npz archive"):
        read_maps("plain.npy", [""])
