"""Command ``python -m raysel.compare``, which prints a comparison again, or joins those of several data sets."""

import sys

from raysel.cli.compare import main

if __name__ == "__main__":
    sys.exit(main())
