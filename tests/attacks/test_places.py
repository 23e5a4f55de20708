"""A directory that names a server, a store or a file of the victim."""

from __future__ import annotations

import http.server
import os
import shutil
import threading

import pytest
from attack_studies import change_config, change_journal, copied

import raysel
from raysel import tune
from raysel.config import load_config
from raysel.core.errors import ConfigError
from raysel.run.api import prepare_study
from raysel.run.definition import check_stored_places
from raysel.run.recording import resumed_record
from raysel.study.definition import Study
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.places import check_place, note_place, note_store


@pytest.fixture
def server():
    """A stranger's server that counts what is asked of it: its address, and the paths that were
    asked for.
    """
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        do_POST = do_GET  # noqa: N815 - as the class names them

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", asked
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def own_account(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def name_store(study, uri, *, in_config=True):
    change_journal(study, "study", lambda line: line.update(uri=uri))
    if in_config:
        change_journal(study, "study", lambda line: line["config"]["tracking"].update(uri=uri))
        change_config(study, tracking={"uri": uri})


@pytest.mark.parametrize("in_config", [True, False])
def test_a_study_is_not_sent_to_a_strangers_server(stranger, server, in_config, capfd):
    uri, asked = server
    name_store(stranger, uri, in_config=in_config)
    for arguments in (["--resume", str(stranger)], ["--replay", str(stranger)]):
        assert tune.main(arguments) == 2
        assert f"tracking.uri: {uri} is named by the directory" in capfd.readouterr().err
    with pytest.raises(ConfigError):
        raysel.resume_study(stranger, progress=False)
    assert asked == []
    for store in ("sqlite:////home/victim/places.sqlite", "postgresql://evil.example/x"):
        name_store(stranger, store, in_config=False)
        assert tune.main(["--resume", str(stranger)]) == 2
        assert "is named by the directory" in capfd.readouterr().err


@pytest.mark.parametrize("in_config", [True, False])
def test_a_study_that_is_not_uploaded_is_resumed_and_its_store_not_noted(
    stranger, server, in_config, capfd
):
    uri, asked = server
    name_store(stranger, uri, in_config=in_config)
    offline = ["--resume", str(stranger), "--set", "tracking.mlflow=false"]
    assert tune.main(offline) == 0, capfd.readouterr().err
    change_config(stranger, tracking={"uri": uri if in_config else None, "mlflow": True})
    assert tune.main(["--resume", str(stranger)]) == 2
    assert f"tracking.uri: {uri} is named by the directory" in capfd.readouterr().err
    assert asked == []


def test_a_study_of_ones_own_is_resumed_by_one_command(stranger):
    config = raysel.open_study(stranger).config
    study = Study.prepare(
        load_config({**config, "tracking": {"uri": "https://me:secret@mlflow.example/"}})
    )
    with pytest.raises(ConfigError, match="is named by the directory"):
        check_stored_places(study.config, (), stranger)
    note_store(
        study.config, "https://me:secret@mlflow.example/", "id"
    )  # as the start of the study does
    check_stored_places(study.config, (), stranger)
    (noted,) = (stranger.parent / "state/raysel").iterdir()
    assert noted.read_text().splitlines()[1:] == ["https://mlflow.example"]
    assert noted.stat().st_mode & 0o777 == 0o600


def test_a_store_that_is_given_again_or_is_the_default_is_used(stranger, monkeypatch):
    config = raysel.open_study(stranger).stored.study
    study = prepare_study(stranger / "config.yaml")
    uri = "http://mlflow.example:5000"
    with pytest.raises(ConfigError):
        resumed_record(study, config, stranger)
    note_place(config.uri)
    assert resumed_record(study, config, stranger).uri == config.uri
    check_stored_places(study.config, [f"tracking.uri={uri}"], stranger)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    check_place("tracking.uri", uri, stranger)
    with pytest.raises(ConfigError):
        check_place("tracking.uri", "http://mlflow.example:5001", stranger)
    note_place("http://mlflow.example:5001/?password=x")
    check_place("tracking.uri", "http://mlflow.example:5001", stranger)


def name_in_mlflow(study, **names):
    change_journal(study, "study", lambda line: line["config"]["tracking"].update(names))
    change_journal(
        study,
        "study",
        lambda line: line.update(experiment=names.get("experiment", line["experiment"])),
    )
    change_config(study, tracking=names)


@pytest.mark.parametrize("key", ["experiment", "register"])
def test_no_experiment_or_registered_model_of_the_directorys_choice_is_written(
    stranger, monkeypatch, key, capfd
):
    name_in_mlflow(stranger, **{key: "production-model"})
    note_place(raysel.open_study(stranger).stored.study.uri)
    monkeypatch.setattr("raysel.cli.replay.replay", pytest.fail)
    for command in ("--resume", "--replay"):
        assert tune.main([command, str(stranger)]) == 2
        assert (
            f"tracking.{key}: production-model is named by the directory" in capfd.readouterr().err
        )
    with pytest.raises(ConfigError, match=f"tracking.{key}: production-model is named by"):
        raysel.resume_study(stranger, progress=False)
    asked = []
    monkeypatch.setattr(
        "raysel.cli.replay.replay",
        lambda *arguments: asked.append(arguments[2]) or {"error": "", "logged": 0},
    )
    for given, used in (("null", None), ("mine", "mine")):
        assert tune.main(["--replay", str(stranger), "--set", f"tracking.{key}={given}"]) == 0
        assert asked.pop() == {key: used}
    assert tune.main(["--replay", str(stranger)]) == 2  # only the name that was given is noted
    assert tune.main(["--replay", str(stranger), "--set", f"tracking.{key}=production-model"]) == 0
    assert (
        tune.main(["--replay", str(stranger)]) == 0
    )  # as this account has used it with this study
    change_journal(stranger, "study", lambda line: line.update(id="another"))
    assert tune.main(["--replay", str(stranger)]) == 2


@pytest.mark.parametrize(
    ("section", "key", "path", "message"),
    [
        ("dataset", "path", "/etc/passwd", "neither a built-in data set"),
        ("dataset", "path", "http://127.0.0.1:1/few.npz", "there is no reader for the scheme http"),
        (
            "dataset",
            "path",
            "s3://evil/few.npz?endpoint_override=127.0.0.1:1",
            "is named by the directory",
        ),
        ("dataset", "path", "/dev/zero", "neither a built-in data set"),
        ("search", "configurations", "/dev/zero", "there is no such file"),
        ("search", "configurations", "pipe", "there is no such file"),
    ],
)
def test_a_file_of_the_directorys_choice_is_not_shown(stranger, section, key, path, message, capfd):
    if path == "pipe":
        os.mkfifo(path)
    change_config(stranger, section, **{key: path})
    assert tune.main(["--resume", str(stranger)]) == 2
    out, err = capfd.readouterr()
    assert "root:" not in out + err
    assert message in err


def test_the_output_of_a_stored_configuration_is_not_used(stranger, tmp_path):
    change_config(stranger, output=str(tmp_path / "victim"))
    study = prepare_study(None, resumed=StudyDirectory(copied(stranger, tmp_path / "other")))
    assert study.config.output
    assert not (tmp_path / "victim").exists()


@pytest.fixture(scope="module")
def own_store(tmp_path_factory):
    """A store whose experiment of one study of this account a person has described."""
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds

    path = tmp_path_factory.mktemp("own") / "mlflow.db"
    client = MlflowClient(f"sqlite:///{path}")
    experiment = client.create_experiment("mine", tags={"mlflow.note.content": "My description"})
    client.create_run(experiment, tags={"raysel.study": "first", "raysel.key": "study"})
    return path


def content(uri):
    """Tags of the experiment and studies of its runs."""
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds

    client = MlflowClient(uri)
    (found,) = client.search_experiments(filter_string="name = 'mine'")
    runs = client.search_runs([found.experiment_id])
    return dict(found.tags), {run.data.tags["raysel.study"] for run in runs}


def named_mine(study, tmp_path, own_store):
    """Name a study as the experiment of the store, and return the URI of a copy of the store."""
    change_journal(study, "study", lambda line: line.update(name="mine", experiment="mine"))
    change_journal(study, "study", lambda line: line["config"].update(name="mine"))
    change_config(study, name="mine")
    shutil.copy(own_store, tmp_path / "mlflow.db")
    return f"sqlite:///{tmp_path}/mlflow.db"


def test_a_study_named_as_an_experiment_of_others_is_not_added_to_it(
    stranger, tmp_path, own_store, capfd
):
    uri = named_mine(stranger, tmp_path, own_store)
    before = content(uri)
    into = ["--set", f"tracking.uri={uri}"]
    unnamed = ["--set", "tracking.experiment=null"]
    for command in ("--replay", "--resume"):
        for further in ([], unnamed):
            assert tune.main([command, str(stranger), *into, *further]) == 2
            assert "tracking.experiment: mine has runs of other studies" in capfd.readouterr().err
    change_journal(stranger, "study", lambda line: line.update(id="' or x = 'y"))
    assert tune.main(["--replay", str(stranger), *into]) == 2
    assert content(uri) == before


def test_a_second_study_of_ones_own_is_added_to_the_experiment_of_its_name(
    stranger, tmp_path, own_store
):
    uri = named_mine(stranger, tmp_path, own_store)
    stored = raysel.open_study(stranger).stored.study
    study = Study.prepare(load_config({**stored.config, "name": "mine"}))
    note_store(study.config, uri, stored.id)  # as the start of the study does
    assert tune.main(["--replay", str(stranger), "--set", f"tracking.uri={uri}"]) == 0
    tags, studies = content(uri)
    assert tags["mlflow.note.content"] == "My description"
    assert studies == {"first", stored.id}
    (tmp_path / "state/raysel/places").unlink()  # the runs of the study tell
    assert tune.main(["--replay", str(stranger), "--set", f"tracking.uri={uri}"]) == 0


def test_a_study_named_as_no_experiment_or_with_the_name_given_again_is_uploaded(
    stranger, tmp_path, own_store
):
    uri = named_mine(stranger, tmp_path, own_store)
    into = ["--replay", str(stranger), "--set", f"tracking.uri={uri}", "--set"]
    assert tune.main([*into, "tracking.experiment=theirs"]) == 0
    assert content(uri)[1] == {"first"}
    assert tune.main([*into, "tracking.experiment=mine"]) == 0
    assert len(content(uri)[1]) == 2
