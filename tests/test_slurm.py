"""conf/cluster/slurm.sh on a Slurm of two machines: a study that is cancelled can go on with the
numbers of one.
"""

from __future__ import annotations

import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from cluster_studies import (
    bare_commands,
    ends,
    go_on_alone,
    ranking,
    run_alone,
    trials,
    wait_for,
    write_study,
)
from hosts import REPOSITORY, Network

pytestmark = pytest.mark.slow

SCRIPT = REPOSITORY / "conf" / "cluster" / "slurm.sh"
#: Two machines of Slurm without what only real ones have: cgroups, a database and users.
SETTINGS = """
ClusterName=test
SlurmctldHost=alpha({first.address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
KillWait=30
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
NodeName=alpha NodeAddr={first.address} CPUs=2 State=UNKNOWN
NodeName=beta NodeAddr={second.address} CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """Two machines with Slurm and a folder that both see, in which the study is."""
    commands = ("munged", "slurmctld", "slurmd", "sbatch")
    missing = [name for name in commands if shutil.which(name, path="/usr/sbin:/usr/bin") is None]
    if missing:
        packages = "munge, slurm-client, slurmctld, slurmd"
        pytest.skip(
            f"needs Slurm (Debian: {packages}): {', '.join(missing)} missing; slurm.sh is NOT"
            " tested here"
        )
    folder = tmp_path_factory.mktemp("slurm")
    for part in (folder, folder.parent, folder.parent.parent):
        part.chmod(0o755)  # munged refuses folders that others may write to
    with Network(folder) as network:  # the hosts see its folder
        first, second = network.add("alpha"), network.add("beta")
        settings, key = folder / "slurm.conf", folder / "munge.key"
        settings.write_text(
            SETTINGS.format(folder=folder, first=first, second=second), encoding="utf-8"
        )
        (folder / "cgroup.conf").write_text(
            "CgroupPlugin=cgroup/v1\nIgnoreSystemd=yes\n", encoding="utf-8"
        )
        (folder / "state").mkdir()
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        for host in (first, second):
            files = " ".join(
                f"--{name}-file={host.folder}/munge.{name}" for name in ("pid", "log", "seed")
            )
            host.run(f"mkdir -p /run/munge && munged --force --key-file={key} {files}")
        first.run(f"slurmctld -f {settings}")
        for host in (first, second):
            host.run(f"slurmd -f {settings} -N {host.name}")
        work = folder / "work"
        work.mkdir()
        write_study(work, folder / "hold")
        script = SCRIPT.read_text(encoding="utf-8")
        for line, filled_in in {
            "source .venv/bin/activate": f"source {Path(sys.prefix)}/bin/activate",
            "--cpus-per-task=8": "--cpus-per-task=1",
        }.items():
            assert line in script
            script = script.replace(line, filled_in)
        (work / "slurm.sh").write_text(script, encoding="utf-8")

        environment = {
            "SLURM_CONF": str(settings),
            "PYTHONPATH": bare_commands(folder / "bare"),
            "RAY_worker_niceness": "0",
        }

        def run(command: str, timeout: float = 400) -> str:
            return first.run(f"cd {work} && {command}", timeout=timeout, **environment).stdout

        try:
            yield SimpleNamespace(run=run, work=work, hold=folder / "hold")
        finally:
            first.run("scancel --user=root", check=False, SLURM_CONF=str(settings))


def test_a_cancelled_study_keeps_its_trials_which_have_the_numbers_of_one_machine(slurm):
    study = slurm.work / "out"

    def said() -> str:
        return "\n".join(path.read_text(encoding="utf-8") for path in slurm.work.glob("*-[0-9]*.*"))

    slurm.hold.touch()
    job = slurm.run("sbatch --parsable slurm.sh study.yaml --output out").strip()
    wait_for(said, lambda: trials(study))
    slurm.hold.write_text("wait", encoding="utf-8")
    assert slurm.run("stat -c %a .ray-token-*") == "600\n"
    # Ray then takes nobody without it.
    assert "\nRAY_AUTH_MODE=token\n" in slurm.run(
        "tr '\\0' '\\n' < /proc/$(pgrep gcs_server)/environ"
    )
    slurm.run(
        f"scancel --batch --signal=TERM {job}"
    )  # as Slurm does before the end of the job's time
    wait_for(said, lambda: ends(study) == ["interrupted"])
    n_first = len(trials(study))
    wait_for(said, lambda: not slurm.run("squeue --noheader"), every=0.5)
    assert "kept; resume with: sbatch conf/cluster/slurm.sh study.yaml --resume out\n" in said()

    assert "ExitCode=143:0" in slurm.run(f"scontrol show job {job}")  # the study's, by SIGTERM
    assert not list(slurm.work.glob(".ray-token-*"))

    run_alone(slurm.work, slurm.work / "alone")
    go_on_alone(slurm.work, study)
    assert 0 < n_first < len(trials(study))
    assert ends(study) == ["interrupted", "finished"]
    assert trials(study) == trials(slurm.work / "alone")
    assert ranking(study) == ranking(slurm.work / "alone")
