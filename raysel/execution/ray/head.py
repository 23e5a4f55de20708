"""Head node of a Ray cluster: whether it can be joined, its token, and a watch over it.

Joining is tried in a process of its own, because Ray ends the whole process, or retries for minutes
with pages of output, where an address is not one of a cluster that this machine belongs to.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from raysel.core.errors import ConfigError, HeadLostError
from raysel.core.printing import end_process

#: Variable by which a process, and a cluster, demands tokens ("token") or none ("disabled").
MODE = "RAY_AUTH_MODE"
#: Seconds after which a cluster counts as not answering; Ray's import alone takes half a minute on
#: a busy machine.
_PATIENCE = 90.0
_SCRIPT = (
    "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR');"
    " print('joined')\nray.shutdown()"
)
#: Text of Ray's output that tells why it will not join, as regular expression, by the reason.
_REASONS = {
    "token": re.compile(
        "Unauthenticated|InvalidAuthToken|AuthenticationError|no authentication token"
    ),
    "versions": re.compile("Version mismatch"),
    "no cluster": re.compile(
        "Failed to connect to GCS|Could not find any running Ray instance|RPC error"
    ),
    "no node": re.compile(
        "Failed to connect to socket|Can't find a .node_ip_address|No node info found"
    ),
}
#: Reasons after which the rest of the output tells nothing more.
_CERTAIN = ("token", "no cluster", "no node")
_ENTRY = re.compile(r"Ray: (\S+)\s+Python: (\S+)")
#: Seconds without an answer after which the head node counts as lost.
LIMIT = 45.0
#: Seconds between two questions, and for an answer.
_PERIOD, _TIMEOUT = 1.0, 2.0
#: Seconds for the study to end by itself before its process is ended.
_GRACE = 15.0


def demands_token() -> bool:
    """Whether the user's variables make this process one that demands tokens."""
    return os.environ.get(MODE, "").lower() == "token"


def protect_token(*, make: bool) -> None:
    """Check that only its owner can read the file of Ray's token; mend the mode of Ray's own.

    Ray 2.60 turns token authentication on for a Ray that it starts on this machine, and makes
    ``~/.ray/auth_token`` with a mode by which every user of the machine can read it, and so run
    code as this one. The file in this place gets mode 0600; one that ``RAY_AUTH_TOKEN_PATH`` names
    is only checked.
    """
    if os.environ.get(MODE, "token").lower() != "token" or os.environ.get("RAY_AUTH_TOKEN"):
        return
    named = os.environ.get("RAY_AUTH_TOKEN_PATH")
    path = Path(named) if named else Path.home() / ".ray" / "auth_token"
    try:
        state = path.stat()
    except OSError:
        if make and not named:
            with suppress(OSError):  # Ray says so itself where it needs the file
                _make(path)
        return
    is_own, others = state.st_uid == os.geteuid(), stat.S_IMODE(state.st_mode) & 0o077
    if named:
        if (
            is_own and others
        ):  # one of a secret that a cluster mounts is another's, and not ours to change
            raise ConfigError(
                f"RAY_AUTH_TOKEN_PATH: other users can read {path} (mode"
                f" {stat.S_IMODE(state.st_mode):04o}), and with it run code on the cluster as you;"
                f" run: chmod 600 {path}"
            )
        return
    if not is_own:
        raise ConfigError(
            f"{path}, the token of your Ray, belongs to the user {state.st_uid} and not to you"
            f" ({os.geteuid()}). Remove it, or name your own file in RAY_AUTH_TOKEN_PATH."
        )
    if others:
        path.chmod(0o600)


