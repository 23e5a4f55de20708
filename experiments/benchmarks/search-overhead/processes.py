"""The processes below this one."""

from __future__ import annotations

import os
from pathlib import Path


def below() -> dict[int, str]:
    """Command lines of all processes below this one, by process id."""
    parents, commands = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rpartition(")")[2].split()[1]
            )
            commands[int(folder.name)] = (folder / "cmdline").read_text()
        except OSError:  # it has just ended
            continue

    def is_below(pid: int) -> bool:
        while pid > 1 and pid != os.getpid():
            pid = parents.get(pid, 0)
        return pid == os.getpid()

    return {
        pid: command for pid, command in commands.items() if pid != os.getpid() and is_below(pid)
    }
