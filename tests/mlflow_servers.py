"""Servers that MLflow needs on several machines, started here: PostgreSQL, and the services of
the compose file.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_studies import CommandRun, raw_config, run_offline, write_digits, write_yaml

from raysel.core.credentials import keep_credentials
from raysel.evaluation.records import RefitRecord, TrialRecord
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import Journal, read_records

COMPOSE = Path(__file__).resolve().parent.parent / "conf" / "cluster" / "mlflow-compose.yaml"


def local_study(folder: Path, **changes: Any) -> CommandRun:
    """A study of `raw_config` that was run here, without Ray and MLflow, beside its data and its
    few.yaml.
    """
    write_digits(folder / "few.npz")
    write_yaml(folder / "few.yaml", **changes)
    with contextlib.chdir(folder):
        run_offline(raw_config("few.npz", **changes), folder / "study")
    return CommandRun(0, "", "", folder / "study")


def directory_for(uri: str, folder: Path, study: Path, most: int | None = None) -> StudyDirectory:
    """A directory with the journal of a finished study, or its first records, for another store."""
    directory = StudyDirectory(folder)
    directory.path.mkdir(exist_ok=True)
    first, *rest = read_records(study / "journal.jsonl")
    own = {"id": folder.name, "experiment": folder.name, "uri": keep_credentials(uri)}
    records = [replace(first, **own), *rest]
    n_written = len(list(read_records(directory.journal))) if directory.journal.exists() else 0
    with Journal(directory.journal) as journal:
        for record in records[n_written:most]:
            journal.append(record)
    return directory


def keys_of(records: Iterable[Any]) -> list[str]:
    """Keys of the runs that MLflow has of a study's records."""
    trials = [f"trial:{r.id}" for r in records if isinstance(r, TrialRecord)]
    refits = [f"refit:{r.fold}:{r.trial}" for r in records if isinstance(r, RefitRecord)]
    return sorted(["study", *trials, *refits])


def runs_in(uri: str, experiment: str) -> list[str]:
    """Keys of the runs of an experiment."""
    from mlflow.tracking import MlflowClient  # noqa: PLC0415 - takes seconds

    client = MlflowClient(uri)
    runs = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    return sorted(run.data.tags["raysel.key"] for run in runs)


def rounded(metrics: Mapping[str, float]) -> dict[str, float]:
    """Metrics as MLflow has them: four digits, but whole numbers and objectives as they are."""
    return {
        key: (
            value if key.startswith("objective") or value == round(value) else float(f"{value:.3e}")
        )
        for key, value in metrics.items()
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def compose() -> dict[str, Any]:
    """The compose file as plain data."""
    return yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))


def postgresql_binaries() -> Path:
    """Folder of the programs of the newest PostgreSQL; skips the test where that cannot be
    started.
    """
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    drivers = [name for name in ("psycopg2", "flask_wtf") if find_spec(name) is None]
    if not found:
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    if drivers:
        pytest.skip(f"needs PostgreSQL and {', '.join(drivers)}: pip install '.[test]'")
    if os.getuid() == 0 and not shutil.which("runuser"):
        pytest.skip("needs PostgreSQL, which does not run as root: runuser is missing")
    return found[-1].parent


class Postgres:
    """PostgreSQL on loopback in a temporary folder, whose user mlflow needs a password; not run
    by root.
    """

    def __init__(self) -> None:
        self._bin = postgresql_binaries()
        self.port, self.password = free_port(), secrets.token_hex(12)
        # Not in pytest's folder, which the user postgres cannot enter.
        self._folder = Path(tempfile.mkdtemp(prefix="raysel-postgresql-"))
        words = self._folder / "password"
        words.write_text(self.password)
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            for path in (self._folder, words):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        data = self._folder / "data"
        self._run(
            "initdb",
            "-D",
            str(data),
            "-U",
            "mlflow",
            "--auth=scram-sha-256",
            "--pwfile",
            str(words),
            "-N",
        )
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c"
            f" unix_socket_directories={self._folder} -c fsync=off"
        )
        self._run(
            "pg_ctl", "-D", str(data), "-w", "-l", str(self._folder / "log"), "-o", options, "start"
        )
        self.run("createdb", "mlflow")

    def _run(self, program: str, *arguments: str) -> None:
        user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        subprocess.run(
            [*user, str(self._bin / program), *arguments],
            check=True,
            cwd="/",
            stdout=subprocess.DEVNULL,
            timeout=120,
        )

    @property
    def environment(self) -> dict[str, str]:
        """Environment in which PostgreSQL's library finds the server and the password."""
        return os.environ | {"PGPASSWORD": self.password, "PGUSER": "mlflow"}

    def run(self, program: str, *arguments: str) -> str:
        """Output of a program of PostgreSQL's client."""
        command = [str(self._bin / program), "-h", "127.0.0.1", "-p", str(self.port), *arguments]
        return subprocess.run(
            command, check=True, env=self.environment, capture_output=True, text=True
        ).stdout

    def uri(self, database: str, *, password: bool) -> str:
        """URI of a database, with user and password or without."""
        user = f"mlflow:{self.password}@" if password else ""
        return f"postgresql+psycopg2://{user}127.0.0.1:{self.port}/{database}"

    def close(self) -> None:
        """Stop it and remove its files."""
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", "immediate", "stop")
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def composed_server(postgres: Postgres, folder: Path) -> Iterator[tuple[str, str]]:
    """Run the very command of the compose file with its places moved; yields the address and
    admin's password.
    """
    port, admin = free_port(), secrets.token_hex(12)
    for name, value in {
        "postgres_password": postgres.password,
        "admin_password": admin,
        "session_key": secrets.token_hex(12),
    }.items():
        (folder / name).write_text(value)
    described = compose()
    service, database = described["services"]["mlflow"], f"@127.0.0.1:{postgres.port}/"
    moved = {
        "$$": "$",
        "/run/secrets/": f"{folder}/",
        "/var/lib/mlflow/artifacts": f"{folder}/artifacts",
        "@postgres/": database,
        "0.0.0.0": "127.0.0.1",
        "--workers 2": "--workers 1",  # each imports for seconds
        "--port 5000": f"--port {port}",
        ":5000": f":{port}",
    }

    def here(text: str) -> str:
        for before, after in moved.items():
            text = text.replace(before, after)
        return text

    (folder / "auth.sql").write_text(described["configs"]["auth_database"]["content"])
    postgres.run("psql", "-d", "mlflow", "-q", "-f", str(folder / "auth.sql"))
    (folder / "basic_auth.ini").write_text(here(described["configs"]["basic_auth"]["content"]))
    environment = {key: here(value) for key, value in service["environment"].items()}
    environment["MLFLOW_HOSTS"] = environment["MLFLOW_HOSTS"].partition(":-")[2].removesuffix("}")
    environment["MLFLOW_AUTH_CONFIG_PATH"] = str(folder / "basic_auth.ini")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [here(word) for word in service["command"]],
            env=os.environ | environment | {"PATH": path},
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        address = f"127.0.0.1:{port}"
        while True:
            assert server.poll() is None, (folder / "log").read_text()
            try:
                with urllib.request.urlopen(f"http://{address}/health", timeout=5):
                    break
            except OSError:
                time.sleep(0.3)
        yield address, admin
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
