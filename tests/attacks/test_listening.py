"""What raysel starts listens on the loopback interface only."""

from __future__ import annotations

import ipaddress
import subprocess
import sys

import pytest

#: Starts Ray as a study on this machine does, and prints the address of each listening socket of all its processes.
SCRIPT = """
import os
from pathlib import Path
from raysel.execution.ray.session import ray_session
import ray

def parents():
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            pass
    return found

def sockets(pid):
    try:
        links = [os.readlink(f) for f in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return set()
    return {link[8:-1] for link in links if link.startswith("socket:[")}

def own():
    return os.getpid()

with ray_session(None):
    ray.get([ray.remote(own).remote() for _ in range(2)])
    family, tree = {os.getpid()}, parents()
    while more := {pid for pid, parent in tree.items() if parent in family} - family:
        family |= more
    held = set().union(*map(sockets, family))
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            address, state, inode = line.split()[1], line.split()[3], line.split()[9]
            if state == "0A" and inode in held:
                print(address.partition(":")[0])
"""


def address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Address as /proc/net/tcp writes it: words of 32 bits in the machine's order."""
    words = [bytes.fromhex(text[i : i + 8])[::-1] for i in range(0, len(text), 8)]
    found = ipaddress.ip_address(b"".join(words))
    return getattr(found, "ipv4_mapped", None) or found


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_ray_on_this_machine_listens_on_loopback_only(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = [address_of(line) for line in done.stdout.split()]
    assert len(found) > 5  # GCS, raylet, agents and workers listen
    assert all(address.is_loopback for address in found), found
