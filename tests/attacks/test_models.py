"""A model file of a stranger."""

from __future__ import annotations

import io
import pickle
import zipfile

import pytest

from raysel.base.models import load_model
from raysel.core.errors import DataError
from raysel.core.machine import MAX_DATA_BYTES


class _Attack:
    def __reduce__(self):
        return (open, ("ran", "w"))


@pytest.mark.parametrize("wrap", [False, True])
def test_no_pickle_is_read(tmp_path, monkeypatch, wrap):
    monkeypatch.chdir(tmp_path)
    content = pickle.dumps(_Attack())
    if wrap:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("schema.json", content)
        content = archive.getvalue()
    (tmp_path / "model.skops").write_bytes(content)
    with pytest.raises(DataError, match="not a skops file"):
        load_model("model.skops")
    assert not (tmp_path / "ran").exists()


def test_a_model_that_unpacks_to_any_size_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(MAX_DATA_BYTES, str(2**20))
    with zipfile.ZipFile(tmp_path / "model.skops", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("schema.json", bytes(2**21))
    assert (tmp_path / "model.skops").stat().st_size < 2**12
    with pytest.raises(DataError, match="MiB of memory, above the limit of"):
        load_model(tmp_path / "model.skops")
