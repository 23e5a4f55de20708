"""Command ``python -m raysel.stability``, which runs stability selection on a finished study."""

import sys

from raysel.cli.stability import main

if __name__ == "__main__":
    sys.exit(main())
