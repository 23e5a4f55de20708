"""Command ``python -m raysel.tune``, which runs a study, or several that are compared."""

import sys

from raysel.cli.main import main_of

main = main_of("tune")

if __name__ == "__main__":
    sys.exit(main())
