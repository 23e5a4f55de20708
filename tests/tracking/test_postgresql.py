"""MLflow's server as the compose file runs it, on a real PostgreSQL: users, files of runs, no
password outside.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import re
import secrets
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from mlflow_servers import (
    COMPOSE,
    Postgres,
    compose,
    composed_server,
    directory_for,
    keys_of,
    local_study,
    runs_in,
)
from werkzeug.security import generate_password_hash

from raysel.core.credentials import HIDDEN, changed_variables
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import read_records
from raysel.tracking.journal_upload import replay, tracking_status
from raysel.tracking.upload_process import MLflowUploader
from raysel.tune import main

#: One trial: a run needs many requests.
FEW = {"alpha": [0.1]}


def test_the_compose_file_is_one_and_opens_nothing_to_others():
    described = compose()
    services = described["services"]
    assert set(services) == {"postgres", "mlflow"}
    assert "ports" not in services["postgres"]
    assert services["mlflow"]["ports"] == ["${MLFLOW_ADDRESS:-127.0.0.1}:5000:5000"]
    for service in services.values():
        assert set(service["secrets"]) <= set(described["secrets"])
        assert {config["source"] for config in service["configs"]} <= set(described["configs"])
        assert {volume.partition(":")[0] for volume in service["volumes"]} <= set(
            described["volumes"]
        )
    assert not re.search(r"password[ \t]*[=:][ \t]*\w|://\w+:", COMPOSE.read_text(), re.IGNORECASE)
    command = services["mlflow"]["command"][-1]
    for option in ("--app-name basic-auth", "--serve-artifacts", "--allowed-hosts"):
        assert option in command


def test_the_compose_file_has_the_keys_of_the_compose_specification():
    validator = pytest.importorskip(
        "compose_spec", reason="needs compose-spec: pip install '.[test]'"
    )
    text = re.sub(
        r"\$\{\w+:-([^}]*)\}", r"\1", COMPOSE.read_text()
    )  # as Compose replaces variables
    parsed = validator.PyCompose.from_yaml(text)
    parsed.validate()
    assert sorted(parsed.service_names()) == ["mlflow", "postgres"]
    with pytest.raises(ValueError, match="healthchek"):
        validator.PyCompose.from_yaml(text.replace("healthcheck", "healthchek"))


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    return local_study(tmp_path_factory.mktemp("local"), solver__space=FEW)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    found = Postgres()
    yield found
    found.close()


@pytest.fixture(scope="module")
def served(postgres, tmp_path_factory) -> Iterator[tuple[str, str]]:
    """Address of the server, and the password of its user ada, who is no administrator."""
    with composed_server(postgres, tmp_path_factory.mktemp("server")) as (address, admin):
        password = secrets.token_hex(12)
        words = base64.b64encode(f"admin:{admin}".encode()).decode()
        body = json.dumps({"username": "ada", "password": password}).encode()
        head = {"Content-Type": "application/json", "Authorization": f"Basic {words}"}
        url = f"http://{address}/api/2.0/mlflow/users/create"
        with urllib.request.urlopen(urllib.request.Request(url, body, head), timeout=60) as answer:
            assert answer.status == 200
        # MLflow checks the password with each request, by a hash that takes as long as the request.
        quick = generate_password_hash(password, method="pbkdf2:sha256:1")
        postgres.run(
            "psql",
            "-d",
            "mlflow_auth",
            "-c",
            f"UPDATE users SET password_hash = '{quick}' WHERE username = 'ada'",
        )
        yield address, password


def processes() -> Iterator[tuple[str, bytes]]:
    """Arguments of each process."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield path.name, (path / "cmdline").read_bytes().replace(b"\0", b" ")


