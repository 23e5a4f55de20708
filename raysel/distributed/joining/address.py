"""Check that a Ray cluster can be joined, in a process of its own.

Ray ends the whole process, or retries for minutes with pages of output, where an address is not one of a cluster that
this machine belongs to.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading

from raysel.errors import ConfigError

#: Seconds after which a cluster counts as not answering; Ray's import alone takes half a minute on a busy machine.
_PATIENCE = 90.0
_SCRIPT = (
    "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR'); print('joined')\n"
    "ray.shutdown()"
)
#: Text of Ray's output that tells why it will not join, as regular expression, by the reason.
_REASONS = {
    "token": re.compile("Unauthenticated|InvalidAuthToken|AuthenticationError|no authentication token"),
    "versions": re.compile("Version mismatch"),
    "no cluster": re.compile("Failed to connect to GCS|Could not find any running Ray instance|RPC error"),
    "no node": re.compile("Failed to connect to socket|Can't find a .node_ip_address|No node info found"),
}
#: Reasons after which the rest of the output tells nothing more.
_CERTAIN = ("token", "no cluster", "no node")
_ENTRY = re.compile(r"Ray: (\S+)\s+Python: (\S+)")


def check_cluster(address: str, patience: float = _PATIENCE) -> None:
    """Check that this process can join the Ray cluster at an address."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, address], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    timer = threading.Timer(patience, process.kill)
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
    if not (lines and lines[-1].startswith("joined")):
        raise ConfigError(refusal(address, "".join(lines)))


def refusal(address: str, output: str) -> str:
    """Say in plain words why Ray does not join a cluster."""
    reason = next((name for name, pattern in _REASONS.items() if pattern.search(output)), "")
    if reason == "token":
        return (
            f"address {address}: the Ray cluster there asks for a token, and this process has none, or another (401, "
            "unauthenticated). Set RAY_AUTH_MODE=token, and give the token of the cluster's head node, which is in its "
            "~/.ray/auth_token, in a file of mode 0600 that RAY_AUTH_TOKEN_PATH names, or that is ~/.ray/auth_token."
        )
    found = _ENTRY.findall(output)
    if reason == "versions" and len(found) > 1:
        (ray_there, python_there), (ray_here, python_here) = found[:2]
        return (
            f"address {address}: the cluster runs Ray {ray_there} on Python {python_there}, and this process Ray "
            f"{ray_here} on Python {python_here}; both need the same versions: use the same image or environment."
        )
    if reason == "no cluster":
        return (
            f"address {address}: no Ray cluster answers there; give the HOST:PORT that `ray start --head` printed, or "
            "no address to start Ray on this machine."
        )
    if reason == "no node":
        return (
            f"address {address}: there is a Ray cluster, but this machine is not one of its nodes; run the command on "
            f"a node by `ray job submit`, or let this machine join: ray start --address={address}"
        )
    last = output.strip().rpartition("\n")[2]
    return f"address {address}: the Ray cluster cannot be joined{f': {last}' if last else ', as it does not answer'}."
