"""No credentials of a URI leave the memory of the process: texts, errors, configurations,
pickles, studies on disk.
"""

from __future__ import annotations

import base64
import os
import pickle
import stat
import string
import traceback
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
import sqlalchemy
from hypothesis import given
from hypothesis import strategies as st
from small_studies import make_study, raw_config, run_offline, write_digits

from raysel.config import config_from_dict, load_comparison, load_config
from raysel.config.schema import DatasetConfig, TrackingConfig
from raysel.core.credentials import (
    HIDDEN,
    bare_uri,
    changed_variables,
    from_pipe,
    has_credentials,
    hidden_variables,
    keep_all_credentials,
    keep_credentials,
    lacks_credentials,
    split_user,
    to_pipe,
    with_credentials,
    without_credentials,
)
from raysel.core.errors import ConfigError, DataError, StudyError
from raysel.core.storage.location import parse_location
from raysel.run.recording import mlflow_uri, resumed_record, study_record
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import ComparisonRecord, StudyDirectory
from raysel.tracking.places import absolute_uri, connection, missing_credentials
from raysel.tracking.records import record_from_line

#: Long enough that no other part of a text is the same by chance.
SECRET = "Sw0rdf1sh"
HOSTS = st.sampled_from(
    ["mlflow.example", "127.0.0.1:5000", "[::1]", "[fe80::1]:5432", "db.example:65535"]
)
PATHS = st.sampled_from(["", "/", "/a/b", "/a@b", "/mlflow"])
#: What a password in a URI may hold as it is, and what must be percent-encoded.
PLAIN = st.text(string.ascii_letters + string.digits + "-._~!$&()*+,;=:@", min_size=1, max_size=12)
ANY = st.text(string.printable.strip() + "äß 中", min_size=1, max_size=12)
WEB = st.sampled_from(["http", "https", "s3", "gs"])
DATABASE = st.sampled_from(["postgresql", "postgresql+psycopg2", "mysql+pymysql", "mssql+pyodbc"])
NAMES = st.sampled_from(
    [
        *(
            "password",
            "PASSWORD",
            "pass%77ord",
            "token",
            "api_key",
            "access_key",
            "secret_key",
            "AWSSecretAccessKey",
        ),
        *(
            "sas",
            "sig",
            "Signature",
            "X-Amz-Signature",
            "X-Amz-Credential",
            "X-Amz-Security-Token",
            "X-Goog-Signature",
        ),
    ]
)


def secret(plain: str) -> str:
    return f"{SECRET}{plain}{SECRET}"


USER_INFO = st.one_of(
    st.builds(
        lambda name, plain: f"{name}:{secret(plain)}", st.sampled_from(["ada", "", "a%40b"]), PLAIN
    ),
    st.builds(lambda text: f"ada:{quote(secret(text), safe='')}", ANY),
    st.builds(lambda text: quote(secret(text), safe=""), ANY),  # a token
)


@st.composite
def uris(draw) -> str:
    scheme = draw(WEB | DATABASE)
    path = draw(PATHS)
    if "sql" in scheme:
        path = path.replace("@", "")
    parameters = draw(st.dictionaries(NAMES, ANY.map(secret), max_size=2))
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())
    user = draw(USER_INFO | st.just("")) or ("" if query else f"ada:{SECRET}")
    at = "@" if user else ""
    return f"{scheme}://{user}{at}{draw(HOSTS)}{path}" + (f"?timeout=5&{query}" if query else "")


@given(
    st.lists(uris(), min_size=1, max_size=3),
    st.sampled_from([" and ", ", ", "\n", "', '", '","', " -> "]),
)
def test_no_text_keeps_a_secret_and_its_other_words_stay(given_uris, between):
    text = f"no answer from '{between.join(given_uris)}' after 5 s"
    clean = without_credentials(text)
    assert SECRET not in clean
    assert clean.startswith("no answer from '")
    assert clean.endswith(" after 5 s")
    assert without_credentials(clean) == clean


