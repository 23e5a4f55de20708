"""Command ``python -m raysel.init``, which looks at a data file and writes a study that fits it."""

import sys

from raysel.cli.main import main_of

main = main_of("init")

if __name__ == "__main__":
    sys.exit(main())
