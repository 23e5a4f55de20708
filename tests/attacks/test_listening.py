"""What raysel starts listens on the loopback interface only."""

from __future__ import annotations

import ipaddress
import os
import sys
from pathlib import Path

import pytest


def parents() -> dict[int, int]:
    """The parent of each process."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    return found


def sockets(pid: int) -> set[str]:
    """The sockets that a process holds, by inode."""
    try:
        links = [str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return set()
    return {link[8:-1] for link in links if link.startswith("socket:[")}


def listening() -> list[str]:
    """The address of each listening socket of all processes below this one, as the kernel writes
    it.
    """
    family, tree = {os.getpid()}, parents()
    while more := {pid for pid, parent in tree.items() if parent in family} - family:
        family |= more
    held = set().union(*map(sockets, family))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            address, state, inode = line.split()[1], line.split()[3], line.split()[9]
            if state == "0A" and inode in held:
                found.append(address.partition(":")[0])
    return found


def address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Address as /proc/net/tcp writes it: words of 32 bits in the machine's order."""
    words = [bytes.fromhex(text[i : i + 8])[::-1] for i in range(0, len(text), 8)]
    found = ipaddress.ip_address(b"".join(words))
    return getattr(found, "ipv4_mapped", None) or found


@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_ray_on_this_machine_listens_on_loopback_only():
    import ray  # noqa: PLC0415 - takes seconds

    ray.get([ray.remote(lambda: 1).remote() for _ in range(2)])
    found = [address_of(text) for text in listening()]
    assert len(found) > 5  # GCS, raylet, agents and workers listen
    assert all(address.is_loopback for address in found), found
