"""``raysel``: its subcommands, the names that their help has, and that help loads nothing heavy."""

from __future__ import annotations

import signal
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from small_studies import streams_of

import raysel
from raysel.cli.commands import COMMANDS
from raysel.cli.main import main
from raysel.evaluation.ranking_files import FORMATS

ROOT = Path(raysel.__file__).parent.parent
HEAVY = {
    "numpy",
    "sklearn",
    "scipy",
    "pandas",
    "pyarrow",
    "pydantic",
    "yaml",
    "rich",
    "matplotlib",
    "ray",
    "mlflow",
}


def test_the_console_script_lists_all_commands(capsys):
    script = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "scripts"
    ]["raysel"]
    module, _, function = script.partition(":")
    assert getattr(import_module(module), function) is main
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    out = capsys.readouterr().out
    assert end.value.code == 0
    assert all(
        f"\n    {name}" in out and command.summary[:40] in out for name, command in COMMANDS.items()
    )
    with pytest.raises(SystemExit) as end:
        main([])
    assert end.value.code == 2


@pytest.mark.parametrize(
    "words",
    [
        *(("tune", ""), ("select", ""), ("init", ""), ("audit", ""), ("compare", "a", "")),
        *(("tune", "--output", ""), ("tune", "--output="), ("tune", "--resume", "", "--dry-run")),
        *(("report", "a", "-o", ""), ("upload", "a", ""), ("tune", "--dry-run", "--set", "")),
    ],
)
def test_an_empty_argument_is_refused_and_stands_for_no_default(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, told = streams_of(*words)
    assert (status, out) == (2, "")
    assert "is empty" in told
    assert told.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("tune", "wine", "--set", "tracking.uri=http://ada:Sw0rdf1sh@h"), "tracking.uri"),
        (("tune", "--set=tracking.uri=http://ada:Sw0rdf1sh@h"), "--set"),
        (("tune", "--replay", "a", "--set", "tracking={uri: 'http://Sw0rdf1sh@h'}"), "tracking"),
        (("select", "s3://key:Sw0rdf1sh@bucket/study"), "the argument after select"),
        (("upload", "s3://b/x?secret_key=Sw0rdf1sh", "b"), "the argument after upload"),
        (("no-command", "http://ada:Sw0rdf1sh@h"), "the argument after no-command"),
    ],
)
def test_credentials_in_an_argument_are_refused_before_anything_else(
    words, named, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    status, out, told = streams_of(*words)
    assert (status, out) == (2, "")
    assert told.startswith(f"error: {named} holds credentials")
    assert "MLFLOW_TRACKING_URI" in told
    assert "Sw0rdf1sh" not in told
    assert not list(tmp_path.iterdir())


def test_a_program_that_calls_a_command_keeps_its_own_hook_of_exceptions():
    code = "import sys; own = sys.excepthook; import raysel.tune; assert sys.excepthook is own"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["tune", "select"])
def test_a_command_is_the_same_by_both_names(name, capsys):
    texts = []
    for call, words in ((main, [name]), (import_module(f"raysel.{name}").main, [])):
        with pytest.raises(SystemExit):
            call([*words, "--help"])
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert texts[0].startswith(f"usage: raysel {name} [-h]")


def test_help_loads_nothing_heavy():
    script = f"""
import sys
from contextlib import redirect_stdout, suppress
from raysel.cli.commands import COMMANDS
from raysel.cli.main import main
for name in COMMANDS:
    with suppress(SystemExit), redirect_stdout(None):
        main([name, "--help"])
print({HEAVY} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("set()", 0)


def test_a_study_says_that_it_is_loaded_before_it_loads_anything_heavy():
    script = f"""
import io
import sys
from contextlib import redirect_stdout
from raysel.tune import main

loaded = []

class Stream(io.StringIO):
    def write(self, text):
        loaded.append({HEAVY - {"rich"}} & set(sys.modules))
        return super().write(text)

with redirect_stdout(Stream()) as said:
    main(["missing.yaml"])
print(said.getvalue().strip(), loaded[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "missing.yaml: loading libraries and data set()\n"
    assert "no configuration at missing.yaml" in done.stderr


@pytest.mark.parametrize("words", [["raysel"], ["-m", "raysel", "init"]])
@pytest.mark.parametrize("imported", ["argparse", "raysel.cli.commands", "raysel.core.printing"])
def test_ctrl_c_during_the_imports_of_a_command_prints_one_word(words, imported, tmp_path):
    """The interpreter interrupts itself, as Ctrl-C does, when a command first imports a module."""
    (tmp_path / "sitecustomize.py").write_text(
        f"""
import signal
import sys

class Interrupts:
    def find_spec(self, name, *_):
        if name == {imported!r} and "raysel.cli" in sys.modules:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
""",
        encoding="utf-8",
    )
    command = (
        [str(Path(sys.executable).with_name("raysel")), "init"] if words == ["raysel"] else words
    )
    done = subprocess.run(
        ["env", f"PYTHONPATH={tmp_path}:{ROOT}", sys.executable, *command, "iris"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.strip() == "interrupted"
    assert done.stdout == ""
    assert done.returncode in (-signal.SIGINT, 128 + signal.SIGINT)


def test_the_help_of_select_names_the_formats_that_there_are(capsys):
    with pytest.raises(SystemExit):
        main(["select", "--help"])
    assert f"format of the table: {', '.join(FORMATS)};" in " ".join(
        capsys.readouterr().out.split()
    )


def test_used_up_memory_is_told_in_a_sentence(monkeypatch, capsys):
    def use_up(_):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("raysel.cli.study_files.init", use_up)
    assert main(["init", "wine"]) == 1
    err = capsys.readouterr().err
    assert "not enough memory (Unable to allocate 9 TiB)" in err
    assert "fault" not in err
