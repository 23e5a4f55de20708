"""Hosts of a network on one machine, made of namespaces: each has its own address, processes, /tmp,
home and sshd.

A host that is killed takes all of its processes with it, and a command that stops every Ray of a
host, as ``ray up`` does, reaches no other host's. The tests' own process is outside: it is the
terminal of a user, at `Network.terminal`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
#: Commands of Debian's iproute2, openssh-server, openssh-client, rsync and util-linux.
_COMMANDS = ("ip", "sshd", "ssh", "ssh-keygen", "rsync", "unshare", "nsenter")
_SBIN = "/usr/sbin:/sbin"
#: First process of a host: it waits, and lets the kernel reap the processes whose parents have
#: ended.
_INIT = (
    "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); print(flush=True)\nwhile True:"
    " signal.pause()"
)

#: ``ray start`` without what no test uses: the import of Ray Serve, the API server and modules of
#: the dashboard.
_RAY_START = """
import sys
import ray._private.node, ray._private.utils
sys.modules["ray.serve"] = None
ray._private.node.Node.start_api_server = lambda *_, **__: None
ray._private.utils.get_dashboard_dependency_error = lambda: ImportError("left out")
from ray.scripts.scripts import start
start()
"""


def need_hosts() -> None:
    """Skip the test, and say what is missing, where hosts cannot be made."""
    path = f"{os.environ.get('PATH', '')}:{_SBIN}"
    missing = [name for name in _COMMANDS if shutil.which(name, path=path) is None]
    if os.geteuid() != 0:
        missing.append("root")
    elif (
        not missing
        and _run("unshare", "--net", "--pid", "--fork", "--mount", "true", check=False).returncode
    ):
        missing.append("permission to make namespaces")
    if missing:
        pytest.skip(f"needs hosts made of namespaces: {', '.join(missing)} is missing")


class Network:
    """A bridge with hosts; used as a context, whose end removes all of them."""

    def __init__(self, folder: Path) -> None:
        need_hosts()
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._tag = uuid.uuid4().hex[:6]
        self.bridge = f"br{self._tag}"
        self.key = folder / "key"
        self._stack = ExitStack()
        self.hosts: list[Host] = []

    def __enter__(self) -> Network:
        with ExitStack() as stack:
            self._subnet = self._add_bridge(stack)
            self.terminal = f"{self._subnet}.254"
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _add_bridge(self, stack: ExitStack) -> str:
        """Add the bridge with the first subnet that no other network of this machine has."""
        _run("ip", "link", "add", self.bridge, "type", "bridge")
        stack.callback(_run, "ip", "link", "del", self.bridge, check=False)
        for number in range(256):
            subnet = f"10.213.{(os.getpid() + number) % 256}"
            if subnet not in _run("ip", "-4", "-o", "address").stdout:
                _run("ip", "address", "add", f"{subnet}.254/24", "dev", self.bridge)
                _run("ip", "link", "set", self.bridge, "up")
                return subnet
        raise RuntimeError("no subnet is free")

    def add(self, name: str) -> Host:
        """Start a host with the next free address."""
        number = len(self.hosts) + 1
        host = Host(self, name, f"{self._subnet}.{number}", f"v{self._tag}{number}")
        self.hosts.append(host)
        self._stack.callback(host.kill)
        return host


class Host:
    """A host: it runs from its creation until it is killed."""

    def __init__(self, network: Network, name: str, address: str, link: str) -> None:
        self.name, self.address, self._link, self._network = name, address, link, network
        self.folder = network.folder / name
        self.home = self.folder / "home"
        for part in (self.home, self.folder / "tmp"):
            part.mkdir(parents=True, exist_ok=True)
        self._start()

    def _start(self) -> None:
        namespaces = (
            "--net",
            "--pid",
            "--mount",
            "--uts",
            "--ipc",
            "--fork",
            "--kill-child",
            "--mount-proc",
        )
        self._outer = subprocess.Popen(
            ["unshare", *namespaces, sys.executable, "-c", _INIT],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._outer.stdout is not None
        self._outer.stdout.readline()
        children = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children").read_text(
            encoding="utf-8"
        )
        self._init = int(children.split()[0])
        inside = f"{self._link}i"
        _run(
            "ip",
            "link",
            "add",
            self._link,
            "type",
            "veth",
            "peer",
            "name",
            inside,
            "netns",
            str(self._init),
        )
        _run("ip", "link", "set", self._link, "master", self._network.bridge, "up")
        script = [
            f"hostname {self.name}",
            "ip link set lo up",
            f"ip address add {self.address}/24 dev {inside}",
            f"ip link set {inside} up",
            f"ip route add default via {self._network.terminal}",
            "mount --make-rprivate /",
            "mount -t tmpfs -o size=2g tmpfs /dev/shm",
            *self._own_files(),
            *self._own_tmp(),
        ]
        self.run("\n".join(("set -e", *script)))
        self._start_sshd()

    def _own_files(self) -> list[str]:
        """Return the commands that give root a home of this host, and every login this Python's
        commands.
        """
        passwd, profile = self.folder / "passwd", self.folder / "profile"
        lines = Path("/etc/passwd").read_text(encoding="utf-8").splitlines()[1:]
        passwd.write_text(
            "\n".join((f"root:x:0:0:root:{self.home}:/bin/bash", *lines, "")), encoding="utf-8"
        )
        profile.write_text(f"export PATH={self._path}\n", encoding="utf-8")
        own = [passwd, profile, *self._names()]
        return [f"mount --bind {shlex.quote(str(file))} /etc/{file.name}" for file in own]

    def _names(self) -> list[Path]:
        """Return the files that name the hosts: Ray asks for its host's name, and waits 20 s for
        an absent server.
        """
        hosts, resolver = self._network.folder / "hosts", self._network.folder / "resolv.conf"
        line = f"{self.address} {self.name}\n"
        known = hosts.read_text(encoding="utf-8") if hosts.exists() else "127.0.0.1 localhost\n"
        if line not in known:
            hosts.write_text(known + line, encoding="utf-8")  # the same file in every host
        resolver.touch()
        return [hosts, resolver]

    def _own_tmp(self) -> list[str]:
        """Return the commands that give the host a /tmp of its own, which shows Python, the code
        and the network.
        """
        own = self.folder / "tmp"
        commands = []
        for path in {Path(sys.prefix), REPOSITORY, self._network.folder}:
            if path.is_relative_to("/tmp"):
                inner = own / path.relative_to("/tmp")
                commands += [f"mkdir -p {shlex.quote(str(inner))}"]
                commands += [f"mount --rbind {shlex.quote(str(path))} {shlex.quote(str(inner))}"]
        return [*commands, f"mount --rbind {shlex.quote(str(own))} /tmp"]

    @property
    def _path(self) -> str:
        return f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin:{_SBIN}"

    def _start_sshd(self) -> None:
        settings = self.folder / "sshd_config"
        key, keys = self.folder / "host_key", self.folder / "authorized_keys"
        if not key.exists():
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
        shutil.copy(self._network.key.with_suffix(".pub"), keys)
        settings.write_text(
            f"HostKey {key}\nAuthorizedKeysFile {keys}\nStrictModes no\nUsePAM"
            " no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nMaxStartups 100\n",
            encoding="utf-8",
        )
        # In a mount namespace, where the folder that sshd needs is made on a file system of the
        # host's own.
        self.run(
            f"mount -t tmpfs tmpfs /run && mkdir -p /run/sshd && $(command -v sshd) -f {settings}"
        )

    @property
    def environment(self) -> dict[str, str]:
        """Environment of the host's commands: of the tests' the language, and what makes their
        numbers the same.
        """
        kept = (
            "LANG",
            "OPENBLAS_CORETYPE",
            "OPENBLAS_NUM_THREADS",
            "OMP_NUM_THREADS",
            "RAYSEL_DATA",
        )
        own = {name: os.environ[name] for name in kept if name in os.environ}
        # The code of this repository, as if it were installed on the host.
        own |= {
            "PATH": self._path,
            "HOME": str(self.home),
            "PYTHONPATH": str(REPOSITORY),
            "USER": "root",
        }
        return own | {
            "RAY_prestart_worker_first_driver": "0",  # no study uses those started in advance
            # By default Ray's workers get hardly any of a processor that other tests use, too.
            "RAY_worker_niceness": "0",
        }

    def _command(self, script: str) -> list[str]:
        return [
            "nsenter",
            f"--target={self._init}",
            "--all",
            f"--wd={self.home}",
            "bash",
            "-c",
            script,
        ]

    def run(
        self, script: str, timeout: float = 120, check: bool = True, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell script on the host and wait for its end."""
        return _run(
            *self._command(script), timeout=timeout, check=check, env=self.environment | environment
        )

    def start(
        self, script: str, log: Path, stdin: int = subprocess.DEVNULL, **environment: str
    ) -> subprocess.Popen[bytes]:
        """Start a shell script on the host; its output goes to a file."""
        with log.open("ab") as file:
            return subprocess.Popen(
                self._command(f"exec {script}"),
                stdin=stdin,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=self.environment | environment,
            )

    def start_ray(self, *options: str, n_cpus: int = 1, **environment: str) -> None:
        """Start a node of Ray; it waits for its servers as long as a busy machine needs."""
        script = shlex.join(
            ["python", "-c", _RAY_START, f"--node-ip-address={self.address}", *options]
        )
        few = "--object-store-memory=100000000 --include-log-monitor=false --disable-usage-stats"
        command = f"{script} --num-cpus={n_cpus} {few}"
        self.run(command, timeout=300, RAY_raylet_start_wait_time_s="240", **environment)

    def cut(self) -> None:
        """Take the host off the network; its processes go on."""
        _run("ip", "link", "set", self._link, "down")

    def reconnect(self) -> None:
        """Put the host back on the network."""
        _run("ip", "link", "set", self._link, "up")

    def kill(self) -> None:
        """End all processes of the host at once, as if its power were cut."""
        with suppress(ProcessLookupError):
            os.kill(self._init, signal.SIGKILL)
        self._outer.kill()
        self._outer.wait()
        _run("ip", "link", "del", self._link, check=False)


def _run(
    *command: str, timeout: float = 120, check: bool = True, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    env = env or os.environ | {"PATH": f"{os.environ.get('PATH', '')}:{_SBIN}"}
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, check=False, env=env
    )
    if check and ended.returncode:
        raise RuntimeError(
            f"{shlex.join(command)} ended with {ended.returncode}:\n{ended.stdout}\n{ended.stderr}"
        )
    return ended
