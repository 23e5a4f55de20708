"""``python -m raysel COMMAND``, which is the console script ``raysel``."""

import sys

from raysel.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