@given(uris())
def test_a_stored_uri_is_the_same_for_all_credentials_and_comes_back_whole(uri):
    stored = keep_credentials(uri)
    assert SECRET not in stored
    assert HIDDEN in stored
    assert with_credentials(stored) == uri
    assert keep_credentials(stored) == stored
    assert keep_credentials(uri.replace(SECRET, "0ther")) == stored
    bare = bare_uri(uri)
    assert bare == bare_uri(stored) == bare_uri(bare)
    assert HIDDEN not in bare
    assert SECRET not in bare
    assert (
        urlsplit(bare).hostname
        == urlsplit(f"{bare.partition('://')[0]}://{bare.partition('://')[2]}").hostname
    )
    assert "@" not in urlsplit(bare).netloc


@given(uris())
def test_what_stays_is_what_libraries_take_for_the_place(uri):
    if "sql" not in uri.partition("://")[0] or uri.count("@") > 1:
        return
    before, after = sqlalchemy.make_url(uri), sqlalchemy.make_url(bare_uri(uri))
    assert (after.drivername, after.host, after.port, after.database) == (
        (before.drivername, before.host, before.port, before.database)
    )
    assert after.username is None
    assert after.password is None
    if before.username:
        assert split_user(uri) == (before.username, str(before.password or ""))


@given(
    st.builds(
        lambda plain: f"postgresql://ada:{secret(plain)}@db.example/mlflow",
        st.text("/?#@:&=ab", max_size=8),
    )
)
def test_a_databases_password_may_hold_what_ends_an_address(uri):
    assert SECRET not in without_credentials(f"cannot connect to {keep_credentials(uri)}: {uri}")


def test_a_text_without_credentials_is_not_changed():
    for text in (
        "sqlite:////home/ada@work/mlflow.db",
        "https://mlflow.example:5000/a@b",
        "http://[::1]:5000/#/experiments/1?searchFilter=a",
        "gs://bucket/data@2.npz",
        "write to ada@mlflow.example; token expired, password=",
        "https://mlflow.example/?page=2&max_results=5",
    ):
        assert (
            without_credentials(text)
            == text
            == keep_credentials(text)
            == with_credentials(text)
            == bare_uri(text)
        )


@given(ANY.map(secret))
def test_a_header_that_a_server_repeats_is_hidden(text):
    words = base64.b64encode(f"ada:{text}".encode()).decode()
    assert words not in without_credentials(f"{{'Authorization': 'Basic {words}', 'Host': 'x'}}")


def test_errors_hide_credentials_and_so_do_their_causes(tmp_path):
    assert str(StudyError(Path(f"s3://key:{SECRET}@b/x").as_posix())) == f"s3:/{HIDDEN}@b/x"
    for kind in (ConfigError, DataError, StudyError):
        assert str(kind(f"http://ada:{SECRET}@h is down")) == f"http://{HIDDEN}@h is down"
    bad = tmp_path / "bad.yaml"
    bad.write_text(f"tracking: {{uri: 'http://ada:{SECRET}@h'\nname: x\n")
    uri = f"http://ada:{SECRET}@h"
    attempts = [
        lambda: load_config(bad),
        lambda: load_config("digits-smr", [f"tracking.uri: {uri}"]),
        lambda: load_config("digits-smr", [f"tracking.uri={{{uri}"]),
        lambda: load_config("digits-smr", {"tracking": uri}),
        lambda: load_config("digits-smr", {"tracking.url": uri}),
        lambda: load_config("digits-smr", {"cv.outer": uri}),
        lambda: load_comparison({"name": "a", "compare": {"A": uri}}),
        lambda: absolute_uri(f"ftp://ada:{SECRET}@h"),
        lambda: TrackingConfig(uri=[uri]),
    ]
    for attempt in attempts:
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - pydantic's is no ConfigError
            attempt()
        assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_configurations_hold_no_credentials_and_are_the_same_study_with_others():
    uri, path = f"https://ada:{SECRET}@h", f"s3://key:{SECRET}@bucket/few.npz?region=eu"
    config = config_from_dict(
        raw_config(path, tracking__uri=uri, output=f"s3://key:{SECRET}@bucket/out")
    )
    for text in (
        repr(config),
        str(config.to_dict()),
        config.model_dump_json(),
        repr(pickle.dumps(config)),
    ):
        assert SECRET not in text
    assert with_credentials(config.tracking.uri) == uri
    assert config.output == "s3://bucket/out"
    assert parse_location(config.output).secrets == ("key", SECRET)
    assert with_credentials(load_config(config, {"cv.outer": 3}).tracking.uri) == uri
    for other in ("s3://bucket/few.npz?region=eu", "s3://key:0ther@bucket/few.npz?region=eu"):
        assert config_from_dict(raw_config(other)).hash == config.hash
    assert config_from_dict(raw_config("s3://bucket/other.npz")).hash != config.hash
    assert SECRET not in repr(DatasetConfig(path=path)) + repr(TrackingConfig(uri=uri))
    members = {"A": {"solver": {"name": "smr"}}, "B": {"solver": {"name": "linear_svm"}}}
    raw = {"name": "c", "dataset": {"path": path}, "tracking": {"uri": uri}, "compare": members}
    comparison = load_comparison(raw)
    assert SECRET not in str(comparison.to_dict()) + repr(comparison.members)
    assert with_credentials(comparison.members["A"].tracking.uri) == uri