@contextmanager
def watched(password: str, since: Path) -> Iterator[list[str]]:
    """Processes that show a password in their arguments."""
    found: list[str] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.5):
            for number, arguments in processes() if since.exists() else ():
                if password.encode() in arguments:
                    found.append(f"{number}: {arguments.decode(errors='replace')[:200]}")

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def run(folder: Path, *arguments: str, **variables: str) -> str:
    """Run a study by the command in a process of its own; returns what it printed."""
    command = [sys.executable, "-m", "raysel.tune", *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def assert_uploaded_once(uri: str, experiment: str, study: Path, like: Path) -> None:
    """All runs and the model are there once, with the numbers of a study that was run on this
    machine.
    """
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds

    client = MlflowClient(uri)
    id_ = client.get_experiment_by_name(experiment).experiment_id
    runs = client.search_runs([id_])
    assert sorted(run.data.tags["raysel.key"] for run in runs) == keys_of(
        list(read_records(study / "journal.jsonl"))
    )
    (model,) = client.search_logged_models([id_])
    assert model.source_run_id == next(
        r.info.run_id for r in runs if r.data.tags["raysel.kind"] == "final"
    )
    own, local = (
        json.loads((path / "ranking" / "manifest.json").read_text()) for path in (study, like)
    )
    assert own["scores"] == local["scores"]
    assert own["winners"] == local["winners"]
    assert (study / "ranking" / "ranking.csv").read_bytes() == (
        like / "ranking" / "ranking.csv"
    ).read_bytes()
    (whole,) = [run for run in runs if run.data.tags["raysel.key"] == "study"]
    end = [json.loads(line) for line in (study / "journal.jsonl").read_text().splitlines()][-1]
    assert whole.data.metrics["test_accuracy"] == pytest.approx(
        end["result"]["test_mean"], rel=6e-4
    )


def assert_nowhere(password: str, folders: list[Path], texts: list[str]) -> None:
    for folder in folders:
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert files
        for path in files:
            assert password.encode() not in path.read_bytes(), path
    for text in texts:
        assert text
        assert password not in text


def environment_without_others() -> dict[str, None]:
    names = ("URI", "USERNAME", "PASSWORD", "TOKEN")
    return {f"MLFLOW_TRACKING_{name}": None for name in names} | {
        "PGPASSWORD": None,
        "PGUSER": None,
    }


@pytest.mark.slow
@pytest.mark.usefixtures("prompt_uploads")
def test_a_server_with_users_gets_a_study_and_its_password_goes_nowhere_else(
    postgres, served, local, tmp_path, capfd
):
    address, password = served
    folder, study = local.study.parent, tmp_path / "study"
    uri = f"http://ada:{password}@{address}"
    with (
        changed_variables(environment_without_others()),
        watched(password, study / "journal.jsonl") as seen,
    ):
        # A password in an argument would be refused, as every process sees it.
        config = yaml.safe_load((folder / "few.yaml").read_text())
        config |= {"name": "served", "tracking": {"uri": uri}}
        (folder / "served.yaml").write_text(yaml.safe_dump(config))
        printed = run(folder, "served.yaml", "--output", str(study))
    assert not seen
    assert tracking_status(StudyDirectory(study))["complete"], tracking_status(
        StudyDirectory(study)
    )
    assert f"http://{address}/#/experiments" in printed
    variables: dict[str, Any] = {
        "MLFLOW_TRACKING_USERNAME": "ada",
        "MLFLOW_TRACKING_PASSWORD": password,
    }
    with changed_variables(environment_without_others() | variables):
        assert_uploaded_once(f"http://{address}", "served", study, local.study)
        from mlflow.artifacts import download_artifacts  # noqa: PLC0415 - takes seconds
        from mlflow.tracking import MlflowClient  # noqa: PLC0415

        client = MlflowClient(f"http://{address}")
        experiment = client.get_experiment_by_name("served").experiment_id
        (final,) = client.search_runs([experiment], "tags.`raysel.kind` = 'final'")
        there = {"tracking_uri": f"http://{address}", "dst_path": str(tmp_path)}
        ranking = Path(
            download_artifacts(run_id=final.info.run_id, artifact_path="ranking.csv", **there)
        )
        assert ranking.read_bytes() == (study / "ranking" / "ranking.csv").read_bytes()
        assert final.info.artifact_uri.startswith("mlflow-artifacts:/")
    dumps = [postgres.run("pg_dump", name) for name in ("mlflow", "mlflow_auth")]
    assert "served" in dumps[0]
    assert_nowhere(password, [study], [printed, *dumps])
    stored = (study / "config.yaml").read_text()
    assert f"http://{HIDDEN}@{address}" in stored

    # Without credentials nothing is lost, and the message says how to give them; with them a replay
    # adds nothing.
    with changed_variables(environment_without_others()):
        assert main(["--replay", str(study)]) == 1
    refused = capfd.readouterr().err
    assert "answered 401" in refused
    assert "MLFLOW_TRACKING_USERNAME" in refused
    with changed_variables(environment_without_others() | {"MLFLOW_TRACKING_URI": uri}):
        assert main(["--replay", str(study)]) == 0
    with changed_variables(environment_without_others() | variables):
        assert_uploaded_once(f"http://{address}", "served", study, local.study)
    assert_nowhere(password, [study], [capfd.readouterr().out])


@pytest.mark.slow
def test_studies_that_start_at_once_on_an_empty_database_all_get_it(postgres, local, tmp_path):
    postgres.run("createdb", "direct")
    uri = postgres.uri("direct", password=True)
    bare = postgres.uri("direct", password=False)
    apart = {"PGUSER": "mlflow", "PGPASSWORD": postgres.password}
    ways = {"in-uri": (uri, {}), "in-environment": (bare, apart)}
    directories, uploads = [], []
    for name, (place, variables) in ways.items():
        directory = directory_for(place, tmp_path / name, local.study)
        with changed_variables(environment_without_others() | variables):
            uploads.append(MLflowUploader(directory))
        directories.append(directory)
    assert [upload.finish(math.inf)["complete"] for upload in uploads] == [True, True]
    for name, directory in zip(ways, directories, strict=True):
        keys = keys_of(list(read_records(directory.journal)))
        assert runs_in(uri, name) == keys
    folders = [directory.path for directory in directories]
    assert_nowhere(postgres.password, folders, [postgres.run("pg_dump", "direct")])
    with changed_variables(environment_without_others()):
        wrong = replay(directories[0], uri.replace(postgres.password, "wrong"))
    assert "refused the user or the password; set PGUSER and PGPASSWORD" in wrong["error"]
