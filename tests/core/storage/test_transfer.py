"""Data files at URIs: fetched once, again when they change, named in errors by their URI."""

import os

import numpy as np
import pytest
from PIL import Image
from small_studies import make_study, raw_config, write_digits

from raysel import init_study, load_dataset
from raysel.cli.plan import describe
from raysel.config import config_from_dict
from raysel.core.errors import DataError
from raysel.core.storage.transfer import cache_folder, fetch_data
from raysel.run.course import OneStudy
from raysel.run.recording import study_record
from raysel.study.definition import Study


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("RAYSEL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def copies():
    return sorted(path.name for path in cache_folder().rglob("*") if path.is_file())


def test_a_file_is_fetched_once_and_again_when_it_has_changed(store):
    file = store / "few faces.npz"
    write_digits(file)
    uri = file.as_uri()
    first = fetch_data(uri)
    assert first.read_bytes() == file.read_bytes()
    assert first.name == file.name
    before = first.stat().st_ino
    assert fetch_data(uri).stat().st_ino == before
    write_digits(file, classes=3)
    second = fetch_data(uri)
    assert second.read_bytes() == file.read_bytes()
    assert copies() == [file.name]  # the first is gone
    assert cache_folder().stat().st_mode & 0o077 == 0


def test_labels_and_background_are_fetched_too(store):
    write_digits(store / "few.npz")
    with np.load(store / "few.npz") as file:
        np.save(store / "X.npy", file["X"])
        np.save(store / "y.npy", file["y"])
        np.save(store / "below.npy", file["X"].mean(axis=0))
    uris = {name: (store / f"{name}.npy").as_uri() for name in ("X", "y", "below")}
    dataset = {"path": uris["X"], "labels": uris["y"], "background": uris["below"]}
    study = Study.prepare(config_from_dict(raw_config(dataset=dataset)))
    record = study_record(study, id_="0" * 32, uri="sqlite:///mlflow.db", started=0.0)
    assert record.data_hash == load_dataset(store / "few.npz").content_hash
    assert record.data_files["dataset.path"] == uris["X"]
    assert study.background is not None
    assert copies() == ["X.npy", "below.npy", "y.npy"]


def test_the_identity_of_the_data_does_not_depend_on_their_place(store):
    write_digits(store / "few.npz")
    for kind in ("cat", "dog"):
        (store / "pets" / kind).mkdir(parents=True)
        for number in range(3):
            Image.new("L", (5, 4), number).save(store / "pets" / kind / f"{number}.png")
    for name in ("few.npz", "pets"):
        here, there = load_dataset(store / name), load_dataset((store / name).as_uri())
        assert (here.content_hash, here.name) == (there.content_hash, there.name)


def test_a_draft_of_a_file_at_a_uri_is_that_of_the_file(store, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    rows = [f"{a},{b},{'yes' if a > 0 else 'no'}" for a, b in rng.normal(size=(40, 2)).round(3)]
    (store / "table.csv").write_text("\n".join(["first,second,kind", *rows]))
    monkeypatch.chdir(tmp_path)
    here, there = init_study(store / "table.csv"), init_study((store / "table.csv").as_uri())
    assert there.config.dataset.path == (store / "table.csv").as_uri()
    assert there.config.name == here.config.name
    without_path = {
        "dataset": {**here.config.to_dict()["dataset"], "path": there.config.dataset.path}
    }
    assert here.config.to_dict() | without_path == there.config.to_dict()


def test_errors_name_the_uri_and_not_the_copy(store):
    (store / "bad.npz").write_bytes(b"PK no archive")
    (store / "folder.npz").mkdir()
    (store / "link.npz").symlink_to(
        "/etc/hostname"
    )  # a file of the user's choosing, read as any other
    messages = {
        "bad.npz": "truncated",
        "none.npz": "there is no data file file://.*none.npz",
        "folder.npz": "is a folder, where a file is needed",
        "link.npz": "truncated",
    }
    for name, message in messages.items():
        with pytest.raises(DataError, match=message) as caught:
            load_dataset((store / name).as_uri())
        assert (store / name).as_uri() in str(caught.value)
        assert str(cache_folder()) not in str(caught.value)


def test_a_folder_with_links_is_refused(store, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (store / "images").mkdir()
    (store / "images" / "a.png").symlink_to(tmp_path / "secret")
    with pytest.raises(DataError, match="symbolic link"):
        load_dataset((store / "images").as_uri())
    assert copies() == []


def test_a_disk_without_room_is_said_before_the_fetch(store):
    with (store / "huge.npz").open("wb") as file:
        os.truncate(file.fileno(), 2**43)  # without a block on the disk
    with pytest.raises(DataError, match="RAYSEL_CACHE"):
        fetch_data((store / "huge.npz").as_uri())


def test_the_plan_says_where_the_data_come_from_and_that_they_are_shipped(store):
    write_digits(store / "few.npz")
    study = make_study((store / "few.npz").as_uri())
    for nodes, told in ((None, False), ([{"CPU": 2.0}], True)):
        text = "\n".join(describe(OneStudy.of(study), nodes=nodes))
        assert f"{(store / 'few.npz').as_uri()} (0.0 MiB), copied to {cache_folder()}" in text
        assert ("once to each node by Ray's object store" in text) is told