def test_records_of_version_0_1_with_credentials_are_read_without_them():
    config = {"tracking": {"uri": f"http://ada:{SECRET}@h"}}
    fields = {"name": "few", "experiment": "few", "started": 0.0, "uri": f"http://ada:{SECRET}@h"}
    study = {
        "config_hash": "",
        "data_hash": "",
        "metric": "",
        "n_samples": 1,
        "n_trials": 1,
    } | fields
    study |= {key: [] for key in ("labels", "folds", "feature_names", "constant")}
    study |= {key: {} for key in ("versions", "layout")} | {
        "kind": "study",
        "id": "a",
        "config": config,
    }
    assert SECRET not in repr(record_from_line(study))
    member = {"label": "A", "folder": "a", "solver": "smr", "reconstructed": False, "error": None}
    comparison = fields | {"schema": 1, "id": "a", "reference": "A", "members": [member]}
    assert SECRET not in repr(ComparisonRecord.from_json(comparison))


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_study_on_disk_has_no_credentials_and_the_modes_that_the_umask_gives(
    tmp_path, monkeypatch, umask
):
    monkeypatch.chdir(tmp_path)
    write_digits(Path("few.npz"))
    raw = raw_config(
        "few.npz",
        tracking__uri=f"https://ada:{SECRET}@mlflow.example",
        solver__space={"alpha": [0.1]},
    )
    before = os.umask(umask)
    try:
        result = run_offline(raw, tmp_path / "study")
    finally:
        os.umask(before)
    paths = [tmp_path / "study", *(tmp_path / "study").rglob("*")]
    assert len(paths) > 10
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == (0o777 if path.is_dir() else 0o666) & ~umask, (
            path
        )
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path
    assert result.stored.study.uri == f"https://{HIDDEN}@mlflow.example"


