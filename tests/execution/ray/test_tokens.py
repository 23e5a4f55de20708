"""The file of Ray's token is its owner's alone."""

from __future__ import annotations

import os

import pytest

from raysel.core.errors import ConfigError
from raysel.execution.ray.head import protect_token


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_new_token_is_made_before_ray_makes_it_readable(home):
    protect_token(make=False)
    assert not list(home.iterdir())
    protect_token(make=True)
    (file,) = (home / ".ray").iterdir()
    assert file.name == "auth_token"
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(bytes.fromhex(file.read_text())) == 32
    before = file.read_text()
    file.chmod(0o644)  # as Ray makes it
    protect_token(make=True)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text() == before


@pytest.mark.parametrize(("name", "value"), [("RAY_AUTH_MODE", "disabled"), ("RAY_AUTH_TOKEN", "a" * 64)])
def test_none_is_made_where_none_is_read(home, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    protect_token(make=True)
    assert not list(home.iterdir())


def test_a_file_of_one_s_own_that_others_can_read_is_refused(home, monkeypatch):
    file = home / "token"
    file.write_text("a" * 64)
    file.chmod(0o640)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(file))
    with pytest.raises(ConfigError, match=r"other users can read .*token \(mode 0640\).*chmod 600"):
        protect_token(make=True)
    file.chmod(0o600)
    protect_token(make=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_refused(home):
    protect_token(make=True)
    os.chown(home / ".ray/auth_token", 12345, -1)
    with pytest.raises(ConfigError, match="belongs to the user 12345"):
        protect_token(make=True)
