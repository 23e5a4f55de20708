"""Command ``python -m raysel.tune``, which runs a study, or several that are compared."""

import sys

from raysel.cli.main import make_main

main = make_main("tune")

if __name__ == "__main__":
    sys.exit(main())