@pytest.mark.slow
def test_a_study_is_resumed_with_credentials_given_in_any_way(tmp_path, monkeypatch):
    for name in ("USERNAME", "PASSWORD", "TOKEN", "URI"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("raysel.core.credentials._kept", {})
    write_digits(tmp_path / "few.npz")
    host = "https://mlflow.example:5000"
    full = host.replace("//", f"//ada:{SECRET}@")
    stored_uri = host.replace("//", f"//{HIDDEN}@")
    study = make_study(tmp_path / "few.npz", tracking__uri=full)
    before = study_record(study, id_="a", uri=mlflow_uri(study.config), started=0.0)
    assert SECRET not in repr(before) + repr(pickle.dumps(study))
    stored = StoredStudy(StudyDirectory(tmp_path), before, [], [], {}, None, "killed")

    monkeypatch.setattr("raysel.core.credentials._kept", {})  # another process
    assert lacks_credentials(before.uri)
    assert connection(before.uri) == (host, {})
    assert "Set MLFLOW_TRACKING_USERNAME" in missing_credentials(before.uri)
    own = {
        "MLFLOW_TRACKING_USERNAME": "ada",
        "MLFLOW_TRACKING_PASSWORD": SECRET,
        "MLFLOW_TRACKING_TOKEN": None,
    }
    with changed_variables({"MLFLOW_TRACKING_URI": full}):
        assert connection(before.uri) == (host, own)
        assert not missing_credentials(before.uri)
    with changed_variables(own):  # MLflow reads them itself
        assert not missing_credentials(before.uri)
    for uri in (full, full.replace(SECRET, "0ther"), host, stored_uri):
        config = study.config.model_copy(update={"tracking": TrackingConfig(uri=uri)})
        again = replace(study, config=config)
        now = resumed_record(again, before)
        stored.check(again, now)
        assert stored.is_of(again)
        assert bare_uri(now.uri) == host
        if uri == full:
            assert connection(now.uri) == (host, own)
    assert connection(f"https://{SECRET}@h")[1]["MLFLOW_TRACKING_TOKEN"] == SECRET
    assert connection(f"postgresql+psycopg2://ada:{SECRET}@h/db") == (
        f"postgresql+psycopg2://ada:{SECRET}@h/db",
        {},
    )
    monkeypatch.setattr("raysel.core.credentials._kept", {})
    assert "PGPASSWORD" in missing_credentials(f"postgresql://{HIDDEN}@h/db")
    (tmp_path / ".pgpass").touch()
    assert not missing_credentials(f"postgresql://{HIDDEN}@h/db")


def test_credentials_go_to_a_child_in_one_line(monkeypatch):
    uri = f"https://ada:{SECRET}\u2028%0A@h"
    stored = keep_credentials(uri)
    line = to_pipe()
    assert line.count("\n") == 1
    assert len(line.splitlines()) == 1
    monkeypatch.setattr("raysel.core.credentials._kept", {})
    from_pipe("")
    assert with_credentials(stored) == "https://h"
    from_pipe(line)
    assert with_credentials(stored) == uri


@given(
    st.one_of(uris(), st.just(f"postgresql://ada:a {SECRET}@db/x")),
    st.sampled_from(["", "tracking.uri=", "--set=tracking.uri=", "--output="]),
)
def test_an_argument_with_credentials_is_known_from_one_without(uri, before):
    assert has_credentials(f"{before}{uri}")
    assert not has_credentials(f"{before}{bare_uri(uri)}")
    assert not has_credentials(f"{before}{keep_credentials(uri)}")


def test_credentials_are_found_in_yaml_and_nowhere_else():
    uri = f"http://ada:{SECRET}@h"
    for argument in (f"tracking.uri='{uri}'", f"tracking={{uri: '{uri}', experiment: x}}"):
        assert has_credentials(argument)
    for plain in ("cv.outer=3", "few.yaml", "solver.params.token=3", "file:///a@b/c", "a@b:c"):
        assert not has_credentials(plain)


def test_variables_are_hidden_while_rays_processes_start(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", SECRET)
    monkeypatch.setenv("PGPASSWORD", SECRET)
    monkeypatch.delenv("MLFLOW_TRACKING_TOKEN", raising=False)
    with hidden_variables():
        assert SECRET not in os.environ.values()
    assert os.environ["MLFLOW_TRACKING_PASSWORD"] == os.environ["PGPASSWORD"] == SECRET
    assert "MLFLOW_TRACKING_TOKEN" not in os.environ


def test_a_text_of_any_length_takes_time_in_proportion():
    for text in ("x", "a:/", "a://", "a://,", "authorization ", "x=", "@", "http://a:b@c,"):
        shown = without_credentials(text * 50_000)  # a quadratic search would take hours
        assert "a:b" not in shown
        assert len(shown) >= len(text) * 50_000 - 50_000 * len("a:b")


def test_plain_data_keep_their_other_values():
    raw = {"a": [1, 2.5, None, True, "x"], "b": {"c": ("y", f"http://t:{SECRET}@h")}, 3: object}
    clean = keep_all_credentials(raw)
    assert clean == {"a": raw["a"], "b": {"c": ("y", f"http://{HIDDEN}@h")}, 3: object}
