"""Command ``python -m raysel.audit``, which compares careless and honest scores on a data file."""

import sys

from raysel.cli.main import main_of

main = main_of("audit")

if __name__ == "__main__":
    sys.exit(main())
