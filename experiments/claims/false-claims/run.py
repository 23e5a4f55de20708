"""What raysel says of data that tell nothing, or less than they seem to: one line for each trap.

Run: python experiments/claims/false-claims/run.py [TRAP ...]; without names it writes claims.csv.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

import audits
import batches
import chance
import consensus
import intervals
import leaks
import nulls
import places
import rankings
import reports
from trap import COLUMNS, StudyTrap, Trap

#: Number of attempts at each trap.
SEEDS = 5

TRAPS: dict[str, Trap | StudyTrap] = {
    **nulls.TRAPS,
    **places.TRAPS,
    **chance.TRAPS,
    **intervals.TRAPS,
    **leaks.TRAPS,
    **rankings.TRAPS,
    **audits.TRAPS,
    **batches.TRAPS,
    **consensus.TRAPS,
    **reports.TRAPS,
}


def claims(seeds: int = SEEDS, names: Collection[str] = ()) -> Iterator[dict[str, str]]:
    """Yield a row for each trap: what is expected, how often it holds, the first seed's words."""
    for name in names or TRAPS:
        trap = TRAPS[name]
        with tempfile.TemporaryDirectory() as folder:
            outcomes = []
            for seed in range(seeds):
                own = Path(folder, str(seed))
                own.mkdir()
                outcomes.append(trap.attempt(seed, own))
        n_held = sum(outcome.holds for outcome in outcomes)
        said = {column: outcomes[0].said.get(column, "") for column in COLUMNS}
        holds = f"{n_held} of {seeds}"
        yield {"trap": name, "expected": trap.expected, "holds": holds, **said}


def main(names: Collection[str]) -> None:
    """Print the rows; write them where all traps are tried."""
    rows = []
    for row in claims(names=names):
        print(*(f"{column}: {words}" for column, words in row.items()), "", sep="\n", flush=True)
        rows.append(row)
    if not names:
        path = Path(__file__).with_name("claims.csv")
        with path.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            table.writeheader()
            table.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
