"""Command ``python -m raysel.tune``, which runs a study, or several that are compared."""

import sys

from raysel.cli.tune import main

if __name__ == "__main__":
    sys.exit(main())
