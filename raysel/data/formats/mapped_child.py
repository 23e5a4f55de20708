"""Process that maps an Arrow file to memory, and writes its rows in short batches; it imports
nothing of raysel.

If the file is cut short meanwhile, the signal SIGBUS ends this process, and not the one that reads
the rows.
"""

from __future__ import annotations

import signal
import sys

import pyarrow as pa


def main(path: str, rows: int) -> None:
    """Write the batches of a file to the standard output, as a stream of batches of so many rows
    at most.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends where nobody reads any more
    with (
        pa.ipc.open_file(pa.memory_map(path)) as file,
        pa.ipc.new_stream(sys.stdout.buffer, file.schema) as stream,
    ):
        for i in range(file.num_record_batches):
            batch = file.get_batch(i)
            for start in range(0, len(batch), rows):
                stream.write_batch(batch.slice(start, rows))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
