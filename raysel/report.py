"""Command ``python -m raysel.report``, which writes the report of a study or a comparison as one HTML file."""

import sys

from raysel.cli.report import main

if __name__ == "__main__":
    sys.exit(main())
