"""Studies of another account, and of one that cannot keep a key: shown, not used, and trusted by
one command.
"""

from __future__ import annotations

import hashlib
import io
import zipfile

import numpy as np
import pytest
from attack_studies import copied
from small_studies import NoUpload, raw_config, write_digits

import raysel
from raysel import select
from raysel.cli.main import main as run_command
from raysel.config import config_from_dict
from raysel.core.errors import DataError
from raysel.core.trust import TRUST_KEY, is_trusted, key_file
from raysel.execution.serial import SerialExecutor
from raysel.run import course
from raysel.study.definition import Study


@pytest.fixture
def foreign(stranger, tmp_path, monkeypatch):
    """The study in the eyes of another account."""
    key = key_file()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another account"))
    return stranger, key


def words(capsys) -> str:
    out, err = capsys.readouterr()
    return " ".join((out + err).split())


def test_the_command_shows_what_the_study_is_and_signs_all_its_models(foreign, capsys):
    study, _ = foreign
    models = sorted(study.rglob("*.skops"))
    assert len(models) > 3
    digests = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in models}
    assert not any(map(is_trusted, models))
    assert run_command(["trust", str(study)]) == 0
    told = "".join(words(capsys).split())
    assert all(text in told for text in ("smr,finished", "64features", *digests.values()))
    assert all(map(is_trusted, models))
    assert digests == {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in models}
    raysel.open_study(study).model.predict(np.zeros((1, 64)))
    assert run_command(["trust", str(study)]) == 0
    assert "are trusted already" in words(capsys)


@pytest.mark.parametrize(("answer", "status"), [("n\n", 1), ("\n", 1), ("", 1), ("y\n", 0)])
def test_at_a_terminal_it_asks_and_the_end_of_the_input_is_a_no(
    answer, status, foreign, monkeypatch, capsys
):
    study, _ = foreign
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes any output for a terminal
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert run_command(["trust", str(study)]) == status
    assert ("nothing was signed" in words(capsys)) == bool(status)
    assert is_trusted(study / "model.skops") != bool(status)


def test_one_model_file_is_trusted_and_what_is_no_study_is_refused(foreign, tmp_path, capsys):
    study, _ = foreign
    assert run_command(["trust", str(study / "folds/outer0.skops")]) == 0
    raysel.open_study(study).fold_model("outer0")
    with pytest.raises(DataError):
        raysel.open_study(study).fold_model("outer1")
    for place in (tmp_path / "nowhere", tmp_path):
        assert run_command(["trust", str(place)]) == 2
        assert "Give the directory of a study" in words(capsys)


def test_a_model_that_changes_while_it_is_shown_is_not_signed(foreign, monkeypatch, capsys):
    study, _ = foreign
    digest = hashlib.sha256

    def changing(content):
        found = digest(content)
        (study / "model.skops").write_bytes(b"another")
        return found

    monkeypatch.setattr("raysel.cli.trust.hashlib.sha256", changing)
    assert run_command(["trust", str(study / "model.skops")]) == 2
    assert "was changed meanwhile" in words(capsys)
    assert not is_trusted(study / "model.skops")


def test_the_key_of_a_lab_is_given_to_a_command(foreign, monkeypatch, capsys):
    study, lab = foreign
    monkeypatch.setenv(TRUST_KEY, "")
    assert select.main([str(study), "--output", "one"]) == 0
    assert "account has not signed it" in words(capsys)
    assert select.main([str(study), "--output", "two", "--trust-key", str(lab)]) == 0
    assert "not signed" not in words(capsys)
    assert (
        select.main([str(study), "--output", "two", "--trust-key", str(study / "plan.json")]) == 2
    )
    assert "plan.json" in words(capsys)


class Messages:
    """Listener that keeps what it is told."""

    def __init__(self):
        self.texts = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def show(self, progress):
        pass

    def message(self, text):
        self.texts.append(text)


def test_an_account_that_cannot_keep_a_key_is_told_and_keeps_its_models(
    tmp_path, monkeypatch, capsys, honest
):
    write_digits(tmp_path / "few.npz")
    space = {"alpha": [0.1], "rank": [1]}
    raw = raw_config(
        tmp_path / "few.npz",
        solver={"name": "smr", "params": {"max_iter": 3}, "space": space},
        pictures=[],
    )
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    study, told = Study.prepare(config_from_dict(raw)), Messages()
    folder = tmp_path / "study"
    result = course.run(study, folder, SerialExecutor(study), [told], start_upload=NoUpload)
    (text,) = [text for text in told.texts if "will not be trusted" in text]
    assert "set XDG_CONFIG_HOME" in text
    assert not list(folder.rglob("*.hmac"))
    with pytest.raises(DataError):
        _ = result.model
    assert any("has not signed it" in remark for remark in result.remarks())
    X = np.random.default_rng(0).normal(size=(5, 64))
    mine = raysel.open_study(folder, trust=True).model.predict(X)
    assert run_command(["trust", str(folder)]) == 2
    assert "the models cannot be signed: the key" in words(capsys)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert run_command(["trust", str(folder)]) == 0
    np.testing.assert_array_equal(raysel.open_study(folder).model.predict(X), mine)
    assert np.array_equal(
        raysel.open_study(copied(honest, tmp_path / "h"), trust=True).model.predict(X), mine
    )


@pytest.mark.parametrize("damage", ["cut", "bytes", "part"])
def test_a_damaged_model_is_named_and_none_is_signed(damage, foreign, capsys):
    study, _ = foreign
    file = study / "folds" / "outer0.skops"
    content = file.read_bytes()
    if damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "bytes":
        with zipfile.ZipFile(file) as archive:
            first = archive.infolist()[0]
        place = first.header_offset + 30 + len(first.filename) + first.compress_size // 2
        file.write_bytes(content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :])
    else:
        with zipfile.ZipFile(file) as archive, zipfile.ZipFile(copy := io.BytesIO(), "w") as other:
            for item in archive.infolist():
                if not item.filename.endswith(".npy"):
                    other.writestr(item.filename, archive.read(item))
        file.write_bytes(copy.getvalue())
    assert run_command(["trust", str(study)]) == 2
    shown = " ".join("".join(capsys.readouterr()).split())
    assert "nothing was signed" in shown
    assert "outer0.skops" in shown.partition("nothing was signed")[2]
    assert not any(is_trusted(model) for model in study.rglob("*.skops"))
