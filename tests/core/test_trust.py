"""The key of an account and the hashes of its models."""

from __future__ import annotations

import hashlib
import hmac
import multiprocessing
import os
from pathlib import Path

import pytest

from raysel.core.errors import ConfigError, DataError
from raysel.core.trust import (
    TRUST_KEY,
    NoKeyError,
    check_trust,
    copy_signed,
    hash_file,
    is_trusted,
    key_file,
    key_problem,
    sign,
    use_key,
    write_signed,
)

CONTENT = b"the bytes of a model"


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch) -> Path:
    """The configuration folder of a new account."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv(TRUST_KEY, raising=False)
    return tmp_path / "config"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_the_hash_is_hmac_sha256_by_a_key_that_only_the_account_can_read(tmp_path, config):
    before = os.umask(0)
    try:
        model = write_signed(tmp_path / "model.skops", CONTENT)
    finally:
        os.umask(before)
    assert (mode(key_file()), mode(config / "raysel")) == (0o600, 0o700)
    assert [path.name for path in key_file().parent.iterdir()] == ["model-key"]
    key = bytes.fromhex(key_file().read_text())
    assert len(key) == 32
    expected = hmac.new(key, CONTENT, hashlib.sha256).hexdigest()
    assert hash_file(model).read_text().strip() == expected
    assert is_trusted(model)


def test_a_truncated_or_another_hash_is_refused(tmp_path):
    model = write_signed(tmp_path / "model.skops", CONTENT)
    signed = hash_file(model).read_text()
    others = [signed[:length] for length in range(64)]
    others += [signed.strip() + "0", signed.upper(), f"0x{signed}", signed.strip()[::-1], "é" * 64]
    others += [hashlib.sha256(CONTENT).hexdigest(), " " * 200 + signed]
    for other in others:
        hash_file(model).write_text(other, encoding="utf-8")
        assert not is_trusted(model), other
    with pytest.raises(DataError, match=r"run raysel trust 'my study',"):
        check_trust(model, CONTENT, "my study")


def test_the_hash_of_other_bytes_or_of_another_key_is_refused(tmp_path, monkeypatch):
    model = write_signed(tmp_path / "model.skops", CONTENT)
    model.write_bytes(CONTENT + b".")
    assert not is_trusted(model)
    model.write_bytes(CONTENT)
    assert is_trusted(model)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))
    assert not is_trusted(model)  # this account has no key
    assert key_problem() == ""
    assert not is_trusted(model)  # it has another
    sign(model, CONTENT)
    assert is_trusted(model)


def test_a_hash_that_is_a_link_or_a_pipe_is_not_followed(tmp_path):
    model = write_signed(tmp_path / "model.skops", CONTENT)
    hash_file(model).rename(tmp_path / "elsewhere")
    hash_file(model).symlink_to(tmp_path / "elsewhere")
    assert not is_trusted(model)
    hash_file(model).unlink()
    os.mkfifo(hash_file(model))
    assert not is_trusted(model)


def test_a_model_that_is_named_by_a_link_has_the_hash_of_its_file(tmp_path):
    model = write_signed(tmp_path / "model.skops", CONTENT)
    (tmp_path / "newest.skops").symlink_to(model)
    check_trust(tmp_path / "newest.skops", CONTENT, "study")


def test_a_key_that_is_mounted_as_a_link_is_used(tmp_path):
    model = write_signed(tmp_path / "model.skops", CONTENT)
    key_file().symlink_to(key_file().rename(tmp_path / "secret"))
    assert (key_problem(), is_trusted(model)) == ("", True)
    (tmp_path / "secret").chmod(0o644)
    assert "mode 644" in key_problem()


def test_a_copy_is_as_trusted_as_the_model(tmp_path):
    model = write_signed(tmp_path / "model.skops", CONTENT)
    target = tmp_path / "copy.skops"
    assert copy_signed(model, target) == [target, hash_file(target)]
    assert is_trusted(target)
    hash_file(model).unlink()
    assert copy_signed(model, target) == [target]
    assert not hash_file(target).exists()


def _sign(path: Path, rounds: int, barrier) -> None:
    for _ in range(rounds):
        barrier.wait()
        sign(path, CONTENT)
        barrier.wait()


def test_processes_that_make_the_key_at_once_have_the_same(tmp_path):
    context = multiprocessing.get_context("fork")
    models = [tmp_path / f"{i}.skops" for i in range(6)]
    for path in models:
        path.write_bytes(CONTENT)
    barrier = context.Barrier(len(models) + 1, timeout=60)
    rounds = 8
    processes = [context.Process(target=_sign, args=(path, rounds, barrier)) for path in models]
    for process in processes:
        process.start()
    for _ in range(rounds):
        key_file().unlink(missing_ok=True)
        barrier.wait()
        barrier.wait()
        assert all(map(is_trusted, models))
        assert [path.name for path in key_file().parent.iterdir()] == ["model-key"]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(models)


@pytest.mark.parametrize("text", ["", "00" * 31, "xy" * 32, "00" * 33])
def test_a_damaged_key_signs_nothing_and_says_so(text, tmp_path):
    key_file().parent.mkdir(parents=True)
    key_file().write_text(text)
    key_file().chmod(0o600)
    assert "remove it" in key_problem()
    model = write_signed(tmp_path / "model.skops", CONTENT)
    assert (model.read_bytes(), hash_file(model).exists()) == (CONTENT, False)
    assert key_file().read_text() == text


@pytest.mark.parametrize("permissions", [0o640, 0o604, 0o660, 0o602])
def test_a_key_that_others_may_use_signs_and_trusts_nothing(permissions, tmp_path):
    model = write_signed(tmp_path / "model.skops", CONTENT)
    key_file().chmod(permissions)
    assert f"other accounts may use it, mode {permissions:o}); remove it" in key_problem()
    assert not is_trusted(model)
    write_signed(model, CONTENT)
    assert not hash_file(model).exists()  # also none of before


def test_without_a_folder_for_the_key_the_model_is_written_unsigned(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    assert "set XDG_CONFIG_HOME" in key_problem()
    model = write_signed(tmp_path / "model.skops", CONTENT)
    assert model.read_bytes() == CONTENT
    assert not is_trusted(model)
    with pytest.raises(NoKeyError, match="cannot be used"):
        sign(model, CONTENT)
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")  # not absolute: XDG says that it is ignored
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert key_file() == tmp_path / "home/.config/raysel/model-key"

    def no_home(_):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", no_home)
    assert "there is no home folder; set XDG_CONFIG_HOME" in key_problem()


def test_models_signed_by_the_key_of_a_lab_are_trusted(tmp_path, monkeypatch):
    model = write_signed(tmp_path / "model.skops", CONTENT)
    lab = key_file().rename(tmp_path / "lab.key")
    assert not is_trusted(model)
    with monkeypatch.context() as context:
        context.setenv(TRUST_KEY, "")  # taken back afterwards
        context.chdir(tmp_path)
        use_key("lab.key")
        context.chdir("/")
        assert is_trusted(model)
    assert not is_trusted(model)
    for text in ("", "no key"):
        lab.write_text(text)
        monkeypatch.setenv(TRUST_KEY, "")
        with pytest.raises(ConfigError, match=r"lab\.key"):
            use_key(str(lab))