def _make(path: Path) -> None:
    """Write a new token as Ray does, 64 hexadecimal digits, unless another process just has."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
        with suppress(FileExistsError):
            path.hardlink_to(part)
    finally:
        part.unlink(missing_ok=True)


def check_cluster(address: str, *, in_token_mode: bool = False) -> None:
    """Check that this process can join the Ray cluster at an address.

    A process in token mode joins a cluster without tokens, but rejects the calls of its workers,
    which then end. Its mode can no longer change, so that such a cluster is refused.
    """
    variables = dict(os.environ)
    if in_token_mode:
        check_takes_token(address)
        variables[MODE] = "token"
    lines = _try_to_join(address, variables)
    if not _has_joined(lines):
        raise ConfigError(refusal(address, "".join(lines)))


def check_takes_token(address: str) -> None:
    """Check that the cluster at an address takes tokens, which this process demands."""
    without = _try_to_join(address, {**os.environ, MODE: "disabled"})
    if _has_joined(without):
        raise ConfigError(
            f"address {address}: the Ray cluster there takes no token, and this process demands"
            " one. Start a new Python process with RAY_AUTH_MODE=disabled, or the cluster with"
            " RAY_AUTH_MODE=token."
        )


def _try_to_join(address: str, variables: Mapping[str, str]) -> list[str]:
    """Return what a process with these variables prints that joins a cluster."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, address],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=variables,
    )
    timer = threading.Timer(_PATIENCE, process.kill)
    timer.start()
    lines: list[str] = []
    try:
        with process:
            for line in process.stdout or ():
                lines.append(line)
                if line.startswith("joined"):
                    break  # Ray may take its time to leave
                if any(_REASONS[reason].search(line) for reason in _CERTAIN):
                    process.kill()
    finally:
        timer.cancel()
        process.kill()
    return lines


def _has_joined(lines: Sequence[str]) -> bool:
    return bool(lines) and lines[-1].startswith("joined")


def refusal(address: str, output: str) -> str:
    """Say in plain words why Ray does not join a cluster."""
    reason = next((name for name, pattern in _REASONS.items() if pattern.search(output)), "")
    if reason == "token":
        return (
            f"address {address}: the Ray cluster there asks for a token, and this process has none,"
            " or another (401, unauthenticated). Set RAY_AUTH_MODE=token, and copy the head"
            " node's ~/.ray/auth_token to here. Give it mode 0600; RAY_AUTH_TOKEN_PATH may name"
            " another file."
        )
    versions = _ENTRY.findall(output)
    if reason == "versions" and len(versions) > 1:
        (ray_there, python_there), (ray_here, python_here) = versions[:2]
        return (
            f"address {address}: the cluster runs Ray {ray_there} on Python {python_there}, and"
            f" this process Ray {ray_here} on Python {python_here}. Use the same image or"
            " environment for both."
        )
    if reason == "no cluster":
        return (
            f"address {address}: no Ray cluster answers there; give the HOST:PORT that `ray start"
            " --head` printed, or no address to start Ray on this machine."
        )
    if reason == "no node":
        return (
            f"address {address}: there is a Ray cluster, but this machine is not one of its nodes."
            " Run the command on a node by `ray job submit`, or let this machine join: ray start"
            f" --address={address}"
        )
    refused = f"address {address}: the Ray cluster cannot be joined"
    if last := output.strip().rpartition("\n")[2]:
        return f"{refused}: {last}."
    return f"{refused}, as it does not answer."


class HeadWatch:
    """Thread that asks every second for the head node, and interrupts the study if it is lost.

    Ray itself ends a process that cannot reach the head node for a minute, without a word on what
    is kept. A cut of the network that is shorter than `LIMIT` is survived.
    """

    def __init__(self, address: str, kept: Callable[[], str], limit: float = LIMIT) -> None:
        self._address, self._kept, self._limit = address, kept, limit
        self._ended = threading.Event()
        self.error: HeadLostError | None = None
        self._thread = threading.Thread(target=self._watch, name="raysel-head-watch", daemon=True)

    def start(self) -> None:
        """Start to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Stop to watch, which also keeps a process whose head node was lost from being ended."""
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        answered, since = time.monotonic(), time.time()
        while not self._ended.wait(_PERIOD):
            if self._answers():
                answered, since = time.monotonic(), time.time()
            elif time.monotonic() > answered + self._limit:
                break
        else:
            return
        clock = time.strftime("%H:%M:%S", time.localtime(since))
        self.error = HeadLostError(
            f"the head node of the Ray cluster, {self._address}, does not answer since {clock};"
            f" {self._kept()}. Resume the study on a new cluster, or without one."
        )
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        if not self._ended.wait(
            _GRACE
        ):  # a call of Ray that cannot be interrupted waits for the head node
            end_process(self.error)

    def _answers(self) -> bool:
        host, _, port = self._address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_TIMEOUT).close()
        except OSError:
            return False
        return True
