"""Fuzzer of configurations and data files: each damaged file must be taken, or refused in a
sentence.

The long form (see README.md):  python experiments/claims/survival/fuzz_inputs.py --minutes 10
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[3] / "tests" / "data"))

from damage import KINDS, OPTIONS, damaged, judge

HANG, PATIENCE_SECONDS = "hang", 10.0
MEMORY_BYTES = 8 * 2**30


def work(connection: Any) -> None:
    """Judge file after file; killed when one takes too long."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            path, options = connection.recv()
        except (EOFError, OSError):  # nobody asks any more
            return
        try:
            connection.send((judge(path, options), ""))
        except BaseException as error:  # noqa: BLE001 - that is what is looked for
            place = traceback.extract_tb(error.__traceback__)[-1]
            short = (
                f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {error}"[
                    :200
                ]
            )
            connection.send((short, traceback.format_exc()))


class Worker:
    """A process that may crash or hang."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=work, args=(there,), daemon=True)
        self._process.start()
        there.close()

    def judge(self, path: Path, options: dict[str, Any], patience: float) -> tuple[str, str]:
        """Outcome of a file, in short and in full."""
        try:
            self._here.send((path, options))
            if self._here.poll(patience):
                return self._here.recv()
        except (EOFError, OSError):
            self._process.join()
            return f"crash: {signal.Signals(-self._process.exitcode).name}", ""
        self._process.kill()
        self._process.join()
        return HANG, ""

    @property
    def alive(self) -> bool:
        """True while the process can judge another file."""
        return self._process.is_alive()


def main() -> None:
    """Print how many files of each kind were taken, refused, or did something else."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument(
        "--keep", type=Path, default=Path("fuzz-finds"), help="where the files that are finds go"
    )
    arguments = parser.parse_args()
    counts, finds = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    begun, n, worker = time.monotonic(), 0, Worker()
    worker.judge(Path("no.csv"), {}, 600)  # imports
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        while time.monotonic() - begun < 60 * arguments.minutes:
            kind = arguments.kinds[n % len(arguments.kinds)]
            draw = random.Random(f"{arguments.seed} {n}")
            path = Path(folder, f"case{n % 2}.{kind}")
            path.write_bytes(damaged(kind, draw))
            options = draw.choice(OPTIONS)
            short, full = worker.judge(path, options, PATIENCE_SECONDS)
            if short == HANG:  # or was the machine busy?
                worker = Worker()
                short, full = worker.judge(path, options, 6 * PATIENCE_SECONDS)
            if not worker.alive:
                worker = Worker()
                worker.judge(Path("no.csv"), {}, 600)
            if short in ("taken", "refused"):
                counts[kind, short] += 1
            else:
                counts[kind, "finds"] += 1
                finds[kind, short] += 1
                arguments.keep.mkdir(exist_ok=True)
                (arguments.keep / f"{n}.{kind}").write_bytes(path.read_bytes())
                if finds[kind, short] == 1:
                    print(f"find {n}.{kind} {options}: {short}\n{full}", flush=True)
            n += 1
    print(f"{n} files in {time.monotonic() - begun:.0f} s, seed {arguments.seed}")
    for kind in arguments.kinds:
        print(
            f"{kind:8}",
            ", ".join(f"{counts[kind, what]} {what}" for what in ("taken", "refused", "finds")),
        )
    for (kind, short), times in finds.most_common():
        print(f"{times} x {kind}: {short}")
    raise SystemExit(bool(finds))


if __name__ == "__main__":
    main()
